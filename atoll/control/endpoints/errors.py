"""The errors of workers in groups, over HTTP."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.callers import Caller, Scope
from atoll.api.paging import bad_cursor, limit_of, limit_query
from atoll.api.routes import Query, Route, caller_of, json_answer
from atoll.control.endpoints.logs import CURSOR
from atoll.control.store.workers import Deployment
from atoll.observe.error_groups import ErrorGroup, ErrorPlace
from atoll.observe.store import LogStore
from atoll.observe.table import FOREVER

WORKER = Query("worker", "Only errors of this worker: its name or id", {"type": "string"})
CURSORS = Query("cursor", "The `cursor` of the previous page", {"type": "string", "pattern": f"^{CURSOR.pattern}$"})


class ErrorsAnswer(msgspec.Struct, omit_defaults=True):
    errors: list[ErrorGroup]
    cursor: str = ""


class ErrorsApi:
    def __init__(self, find: Callable[[str, Caller], Deployment], name: Callable[[str], str], logs: LogStore) -> None:
        self._find = find
        self._name = name  # of a worker, by its id
        self._logs = logs

    def routes(self) -> list[Route]:
        return [
            Route(
                "GET",
                "/api/errors",
                self.page,
                Scope.LOGS,
                "Errors of workers in groups, those seen last first",
                gives=ErrorsAnswer,
                query=(limit_query(), CURSORS, WORKER),
            )
        ]

    async def page(self, request: Request) -> Response:
        """One page of the groups."""
        caller = caller_of(request)
        named = request.query_params.get("worker", "")
        worker = self._find(named, caller).id if named else ""
        found, rest = await self._logs.find_errors(caller.tenant, worker, place_of(request), limit_of(request))
        for group in found:
            group.worker = self._name(group.worker)
        return json_answer(ErrorsAnswer(found, f"{rest.last_seen}-{rest.id}" if rest is not None else ""))


def place_of(request: Request) -> ErrorPlace:
    cursor = request.query_params.get("cursor")
    if cursor is None:
        return ErrorPlace(FOREVER, FOREVER)
    found = CURSOR.fullmatch(cursor)
    if found is None:
        raise bad_cursor(cursor)
    return ErrorPlace(int(found[1]), int(found[2]))
