"""The conditions of get and put (`onlyIf`), and byte ranges. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from atoll.bindings.r2.limits import MAX_ETAGS, R2Refused
from atoll.errors import InvalidArgument

WILDCARD = "*"
MAX_TIME = 8_640_000_000_000_000  # of a Date
RANGE = re.compile(r"\s*+bytes\s*+=\s*+(\d{0,18})\s*+-\s*+(\d{0,18})\s*+", re.IGNORECASE)


class EtagTest(NamedTuple):
    """One tag of If-Match or If-None-Match; the value `*` matches every object."""

    value: str
    is_weak: bool = False


class OnlyIf(NamedTuple):
    """What must hold of the stored object. Times are milliseconds since 1970; None is no condition."""

    matches: tuple[EtagTest, ...] | None = None
    differs: tuple[EtagTest, ...] | None = None
    before: int | None = None
    after: int | None = None
    in_seconds: bool = False

    def holds(self, etag: str | None, uploaded: int) -> bool:
        """Whether it holds of an object; `etag` is None if there is none."""
        if etag is None:
            return self.matches is None and self.after is None
        matches = self.matches is None or any(_is(test, etag) and not test.is_weak for test in self.matches)
        differs = self.differs is None or not any(_is(test, etag) for test in self.differs)
        at = self._rounded(uploaded)
        is_later = self.after is None or self._rounded(self.after) < at or (self.differs is not None and differs)
        is_older = self.before is None or at < self._rounded(self.before) or (self.matches is not None and matches)
        return matches and differs and is_later and is_older

    def _rounded(self, at: int) -> int:
        return at // 1000 if self.in_seconds else at


ALWAYS = OnlyIf()


def _is(test: EtagTest, etag: str) -> bool:
    return test.value in (WILDCARD, etag)


def read_only_if(raw: object) -> OnlyIf:
    """The condition that a worker sent."""
    if raw is None:
        return ALWAYS
    if not isinstance(raw, dict):
        raise InvalidArgument("onlyIf must be an object")
    return OnlyIf(
        _etags(raw, "etagMatches"),
        _etags(raw, "etagDoesNotMatch"),
        _time(raw, "uploadedBefore"),
        _time(raw, "uploadedAfter"),
        raw.get("secondsGranularity") is True,
    )


def _etags(raw: Mapping[str, Any], name: str) -> tuple[EtagTest, ...] | None:
    tests = raw.get(name)
    if tests is None:
        return None
    if not isinstance(tests, list) or len(tests) > MAX_ETAGS:
        raise InvalidArgument(f"{name} must have at most {MAX_ETAGS} tags")
    found = []
    for test in tests:
        if not (isinstance(test, list) and len(test) == 2 and isinstance(test[0], str)):
            raise InvalidArgument(f"{name} is malformed")
        found.append(EtagTest(test[0], test[1] is True))
    return tuple(found)


def _time(raw: Mapping[str, Any], name: str) -> int | None:
    at = raw.get(name)
    if at is None:
        return None
    if not isinstance(at, int) or isinstance(at, bool) or abs(at) > MAX_TIME:
        raise InvalidArgument(f"{name} must be a date")
    return at


class ByteRange(NamedTuple):
    """A part of an object: from `offset`, or the last `suffix` bytes."""

    offset: int | None = None
    length: int | None = None
    suffix: int | None = None

    def within(self, size: int) -> tuple[int, int]:
        """Offset and length of the bytes of an object of this size. R2Refused if there are none."""
        if self.suffix is not None:
            if self.suffix == 0:
                raise R2Refused(10039)
            length = min(self.suffix, size)
            return size - length, length
        offset = self.offset or 0
        if offset > size or self.length == 0:
            raise R2Refused(10039)
        left = size - offset
        return offset, left if self.length is None else min(self.length, left)


WHOLE = ByteRange()


def read_range(raw: object) -> ByteRange:
    """The range that a worker sent: an object, or a Range header."""
    if raw is None:
        return WHOLE
    if isinstance(raw, str):
        return range_of_header(raw)
    if not isinstance(raw, dict):
        raise InvalidArgument("range must be an object")
    return ByteRange(*(_amount(raw, name) for name in ("offset", "length", "suffix")))


def _amount(raw: Mapping[str, Any], name: str) -> int | None:
    amount = raw.get(name)
    if amount is not None and (not isinstance(amount, int) or isinstance(amount, bool) or amount < 0):
        raise InvalidArgument(f"{name} of the range must be a whole number that is not negative")
    return amount


def range_of_header(text: str) -> ByteRange:
    """A Range header. Several ranges, or a malformed one, mean the whole object."""
    found = RANGE.fullmatch(text[:200])
    if found is None:
        return WHOLE
    first, last = found.groups()
    if first and last:
        start, end = int(first), int(last)
        return ByteRange(start, end - start + 1) if end >= start else WHOLE
    if first:
        return ByteRange(int(first))
    return ByteRange(suffix=int(last)) if last else WHOLE
