"""The caches of a tenant over HTTP: what is in them, and forgetting it."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atoll.bindings.cache.http_cache import HttpCache
from atoll.bindings.cache.store import Kept, Place
from atoll.control.audit import AuditLog
from atoll.control.boundary import Query, Route, caller_of, json_answer, no_content
from atoll.control.callers import Scope
from atoll.control.paging import page_of, page_query
from atoll.control.refusals import ApiCode, Refused
from atoll.observe.records import iso_time

URL = Query("url", "Only this one", {"type": "string"})
TAG = Query("tag", "Only what has this tag in its Cache-Tag header", {"type": "string"})
MAX_LISTED = 1_000


class CacheAnswer(msgspec.Struct):
    name: str
    responses: int
    bytes: int


class CachesAnswer(msgspec.Struct):
    caches: list[CacheAnswer]


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
            Route("GET", "/api/caches", self.caches, Scope.READ, "The caches of a tenant", gives=CachesAnswer),
            Route("GET", one, self.list, Scope.READ, "What is in a cache", gives=KeptsAnswer, query=page),
            Route("DELETE", one, self.clear, Scope.DEPLOY, "Forget what is in a cache", status=204, query=(URL, TAG)),
        ]

    async def caches(self, request: Request) -> Response:
        sizes = await self._store.measure(caller_of(request).tenant)
        return json_answer(CachesAnswer([CacheAnswer(*size) for size in sizes]))

    async def list(self, request: Request) -> Response:
        tenant, name = caller_of(request).tenant, request.path_params["cache"]
        after, limit = page_of(request, MAX_LISTED)
        found = await self._store.kept(tenant, name, after, limit + 1)
        if not found and not after:
            raise nothing_kept(f"the cache `{name[:80]}`")
        cursor = str(found[limit - 1].id) if len(found) > limit else ""
        return json_answer(KeptsAnswer([_shown(kept) for kept in found[:limit]], cursor))

    async def clear(self, request: Request) -> Response:
        tenant, name = caller_of(request).tenant, request.path_params["cache"]
        url, tag = request.query_params.get("url"), request.query_params.get("tag")
        await self._audit.note(caller_of(request), "cache.clear", name, url or (f"tag {tag}" if tag else ""))
        what = f"the cache `{name[:80]}`"
        if url is not None:
            what = f"`{url[:200]}` in {what}"
            found = await self._store.remove(Place(tenant, name, url))
        elif tag is not None:
            what = f"the tag `{tag[:200]}` in {what}"
            found = await self._store.remove_tagged(tenant, name, tag)
        else:
            found = await self._store.clear(tenant, name)
        if not found:
            raise nothing_kept(what)
        return no_content()


def nothing_kept(what: str) -> Refused:
    return Refused(ApiCode.NOT_FOUND, f"nothing is kept of {what}", "GET /api/caches lists the caches")


def _shown(kept: Kept) -> KeptAnswer:
    return KeptAnswer(
        kept.url, kept.status, kept.size, iso_time(kept.stored_at * 1000), iso_time(kept.expires_at * 1000)
    )
