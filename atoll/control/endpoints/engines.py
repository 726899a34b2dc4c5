"""The engines of this node for operators: engines, isolates and tenants as they are now, once or each second; and to
replace an engine or unload an isolate.

The stream uses server-sent events, as that of logs does: an event `engines` each second.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from atoll.api.audit import AuditLog
from atoll.api.callers import Scope
from atoll.api.refusals import ApiCode, Refused
from atoll.api.routes import Route, caller_of, json_answer, no_content
from atoll.control.endpoints.logs import STREAM_HEADERS
from atoll.observe.engine_overview import EngineOverview, EnginesAnswer

MAX_STREAMS = 32
PAUSE = 1.0
NUMBER = 12  # digits


class EnginesApi:
    def __init__(self, overview: EngineOverview, audit: AuditLog) -> None:
        self._overview = overview
        self._audit = audit
        self._streams = 0

    def routes(self) -> list[Route]:
        path = "/api/node/engines"
        return [
            Route(
                "GET",
                path,
                self.list,
                Scope.READ,
                "Engines, isolates and tenants of this node, with what they use now",
                gives=EnginesAnswer,
                is_node=True,
            ),
            Route(
                "GET",
                f"{path}/live",
                self.live,
                Scope.READ,
                "The same each second, as server-sent events",
                is_node=True,
                media="text/event-stream",
            ),
            Route(
                "POST",
                f"{path}/{{pid}}/restart",
                self.restart,
                Scope.ADMIN,
                "Replace an engine; its calls may finish",
                status=204,
                is_node=True,
            ),
            Route(
                "POST",
                f"{path}/{{pid}}/isolates/{{isolate}}/unload",
                self.unload,
                Scope.ADMIN,
                "Unload an isolate once its calls are over",
                status=204,
                is_node=True,
            ),
        ]

    async def list(self, request: Request) -> Response:
        return json_answer(await self._overview.look())

    async def live(self, request: Request) -> Response:
        if self._streams >= MAX_STREAMS:
            raise Refused(
                ApiCode.QUOTA, f"there are {MAX_STREAMS} open streams of the engines", "close one, then try again"
            )
        return StreamingResponse(self._events(request), headers=STREAM_HEADERS, media_type="text/event-stream")

    async def _events(self, request: Request) -> AsyncIterator[bytes]:
        caller, gone = caller_of(request), asyncio.ensure_future(_gone(request))
        self._streams += 1
        try:
            while caller.may_still() and not gone.done():  # the token was revoked, or the client is gone
                yield b"event: engines\ndata: %b\n\n" % msgspec.json.encode(await self._overview.look())
                await asyncio.wait((gone,), timeout=PAUSE)
        finally:
            self._streams -= 1
            gone.cancel()

    async def restart(self, request: Request) -> Response:
        pid = _number(request, "pid")
        await self._audit.note(caller_of(request), "engine.restart", str(pid))
        if not self._overview.restart(pid):
            raise _no_engine(request)
        return no_content()

    async def unload(self, request: Request) -> Response:
        pid, number = _number(request, "pid"), _number(request, "isolate")
        await self._audit.note(caller_of(request), "isolate.unload", f"{pid}/{number}")
        if self._overview.unload(pid, number) is None:
            text = f"the engine has no isolate `{number}`: it may be unloaded already"
            raise Refused(ApiCode.NOT_FOUND, text, "list the engines again: isolates come and go")
        return no_content()


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _number(request: Request, name: str) -> int:
    raw = request.path_params[name]
    if not (raw.isascii() and raw.isdigit() and len(raw) <= NUMBER):
        raise _no_engine(request)
    return int(raw)


def _no_engine(request: Request) -> Refused:
    text = f"there is no engine `{request.path_params['pid'][:20]}`: it may have been replaced"
    return Refused(ApiCode.NOT_FOUND, text, "list the engines again")
