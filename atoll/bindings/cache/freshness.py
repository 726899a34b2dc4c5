"""The rules of HTTP caching, as far as a cache for workers needs them. Pure.

https://www.rfc-editor.org/rfc/rfc9111 (caching) and https://www.rfc-editor.org/rfc/rfc9110 (ranges, conditions). The
request's own Cache-Control is ignored, as Cloudflare does: a worker that reads the cache wants its content.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from email.utils import parsedate_to_datetime
from typing import NamedTuple

# How long a response without an explicit lifetime is kept, by status, as at Cloudflare; others are not kept.
DEFAULT_SECONDS = {200: 7_200, 203: 7_200, 301: 7_200, 308: 7_200, 302: 1_200, 303: 1_200, 404: 180, 410: 180}
LONGEST = 365 * 86_400  # seconds; longer lifetimes are capped
LONGEST_DATE = 64  # characters
MOST_VARYING = 50  # headers that one response may vary by
RANGE = re.compile(r"bytes\s*=\s*(\d{0,18})-(\d{0,18})\s*", re.I)
QUOTED = re.compile(r"\"[^\"]*\"")


class Headers:
    """Header lines, looked up by lower-case name."""

    __slots__ = ("pairs",)

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        self.pairs = list(pairs)

    @classmethod
    def parse(cls, head: str) -> Headers:
        lines = (line.partition(":") for line in head.split("\r\n"))
        return cls((name.strip().lower(), value.strip()) for name, found, value in lines if found)

    def get(self, name: str) -> str | None:
        """The value of a header; several are joined as HTTP does."""
        values = [value for other, value in self.pairs if other == name]
        return ", ".join(values) if values else None

    def without(self, *names: str) -> Headers:
        return Headers((name, value) for name, value in self.pairs if name not in names)

    def text(self) -> str:
        return "".join(f"{name}: {value}\r\n" for name, value in self.pairs)


class Keeping(NamedTuple):
    """How a response is to be kept."""

    headers: Headers
    seconds: int


def directives(header: str | None) -> dict[str, str]:
    """The directives of a Cache-Control header. The first of each name counts; one without a value is ""."""
    found: dict[str, str] = {}
    parts = (header or "").split('"')  # every second part is within quotes, where commas do not separate
    parts[1::2] = [part.replace(",", "\0") for part in parts[1::2]]
    for directive in "".join(parts).split(","):
        name, _, value = directive.partition("=")
        if name.strip():
            found.setdefault(name.strip().lower(), value.strip().replace("\0", ","))
    return found


def keeping(status: int, headers: Headers, now: float, *, ttl: float | None = None) -> Keeping | None:
    """Whether and how long a response is kept. `ttl`, from the caller, overrides the response."""
    vary = names_in(headers.get("vary"))
    if status in (206, 304) or not 200 <= status <= 599 or "*" in vary or len(vary) > MOST_VARYING:
        return None
    control = directives(headers.get("cache-control"))
    hidden = names_in(control.get("private")) | names_in(control.get("no-cache"))  # fields that must not be kept
    if ttl is None:
        for word in ("no-store", "private", "no-cache"):
            if word in control and not control[word]:
                return None
    kept = headers.without(*hidden)
    if kept.get("set-cookie") is not None:
        return None
    seconds = _lifetime(status, kept, control, now) if ttl is None else ttl
    return Keeping(kept, int(min(seconds, LONGEST))) if seconds >= 1 else None


def _lifetime(status: int, headers: Headers, control: dict[str, str], now: float) -> float:
    """https://www.rfc-editor.org/rfc/rfc9111#name-calculating-freshness-lifet, minus the current age."""
    age = whole_number(headers.get("age") or "") or 0
    for name in ("s-maxage", "max-age"):
        if name in control:
            return (whole_number(control[name]) or 0) - age  # an invalid number means stale
    expires = headers.get("expires")
    if expires is not None:
        return (date_of(expires) or 0) - (date_of(headers.get("date")) or now) - age
    return DEFAULT_SECONDS.get(status, 0) - age


def whole_number(text: str) -> int | None:
    """A number of a header; None if it is not a number. Very large ones are cut to 16 digits."""
    return int(text.lstrip("0")[:16] or "0") if text.isascii() and text.isdigit() else None


def names_in(header: str | None) -> set[str]:
    return {name.strip().lower() for name in (header or "").split(",")} - {""}


def date_of(text: str | None) -> float | None:
    """Seconds since 1970; None if it is not a date."""
    if text is None or len(text) > LONGEST_DATE:
        return None
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return None


def varying(request: Headers, response: Headers) -> list[tuple[str, str | None]]:
    """The request headers that the response varies by, with their values."""
    return [(name, request.get(name)) for name in sorted(names_in(response.get("vary")))]


def is_unchanged(request: Headers, response: Headers) -> bool:
    """Whether the client has it already: 304. https://www.rfc-editor.org/rfc/rfc9110#name-precedence-of-preconditions"""
    wanted = request.get("if-none-match")
    if wanted is not None:
        etag = QUOTED.search(response.get("etag") or "")  # with or without W/: a weak comparison
        return wanted.strip() == "*" or (etag is not None and etag[0] in QUOTED.findall(wanted))
    since, modified = date_of(request.get("if-modified-since")), date_of(response.get("last-modified"))
    return since is not None and modified is not None and modified <= since


class Span(NamedTuple):
    """Part of a body, from `start` up to but not including `end`."""

    start: int
    end: int


def range_of(request: Headers, response: Headers, size: int) -> Span | None:
    """The requested part of a body: None for all of it, an empty span for a range outside it (416).

    Several ranges, and units other than bytes, get the whole body, as HTTP allows.
    """
    match = RANGE.fullmatch(request.get("range") or "")
    if match is None or match[1] == match[2] == "":
        return None
    condition = request.get("if-range")
    if condition is not None and condition not in (response.get("etag"), response.get("last-modified")):
        return None
    if match[1] == "":
        length = min(int(match[2]), size)
        return Span(size - length, size)
    start, end = int(match[1]), size if match[2] == "" else min(int(match[2]) + 1, size)
    if match[2] != "" and int(match[2]) < start:
        return None
    return Span(start, end) if start < size else Span(size, size)
