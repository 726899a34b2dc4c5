"""The caches of a tenant over HTTP: what is in them, and forgetting it."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atoll.bindings.cache.disk import Place
from atoll.bindings.cache.http_cache import HttpCache
from atoll.control.audit import AuditLog
from atoll.control.boundary import Query, Route, caller_of, json_answer, no_content
from atoll.control.callers import Scope
from atoll.control.refusals import ApiCode, Refused

URL = Query("url", "Only this one", {"type": "string"})


class CacheAnswer(msgspec.Struct):
    name: str
    responses: int
    bytes: int


class CachesAnswer(msgspec.Struct):
    caches: list[CacheAnswer]


class CachesApi:
    def __init__(self, cache: HttpCache, audit: AuditLog) -> None:
        self._cache = cache
        self._audit = audit

    def routes(self) -> list[Route]:
        one = "/api/caches/{cache:path}"
        return [
            Route("GET", "/api/caches", self.caches, Scope.READ, "The caches of a tenant", gives=CachesAnswer),
            Route("DELETE", one, self.clear, Scope.DEPLOY, "Forget what is in a cache", status=204, query=(URL,)),
        ]

    async def caches(self, request: Request) -> Response:
        sizes = await self._cache.disk.measure(caller_of(request).tenant)
        return json_answer(CachesAnswer([CacheAnswer(*size) for size in sizes]))

    async def clear(self, request: Request) -> Response:
        tenant, name = caller_of(request).tenant, request.path_params["cache"]
        url = request.query_params.get("url")
        disk = self._cache.disk
        await self._audit.note(caller_of(request), "cache.clear", name, url or "")
        found = await disk.clear(tenant, name) if url is None else await disk.remove(Place(tenant, name, url))
        if not found:
            what = f"the cache `{name[:80]}`" if url is None else f"`{url[:200]}` in the cache `{name[:80]}`"
            raise Refused(ApiCode.NOT_FOUND, f"nothing is kept of {what}", "GET /api/caches lists the caches")
        return no_content()
