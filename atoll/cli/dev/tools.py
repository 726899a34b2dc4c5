"""Requests that `atoll dev` answers itself: /cdn-cgi/ on its own hosts, and those to a worker that does not build."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from atoll.cli.dev import CONTROL_HOST
from atoll.cli.dev.router import TOOLS
from atoll.front.control import AsgiApp, Message, Receive, Send
from atoll.manifests.every import triggers
from atoll.router import host_name

if TYPE_CHECKING:
    from starlette.responses import Response

EVENTS = "/cdn-cgi/atoll/events"
EVENT_PATH = re.compile(r"/cdn-cgi/(?:handler|local)/([a-z]+)")
STARTABLE = {trigger.handler for trigger in triggers().values() if trigger.run_now is not None}
SILENCE_SECONDS = 15.0


class Tools:
    """Answers under /cdn-cgi/ and for workers that do not build. The control API answers the rest."""

    def __init__(self, control: AsgiApp, worker_at: Callable[[bytes], str]) -> None:
        """`worker_at` gives the worker of a host."""
        self._control = control
        self._worker_at = worker_at
        self._listeners: set[asyncio.Queue[str]] = set()
        self.build_errors: dict[str, str] = {}  # by worker that does not build: the text with its code frames
        # (handler, worker, entry, query) -> outcome
        self.run_now: Callable[[str, str, str, Mapping[str, str]], Awaitable[str]] | None = None

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        host = next((value for name, value in scope.get("headers", ()) if name == b"host"), b"")
        if scope["type"] != "http" or host_name(host) == CONTROL_HOST.encode():
            await self._control(scope, receive, send)
            return
        refusal = self._refusal(scope)
        event = EVENT_PATH.fullmatch(scope["path"])
        if refusal is None and scope["method"] == "POST" and event is not None and event[1] not in STARTABLE:
            await self._control(_for_control(scope, event[1], self._worker_at(host)), receive, send)
            return
        response = refusal or await self._answer(scope, self._worker_at(host))
        await response(scope, receive, send)

    def _refusal(self, scope: Message) -> Response | None:
        """The tools are for users of this machine, not for pages of other sites in their browsers."""
        site = next((value for name, value in scope["headers"] if name == b"sec-fetch-site"), b"")
        if site != b"cross-site" or not scope["path"].startswith(TOOLS.decode()):
            return None
        from starlette.responses import PlainTextResponse

        return PlainTextResponse("/cdn-cgi/ does not answer pages of other sites\n", 403)

    async def _answer(self, scope: Message, worker: str) -> Response:
        from starlette.responses import PlainTextResponse, StreamingResponse

        path = scope["path"]
        if path == EVENTS:
            return StreamingResponse(
                self._events(), media_type="text/event-stream", headers={"cache-control": "no-store"}
            )
        event = EVENT_PATH.fullmatch(path)
        if event is not None and event[1] in STARTABLE and self.run_now is not None:
            return await self._run(event[1], worker, dict(parse_qsl(scope["query_string"].decode("latin-1"))))
        if worker in self.build_errors:
            from atoll.cli.dev.page import build_page

            accept = next((value for name, value in scope["headers"] if name == b"accept"), b"")
            return build_page(self.build_errors[worker], accept.decode("latin-1"))
        return PlainTextResponse(f"there is nothing at {path[:200]}\n", 404)

    def changed(self) -> None:
        """Reload the pages that show an error."""
        for listener in self._listeners:
            listener.put_nowait("changed")

    def hang_up(self) -> None:
        for listener in self._listeners:
            listener.put_nowait("")

    async def _events(self) -> AsyncIterator[str]:
        listener: asyncio.Queue[str] = asyncio.Queue()
        self._listeners.add(listener)
        try:
            yield ": listening\n\n"
            while True:
                try:
                    word = await asyncio.wait_for(listener.get(), SILENCE_SECONDS)
                except TimeoutError:
                    yield ": nothing new\n\n"
                    continue
                if not word:
                    return
                yield f"data: {word}\n\n"
        finally:
            self._listeners.discard(listener)

    async def _run(self, handler: str, worker: str, query: dict[str, str]) -> Response:
        from starlette.responses import PlainTextResponse, Response

        assert self.run_now is not None
        try:
            outcome = await self.run_now(handler, worker, "", query)
        except ValueError as error:
            return PlainTextResponse(f"{error}\n", 400)
        if query.get("format") == "json":
            return Response(json.dumps({"outcome": outcome}), media_type="application/json")
        text = f"Ran {handler} event" if outcome == "ok" else outcome
        return PlainTextResponse(text + "\n", 200 if outcome == "ok" else 500)


def _for_control(scope: Message, handler: str, worker: str) -> Message:
    """A request that brings the content of an event: the control API runs it."""
    path = f"/cdn-cgi/handler/{handler}"
    query = b"&".join(filter(None, (f"worker={worker}".encode(), scope["query_string"])))
    headers = [(name, CONTROL_HOST.encode() if name == b"host" else value) for name, value in scope["headers"]]
    return {**scope, "path": path, "raw_path": path.encode(), "query_string": query, "headers": headers}
