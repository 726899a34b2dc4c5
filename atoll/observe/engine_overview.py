"""The engines of a node, the isolates in them and the tenants that use them, as they are now; and their end on request.

Rates come from the difference between this look and one about three seconds ago. All who ask within a second get the
same answer, so a hundred open pages cost as much as one. What engines say about memory and CPU time is not verified: it
is for display only.
"""

from __future__ import annotations

import asyncio
import heapq
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping

import msgspec

from atoll.clock import iso_time
from atoll.engine.loaded.engine_session import EngineSession, Isolate
from atoll.engine.pool import Pool
from atoll.engine.process.memory import available_bytes, total_bytes
from atoll.engine.process.supervisor import Supervisor
from atoll.observe.processes import ProcessUse, uses_of

PERIOD = 0.9  # seconds for which an answer is shared
LOOKS = 4  # that are kept: rates are over the time between the first and the last of them
STALE = 10.0  # seconds after which a look says nothing about now
MOST_ISOLATES = 1_000  # in an answer: those with the most memory
MOST_TENANTS = 100  # those that use the most CPU
MOST_BYTES = 1 << 50
MOST_US = 1 << 60


class IsolateNow(msgspec.Struct):
    """One version of a worker, loaded in one engine."""

    id: int  # in its engine
    tenant: str
    worker: str
    worker_id: str
    version_id: str
    state: str  # loading, ready; draining: it takes no new calls
    memory_bytes: int | None  # after its last garbage collection; null: the engine has not said
    cpu_ms: float  # since it was loaded
    cpu_percent: float | None  # of a core, in the last seconds; null: not known yet
    in_flight: int
    sockets: int
    objects: bool  # whether Durable Objects live in it
    age_seconds: float
    idle_seconds: float
    marks: list[str]  # quarantined: in an engine of its own; throttled: more calls wait than it can begin


class EngineNow(msgspec.Struct):
    pid: int
    name: str
    serves: str  # all, or the only tenant or worker that is loaded in it
    memory_bytes: int
    heap_bytes: int
    cpu_percent: float | None
    uptime_seconds: float
    in_flight: int
    waiting: int  # calls that have not begun
    loaded: int
    isolates: list[IsolateNow]  # those with the most memory first


class TenantNow(msgspec.Struct):
    name: str
    cpu_ms: float  # of its calls since the node started
    cpu_percent: float | None
    memory_bytes: int
    in_flight: int
    loaded: int


class LoopLagNow(msgspec.Struct):
    """In ms. The first two are of the last one to two minutes."""

    p99: float
    max: float
    max_since_start: float


class CountsNow(msgspec.Struct):
    """Since the node started, except for the first two."""

    in_flight: int
    queued: int
    calls: int
    refused: int
    loads: int
    load_failures: int
    evictions: int
    condemned: int
    offences: int
    crashes: int
    engines_lost: int
    restarts: int


class EnginesAnswer(msgspec.Struct):
    at: str
    node: str  # its name in the cluster; "" for a node by itself
    uptime_seconds: float
    cores: int
    memory_total_bytes: int
    memory_free_bytes: int
    is_short_of_memory: bool
    node_memory_bytes: int  # of the process that is not an engine
    node_cpu_percent: float | None
    calls_per_second: float | None
    loop_lag_ms: LoopLagNow
    counts: CountsNow
    engines: list[EngineNow]
    leaving: int  # replaced engines that finish their calls
    tenants: list[TenantNow]  # those that use the most CPU first
    left_out: int  # isolates that are not listed


class EngineLook(msgspec.Struct):
    """What rates are made of."""

    at: float
    calls: int
    isolates: dict[tuple[int, int], float]  # ms of CPU time, by pid and load id
    tenants: dict[str, float]
    processes: dict[int, float]


class EngineRates:
    def __init__(self) -> None:
        self._looks: deque[EngineLook] = deque(maxlen=LOOKS)

    def add(self, look: EngineLook) -> None:
        while self._looks and look.at - self._looks[0].at > STALE:
            self._looks.popleft()
        self._looks.append(look)

    def of(self, then: Callable[[EngineLook], float | None]) -> float | None:
        """The change per second since the first look that is kept."""
        first, last = self._looks[0], self._looks[-1]
        before, now = then(first), then(last)
        if before is None or now is None or last.at - first.at < PERIOD / 2:
            return None
        return round(max(now - before, 0) / (last.at - first.at), 2)

    def percent(self, then: Callable[[EngineLook], float | None]) -> float | None:
        """The same of ms of CPU time, as percent of a core."""
        found = self.of(then)
        return None if found is None else round(found / 10, 1)


class EngineOverview:
    def __init__(
        self,
        pool: Pool,
        supervisor: Supervisor,
        lag: Callable[[], Mapping[str, float]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._pool = pool
        self._supervisor = supervisor
        self._lag = lag
        self._clock = clock
        self._began = clock()
        self.node_name = ""
        self._rates = EngineRates()
        self._turn = asyncio.Lock()
        self._last: tuple[float, EnginesAnswer] | None = None

    # --- what is there ---

    async def look(self) -> EnginesAnswer:
        async with self._turn:
            if self._last is None or self._clock() - self._last[0] >= PERIOD:
                answer = await self._made()
                self._last = self._clock(), answer
            return self._last[1]

    async def _made(self) -> EnginesAnswer:
        """One engine at a time: other work of the event loop goes on in between."""
        running = self._supervisor.running
        uses = uses_of({str(pid): pid for pid in (os.getpid(), *running.values())})
        seen = [_seen(session, pid) for session, pid in running.items()]
        self._note(seen, uses)
        shown = {(pid, isolate.load_id) for pid, _, isolate in _largest(seen)}
        engines = []
        for number, (pid, told) in enumerate(seen, 1):
            session = next(each for each, its in running.items() if its == pid)
            engines.append(self._engine(number, pid, session, told, shown, uses))
            await asyncio.sleep(0)
        own, total = uses[str(os.getpid())], sum(len(told) for _, told in seen)
        return EnginesAnswer(
            at=iso_time(time.time() * 1000),
            node=self.node_name,
            uptime_seconds=round(self._clock() - self._began, 1),
            cores=os.cpu_count() or 1,
            memory_total_bytes=total_bytes(),
            memory_free_bytes=available_bytes(),
            is_short_of_memory=self._supervisor.recycler.is_short,
            node_memory_bytes=own.resident_bytes,
            node_cpu_percent=self._process_percent(os.getpid()),
            calls_per_second=self._rates.of(lambda look: look.calls),
            loop_lag_ms=msgspec.convert(self._lag(), LoopLagNow),
            counts=self._counts(),
            engines=engines,
            leaving=self._supervisor.draining,
            tenants=self._tenants(seen),
            left_out=total - len(shown),
        )

    def _note(self, seen: Iterable[tuple[int, list[_Told]]], uses: Mapping[str, ProcessUse]) -> None:
        stats = self._pool.stats()
        self._rates.add(
            EngineLook(
                at=self._clock(),
                calls=stats.calls,
                isolates={(pid, isolate.load_id): cpu_ms for pid, told in seen for isolate, _, cpu_ms in told},
                tenants={each.name: each.cpu_us / 1000 for each in self._pool.loader.tenants.active()},
                processes={int(name): use.cpu_seconds * 1000 for name, use in uses.items()},
            )
        )

    def _counts(self) -> CountsNow:
        stats = self._pool.stats()
        names = [name for name in CountsNow.__struct_fields__ if name != "restarts"]
        return CountsNow(**{name: getattr(stats, name) for name in names}, restarts=self._supervisor.restarts)

    def _process_percent(self, pid: int) -> float | None:
        return self._rates.percent(lambda look: look.processes.get(pid))

    def _engine(
        self,
        number: int,
        pid: int,
        session: EngineSession,
        told: list[_Told],
        shown: set[tuple[int, int]],
        uses: Mapping[str, ProcessUse],
    ) -> EngineNow:
        use = uses.get(str(pid))
        listed = [each for each in told if (pid, each[0].load_id) in shown]
        listed.sort(key=lambda each: -(each[1] or 0))
        return EngineNow(
            pid=pid,
            name=f"engine-{number}",
            serves=session.group or "all",
            memory_bytes=0 if use is None else use.resident_bytes,
            heap_bytes=_checked(session.link.pong.get("heap_bytes"), MOST_BYTES) or 0,
            cpu_percent=self._process_percent(pid),
            uptime_seconds=round(self._supervisor.recycler.age(session), 1),
            in_flight=len(session.calls.calls),
            waiting=sum(session.late_calls.counts.values()),
            loaded=len(told),
            isolates=[self._isolate(pid, *each) for each in listed],
        )

    def _isolate(self, pid: int, isolate: Isolate, memory: int | None, cpu_ms: float) -> IsolateNow:
        version, now, loader = isolate.version, self._clock(), self._pool.loader
        is_leaving = isolate.draining or isolate.unloading or isolate.failed
        quarantined = loader.offences.is_alone(version, now)
        throttled = loader.is_throttled(isolate)
        key = (pid, isolate.load_id)
        return IsolateNow(
            id=isolate.load_id,
            tenant=version.tenant,
            worker=version.worker_name,
            worker_id=version.worker_id,
            version_id=version.id,
            state="draining" if is_leaving else "ready" if isolate.ready else "loading",
            memory_bytes=memory,
            cpu_ms=round(cpu_ms, 1),
            cpu_percent=self._rates.percent(lambda look: look.isolates.get(key)),
            in_flight=isolate.in_flight,
            sockets=isolate.sockets,
            objects=isolate.residents is not None,
            age_seconds=round(max(now - isolate.load_sent_at, 0), 1),
            idle_seconds=0 if isolate.in_flight else round(max(now - isolate.last_used, 0), 1),
            marks=[*(["quarantined"] if quarantined else []), *(["throttled"] if throttled else [])],
        )

    def _tenants(self, seen: Iterable[tuple[int, list[_Told]]]) -> list[TenantNow]:
        memory: dict[str, int] = {}
        for _, told in seen:
            for isolate, size, _ in told:
                memory[isolate.version.tenant] = memory.get(isolate.version.tenant, 0) + (size or 0)
        found = [
            TenantNow(
                each.name,
                round(each.cpu_us / 1000, 1),
                self._rates.percent(lambda look, name=each.name: look.tenants.get(name)),  # type: ignore[misc]
                memory.get(each.name, 0),
                each.in_flight,
                each.loaded,
            )
            for each in self._pool.loader.tenants.active()
        ]
        return heapq.nlargest(MOST_TENANTS, found, key=lambda each: (each.cpu_percent or 0, each.cpu_ms))

    # --- what an operator can do ---

    def restart(self, pid: int) -> bool:
        """Replace an engine: calls in it may finish, and new ones go to the next. False if there is none."""
        for session, its in self._supervisor.running.items():
            if its == pid:
                session.condemn("an operator wants it", is_urgent=False)
                return True
        return False

    def unload(self, pid: int, number: int) -> Isolate | None:
        """Unload an isolate once its calls are over; the next call loads the worker again. None if there is none."""
        for session, its in self._supervisor.running.items():
            isolate = session.isolates.get(number) if its == pid else None
            if isolate is not None and not isolate.failed:
                self._pool.loader.versions.drop(isolate)
                self._pool.loader.unload_when_idle(isolate)
                return isolate
        return None


_Told = tuple[Isolate, int | None, float]  # its memory, and ms of CPU time


def _checked(value: object, most: int) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < most else None


def _seen(session: EngineSession, pid: int) -> tuple[int, list[_Told]]:
    """Every isolate of an engine, with what the engine said about it."""
    sizes, times = session.link.pong.get("memory"), session.link.pong.get("cpu_us")
    sizes, times = sizes if isinstance(sizes, dict) else {}, times if isinstance(times, dict) else {}
    told = []
    for number, isolate in session.isolates.items():
        cpu_us = max(_checked(times.get(str(number)), MOST_US) or 0, isolate.cpu_us)
        told.append((isolate, _checked(sizes.get(str(number)), MOST_BYTES), cpu_us / 1000))
    return pid, told


def _largest(seen: Iterable[tuple[int, list[_Told]]]) -> list[tuple[int, int, Isolate]]:
    every = ((pid, size or 0, isolate) for pid, told in seen for isolate, size, _ in told)
    return heapq.nlargest(MOST_ISOLATES, every, key=lambda each: (each[1], each[2].in_flight))
