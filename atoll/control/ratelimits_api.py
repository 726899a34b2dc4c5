"""Rate limits over HTTP: what is counted in the window that is open, and counting from 0 again."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atoll.bindings.ratelimit.ops import MAX_NAME
from atoll.bindings.ratelimit.store import Bucket, Counters
from atoll.control.audit import AuditLog
from atoll.control.boundary import Query, Route, caller_of, json_answer, no_content
from atoll.control.callers import Scope
from atoll.control.refusals import ApiCode, Refused
from atoll.observe.records import iso_time

KEY = Query("key", "Only this one, as the worker gave it to limit()", {"type": "string"})


class CountedAnswer(msgspec.Struct):
    namespace: str
    period: int
    keys: int  # that were counted in the window that is open
    ends_at: str


class CountedsAnswer(msgspec.Struct):
    ratelimits: list[CountedAnswer]


class CountAnswer(msgspec.Struct, omit_defaults=True):
    period: int
    keys: int
    ends_at: str
    count: int | None = None  # of the key that was asked for


class CountsAnswer(msgspec.Struct):
    counts: list[CountAnswer]


class RateLimitsApi:
    def __init__(self, counters: Counters, audit: AuditLog) -> None:
        self._counters = counters
        self._audit = audit

    def routes(self) -> list[Route]:
        one = "/api/ratelimits/{limiter:path}"
        read, change = Scope.READ, Scope.DEPLOY
        return [
            Route("GET", "/api/ratelimits", self.list, read, "What is counted now", gives=CountedsAnswer),
            Route("GET", one, self.look, read, "What is counted in a namespace", gives=CountsAnswer, query=(KEY,)),
            Route("DELETE", one, self.reset, change, "Count from 0 again", status=204, query=(KEY,)),
        ]

    async def list(self, request: Request) -> Response:
        found = await self._counters.counted(caller_of(request).tenant)
        shown = [CountedAnswer(each.namespace, each.period, each.keys, iso_time(each.ends_at * 1000)) for each in found]
        return json_answer(CountedsAnswer(shown))

    async def look(self, request: Request) -> Response:
        tenant, namespace, key = self._asked(request)
        counts = []
        for counted in await self._counters.counted(tenant):
            if counted.namespace == namespace:
                bucket = Bucket(tenant, namespace, counted.period)
                count = None if key is None else await self._counters.look(bucket, key)
                if count != 0:
                    counts.append(CountAnswer(counted.period, counted.keys, iso_time(counted.ends_at * 1000), count))
        if not counts:
            raise nothing_counted(namespace, key)
        return json_answer(CountsAnswer(counts))

    async def reset(self, request: Request) -> Response:
        tenant, namespace, key = self._asked(request)
        await self._audit.note(caller_of(request), "ratelimit.reset", namespace, key or "")
        if not await self._counters.reset(tenant, namespace, key):
            raise nothing_counted(namespace, key)
        return no_content()

    def _asked(self, request: Request) -> tuple[str, str, str | None]:
        return caller_of(request).tenant, request.path_params["limiter"][:MAX_NAME], request.query_params.get("key")


def nothing_counted(namespace: str, key: str | None) -> Refused:
    what = f"the namespace `{namespace}`" if key is None else f"`{key[:80]}` in the namespace `{namespace}`"
    return Refused(ApiCode.NOT_FOUND, f"nothing is counted of {what} now", "GET /api/ratelimits lists what is")
