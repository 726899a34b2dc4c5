"""Rate limits over HTTP: show and reset the counts of the current window."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.audit import AuditLog
from atoll.api.callers import Scope
from atoll.api.paging import bad_cursor, name_page_of, name_query, page_answer
from atoll.api.refusals import ApiCode, Refused
from atoll.api.routes import Query, Route, caller_of, json_answer, no_content
from atoll.bindings.ratelimit.ops import MAX_NAME
from atoll.bindings.ratelimit.store import Bucket, Counters
from atoll.clock import iso_time

KEY = Query("key", "Only this key, as passed to limit()", {"type": "string"})


class CountedAnswer(msgspec.Struct):
    namespace: str
    period: int
    keys: int  # keys counted in the current window
    ends_at: str


class CountedsAnswer(msgspec.Struct, omit_defaults=True):
    ratelimits: list[CountedAnswer]
    cursor: str = ""


class CountAnswer(msgspec.Struct, omit_defaults=True):
    period: int
    keys: int
    ends_at: str
    count: int | None = None  # the count of the requested key


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
            Route(
                "GET",
                "/api/ratelimits",
                self.list,
                read,
                "Namespaces with counts in the current window",
                gives=CountedsAnswer,
                query=name_query(),
            ),
            Route("GET", one, self.look, read, "The counts of a namespace", gives=CountsAnswer, query=(KEY,)),
            Route("DELETE", one, self.reset, change, "Reset counts to 0", status=204, query=(KEY,)),
        ]

    async def list(self, request: Request) -> Response:
        cursor, limit = name_page_of(request)
        period, _, name = cursor.partition("/")
        if cursor and not (period.isascii() and period.isdigit() and len(period) < 10):
            raise bad_cursor(cursor)
        after = (int(period or 0), name)
        return await page_answer("ratelimits", self._listed(caller_of(request).tenant, after), limit)

    async def _listed(self, tenant: str, after: tuple[int, str]) -> AsyncIterator[tuple[str, CountedAnswer]]:
        for each in await self._counters.counted(tenant):
            if (each.period, each.namespace) > after:
                shown = CountedAnswer(each.namespace, each.period, each.keys, iso_time(each.ends_at * 1000))
                yield f"{each.period}/{each.namespace}", shown

    async def look(self, request: Request) -> Response:
        tenant, namespace, key = self._asked(request)
        counts = []
        for counted in await self._counters.counted(tenant, namespace):
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
    return Refused(
        ApiCode.NOT_FOUND,
        f"there are no counts of {what} in the current window",
        "GET /api/ratelimits lists the namespaces with counts",
    )
