"""The file _redirects: lines `from to [status]`, and the answer they give to a path.

A rule without wildcards is found by its path. All rules after the first with a wildcard are tried in order. As in
Cloudflare's tools, a bad line is left out with a warning.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from atoll.assets.headers_file import MAX_WARNINGS, VALUE, Warned
from atoll.assets.patterns import AssetPattern, BadRule, encoded, filled
from atoll.pauses import with_pauses

MAX_STATIC: Final = 2_000
MAX_DYNAMIC: Final = 100
MAX_LINE: Final = 2_000
STATUSES: Final = frozenset((200, 301, 302, 303, 307, 308))
REWRITE: Final = 200
_ABSOLUTE: Final = re.compile(r"https?://[^/?#\s]++.*", re.IGNORECASE)
_SLASHES: Final = re.compile(r"[/\\]{2,}|\\+")
_LOOP: Final = (
    "Infinite loop detected in this rule and has been ignored. This will cause a redirect to strip `.html` or `/index`"
    " and end up triggering this rule again. Please fix or remove this rule to silence this warning."
)


class Redirect(NamedTuple):
    status: int
    to: str
    pattern: AssetPattern


class Redirects:
    __slots__ = ("dynamic", "static")

    def __init__(self) -> None:
        self.static: dict[str, Redirect] = {}
        self.dynamic: list[Redirect] = []

    def __bool__(self) -> bool:
        return bool(self.static or self.dynamic)

    def find(self, host: str, path: str, query: str) -> tuple[int, str] | None:
        """Status and target for a path, or None. The query of the request is kept unless the target has its own."""
        rule = self.static.get(path)
        found: dict[str, str] | None = {}
        if rule is None:
            for rule in self.dynamic:
                found = rule.pattern.match(host, path)
                if found is not None:
                    break
            else:
                return None
        assert found is not None
        to = filled(rule.to, found)
        if rule.to.startswith("/"):
            # A path in place of `:splat` must not turn the target into `//host`, which is another site.
            head, slash, rest = to.partition("?")
            to = _SLASHES.sub("/", head) + slash + rest
        if query and "?" not in to and rule.status != REWRITE:
            before, mark, fragment = to.partition("#")
            to = f"{before}?{query}{mark}{fragment}"
        return rule.status, to


def parse_redirects(text: str) -> tuple[Redirects, list[Warned]]:
    redirects = Redirects()
    warnings: list[Warned] = []
    for number, raw in enumerate(with_pauses(text.splitlines()), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        if len(warnings) >= MAX_WARNINGS:
            warnings.append(Warned(number, "the rest of the file is ignored: it has too many lines like these"))
            break
        try:
            _take(line, redirects)
        except BadRule as error:
            warnings.append(Warned(number, str(error)))
    return redirects, warnings


def _take(line: str, redirects: Redirects) -> None:
    if len(line) > MAX_LINE:
        raise BadRule(f"the line is longer than {MAX_LINE:,} characters")
    words = line.split("#", 1)[0].split() if " #" in line else line.split()
    if not 2 <= len(words) <= 3:
        raise BadRule(f"expected `from to [status]`, found {len(words)} words")
    source, to, *rest = words
    status = _status(rest[0]) if rest else 302
    if not source.startswith("/"):
        raise BadRule(f"only paths can be redirected, which begin with `/`: found {source[:80]!r}")
    _check_target(to, status)
    if re.search(r"/\*?$", source) and re.search(r"/index(\.html)?$", to) and to.startswith("/"):
        raise BadRule(_LOOP)
    source = encoded(source.partition("?")[0].partition("#")[0])
    rule = Redirect(status, encoded(to), AssetPattern(source))
    if rule.pattern.is_plain and not redirects.dynamic:
        if source in redirects.static:
            raise BadRule(f"the rule for {source[:80]} is given twice: the first one counts")
        if len(redirects.static) >= MAX_STATIC:
            raise BadRule(f"there are more than {MAX_STATIC:,} rules without wildcards: this one is ignored")
        redirects.static[source] = rule
    else:
        if len(redirects.dynamic) >= MAX_DYNAMIC:
            raise BadRule(f"there are more than {MAX_DYNAMIC} rules with wildcards: this one is ignored")
        redirects.dynamic.append(rule)


def _status(word: str) -> int:
    if not word.isdigit() or int(word[:4]) not in STATUSES:
        raise BadRule(f"the status is {word[:20]!r}: use 200, 301, 302 (default), 303, 307 or 308")
    return int(word)


def _check_target(to: str, status: int) -> None:
    if not VALUE.fullmatch(encoded(to)):
        raise BadRule("the target has a character that headers cannot hold")
    if to.startswith("/") and not to.startswith(("//", "/\\")):
        return
    if status == REWRITE:
        raise BadRule(f"Proxy (200) redirects can only point to relative paths. Got {to[:200]}")
    if not _ABSOLUTE.fullmatch(to):
        raise BadRule(f"the target must begin with `/` or `https://`: found {to[:80]!r}")
