"""The rules of a version's assets, as a deploy gives them and the store keeps them, and the checks of their values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum
from typing import Final

from msgspec import Struct

MAX_RULES: Final = 100
MAX_RULE: Final = 100
MAX_TEXT: Final = 1 << 20  # characters of a _headers or _redirects file
MAX_LINES: Final = 10_000
_LINE_ENDS: Final = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"  # of str.splitlines
MANIFEST_ID: Final = re.compile(r"[0-9a-f]{64}")
NO_WORKER: Final = "assets-only.js"  # `main` of a version that has assets and no code of its own
STUB: Final = b"export default { fetch() { return new Response(null, { status: 404 }); } };\n"


class HtmlHandling(StrEnum):
    """How paths of HTML files are spelled."""

    AUTO = "auto-trailing-slash"
    FORCE = "force-trailing-slash"
    DROP = "drop-trailing-slash"
    NONE = "none"


class NotFound(StrEnum):
    """What answers a path that has no file."""

    NONE = "none"
    PAGE = "404-page"
    SPA = "single-page-application"


class BadAssets(ValueError):
    """A rule that cannot be used. `hint` says what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class AssetRules(Struct, frozen=True, forbid_unknown_fields=True):
    """The assets of one version: the files, by the id of their manifest, and how they are served."""

    manifest: str
    html_handling: str = HtmlHandling.AUTO.value
    not_found_handling: str = NotFound.NONE.value
    run_worker_first: bool | tuple[str, ...] = False
    headers: str = ""  # the text of _headers
    redirects: str = ""  # the text of _redirects


def check_rules(rules: AssetRules) -> None:
    """Raises BadAssets."""
    if not MANIFEST_ID.fullmatch(rules.manifest):
        raise BadAssets(
            f"`manifest` is {rules.manifest[:80]!r}", "use the id that the upload of the manifest answered with"
        )
    check_modes(rules.html_handling, rules.not_found_handling, rules.run_worker_first)
    for name, text in (("headers", rules.headers), ("redirects", rules.redirects)):
        if len(text) > MAX_TEXT:
            raise BadAssets(f"`{name}` is longer than {MAX_TEXT:,} characters", "use fewer or shorter rules")
        if sum(text.count(end) for end in _LINE_ENDS) > MAX_LINES:
            raise BadAssets(f"`{name}` has more than {MAX_LINES:,} lines", "use fewer rules and comments")


def check_modes(html: str, not_found: str, first: bool | Sequence[str]) -> None:
    """Raises BadAssets for a value that no project and no deploy may have."""
    for name, value, words in (("html_handling", html, HtmlHandling), ("not_found_handling", not_found, NotFound)):
        if value not in list(words):
            raise BadAssets(f"`{name}` is {value[:80]!r}", f"use one of {', '.join(words)}")
    if not isinstance(first, bool):
        check_first(first)


def check_first(rules: Sequence[str]) -> None:
    """Check `run_worker_first` if it is a list of rules."""
    if not rules:
        raise BadAssets("`run_worker_first` is an empty list", "use true, false, or at least one rule such as /app/*")
    if len(rules) > MAX_RULES:
        count = len(rules)
        raise BadAssets(
            f"Too many `run_worker_first` rules were provided; {count} rules provided exceeds max of {MAX_RULES}.",
            "use `*` to combine some of them",
        )
    invalid = [f"'{rule[:MAX_RULE]}': {why}" for index, rule in enumerate(rules) if (why := _fault(rules, index))]
    if invalid:
        listed = "\n".join(invalid)
        raise BadAssets(f"Invalid routes in `run_worker_first`:\n{listed}", "rules look like /app/* or !/app/docs/*")
    if all(rule.startswith("!") for rule in rules):
        raise BadAssets(
            "Only negative `run_worker_first` rules were provided; must provide at least 1 non-negative rule",
            "add a rule such as /* before the exceptions",
        )


def _fault(rules: Sequence[str], index: int) -> str:
    rule = rules[index]
    if not rule.startswith(("/", "!/")):
        return "rules start with '/' or '!/'"
    if len(rule) > MAX_RULE:
        return f"it is longer than {MAX_RULE} characters"
    if rule in rules[:index]:
        return "it is given twice"
    for other in rules:
        if other != rule and other.endswith("*") and rule.startswith(other[:-1]):
            return f"'{other}' already covers it"
    return ""


def matches_rule(rule: str, path: str) -> bool:
    """Whether a path matches a rule of `run_worker_first`, in which `*` stands for any text. Linear in the path."""
    first, *others = rule.split("*")
    if not others:
        return path == rule
    last = others.pop()
    if not path.startswith(first) or len(path) < len(first) + len(last) or not path.endswith(last):
        return False
    at, end = len(first), len(path) - len(last)
    for piece in others:
        found = path.find(piece, at, end)
        if found < 0:
            return False
        at = found + len(piece)
    return True
