"""The assets of one version, prepared for requests: a dictionary of files and the rules around it.

`answer` decides about a request: a file, a redirect, an error, or the worker. It does no I/O and reads no clock. The
steps are those of Cloudflare's asset server, see docs/guides/static-assets.md.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from msgspec import Struct

from atoll.assets.headers_file import HeaderRule, apply_headers, parse_headers
from atoll.assets.html import MODES, Intent, fallback
from atoll.assets.media import media_of
from atoll.assets.paths import MAX_PATH, PLAIN, canonical, decoded
from atoll.assets.redirects_file import REWRITE, Redirects, parse_redirects
from atoll.assets.rules import AssetRules, NotFound, matches_rule

NAVIGATION_DATE: Final = "2025-04-01"  # from then on navigations prefer assets to the worker
NAVIGATION_FLAG: Final = "assets_navigation_prefers_asset_serving"
NO_NAVIGATION_FLAG: Final = "assets_navigation_has_no_effect"
METHODS: Final = ("GET", "HEAD")


class AssetFile(Struct, eq=False, gc=False):
    """One file of a version. `place` is where its bytes are; `gzip` and `br` are sizes of its compressed copies.

    The garbage collector does not look at it: a site has tens of thousands, and a collection holds up the event loop.
    """

    hash: str
    size: int
    media: str
    place: str
    gzip: int = 0
    br: int = 0

    @property
    def etag(self) -> str:
        return self.hash[:32]


class Answer(NamedTuple):
    """What assets answer: a file, or a status with an optional Location."""

    status: int
    file: AssetFile | None = None
    location: str = ""
    is_own: bool = False  # the file was found by the path alone: the answer is the same for each GET of it


NOT_FOUND: Final = Answer(404)
NOT_ALLOWED: Final = Answer(405)


class AssetTable:
    """The assets of one version. `has_worker`: a request that no asset answers goes to the worker."""

    __slots__ = (
        "__weakref__", "_find", "_first", "_not", "_source", "files", "has_worker", "headers", "is_here", "is_keepable",
        "is_watched", "navigates", "ready", "redirects", "rules",
    )  # fmt: skip
    is_live = False  # true: files and rules may change between two requests

    def __init__(
        self, rules: AssetRules, files: Mapping[str, AssetFile], *, has_worker: bool, navigates: bool = True
    ) -> None:
        self.rules = rules
        self.files = files
        self._source: AssetTable | None = None  # of a copy
        self.is_here = True  # false: `files` is empty, and is read when a request comes (front/late_files.py)
        self.has_worker = has_worker
        self.navigates = navigates  # navigations count as requests for assets, whatever their path
        self.headers: list[HeaderRule] = parse_headers(rules.headers)[0] if rules.headers else []
        self.redirects: Redirects = parse_redirects(rules.redirects)[0]
        # Whether the response with a file of its own path is the same on every host, as long as the version lives
        self.is_keepable = not self.is_live and all(rule.pattern.host is None for rule in self.headers)
        self.ready: dict[bytes, Any] = {}  # such responses by path (front/ready.py)
        self.is_watched = False  # somebody waits for the end of this table, to drop its responses
        self._find = MODES[rules.html_handling]
        first = rules.run_worker_first
        self._first: Sequence[str] = () if isinstance(first, bool) else [r for r in first if not r.startswith("!")]
        self._not: Sequence[str] = () if isinstance(first, bool) else [r[1:] for r in first if r.startswith("!")]

    def alone(self) -> AssetTable:
        """The same files without the worker: env.ASSETS never calls it."""
        other = copy.copy(self)
        other._source = self.source
        other.has_worker = False
        other.ready, other.is_watched = {}, False  # it answers paths that are the worker's in the other one
        return other

    @property
    def source(self) -> AssetTable:
        """The table itself, or the one that it was copied from: copies share its files."""
        return self if self._source is None else self._source

    def answer(self, method: str, host: str, path: str, query: str, is_navigation: bool) -> Answer | None:
        """The answer to a request, or None if the worker answers. `path` is encoded, as in the URL."""
        self.refresh()
        if not self.has_worker:
            return self._asset(method, host, path, query, True)
        rules = self.rules
        if rules.run_worker_first is True:
            return None
        if self._first or self._not:
            plain = decoded(path)
            if any(matches_rule(rule, plain) for rule in self._not):
                return self._asset(method, host, path, query, True)
            if any(matches_rule(rule, plain) for rule in self._first):
                return None
        has_fallback = bool(self._first) or (is_navigation and self.navigates)
        found = self._asset(method, host, path, query, has_fallback)
        return None if found is NOT_FOUND else found

    def refresh(self) -> None:
        """Read the rules again if they have changed. Those of a deployed version never do."""

    def _asset(self, method: str, host: str, path: str, query: str, has_fallback: bool) -> Answer:
        if len(path) > 3 * MAX_PATH:  # longer than any file's path with all its bytes encoded
            return NOT_FOUND
        if self.redirects:
            moved = self.redirects.find(host, path, query)
            if moved is not None:
                status, to = moved
                if status != REWRITE:
                    return Answer(status, location=to)
                return self._rewritten(method, to)
        plain = path if PLAIN.fullmatch(path) else decoded(path)
        intent = self._find(plain, self.files, False)
        is_own = intent is not None
        if intent is None and has_fallback:
            intent = fallback(plain, self.files, self.rules.not_found_handling)
        if intent is None:
            return NOT_FOUND
        if method not in METHODS:
            return NOT_ALLOWED
        if intent.redirect or plain is not path:
            to = canonical(intent.redirect or plain)
            if intent.redirect or to != path:
                return Answer(307, location=f"{to}?{query}" if query else to)
        return Answer(intent.status, self.files.get(intent.path), is_own=is_own)

    def _rewritten(self, method: str, to: str) -> Answer:
        """A rewrite (200) serves another path of the assets. Its own redirects are not applied again."""
        plain = decoded(to.partition("?")[0].partition("#")[0])
        intent: Intent | None = self._find(plain, self.files, False)
        if intent is not None and intent.redirect:
            intent = self._find(intent.redirect, self.files, True)
        intent = intent or fallback(plain, self.files, self.rules.not_found_handling)
        if intent is None or intent.redirect:
            return NOT_FOUND
        return Answer(intent.status, self.files.get(intent.path)) if method in METHODS else NOT_ALLOWED

    def with_headers(self, host: str, path: str, headers: list[tuple[str, str]]) -> None:
        """Apply _headers to the headers of an answer."""
        if self.headers:
            apply_headers(self.headers, host, path, headers)


def navigates_to_assets(date: str, flags: Sequence[str], rules: AssetRules) -> bool:
    """Whether navigations go to the not_found_handling of assets before the worker."""
    if rules.not_found_handling == NotFound.NONE.value or NO_NAVIGATION_FLAG in flags:
        return False
    return date >= NAVIGATION_DATE or NAVIGATION_FLAG in flags


def file_of(path: str, digest: str, size: int, place: str, gzip: int = 0, br: int = 0) -> AssetFile:
    return AssetFile(digest, size, media_of(path), place, gzip, br)
