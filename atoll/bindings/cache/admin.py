"""The caches of a tenant over HTTP: list and purge them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.audit import AuditLog
from atoll.api.callers import Scope
from atoll.api.paging import name_page_of, name_query, page_answer, page_of, page_query
from atoll.api.refusals import ApiCode, Refused
from atoll.api.routes import Query, Route, caller_of, json_answer, no_content
from atoll.bindings.cache.http_cache import HttpCache
from atoll.bindings.cache.store import CachePlace, Kept
from atoll.clock import iso_time

URL = Query("url", "Only this URL", {"type": "string"})
TAG = Query("tag", "Only responses with this tag in their Cache-Tag header", {"type": "string"})
MAX_LISTED = 1_000


class CacheAnswer(msgspec.Struct):
    name: str
    responses: int
    bytes: int


class CachesAnswer(msgspec.Struct, omit_defaults=True):
    caches: list[CacheAnswer]
    cursor: str = ""


class KeptAnswer(msgspec.Struct):
    url: str
    status: int
    bytes: int
    stored_at: str
    expires_at: str


class KeptsAnswer(msgspec.Struct, omit_defaults=True):
    responses: list[KeptAnswer]
    cursor: str = ""


class CachesApi:
    def __init__(self, cache: HttpCache, audit: AuditLog) -> None:
        self._store = cache.store
        self._audit = audit

    def routes(self) -> list[Route]:
        one = "/api/caches/{cache:path}"
        page = page_query(MAX_LISTED)
        return [
            Route(
                "GET",
                "/api/caches",
                self.caches,
                Scope.READ,
                "The caches of a tenant, by name",
                gives=CachesAnswer,
                query=name_query(),
            ),
            Route("GET", one, self.list, Scope.READ, "The responses in a cache", gives=KeptsAnswer, query=page),
            Route("DELETE", one, self.clear, Scope.DEPLOY, "Purge a cache", status=204, query=(URL, TAG)),
        ]

    async def caches(self, request: Request) -> Response:
        after, limit = name_page_of(request)
        found = await self._store.measure(caller_of(request).tenant, after, limit + 1)
        cursor = found[limit - 1].name if len(found) > limit else ""
        return json_answer(CachesAnswer([CacheAnswer(*size) for size in found[:limit]], cursor))

    async def list(self, request: Request) -> Response:
        tenant, name = caller_of(request).tenant, request.path_params["cache"]
        after, limit = page_of(request, MAX_LISTED)
        found = await self._store.kept(tenant, name, after, limit + 1)
        if not found and not after:
            raise nothing_kept(f"the cache `{name[:80]}`")
        return await page_answer("responses", _listed(found), limit)

    async def clear(self, request: Request) -> Response:
        tenant, name = caller_of(request).tenant, request.path_params["cache"]
        url, tag = request.query_params.get("url"), request.query_params.get("tag")
        await self._audit.note(caller_of(request), "cache.clear", name, url or (f"tag {tag}" if tag else ""))
        what = f"the cache `{name[:80]}`"
        if url is not None:
            what = f"`{url[:200]}` in {what}"
            found = await self._store.remove(CachePlace(tenant, name, url))
        elif tag is not None:
            what = f"the tag `{tag[:200]}` in {what}"
            found = await self._store.remove_tagged(tenant, name, tag)
        else:
            found = await self._store.clear(tenant, name)
        if not found:
            raise nothing_kept(what)
        return no_content()


async def _listed(found: Sequence[Kept]) -> AsyncIterator[tuple[str, KeptAnswer]]:
    for kept in found:
        yield str(kept.id), _shown(kept)


def nothing_kept(what: str) -> Refused:
    return Refused(ApiCode.NOT_FOUND, f"nothing is cached for {what}", "GET /api/caches lists the caches")


def _shown(kept: Kept) -> KeptAnswer:
    return KeptAnswer(
        kept.url, kept.status, kept.size, iso_time(kept.stored_at * 1000), iso_time(kept.expires_at * 1000)
    )
