"""An engine room in its own folder: pool, supervisor, real engines, and a caller that records its answers."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
import signal
import tempfile
import time
import weakref
from collections.abc import Callable
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import msgspec

from atoll.bindings.making import make_bindings
from atoll.bindings.service.target import ServiceTarget, ServiceWays
from atoll.bindings.services import Services
from atoll.broker import Broker
from atoll.config import Settings
from atoll.control.store.vault import Vault
from atoll.db.sqlite import Database
from atoll.egress.gate import EgressGate
from atoll.engine.calls.between_workers import WorkerCalls
from atoll.engine.calls.call import Call
from atoll.engine.calls.events import EventRunner
from atoll.engine.loaded.engine_session import EngineSession, Isolate
from atoll.engine.objects.node_objects import NodeObjects
from atoll.engine.pool import Pool, PoolLimits
from atoll.engine.process.engine_process import EngineFiles
from atoll.engine.process.prestart import EngineOptions
from atoll.engine.process.recycling import RecycleLimits
from atoll.engine.process.supervisor import Supervisor
from atoll.errors import Failure
from atoll.logs import Invocation
from atoll.router import Router
from atoll.workers import Grant, Limits, Module, ModuleKind, Version

PATIENCE = 20.0  # seconds that a test waits for something that should happen at once
HELLO = 'export default { fetch() { return new Response("hello"); } };'


def script(
    source: str, name: str = "test", limits: Limits | None = None, grants: dict[str, Grant] | None = None, **fields: Any
) -> Version:
    """A version of one module, with an echo binding as env.ECHO and the given bindings."""
    module = Module("worker.js", ModuleKind.ESM, source.encode())
    return Version(
        id=f"{name}-{hashlib.sha256(source.encode()).hexdigest()[:8]}",  # the key of its code cache
        worker_id=f"worker-{name}",
        worker_name=name,
        tenant="default",
        modules=(module,),
        main="worker.js",
        grants={"ECHO": Grant("ECHO", "echo"), **(grants or {})},
        limits=limits or Limits(cpu_ms=2000),
        **fields,
    )


class Ear:
    """A caller that records everything it receives."""

    def __init__(self) -> None:
        self.status = 0
        self.head = b""
        self.body = b""
        self.ended = False
        self.failure: Failure | None = None
        self.credit = 0
        self.stopped = False
        self.call: Call | None = None
        self.grants = True  # takes every chunk at once
        self._news = asyncio.Event()

    def on_response(self, status: int, head: bytes, body: bytes, ended: bool) -> None:
        assert not self.status and self.failure is None
        self.status, self.head, self.body, self.ended = status, head, body, ended
        self._news.set()

    def on_body(self, chunk: bytes, ended: bool) -> None:
        assert self.status and not self.ended and self.failure is None
        self.body += chunk
        self.ended = ended
        if self.grants and self.call is not None:
            self.call.grant(len(chunk))
        self._news.set()

    def on_failure(self, failure: Failure) -> None:
        assert not self.ended and self.failure is None
        self.failure = failure
        self._news.set()

    def on_upload_credit(self, amount: int) -> None:
        self.credit += amount
        self._news.set()

    def on_upload_stop(self) -> None:
        self.stopped = True
        self._news.set()

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not condition():
                self._news.clear()
                await self._news.wait()

    async def over(self) -> Ear:
        """Waits until the response is complete or has failed."""
        await self.until(lambda: self.ended or self.failure)
        return self

    @property
    def code(self) -> str:
        return self.failure.code.name if self.failure else ""


class ActiveVersions(dict[str, Version]):
    """Tells the loader of changes, as a deploy does."""

    def __init__(self, room: EngineRoom) -> None:
        super().__init__()
        self._room = room

    def __setitem__(self, name: str, version: Version) -> None:
        super().__setitem__(name, version)
        self._room.pool.loader.moved(version.tenant, name)

    def __delitem__(self, name: str) -> None:
        tenant = self[name].tenant
        super().__delitem__(name)
        self._room.pool.loader.moved(tenant, name)


class EngineRoom:
    def __init__(
        self,
        data: Path,
        *,
        engines: int = 1,
        files: EngineFiles | None = None,
        sandbox: str = "try",
        limits: PoolLimits | None = None,
        clock: Callable[[], float] = time.monotonic,
        recycling: RecycleLimits | None = None,
        heartbeat_seconds: float = 1.0,
        heap_initial_mb: int = 0,
        settings: Settings | None = None,
        kinds: tuple[str, ...] = (),
    ) -> None:
        self.stays_inside = False  # routes are open before the first call, see connect()
        self.records: list[Invocation] = []
        self.caches: dict[str, tuple[bytes, ...]] = {}
        self.saved = 0
        self._folder = Path(tempfile.mkdtemp(prefix="atoll-room-"))  # `data` may be shared, to reuse snapshots
        weakref.finalize(self, shutil.rmtree, self._folder, True)  # some rooms are never started
        folder = self._folder
        self.database = Database(folder / "atoll.db")
        self.router = Router()
        self.workers = ActiveVersions(self)  # the targets of service bindings, by name
        self.objects = NodeObjects()
        self.inner = WorkerCalls(objects=self.objects.runtime)
        self.events = EventRunner()
        settings = settings or Settings(data=folder)
        self.gate = EgressGate(settings)
        parts = self.database, self.router, self.inner, self.events, self, self.gate, Vault(settings.data)
        services = Services(settings, *parts, objects=self.objects.runtime)
        self.bindings = make_bindings(services)
        self.pool = Pool(
            Broker(binding for binding in self.bindings.values() if not kinds or binding.kind in kinds),
            self.records.append,
            limits=limits or PoolLimits(event_cpu_ms=2_000),  # 30 s are too long for a test
            load_code_cache=lambda version, v8: self.caches.get(version.id + v8),
            save_code_cache=self._save,
            clock=clock,
        )
        self.inner.calls = self.events.calls = self.pool
        self.objects.join(self.pool, self.bindings)
        self._undo = AsyncExitStack()
        options = EngineOptions(
            data=data,
            engines=engines,
            threads=2,
            spares=1,
            sandbox=sandbox,
            files=files,
            heap_initial_mb=heap_initial_mb,
        )
        self.supervisor = Supervisor(self.pool, options, recycling=recycling, heartbeat_seconds=heartbeat_seconds)

    def how_to_get(self, name: str) -> str:
        return "deploy a worker of that name"

    def is_split(self, tenant: str, name: str) -> bool:
        return False

    def find_worker(self, tenant: str, name: str) -> Version | None:
        version = self.workers.get(name)
        return version if version is not None and version.tenant == tenant else None

    async def __aenter__(self) -> EngineRoom:
        await self.objects.start(Settings(data=self._folder), self._undo)
        await self.supervisor.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """A room that was not started, or only in part, has files open too."""
        pids = self.supervisor.pids
        await self.supervisor.stop()
        await self._undo.aclose()
        for binding in self.bindings.values():
            if binding.trigger is not None:
                await binding.trigger.close()
            await binding.close()
        self.gate.close()
        await self.database.close()
        shutil.rmtree(self._folder)
        assert not [pid for pid in pids if alive(pid)], "an engine outlived its supervisor"

    def _save(self, version: Version, v8: str, cache: tuple[bytes, ...]) -> None:
        self.saved += 1
        self.caches[version.id + v8] = cache

    def call(self, version: Version, url: str = "http://test/", body: bytes = b"", *, open_body: bool = False) -> Ear:
        ear = Ear()
        method = "POST" if body or open_body else "GET"
        head = f"{method} {url}\nHost: test\r\n".encode()
        ear.call = self.pool.call(version, head, body, not open_body, ear)
        return ear

    async def connect(self, version: Version) -> None:
        """Opens the routes of a worker's service bindings: its calls stay inside the engine from the first one on."""
        await self.pool.loader.check(version)
        ways = ServiceWays(self, "localhost")
        for grant in version.grants.values():
            if grant.kind != "service":
                continue
            target = msgspec.json.decode(grant.resource, type=ServiceTarget)
            callee = self.find_worker(version.tenant, target.service)
            if callee is None:
                continue
            await self.pool.loader.check(callee)
            way = ways.find(version, grant.name, target)
            assert way is not None
            session = self.isolate(version).session
            if self.isolate(callee).session is session:
                session.inside.connect(self.isolate(version), way, self.isolate(callee))

    async def get(self, version: Version, url: str = "http://test/", body: bytes = b"") -> Ear:
        if self.stays_inside:
            await self.connect(version)
        return await self.call(version, url, body).over()

    def isolate(self, version: Version) -> Isolate:
        """The isolate of a version that has exactly one."""
        (isolate,) = self.pool.loader.versions[version].isolates
        return isolate

    def session_of(self, version: Version) -> EngineSession | None:
        """The session of the engine that has loaded a version."""
        loaded = self.pool.loader.versions.get(version)
        return loaded.isolates[0].session if loaded is not None and len(loaded.isolates) == 1 else None

    def kill_engine(self, number: int = 0) -> int:
        pid = self.supervisor.pids[number]
        os.kill(pid, signal.SIGKILL)
        return pid

    async def until(self, condition: Callable[[], object], what: str) -> None:
        """Waits for a condition that no caller is notified of."""
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, f"never happened: {what}"
            await asyncio.sleep(0.01)


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
