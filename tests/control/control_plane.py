"""A complete control plane in a temporary folder: real database, router and API; only the engines are simulated."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from atoll.api.work import Work
from atoll.bindings.echo.ops import Echo
from atoll.config import Settings
from atoll.control.access.access import Access
from atoll.control.api import ControlApi, ControlParts
from atoll.control.deploy.deployer import Deployer
from atoll.control.deploy.switching import DeployerParts
from atoll.control.store.vault import Vault
from atoll.control.store.workers import WorkerStore
from atoll.db.sqlite import Database
from atoll.engine.pool import PoolStats
from atoll.observe.meter import Meter
from atoll.observe.series import SeriesStore
from atoll.observe.store import LogStore
from atoll.offload.pool import Offload
from atoll.offload.spool import SpoolRoom
from atoll.router import Router
from atoll.workers import Version


class NoTriggers:
    """A node without crons and queues: engines are simulated here, and triggers have their own tests."""

    def check(self, version: Version, handlers: Sequence[str], classes: Sequence[str] = ()) -> None: ...
    async def prepare(self, version: Version) -> None: ...

    def put(self, version: Version) -> None: ...

    async def drop(self, worker_id: str) -> None: ...


NO_TRIGGERS = NoTriggers()
KINDS = {"echo": Echo()}
HELLO = 'export default { fetch() { return new Response("Hello!"); } }'


@dataclass
class Report:
    handlers: tuple[str, ...] = ("fetch",)
    startup_ms: float = 1.5
    classes: tuple[str, ...] = ()


@dataclass
class Engines:
    """The engines' part in a deploy: accepts everything, or raises `failure`. Loads nothing."""

    failure: Exception | None = None
    handlers: tuple[str, ...] = ("fetch",)
    gate: asyncio.Event | None = None  # if set, a check waits for it
    stats: PoolStats = field(default_factory=lambda: PoolStats(engines=2))
    checked: list[Version] = field(default_factory=list)
    retired: list[Version] = field(default_factory=list)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def check(self, version: Version) -> Report:
        async with self.changed:
            self.checked.append(version)
            self.changed.notify_all()
        if self.gate is not None:
            await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        return Report(self.handlers)

    async def until_checked(self, count: int) -> None:
        """Waits until this many checks have started."""
        async with self.changed:
            await self.changed.wait_for(lambda: len(self.checked) >= count)

    def moved(self, tenant: str, worker_name: str) -> None:
        pass

    def retire(self, version: Version) -> None:
        self.retired.append(version)


@dataclass
class Answer:
    status: int
    headers: dict[str, str]
    content: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.content)

    @property
    def code(self) -> int:
        """The code of an error, after checking the shape that every error has."""
        error = self.json["error"]
        assert error["type"] and error["message"]
        return int(error["code"])


class Node:
    """One life of the control plane, from opening to closing the database."""

    def __init__(self, folder: Path, settings: Settings, engines: Engines, clock: Callable[[], float]) -> None:
        self.settings = settings
        self.engines = engines
        self.database = Database(folder / "atoll.db")
        self.store = WorkerStore(self.database, KINDS, Vault(folder))
        self.router = Router(settings.base_domain, settings.control_hosts)
        self.logs = LogStore(folder)
        self.access = Access(settings, self.database, clock)
        places = (self.store, engines, self.router, self.logs)
        self.meter = Meter()
        access = self.access.tenants, self.access.reserved
        parts = DeployerParts(settings, *places, KINDS, NO_TRIGGERS, *access, meter=self.meter)
        self.deployer = Deployer(parts, clock=clock, ticks=clock)
        self.deployer.restore()
        self.series = SeriesStore(folder, self.meter, self.deployer.id_of)
        self.work = Work(Offload(1), SpoolRoom(folder, 64 << 20, 128 << 20))
        self.api = ControlApi(
            ControlParts(
                settings,
                self.deployer,
                self.store,
                self.logs,
                self.access,
                self.work,
                is_control=self.router.is_control,
                stats=lambda: engines.stats,
                pool_report=lambda: {"cached": engines.stats.loaded},
                port=lambda: 8080,
                kinds=KINDS,
                series=self.series,
            )
        )

    async def close(self) -> None:
        await self.series.close()
        await self.deployer.close()
        await self.work.offload.close()
        await self.logs.close()
        await self.database.close()

    def live(self, host: str, path: str = "/") -> Version | None:
        return self.router.find(host.encode(), path.encode())

    async def ask(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        raw: bytes | None = None,
        http_version: str = "1.1",
        **headers: str,
    ) -> Answer:
        """Sends one request to the API, as the front would. `body` is sent as JSON."""
        content = raw if raw is not None else b"" if body is None else json.dumps(body).encode()
        fields = {"host": "localhost:8080", "content-type": "application/json"}
        fields |= {name.replace("_", "-"): value for name, value in headers.items()}
        path, _, query = path.partition("?")
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": http_version,
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in fields.items()],
            "client": ("127.0.0.1", 50000),
            "server": ("127.0.0.1", 8080),
        }
        events: list[dict[str, Any]] = []
        half = len(content) // 2
        parts = [
            {"type": "http.request", "body": content[:half], "more_body": True},
            {"type": "http.request", "body": content[half:], "more_body": False},
        ]

        async def receive() -> dict[str, Any]:
            if not parts:
                await asyncio.Event().wait()  # the client stays connected
            return parts.pop(0)

        async def send(event: Any) -> None:
            events.append(event)

        await self.api.app(scope, receive, send)
        start = events[0]
        sent = {name.decode(): value.decode() for name, value in start["headers"]}
        return Answer(start["status"], sent, b"".join(event.get("body", b"") for event in events[1:]))

    async def post(self, **body: object) -> Answer:
        return await self.ask("POST", "/api/workers", body)

    async def put(self, worker: str, **body: object) -> Answer:
        return await self.ask("PUT", f"/api/workers/{worker}", body)


@dataclass
class Clock:
    now: float = 1_800_000_000.5  # 2027-01-15T08:00:00.500Z

    def __call__(self) -> float:
        return self.now
