"""fetch() with `cf.cacheTtl`, `cacheTtlByStatus` or `cacheEverything`: reads responses from the cache and stores them.

https://developers.cloudflare.com/workers/runtime-apis/request/#the-cf-property-requestinitcfproperties. In both cases
the response is an Answerer like any other. Bodies are stored as they came over the wire, still encoded, in the tenant's
cache named `fetch`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

from atoll.bindings.cache.freshness import Headers, directives
from atoll.bindings.cache.http_cache import CacheUpload, Hit, HttpCache
from atoll.bindings.cache.store import CachePlace
from atoll.bindings.fetch.fetching import Answerer
from atoll.bindings.fetch.messages import OF_CONNECTION, WantedFetch, lines
from atoll.egress.exchange import pairs_of
from atoll.errors import InvalidArgument, NetworkError

CACHE = "fetch"
PIECE = 256 * 1024
STATUSES = re.compile(r"([1-5]\d\d)(?:-([1-5]\d\d))?")
MAX_RULES = 100


class StatusSpan(NamedTuple):
    """The lifetime of responses by status, in seconds; negative: not cached."""

    first: int
    last: int
    seconds: float


class CachingRule(NamedTuple):
    """The cache options of a request."""

    place: CachePlace
    request: Headers
    ttl: float | None  # even if the response forbids it
    by_status: Sequence[StatusSpan]

    def seconds(self, status: int) -> float | None:
        """How long a response is kept; None: as the response says."""
        for span in self.by_status:
            if span.first <= status <= span.last:
                return span.seconds
        return self.ttl


def read_rule(cf: Any, wanted: WantedFetch, tenant: str) -> CachingRule | None:
    """The cache options in the `cf` of a request, if any; InvalidArgument if they are not valid."""
    if not isinstance(cf, dict) or wanted.method != "GET" or wanted.service is not None:
        return None
    ttl, by_status = cf.get("cacheTtl"), cf.get("cacheTtlByStatus")
    if ttl is None and not isinstance(by_status, dict) and cf.get("cacheEverything") is not True:
        return None
    if ttl is not None and not is_number(ttl):
        raise InvalidArgument("fetch: cf.cacheTtl is not a number")
    key = cf.get("cacheKey")
    url = key.encode("utf-8", "replace").decode() if isinstance(key, str) else wanted.url
    request = Headers((name.lower(), value) for name, value in wanted.headers)
    return CachingRule(CachePlace(tenant, CACHE, url), request, ttl, read_statuses(by_status))


def read_statuses(by_status: Any) -> list[StatusSpan]:
    if by_status is None:
        return []
    if not isinstance(by_status, dict) or len(by_status) > MAX_RULES:
        raise InvalidArgument("fetch: cf.cacheTtlByStatus is not an object of a few entries")
    spans = []
    for text, seconds in by_status.items():
        found = STATUSES.fullmatch(text)
        if found is None or not is_number(seconds):
            raise InvalidArgument(f'fetch: cf.cacheTtlByStatus has {text!r:.40}, not "200" or "200-299" with seconds')
        spans.append(StatusSpan(int(found[1]), int(found[2] or found[1]), seconds))
    return spans


def is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def kept(cache: HttpCache, rule: CachingRule, answerer: Answerer, status: int, lines: bytes) -> Answerer:
    """The same response; it is stored while it is read, if the rule and the response allow it."""
    response = Headers(pair for pair in pairs_of(lines) if pair[0] not in OF_CONNECTION)
    ttl = rule.seconds(status)
    if ttl is None and rule.request.get("authorization") is not None:
        # https://www.rfc-editor.org/rfc/rfc9111#name-storing-responses-to-authen
        control = directives(response.get("cache-control"))
        if "public" not in control and "s-maxage" not in control:
            return answerer
    upload = cache.begin(rule.place, rule.request, status, response, ttl=ttl, is_manual=True)
    return answerer if upload is None else StoredAnswer(answerer, upload, cache)


class CachedAnswer:
    """A response from the cache."""

    def __init__(self, hit: Hit) -> None:
        self.hit = hit
        self._left = hit.body
        self._rest = hit.rest

    @property
    def lines(self) -> bytes:
        return lines(self.hit.headers.pairs).encode("latin-1")

    async def read(self) -> bytes:
        if self._rest is None:
            return self.read_nowait()
        try:
            piece = await self._rest.read(PIECE)
        except OSError as error:
            self.close()
            raise NetworkError(f"the cached body cannot be read: {error}") from None
        if not piece:
            self.close()
        return piece

    def read_nowait(self) -> bytes:
        left, self._left = self._left, b""
        return left

    @property
    def at_end(self) -> bool:
        return self._rest is None and not self._left

    async def write(self, chunk: bytes, ended: bool) -> bool:
        return False

    def close(self) -> None:
        if self._rest is not None:
            self._rest.close()
            self._rest = None


class StoredAnswer:
    """A response that is stored while it is read. It is discarded unless it is read to its end."""

    def __init__(self, inner: Answerer, upload: CacheUpload, cache: HttpCache) -> None:
        self._inner = inner
        self._upload = upload
        self._cache = cache
        self._ahead: list[bytes] = []  # read, but not written yet

    async def read(self) -> bytes:
        piece = await self._inner.read()
        self._ahead.append(piece)
        await self._catch_up()
        return piece

    def read_nowait(self) -> bytes:
        piece = self._inner.read_nowait()
        self._ahead.append(piece)
        return piece

    async def _catch_up(self) -> None:
        ahead, self._ahead = self._ahead, []
        for piece in ahead:
            await self._upload.write(piece)

    @property
    def at_end(self) -> bool:
        return self._inner.at_end

    async def write(self, chunk: bytes, ended: bool) -> bool:
        return await self._inner.write(chunk, ended)

    def close(self) -> None:
        """Stop storing. Called once, at the end or before it."""
        is_whole = self._inner.at_end
        self._inner.close()
        if is_whole:
            self._cache.later(self._finish())
        else:
            self._upload.close()

    async def _finish(self) -> None:
        try:
            await self._catch_up()
            await self._upload.finish()
        finally:
            self._upload.close()
