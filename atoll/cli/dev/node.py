"""The node of `atoll dev`: the one of `atoll serve`, with a router that leads every host to the project's workers.

It differs from production in its routes and in how much it prints. Engines, limits and storage are the same. The
control API answers on control.localhost, since localhost belongs to the project; only /cdn-cgi/ is reserved for tools.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import msgspec

from atoll.app import Node
from atoll.bindings.services import Routes
from atoll.bindings.sites import own_hosts
from atoll.broker import Broker
from atoll.cli.dev.places import Places
from atoll.cli.dev.router import DevRouter, FrontRouter, OwnHosts
from atoll.cli.dev.tools import Tools
from atoll.config import Settings
from atoll.control.checks.body import parse_body
from atoll.control.store.workers import WorkerStore
from atoll.engine.pool import Pool
from atoll.engine.process.prestart import FirstEngines
from atoll.errors import Failure
from atoll.front.control import Message, Receive, Send
from atoll.front.pages import Detail
from atoll.front.server import Listening, Server
from atoll.logs import Invocation, Said
from atoll.router import Router
from atoll.wire.generated import ErrorCode
from atoll.wire.generated import Outcome as WireOutcome
from atoll.workers import WORKER_NAME, Version

KEPT_VERSIONS = 20  # whose errors are shown with the code around them


class Watching(NamedTuple):
    """Callbacks to the session."""

    call: Callable[[Invocation], None]  # a finished call
    line: Callable[[Said], None]  # console lines of a running call
    own_host: Callable[[str, str], None]  # a host whose fetch() is answered here because a route of a worker names it
    before_open: Callable[[], Awaitable[None]]


class DevNode(Node):
    """Runs the workers of one session and nothing else. The first of them has the port."""

    router: DevRouter
    wants_control = False

    def __init__(self, settings: Settings, workers: Sequence[str], watching: Watching, engine: FirstEngines) -> None:
        super().__init__(settings, detail=Detail.STACKS)
        self.workers = tuple(workers)
        self.places = {worker: Places() for worker in workers}
        self.how_to_add = ""  # the command that runs one more worker in this session
        self._watching = watching
        self.engines = engine
        self.configs: dict[str, str] = {}  # by worker: the name of its config file
        self._versions: dict[str, Version] = {}  # the last ones, by id
        self._misses = 0
        self.tools: Tools

    def call_was_cold(self) -> bool:
        """Whether a call had to load its version since the last time this was asked."""
        stats = self.pool.stats()
        before, self._misses = self._misses, stats.calls - stats.hits
        return self._misses > before

    def calls_under_way(self) -> int:
        return self.pool.stats().in_flight

    def explained(self, version_id: str, failure: Failure) -> Failure:
        """A failure mapped to source files, with the code around the first place in the project."""
        mapped = self.deployer.maps.failure(version_id, failure)
        version = self._versions.get(version_id)
        if version is None:
            return mapped
        if failure.code == ErrorCode.CPU:
            return replace(mapped, message=f"{mapped.message}\n{self._about_cpu(version)}")
        frame = self.places[version.worker_name].frame(mapped)
        return replace(mapped, stack=f"{frame}\n\n{mapped.stack}") if frame else mapped

    def _about_cpu(self, version: Version) -> str:
        """A hint for a call that exceeded its CPU limit."""
        cpu_ms = version.limits.cpu_ms
        config = self.configs.get(version.worker_name) or "an atoll.toml beside the script"
        wider = f'"limits": {{ "cpu_ms": {2 * cpu_ms} }}' if "json" in config else f"[limits] cpu_ms = {2 * cpu_ms}"
        return f"hint: a call of this worker may use {cpu_ms} ms of CPU time; for more, write {wider} into {config}"

    def broke(self, worker: str, text: str) -> None:
        """Answer requests to a worker with its build error. An empty `text` clears the error."""
        self.tools.build_errors.pop(worker, None)
        if text:
            self.tools.build_errors[worker] = text
        self.router.broken = frozenset(self.tools.build_errors)
        for tenant in {deployed.version.tenant for deployed in self.deployer.live.values()}:
            self.pool.loader.moved(tenant, worker)
        self.tools.changed()

    def find_worker(self, tenant: str, name: str) -> Version | None:
        """None for a worker that does not build: its old version would not match the sources."""
        return None if name in self.router.broken else super().find_worker(tenant, name)

    def how_to_get(self, name: str) -> str:
        if name in self.router.broken:
            return "it does not build or start, and `atoll dev` shows why"
        return f"run it in this session too, with `{self.how_to_add}`"

    def _make_router(self) -> Router:
        router = DevRouter(self.settings.base_domain, own_hosts(self.settings))
        router.workers = self.workers
        return router

    def _make_routes(self) -> Routes:
        self.gate.advice = "" if self.settings.egress_allow else " (`atoll dev --private-network` allows it)"
        return OwnHosts(self.router, self.settings.host, self.settings.port, self._watching.own_host)

    def _make_pool(self, store: WorkerStore, broker: Broker) -> Pool:
        pool = super()._make_pool(store, broker)
        pool.on_line = self._hear
        return pool

    def _want_lines(self, wanted: bool) -> None: ...  # always: see _hear

    def _hear(self, said: Said) -> None:
        self._watching.line(said)
        self.logs.hear(said)

    async def _ask_control(self, scope: Message, receive: Receive, send: Send) -> None:
        await self.tools(scope, receive, send)

    def _make_server(self) -> Server:
        self.tools = Tools(super()._ask_control, lambda host: self.router.named(host) or self.workers[0])
        server = super()._make_server()
        server.shared.router = FrontRouter(self.router)
        server.shared.explain = self.explained
        return server

    def _skim(self, version: Version, outcome: WireOutcome, status: int, cpu_us: int, wall_us: int) -> bool:
        return False  # the terminal shows every call

    def _record(self, record: Invocation) -> None:
        super()._record(record)
        if WORKER_NAME.fullmatch(record.version.worker_name):  # else it is code of a binding, not of the project
            self._watching.call(record)

    async def deploy(self, worker: str, fields: dict[str, Any]) -> None:
        """Deploy the worker, as the control API does. Raises Refused."""
        body = parse_body(msgspec.json.encode(fields))
        if self.deployer.named(worker) is not None:
            made = await self.deployer.update(worker, body)
        else:
            made = await self.deployer.create(body)
        while len(self._versions) >= KEPT_VERSIONS * len(self.workers):
            del self._versions[next(iter(self._versions))]
        self._versions[made.version.id] = made.version

    def serve_live(self, worker: str, attach: Sequence[Callable[[Version], None]]) -> None:
        """Serve files of the project's folder, as they are at each request, before the worker."""
        deployment = self.deployer.named(worker)
        if deployment is not None:
            for each in attach:
                each(deployment.version)

    async def _open(self, listening: Listening) -> None:
        """Delete workers of earlier sessions, for example of a project that was renamed."""
        for deployment in self.deployer.all():
            if deployment.name not in self.workers:
                await self.deployer.delete(deployment.name)
        await self._watching.before_open()
        await super()._open(listening)

    async def _drain(self) -> None:
        self.tools.hang_up()
        await super()._drain()
