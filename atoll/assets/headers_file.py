"""The file _headers: lines `Name: value` to set and `! Name` to remove, under the paths they apply to.

    /secure/*
      X-Frame-Options: DENY
      ! Cache-Control

Rules that cannot be used are left out, and a warning says why: as in Cloudflare's tools, one bad line does not stop a
deploy.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from atoll.assets.patterns import AssetPattern, BadRule, filled
from atoll.pauses import with_pauses

MAX_RULES: Final = 100
MAX_LINE: Final = 2_000
MAX_SETS: Final = 1_000  # headers that all rules set and remove: a request may match every rule
MAX_VALUES: Final = 64 << 10  # characters of their values
MAX_WARNINGS: Final = 100
NAME: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
VALUE: Final = re.compile(r"[\t\x20-\x7e\x80-\xff]*")
# The front writes these itself, or they would change where a message ends.
RESERVED: Final = frozenset((
    "connection", "content-encoding", "content-length", "content-range", "date", "keep-alive", "proxy-connection", "te",
    "trailer", "transfer-encoding", "upgrade",
))  # fmt: skip


class HeaderRule(NamedTuple):
    pattern: AssetPattern
    sets: list[tuple[str, str]]
    removes: list[str]


class Warned(NamedTuple):
    """A line that is ignored."""

    line: int
    text: str


def parse_headers(text: str) -> tuple[list[HeaderRule], list[Warned]]:
    rules: list[HeaderRule] = []
    warnings: list[Warned] = []
    current: HeaderRule | None = None
    room = HeaderRoom()
    for number, raw in enumerate(with_pauses(text.splitlines()), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        if len(warnings) >= MAX_WARNINGS:
            warnings.append(Warned(number, "the rest of the file is ignored: it has too many lines like these"))
            break
        if len(line) > MAX_LINE:
            warnings.append(Warned(number, f"the line is longer than {MAX_LINE:,} characters"))
        elif line.startswith(("/", "http://", "https://")):
            current = None
            if len(rules) >= MAX_RULES:
                warnings.append(Warned(number, f"there are more than {MAX_RULES} rules: this one is ignored"))
                continue
            try:
                current = HeaderRule(AssetPattern(line), [], [])
                rules.append(current)
            except BadRule as error:
                warnings.append(Warned(number, f"the path {line[:80]} is ignored: {error}"))
        elif current is None:
            warnings.append(Warned(number, "the line is under no valid path"))
        else:
            why = _take(line, current, room)
            if why:
                warnings.append(Warned(number, why))
    return [rule for rule in rules if rule.sets or rule.removes], warnings


class HeaderRoom:
    """What the rules of a file may still have."""

    def __init__(self) -> None:
        self.sets = MAX_SETS
        self.characters = MAX_VALUES

    def take(self, line: str) -> bool:
        self.sets -= 1
        self.characters -= len(line)
        return self.sets >= 0 and self.characters >= 0


def _take(line: str, rule: HeaderRule, room: HeaderRoom) -> str:
    """Add a line to a rule. Returns why it is ignored, or nothing."""
    if not room.take(line):
        return f"the rules have more than {MAX_SETS:,} headers, or more than {MAX_VALUES >> 10} KB: this one is ignored"
    if line.startswith("!"):
        name = line[1:].strip()
        if not NAME.fullmatch(name):
            return f"{name[:80]!r} is not the name of a header"
        rule.removes.append(name.lower())
        return ""
    name, colon, value = line.partition(":")
    name, value = name.strip(), value.strip()
    if not colon or not NAME.fullmatch(name):
        return f"{line[:80]!r} is neither a path nor `Name: value`"
    if name.lower() in RESERVED:
        return f"the header {name} is written by the server"
    if not value:
        return f"the header {name} has no value"
    if not VALUE.fullmatch(value):
        return f"the value of {name} has a character that headers cannot hold"
    rule.sets.append((name.lower(), value))
    return ""


def apply_headers(rules: list[HeaderRule], host: str, path: str, headers: list[tuple[str, str]]) -> None:
    """Change the headers of an answer by all rules that match. The first value of a name replaces, later ones add."""
    replaced: set[str] = set()
    lines: list[tuple[str, str] | None] = [*headers]  # None: removed
    places: dict[str, list[int]] = {}  # by name: a rule with very many headers does not search for each
    for at, (name, _) in enumerate(headers):
        places.setdefault(name, []).append(at)
    for rule in rules:
        found = rule.pattern.match(host, path)
        if found is None:
            continue
        dropped = [*rule.removes, *(name for name, _ in rule.sets if name not in replaced)]
        for at in [at for name in dropped for at in places.pop(name, ())]:
            lines[at] = None
        for name, value in rule.sets:
            replaced.add(name)
            places.setdefault(name, []).append(len(lines))
            lines.append((name, filled(value, found)))
    headers[:] = [line for line in lines if line is not None]
