"""The node of `atoll dev`: the one of `atoll serve`, with a router that leads every host to the project.

What differs from production is where requests go and how much is told: engines, limits and storage are the same. The
control API answers on control.localhost, since localhost belongs to the project; only /cdn-cgi/ is kept for tools.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import msgspec

from atoll.app import Node
from atoll.broker import Broker
from atoll.cli.dev.command import CONTROL_HOST
from atoll.cli.dev.first import FirstEngine
from atoll.cli.dev.places import Places
from atoll.config import Settings
from atoll.control.check import parse_body
from atoll.control.workers import WorkerStore
from atoll.engine.early import EarlyEngine
from atoll.engine.pool import Pool
from atoll.engine.supervisor import Supervisor
from atoll.errors import Failure
from atoll.front.control import AsgiApp, Message, Receive, Send
from atoll.front.pages import Detail
from atoll.front.server import Listening, Server
from atoll.logs import Invocation, Said
from atoll.router import LOCAL_HOSTS, Outcome, Router, host_name
from atoll.wire.generated import Outcome as WireOutcome
from atoll.workers import Version

if TYPE_CHECKING:
    from starlette.responses import Response

LOCAL = frozenset(name.encode() for name in LOCAL_HOSTS)
TOOLS = b"/cdn-cgi/"
EVENTS = "/cdn-cgi/atoll/events"
SCHEDULED = ("/cdn-cgi/handler/scheduled", "/cdn-cgi/local/scheduled")
SILENCE_SECONDS = 15.0


class DevRouter(Router):
    """Every host is the project's, but for the control host; while it does not build, localhost tells about that."""

    worker = ""
    broken = False

    def find(self, host: bytes, target: bytes) -> Version | None:
        if self.broken or target.startswith(TOOLS):
            return None
        return super().find(host, target)

    def remember(self, host: bytes) -> Outcome:
        name = host_name(host)
        if name is None or name not in LOCAL:
            return super().remember(host)
        outcome = self.remembered[host] = self.outcome(name.decode("ascii"))
        return outcome

    def outcome(self, host: str) -> Outcome:
        version, rules = super().outcome(host)
        own = self.entries.get(self.worker)
        return (own.version if version is None and own is not None else version), rules


class Tools:
    """What answers under /cdn-cgi/ and in place of a project that does not build; the rest is the control API's."""

    def __init__(self, control: AsgiApp) -> None:
        self._control = control
        self._listeners: set[asyncio.Queue[str]] = set()
        self.build_error = ""  # as text with its frames; empty when the project builds
        self.run_cron: Callable[[str, float | None], Awaitable[str]] | None = None

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        host = next((value for name, value in scope.get("headers", ()) if name == b"host"), b"")
        if scope["type"] != "http" or host_name(host) == CONTROL_HOST.encode():
            await self._control(scope, receive, send)
            return
        response = self._refusal(scope) or await self._answer(scope)
        await response(scope, receive, send)

    def _refusal(self, scope: Message) -> Response | None:
        """The tools are for people on this machine, not for pages of other sites that their browsers show."""
        site = next((value for name, value in scope["headers"] if name == b"sec-fetch-site"), b"")
        if site != b"cross-site" or not scope["path"].startswith(TOOLS.decode()):
            return None
        from starlette.responses import PlainTextResponse

        return PlainTextResponse("/cdn-cgi/ answers no page of another site\n", 403)

    async def _answer(self, scope: Message) -> Response:
        from starlette.responses import PlainTextResponse, StreamingResponse

        path = scope["path"]
        if path == EVENTS:
            return StreamingResponse(
                self._events(), media_type="text/event-stream", headers={"cache-control": "no-store"}
            )
        if path in SCHEDULED and self.run_cron is not None:
            return await self._scheduled(parse_qs(scope["query_string"].decode("latin-1")))
        if self.build_error:
            from atoll.cli.dev.page import build_page

            accept = next((value for name, value in scope["headers"] if name == b"accept"), b"")
            return build_page(self.build_error, accept.decode("latin-1"))
        return PlainTextResponse(f"there is nothing at {path[:200]}\n", 404)

    def changed(self) -> None:
        """Tell the pages that show an error that there is something new to see."""
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

    async def _scheduled(self, query: dict[str, list[str]]) -> Response:
        from starlette.responses import PlainTextResponse, Response

        assert self.run_cron is not None
        cron, time = query.get("cron", [""])[0], query.get("time", [""])[0]
        try:
            outcome = await self.run_cron(cron, float(time) if time else None)
        except ValueError:
            return PlainTextResponse("`time` is milliseconds since 1970\n", 400)
        if query.get("format") == ["json"]:
            return Response(json.dumps({"outcome": outcome}), media_type="application/json")
        text = "Ran scheduled event" if outcome == "ok" else outcome
        return PlainTextResponse(text + "\n", 200 if outcome == "ok" else 500)


class DevNode(Node):
    """`on_call` is told of every call of the project that is over, `on_line` of what it says on its way."""

    router: DevRouter
    wants_control = False

    def __init__(
        self,
        settings: Settings,
        worker: str,
        on_call: Callable[[Invocation], None],
        on_line: Callable[[Said], None],
        before_open: Callable[[], Awaitable[None]],
        engine: FirstEngine,
    ) -> None:
        super().__init__(settings, detail=Detail.STACKS)
        self.worker = worker
        self.places = Places()
        self._on_call = on_call
        self._on_line = on_line
        self._before_open = before_open
        self._engine = engine
        self._misses = 0
        self.tools: Tools

    def call_was_cold(self) -> bool:
        """Whether some call had to load its version since this was last asked."""
        stats = self.pool.stats()
        before, self._misses = self._misses, stats.calls - stats.hits
        return self._misses > before

    def calls_under_way(self) -> int:
        return self.pool.stats().in_flight

    def explained(self, version_id: str, failure: Failure) -> Failure:
        """A failure at the places people know, with the code around the first of them."""
        mapped = self.deployer.maps.failure(version_id, failure)
        frame = self.places.frame(mapped)
        return replace(mapped, stack=f"{frame}\n\n{mapped.stack}") if frame else mapped

    def broke(self, text: str) -> None:
        """The project does not build: say so to whoever asks, until it does."""
        self.tools.build_error = text
        self.router.broken = bool(text)
        self.tools.changed()

    def _make_router(self) -> Router:
        router = DevRouter(self.settings.base_domain, self.settings.control_hosts)
        router.worker = self.worker
        return router

    async def _start(self) -> None:
        self._early = await asyncio.wrap_future(self._engine.result)
        await super()._start()

    def _make_supervisor(self, early: EarlyEngine | None = None) -> Supervisor:
        return super()._make_supervisor(self._early)

    def _make_pool(self, store: WorkerStore, broker: Broker) -> Pool:
        pool = super()._make_pool(store, broker)
        pool.hears = self._hear
        return pool

    def _want_lines(self, wanted: bool) -> None: ...  # always: see _hear

    def _hear(self, said: Said) -> None:
        self._on_line(said)
        self.logs.hear(said)

    async def _ask_control(self, scope: Message, receive: Receive, send: Send) -> None:
        await self.tools(scope, receive, send)

    def _make_server(self) -> Server:
        self.tools = Tools(super()._ask_control)
        server = super()._make_server()
        server.shared.explain = self.explained
        return server

    def _skim(self, version: Version, outcome: WireOutcome, status: int, cpu_us: int, wall_us: int) -> bool:
        return False  # every call is a line

    def _record(self, record: Invocation) -> None:
        super()._record(record)
        self._on_call(record)

    async def deploy(self, fields: dict[str, Any]) -> None:
        """Make it the version that answers, by the way of every deploy. Raises Refused."""
        body = parse_body(msgspec.json.encode(fields))
        if any(deployment.name == self.worker for deployment in self.deployer.all()):
            await self.deployer.update(self.worker, body)
        else:
            await self.deployer.create(body)

    async def _open(self, listening: Listening) -> None:
        """Nobody is answered by what the last session left: a project that was renamed left its old self behind too."""
        for deployment in self.deployer.all():
            if deployment.name != self.worker:
                await self.deployer.delete(deployment.name)
        await self._before_open()
        await super()._open(listening)

    async def _drain(self) -> None:
        self.tools.hang_up()
        await super()._drain()
