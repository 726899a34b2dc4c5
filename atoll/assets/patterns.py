"""Patterns of _headers and _redirects: `/blog/:year/*`, `https://:sub.example.com/*`.

Tenants write the patterns and strangers send the paths, so matching must be linear. A segment has at most one wildcard,
and a pattern at most one `*`. So each segment of a path is compared with one segment of the pattern, without a search.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple
from urllib.parse import quote

SPLAT: Final = "splat"
MAX_SEGMENTS: Final = 64
_WILDCARD: Final = re.compile(r"\*|:([A-Za-z]\w*)", re.ASCII)
_IN_TEXT: Final = re.compile(r":([A-Za-z]\w*)", re.ASCII)
_HOST: Final = re.compile(r"https?://([^/?#]+?)(:\d+)?(/.*)?", re.IGNORECASE)


class BadRule(ValueError):
    """A rule that is ignored; the text says why."""


class Segment(NamedTuple):
    """`before` + wildcard + `after`; without a wildcard `before` is all of it."""

    before: str
    name: str | None = None
    after: str = ""

    def fits(self, part: str) -> str | None:
        """The text in place of the wildcard, or None if it does not match."""
        if self.name is None:
            return "" if part == self.before else None
        length = len(part) - len(self.before) - len(self.after)
        if length < (0 if self.name == SPLAT else 1):
            return None
        if not part.startswith(self.before) or not part.endswith(self.after):
            return None
        return part[len(self.before) : len(self.before) + length]


class Parts:
    """One half of a pattern: the segments of a path, or the labels of a host."""

    __slots__ = ("border", "segments", "splat")

    def __init__(self, text: str, border: str) -> None:
        self.border = border
        self.segments = [_segment(part) for part in text.split(border)]
        if len(self.segments) > MAX_SEGMENTS:
            raise BadRule(f"it has more than {MAX_SEGMENTS} segments")
        self.splat = next((i for i, each in enumerate(self.segments) if each.name == SPLAT), -1)

    def match(self, text: str, found: dict[str, str]) -> bool:
        """Whether a text matches. Adds the texts in place of wildcards to `found`."""
        parts = text.split(self.border)
        extra = len(parts) - len(self.segments)
        if extra < 0 or (extra and self.splat < 0):
            return False
        if extra:
            at = self.splat
            parts[at : at + extra + 1] = [self.border.join(parts[at : at + extra + 1])]
        for segment, part in zip(self.segments, parts, strict=True):
            taken = segment.fits(part)
            if taken is None:
                return False
            if segment.name is not None:
                found[segment.name] = taken
        return True


def _segment(text: str) -> Segment:
    found = list(_WILDCARD.finditer(text))
    if not found:
        return Segment(text)
    if len(found) > 1:
        raise BadRule(f"`{text[:80]}` has more than one wildcard between two slashes or dots")
    [one] = found
    return Segment(text[: one.start()], one[1] or SPLAT, text[one.end() :])


class AssetPattern:
    """A path, or a host and a path."""

    __slots__ = ("host", "path")

    def __init__(self, text: str) -> None:
        """Raises BadRule."""
        if text.count("*") > 1:
            raise BadRule("it has more than one `*`")
        names = [match[1] for match in _WILDCARD.finditer(text.partition("://")[2] or text) if match[1]]
        if len(names) != len(set(names)):
            raise BadRule("it uses one placeholder twice")
        host, path = split_host(text)
        self.host = Parts(host.lower(), ".") if host else None
        self.path = Parts(encoded(path), "/")

    @property
    def is_plain(self) -> bool:
        """Whether the pattern matches one path only."""
        return self.host is None and all(segment.name is None for segment in self.path.segments)

    def match(self, host: str, path: str) -> dict[str, str] | None:
        """The texts in place of the wildcards, or None if host or path do not match."""
        found: dict[str, str] = {}
        if self.host is not None and not self.host.match(host, found):
            return None
        return found if self.path.match(path, found) else None


def split_host(text: str) -> tuple[str, str]:
    """The host and the path of `/path` or `https://host/path`. Raises BadRule."""
    if text.startswith("/"):
        return "", text
    match = _HOST.fullmatch(text)
    if match is None:
        raise BadRule("a path begins with `/` or `https://`")
    if match[2]:
        raise BadRule("it names a port")
    return match[1], match[3] or "/"


def encoded(path: str) -> str:
    """A path as it is in a URL: other characters are percent-encoded, existing escapes stay."""
    return path if path.isascii() and " " not in path else quote(path, safe="%/:*!$&'()+,;=@~-._?#[]")


def filled(text: str, found: dict[str, str]) -> str:
    """A text with `:name` replaced by what a pattern matched. Unknown names stay."""
    return _IN_TEXT.sub(lambda match: found.get(match[1], match[0]), text) if found else text
