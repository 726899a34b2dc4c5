"""A whole control plane on a temporary folder: real database, router and API; only the engines are played."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from atoll.bindings.echo.ops import Echo
from atoll.config import Settings
from atoll.control.access import Access
from atoll.control.api import ControlApi
from atoll.control.deploy import Deployer
from atoll.control.vault import Vault
from atoll.control.workers import WorkerStore
from atoll.db.sqlite import Database
from atoll.engine.pool import PoolStats
from atoll.observe.store import LogStore
from atoll.router import Router
from atoll.workers import Version


class NoTriggers:
    """A node without crons and queues: engines are played here, and what would start them has tests of its own."""

    def check(self, version: Version, handlers: Sequence[str]) -> None: ...
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


@dataclass
class Engines:
    """What a deploy needs of the engines: likes everything, or raises `failure`. Loads nothing."""

    failure: Exception | None = None
    handlers: tuple[str, ...] = ("fetch",)
    gate: asyncio.Event | None = None  # when set, a check waits for it
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
        """Wait until so many checks have begun."""
        async with self.changed:
            await self.changed.wait_for(lambda: len(self.checked) >= count)

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
        """The code of an error, after a look at the shape every error has."""
        error = self.json["error"]
        assert error["type"] and error["message"]
        return int(error["code"])


class Node:
    """One life of the control plane, from an open database to a closed one."""

    def __init__(self, folder: Path, settings: Settings, engines: Engines, clock: Callable[[], float]) -> None:
        self.settings = settings
        self.engines = engines
        self.database = Database(folder / "atoll.db")
        self.store = WorkerStore(self.database, KINDS, Vault(folder))
        self.router = Router(settings.base_domain, settings.control_hosts)
        self.logs = LogStore(folder)
        self.access = Access(settings, self.database, clock)
        self.deployer = Deployer(
            settings, self.store, engines, self.router, self.logs, KINDS, NO_TRIGGERS, self.access.tenants, clock=clock
        )
        self.deployer.restore()
        self.api = ControlApi(
            settings,
            self.deployer,
            self.store,
            self.logs,
            self.access,
            is_control=self.router.is_control,
            stats=lambda: engines.stats,
            pool_report=lambda: {"cached": engines.stats.loaded},
            port=lambda: 8080,
        )

    async def close(self) -> None:
        await self.deployer.close()
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
        """One request to the API, as the front would hand it over. `body` is sent as JSON."""
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
            return parts.pop(0) if parts else {"type": "http.disconnect"}

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
