"""The door to the engines: takes calls, and decides which isolate gets each of them.

`Pool.loader` (loaded/loader.py) knows what is loaded where. A call to a version that is not loaded sends LOAD and right
behind it the call, without waiting. A call whose handler never started, because its engine died or its isolate was
unloaded, is sent to another isolate, at most twice. A call that may have started is never sent again. When too many
calls of a worker or a tenant are in flight, more are refused at once.

Nothing here waits or makes a task per call. The supervisor adds and removes engines, and calls `sweep` ten times a
second.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from atoll.broker import Broker
from atoll.engine.calls.call import OVER, QUEUED, SENT, Call, CallListener
from atoll.engine.calls.call_queue import QUEUE_FULL, CallQueue
from atoll.engine.calls.isolate_state import IsolateState
from atoll.engine.limits import PoolLimits, TenantCaps
from atoll.engine.link.ledger import Ledger
from atoll.engine.loaded.engine_groups import NO_ENGINE, EngineGroup
from atoll.engine.loaded.engine_session import EngineSession, Isolate
from atoll.engine.loaded.exclusive import exclusive_isolate, use_up
from atoll.engine.loaded.late_code import ReadCode, ReadCodeNow
from atoll.engine.loaded.load_frames import LoadCodeCache, SaveCodeCache
from atoll.engine.loaded.loader import BUSY, TRY_ELSEWHERE, Loader
from atoll.engine.loaded.versions import LoadedVersion, LoadedVersions, is_exclusive
from atoll.engine.stats import PoolStats
from atoll.engine.tenant_usage import TenantUsages
from atoll.errors import Failure, LoadFailed
from atoll.holdings import Holdings
from atoll.logs import Invocation, Said, Skim
from atoll.wire.generated import ErrorCode, Outcome
from atoll.workers import Version

log = logging.getLogger("atoll.pool")

__all__ = ["Pool", "PoolLimits", "PoolStats", "TenantCaps"]

SLOW_SWEEP = 1.0

GONE: Final = Failure(ErrorCode.UNLOADED, "the isolate of the worker was unloaded before the call began")
STOPPING: Final = Failure(ErrorCode.SHUTTING_DOWN, "the node is shutting down")


class Pool:
    def __init__(
        self,
        broker: Broker,
        record: Callable[[Invocation], None],
        *,
        skim: Skim = lambda *_: False,
        limits: PoolLimits | None = None,
        load_code_cache: LoadCodeCache | None = None,
        save_code_cache: SaveCodeCache | None = None,
        holdings: Holdings | None = None,
        read_code: ReadCode | None = None,
        read_code_now: ReadCodeNow | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._broker = broker
        self._holdings = holdings or Holdings()
        self._record = record
        self._skim = skim
        self.limits = limits = limits or PoolLimits()
        self._clock = clock
        self._counts = PoolStats()
        self._calls = 0
        self._hits = 0  # calls that found their version ready
        readers = read_code, read_code_now
        self.loader = loader = Loader(limits, self._counts, clock, load_code_cache, save_code_cache, *readers)
        loader.late.on_ready = self._serve_queue
        self._versions: LoadedVersions = loader.versions
        self._tenants: TenantUsages = loader.tenants
        self._queue = CallQueue(limits.worker_queue)  # calls that no engine can take yet
        self._last_slow_sweep = clock()
        self._closed = False
        self.on_line: Callable[[Said], None] | None = None  # receives console lines as they come

    # --- calls ---

    def call(
        self,
        version: Version,
        head: bytes,
        body: bytes,
        ended: bool,
        caller: CallListener,
        event: int = 0,
        hops: int = 0,
        near: IsolateState | None = None,
    ) -> Call:
        """Start a call. Never raises; failures go to `caller.on_failure`, possibly before this returns.

        `near`: the isolate of the worker that makes the call. The callee is best loaded in the same engine.
        """
        self._calls += 1
        call = Call(version, head, body, ended, caller, self, self._clock(), event, hops)
        loaded: LoadedVersion | None = self._versions.get(version)
        if loaded is not None:
            isolate = loaded.only or loaded.lightest()
            if near is not None:
                assert isinstance(near, Isolate)
                isolate = self.loader.near(loaded, near.session) or isolate
            tenant = loaded.tenant
            if isolate.in_flight < isolate.room and tenant.in_flight < tenant.fast_calls:
                self._hits += 1
                self._versions.used(version)
                isolate.session.calls.start(call, isolate)
                return call
            self._hits += isolate.ready
        refusal = self._tenants.of(version.tenant).admit(call.started)
        if refusal is not None:
            self.refuse(call, refusal)
        else:
            self._route(call, near)
        return call

    def call_in(self, call: Call, isolate: Isolate) -> None:
        """Start a call in exactly this isolate: that of a Durable Object. It is never sent elsewhere."""
        self._calls += 1
        self._hits += 1
        refusal = STOPPING if self._closed else isolate.tenant.admit(call.started)
        if refusal is not None:
            self.refuse(call, refusal)
        else:
            isolate.session.calls.start(call, isolate)

    def move(self, call: Call, left: IsolateState) -> None:
        """Send a call that never started to another isolate. The one it comes from takes no more calls."""
        assert isinstance(left, Isolate)
        self._versions.drop(left)
        left.draining = left.watched = True
        call.moves += 1
        self._counts.moves += 1
        self._route(call)

    def withdraw(self, call: Call) -> None:
        self._queue.remove(call)
        self.finish_unsent(call)

    def on_backlog(self, call: Call, change: int) -> None:
        self._holdings.count(call.version.tenant, change)

    def _route(self, call: Call, near: IsolateState | None = None) -> None:
        """Send a call to an isolate of its version, loading one if need be; or queue the call, or refuse it."""
        if self._closed:
            self.refuse(call, STOPPING)
            return
        loaded = self._versions.get(call.version)
        try:
            if loaded is None:
                group = self.loader.group_of(call.version)
                if self._queue.has(call.version) or not self.loader.has_room(call.version, group):
                    self._keep(call)
                    return
                session = near.session if isinstance(near, Isolate) and near.session in group.open_sessions() else None
                loaded = self.loader.load(call.version, group, session)
            isolate = self._isolate_for(loaded)
        except LoadFailed as error:
            self.refuse(call, error.failure)
            return
        self._versions.used(call.version)
        isolate.session.calls.start(call, isolate)
        if is_exclusive(call.version):
            use_up(self.loader, isolate)

    def _isolate_for(self, loaded: LoadedVersion) -> Isolate:
        """The isolate for the next call of a version. LoadFailed if it has too many calls."""
        if is_exclusive(loaded.version):
            return exclusive_isolate(self.loader, loaded, self.limits.worker_queue)
        isolate = loaded.lightest()
        if not isolate.ready:
            if isolate.in_flight >= self.limits.worker_queue:
                raise _too_many(f"{isolate.in_flight} calls wait for this worker already")
        elif isolate.in_flight and isolate.in_flight >= isolate.room:  # one without calls has caught up since the sweep
            what = "wait for" if self.loader.is_throttled(isolate) else "are under way in"
            raise _too_many(f"{loaded.in_flight} calls {what} this worker already")
        return isolate

    def _keep(self, call: Call) -> None:
        if not self._queue.add(call, self._clock()):
            self.refuse(call, BUSY)
            return
        for loaded in self._versions:  # the first idle one can be evicted
            for isolate in loaded.isolates:
                isolate.watched = True

    def _serve_queue(self) -> None:
        """Route queued calls, tenant by tenant, while there is room."""
        for version in self._queue.turns() if self._queue else ():
            try:
                has_room = version in self._versions or self.loader.has_room(version, self.loader.group_of(version))
            except LoadFailed:
                has_room = True  # routing the calls refuses them
            if has_room:
                for call in self._queue.take(version):
                    self._route(call)

    def _turn_away(self) -> None:
        """Refuse calls of a burst that exceed the queue of their worker. That was not known when they were sent."""
        for session in self.loader.groups.sessions():
            for isolate, calls in session.late_calls.backlog.items():
                for call in calls[self.limits.worker_queue :] if self.loader.is_throttled(isolate) else ():
                    self._counts.refused += 1
                    session.calls.turn_away(call, QUEUE_FULL)

    def refuse(self, call: Call, failure: Failure) -> None:
        self._counts.refused += failure.code in (ErrorCode.OVERLOADED, ErrorCode.QUOTA_EXCEEDED, ErrorCode.CPU_QUOTA)
        call.failure = failure
        caller = call.caller
        self.finish_unsent(call)
        caller.on_failure(failure)

    def finish_unsent(self, call: Call) -> None:
        assert call.state == QUEUED
        if call.backlog is not None:
            call.take_backlog()
        call.state = OVER
        self._record(call.invocation(Outcome.INTERNAL_ERROR, 0, self._clock()))

    # --- what sessions report ---

    def on_load_failed(self, isolate: Isolate, failure: Failure) -> None:
        self._counts.load_failures += 1
        self._versions.drop(isolate)
        isolate.settle(failure)
        for call in isolate.session.calls.of(isolate):
            if failure.code in TRY_ELSEWHERE:
                self._retry(isolate.session, call, failure)
            else:
                isolate.session.calls.end(call, failure)

    def on_unloaded(self, isolate: Isolate, failure: Failure | None) -> None:
        if failure is not None:
            self._counts.condemned += 1
            log.warning("%s was condemned: %s", isolate.version.worker_name, failure.message)
        self._versions.drop(isolate)
        isolate.settle(failure or GONE)
        # The engine has failed every call it knew of. The other calls crossed its UNLOADED and never began.
        for call in isolate.session.calls.of(isolate):
            self._retry(isolate.session, call, failure or GONE)
        if failure is not None and not self._closed:
            self.loader.replace(isolate)

    def on_offence(self, isolate: Isolate, failure: Failure, number: int, cpu_us: int) -> None:
        """The code of an isolate is stuck for good, with a thread of its engine: the engine must end."""
        self._counts.offences += 1
        log.warning("%s costs its engine: %s", isolate.version.worker_name, failure.message)
        self._versions.drop(isolate)
        self._accuse(isolate.session, [isolate.version], is_certain=True)
        isolate.settle(failure)
        # Calls that have not begun fail too: elsewhere they could get stuck as well.
        for call in isolate.session.calls.of(isolate):
            isolate.session.calls.end(call, failure, cpu_us if call.id == number else 0)

    def on_watched(self, isolate: IsolateState) -> None:
        """A call is over in an isolate that is draining, whose code cache is wanted, or that could be evicted."""
        assert isinstance(isolate, Isolate)
        if isolate.draining and isolate.is_idle:
            if isolate.wants_code and isolate.ready:
                self.loader.wishes.ask(isolate)
            self.loader.unload(isolate)
        elif isolate.wants_code and isolate.ready:
            isolate.wants_code = False
            self.loader.wishes.ask_soon(isolate)
        if not isolate.in_flight:
            self._serve_queue()
        isolate.watched = isolate.draining or isolate.wants_code or len(self._queue) > 0

    def on_stuck(self, isolate: IsolateState) -> None:
        """A call cannot be ended. New calls go to a new isolate; other calls may finish in this one."""
        assert isinstance(isolate, Isolate)
        log.warning("a call of %s does not end: its isolate is replaced", isolate.version.worker_name)
        self._versions.drop(isolate)
        self.loader.unload_when_idle(isolate)

    def on_lost(self, session: EngineSession, reason: str) -> None:
        """An engine is gone. Calls that had not started in it are sent elsewhere, the others fail."""
        if self.loader.groups.remove(session):
            self._counts.engines_lost += not self._closed
        # Kept for `on_crash`: by then the ledger and the list of isolates are gone.
        session.suspects = [
            isolate.version for number in session.ledger.running() if (isolate := session.isolates.get(number))
        ]
        died = STOPPING if self._closed else Failure(ErrorCode.ENGINE_DIED, "the engine ended while the call ran in it")
        for isolate in session.isolates.values():
            self._versions.drop(isolate)
            isolate.settle(died)
        for call in list(session.calls.calls.values()):
            if session.calls.may_have_begun(call):
                session.calls.end(call, died)
            else:
                self._retry(session, call, died)

    def _retry(self, session: EngineSession, call: Call, failure: Failure) -> None:
        """Send a call that never started elsewhere, if it can be sent again; otherwise fail it."""
        if call.state == SENT and call.movable() and not self._closed:
            left = session.calls.release(call)
            self.move(call, left)
        else:
            session.calls.end(call, failure)

    # --- what the node and its supervisor do ---

    def set_caps(self, tenant: str, caps: TenantCaps | None) -> None:
        """Set the limits of one tenant; None restores the default."""
        self._tenants.set_caps(tenant, caps)
        self.loader.regroup(tenant)

    def session(self, group: EngineGroup, ledger: Ledger | None = None) -> EngineSession:
        """A session for an engine that is about to start. `add` it once the engine has said HELLO."""
        ops_per_call, holdings = self.limits.ops_per_call, self._holdings
        return EngineSession(
            self, group.name, self._broker, self._record, self._skim, self._clock, ops_per_call, holdings, ledger
        )

    def add(self, session: EngineSession, group: EngineGroup) -> None:
        """An engine is ready: send it the calls that waited, and new ones from now on."""
        group.add(session)
        self._serve_queue()

    def is_drained(self, session: EngineSession) -> bool:
        """True once a drained engine has no calls and can receive none."""
        return not session.calls.calls and not any(map(self._versions.holds, session.isolates.values()))

    def on_crash(self, session: EngineSession) -> None:
        """An engine died of the code it ran. `on_lost` was called before."""
        self._counts.crashes += 1
        self._accuse(session, session.suspects)

    def _accuse(self, session: EngineSession, suspects: list[Version], *, is_certain: bool = False) -> None:
        """These versions were executing when an engine died, or one of them is known to have ended it."""
        now, offences = self._clock(), self.loader.offences
        for version in suspects:
            # In an engine of a single tenant the report of the engine is proof: a false one harms only that tenant.
            proven = session.group == self.loader.own_group(version)
            proven = proven or (is_certain and session.group == self.loader.apart_group(version))
            offences.accuse(version, now, was_alone=proven)
        tenants = {version.tenant for version in suspects}
        if len(tenants) == 1 and not session.group:
            [tenant] = tenants
            others = (loaded.version.worker_id for loaded in self._versions if loaded.tenant.name == tenant)
            offences.blame(tenant, now, others)

    def sweep(self) -> None:
        """End calls that take too long, and unload idle isolates."""
        now = self._clock()
        for late in self._queue.take_late(now):
            self.refuse(late, BUSY if self.loader.groups.shared.is_open else NO_ENGINE)
        self._serve_queue()
        for session in self.loader.groups.sessions():
            session.calls.sweep(now)
        self.loader.look(now)
        self.loader.wishes.ask_due(now)
        self._turn_away()
        if now >= self._last_slow_sweep + SLOW_SWEEP:
            self.loader.tidy(now, now - self._last_slow_sweep)
            self.loader.groups.sweep(now)
            self._last_slow_sweep = now

    @property
    def busy(self) -> bool:
        return len(self._queue) > 0 or any(session.calls.calls for session in self.loader.groups.sessions())

    def close(self) -> None:
        """Refuse all calls from now on, including queued ones. The supervisor ends the engines."""
        self._closed = True
        for call in self._queue.take_all():
            self.refuse(call, STOPPING)

    def queued(self) -> dict[Version, int]:
        """The calls that no engine can take yet."""
        return self._queue.counts()

    def stats(self) -> PoolStats:
        sessions = self.loader.groups.sessions()
        return replace(
            self._counts,
            engines=len(sessions),
            loaded=self._versions.isolates,
            queued=len(self._queue),
            in_flight=sum(len(session.calls.calls) for session in sessions),
            calls=self._calls,
            hits=self._hits,
        )


def _too_many(message: str) -> LoadFailed:
    return LoadFailed(Failure(ErrorCode.OVERLOADED, message))
