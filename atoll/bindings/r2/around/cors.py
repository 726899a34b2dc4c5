"""CORS rules of a bucket: which pages of other origins may read its answers. Pure.

The first rule that allows the origin, the method and all headers of a request decides, as with S3.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import ClassVar

import msgspec

from atoll.bindings.r2.around.settings import Setting
from atoll.errors import InvalidArgument

METHODS = ("GET", "PUT", "POST", "DELETE", "HEAD")
MAX_RULES = 100
MAX_ENTRIES = 100  # of one list of a rule
MAX_ENTRY = 300  # characters
MAX_TEXT = 64 << 10  # characters of all rules: each request to a public bucket reads them
MAX_WILDCARDS = 100  # in the headers of all rules: a preflight compares each of them with each header it announces
MAX_AGE = 86_400
TEXT = re.compile(r"[!-~]+")
TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


class CorsRule(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    allowed_origins: list[str]
    allowed_methods: list[str]
    allowed_headers: list[str] = []
    expose_headers: list[str] = []
    max_age_seconds: int | None = None
    id: str = ""

    def allows(self, origin: str, method: str, headers: Collection[str] = ()) -> bool:
        return (
            method in self.allowed_methods
            and any(_matches(pattern, origin) for pattern in self.allowed_origins)
            and (not headers or self._allows_headers(headers))
        )

    def _allows_headers(self, headers: Collection[str]) -> bool:
        known = {each.lower() for each in self.allowed_headers}
        patterns = [each for each in known if "*" in each]
        return all(name in known or any(_matches(each, name) for each in patterns) for name in headers)

    def answer(self, origin: str) -> dict[str, str]:
        """The headers of an answer to a page of this origin."""
        fields = {"access-control-allow-origin": "*" if "*" in self.allowed_origins else origin}
        if self.expose_headers:
            fields["access-control-expose-headers"] = ", ".join(self.expose_headers)
        return fields


class Cors(Setting, forbid_unknown_fields=True):
    KIND: ClassVar[str] = "cors"

    rules: list[CorsRule]


def checked_cors(cors: Cors) -> Cors:
    """InvalidArgument if a rule is not valid."""
    if not 1 <= len(cors.rules) <= MAX_RULES:
        raise InvalidArgument(f"there must be from 1 to {MAX_RULES} CORS rules")
    lists = [each for rule in cors.rules for each in (rule.allowed_origins, rule.allowed_headers, rule.expose_headers)]
    if sum(len(text) for texts in lists for text in texts) > MAX_TEXT:
        raise InvalidArgument(f"the CORS rules have more than {MAX_TEXT >> 10} KB")
    if sum("*" in each for rule in cors.rules for each in rule.allowed_headers) > MAX_WILDCARDS:
        raise InvalidArgument(f"the CORS rules have more than {MAX_WILDCARDS} allowed headers with `*`")
    for rule in cors.rules:
        if not rule.allowed_origins or not rule.allowed_methods:
            raise InvalidArgument("a CORS rule needs allowed origins and allowed methods")
        for each in rule.allowed_methods:
            if each not in METHODS:
                raise InvalidArgument(f"the CORS method {each[:40]!r} is not one of {', '.join(METHODS)}")
        for entries, shape in (
            (rule.allowed_origins, TEXT),
            (rule.allowed_headers, TOKEN),
            (rule.expose_headers, TOKEN),
        ):
            _check(entries, shape)
        if "*" in "".join(rule.expose_headers):
            raise InvalidArgument("an exposed header of a CORS rule has no `*`: name each header")
        if rule.max_age_seconds is not None and not 0 <= rule.max_age_seconds <= MAX_AGE:
            raise InvalidArgument(f"max_age_seconds of a CORS rule must be from 0 to {MAX_AGE}")
        if len(rule.id) > 255:
            raise InvalidArgument("the id of a CORS rule has more than 255 characters")
    return cors


def _check(entries: list[str], shape: re.Pattern[str]) -> None:
    if len(entries) > MAX_ENTRIES:
        raise InvalidArgument(f"a CORS rule has at most {MAX_ENTRIES} origins, methods or headers")
    for each in entries:
        if len(each) > MAX_ENTRY or each.count("*") > 1 or not shape.fullmatch(each):
            raise InvalidArgument(f"{each[:80]!r} is no valid origin or header of a CORS rule, with at most one `*`")


def _matches(pattern: str, text: str) -> bool:
    first, star, last = pattern.partition("*")
    if not star:
        return pattern == text
    return len(text) >= len(first) + len(last) and text.startswith(first) and text.endswith(last)


def allowed(found: Iterable[Cors], headers: Mapping[str, str]) -> dict[str, str] | None:
    """The headers that answer a preflight; None if no rule allows the request it announces."""
    origin, method = headers.get("origin", ""), headers.get("access-control-request-method", "")
    names = [name.strip().lower() for name in headers.get("access-control-request-headers", "").split(",")]
    wanted = [name for name in names if name][:MAX_ENTRIES]
    for cors in found:
        for rule in cors.rules:
            if origin and rule.allows(origin, method, wanted):
                fields = rule.answer(origin) | {"access-control-allow-methods": ", ".join(rule.allowed_methods)}
                if wanted:
                    fields["access-control-allow-headers"] = ", ".join(wanted)
                if rule.max_age_seconds is not None:
                    fields["access-control-max-age"] = str(rule.max_age_seconds)
                return fields | VARY
    return None


VARY = {"vary": "Origin, Access-Control-Request-Method, Access-Control-Request-Headers"}


def answered(cors: Cors | None, method: str, headers: Mapping[str, str]) -> dict[str, str]:
    """The CORS headers of an answer."""
    if cors is None:
        return {}
    origin = headers.get("origin", "")
    for rule in cors.rules:
        if origin and rule.allows(origin, method):
            return rule.answer(origin) | {"vary": "Origin"}
    return {"vary": "Origin"}  # to a cache: another origin may get another answer
