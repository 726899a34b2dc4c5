"""Which version is loaded in which engine, and which call goes where. All policy of loading is here.

A version is loaded in at most one engine of the node: its globals persist between calls, as workers expect. A call to a
version that is not loaded sends LOAD and the call right behind it, without waiting. A call whose handler never started
(its engine died, its isolate went away) is sent once more elsewhere, at most twice; one that may have started never is.

Nothing here waits or makes a task per call. The supervisor adds and loses engines and calls `sweep` ten times a second.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import replace

from atoll.broker import Broker
from atoll.engine.calls import OVER, QUEUED, SENT, Call, Caller
from atoll.engine.loads import CodeCache, LoadCodeCache, LoadFrames, LoadReport, Placement, SaveCodeCache
from atoll.engine.measures import PoolLimits, PoolStats
from atoll.engine.queue import QUEUE_SECONDS, CallQueue
from atoll.engine.session import Session
from atoll.errors import Failure, LoadFailed
from atoll.logs import Invocation
from atoll.wire.generated import ErrorCode, Outcome
from atoll.workers import Version

log = logging.getLogger("atoll.pool")

__all__ = ["Pool", "PoolLimits", "PoolStats"]

IDLE_SWEEP = 1.0
LOAD_SECONDS = 30.0  # from LOAD to LOADED; the engine has tighter limits of its own, but may be busy

# Load failures that say nothing about the version itself: worth another engine.
TRY_ELSEWHERE = frozenset({ErrorCode.UNLOADED, ErrorCode.INTERNAL, ErrorCode.UNAVAILABLE, ErrorCode.ENGINE_DIED})

GONE = Failure(ErrorCode.UNLOADED, "the isolate of the worker went away before the call began")
BUSY = Failure(ErrorCode.OVERLOADED, "every worker that is loaded is busy and there is no room for one more")
NO_ENGINE = Failure(ErrorCode.UNAVAILABLE, "no engine can take the call now; try again in a moment")
STOPPING = Failure(ErrorCode.SHUTTING_DOWN, "the node is shutting down")


class Pool:
    def __init__(
        self,
        broker: Broker,
        record: Callable[[Invocation], None],
        *,
        limits: PoolLimits | None = None,
        load_code_cache: LoadCodeCache | None = None,
        save_code_cache: SaveCodeCache | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._broker = broker
        self._record = record
        self._limits = limits or PoolLimits()
        self._save_code_cache = save_code_cache
        self._frames = LoadFrames(load_code_cache)
        self._clock = clock

        # For the life of the node
        self._placements: OrderedDict[Version, Placement] = OrderedDict()  # least recently used first
        self._counts = PoolStats()
        self._closed = False

        # As engines come and go
        self._sessions: list[Session] = []
        self._queue = CallQueue(self._limits.worker_queue)  # calls that no engine can take yet
        self._engine_waiters: list[asyncio.Future[None]] = []
        self._next_idle_sweep = 0.0

    # --- calls ---

    def call(
        self, version: Version, head: bytes, body: bytes, ended: bool, caller: Caller, event: int = 0, hops: int = 0
    ) -> Call:
        """Start a call. Never raises; failures go to `caller.on_failure`, possibly before this returns."""
        counts = self._counts
        counts.calls += 1
        call = Call(version, head, body, ended, caller, self, self._clock(), event, hops)
        placement = self._placements.get(version)
        if placement is not None and placement.ready and placement.in_flight < self._limits.max_in_flight:
            counts.hits += 1
            self._placements.move_to_end(version)
            placement.session.calls.start(call, placement)
        else:
            self._route(call)
        return call

    def move(self, call: Call, left: Placement) -> None:
        """A call that never started comes back from a placement which takes no more calls."""
        self._drop(left)
        left.retired = left.watched = True
        call.moves += 1
        self._counts.moves += 1
        self._route(call)

    def withdraw(self, call: Call) -> None:
        self._queue.remove(call)
        self._finish_unsent(call)

    def _route(self, call: Call) -> None:
        """Send a call to where its version is or can be loaded, keep it until that is possible, or refuse it."""
        version = call.version
        if self._closed:
            self._refuse(call, STOPPING)
            return
        placement = self._placements.get(version)
        if placement is None:
            if not self._has_room():
                self._keep(call)
                return
            try:
                placement = self._place(version)
            except LoadFailed as error:
                self._refuse(call, error.failure)
                return
        limit = self._limits.max_in_flight if placement.ready else self._limits.worker_queue
        if placement.in_flight >= limit:
            what = "are under way in" if placement.ready else "wait for"
            self._refuse(call, Failure(ErrorCode.OVERLOADED, f"{limit} calls {what} this worker already"))
            return
        self._placements.move_to_end(version)
        placement.session.calls.start(call, placement)

    def _keep(self, call: Call) -> None:
        if not self._queue.add(call, self._clock()):
            self._refuse(call, BUSY)
            return
        for placement in self._placements.values():  # the first to become idle makes room
            placement.watched = True

    def _serve_queue(self) -> None:
        """Route what waits, in order, as far as there is room."""
        while (call := self._queue.first()) is not None:
            if call.version not in self._placements and not self._has_room():
                return
            self._route(self._queue.pop())

    def _refuse(self, call: Call, failure: Failure) -> None:
        call.failure = failure
        caller = call.caller
        self._finish_unsent(call)
        caller.on_failure(failure)

    def _finish_unsent(self, call: Call) -> None:
        assert call.state == QUEUED
        call.state = OVER
        self._record(call.invocation(Outcome.INTERNAL_ERROR, 0, self._clock()))

    # --- loading ---

    async def check(self, version: Version) -> LoadReport:
        """Load a version to see whether it can be deployed; it stays loaded for its first call. LoadFailed if not."""
        for attempts_left in (2, 1, 0):
            placement = self._placements.get(version)
            if placement is None:
                await self._engine()
                placement = self._placements.get(version) or self._place(version)
            if placement.report is not None:
                return placement.report
            waiter: asyncio.Future[LoadReport] = asyncio.get_running_loop().create_future()
            placement.waiters.append(waiter)
            try:
                report = await waiter  # the sweep ends loads that take too long
            except LoadFailed as error:
                if not attempts_left or error.failure.code not in TRY_ELSEWHERE:
                    raise
                continue
            if self._save_code_cache is not None:
                self._want_code(placement)  # once more after the first response: it knows more functions then
                placement.session.ask_code(placement)
            return report
        raise AssertionError("unreachable")

    def retire(self, version: Version) -> None:
        """Nothing routes to the version any more: unload it once its calls are over."""
        self._frames.forget(version)
        placement = self._placements.get(version)
        if placement is not None:
            self._unload_when_idle(placement)

    async def _engine(self) -> None:
        """Wait until an engine runs."""
        while not any(session.takes_loads for session in self._sessions):
            waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._engine_waiters.append(waiter)
            try:
                await asyncio.wait_for(waiter, QUEUE_SECONDS)
            except TimeoutError:
                raise LoadFailed(NO_ENGINE) from None

    def _place(self, version: Version) -> Placement:
        """Begin to load a version in the engine that has least to do. LoadFailed if there is no room."""
        if not self._has_room():
            raise LoadFailed(BUSY if self._sessions else NO_ENGINE)
        session = min((s for s in self._sessions if s.takes_loads), key=lambda session: session.load)
        payload, cached = self._frames.get(version, session.v8)
        placement = session.place(version, payload, self._clock())
        if not cached:
            self._want_code(placement)
        self._placements[version] = placement
        self._counts.loads += 1
        return placement

    def _has_room(self) -> bool:
        """Whether one more version can be loaded now; to that end the least recently used idle one is unloaded."""
        if not any(session.takes_loads for session in self._sessions):
            return False
        if len(self._placements) < self._limits.max_loaded:
            return True
        for placement in self._placements.values():
            if not placement.in_flight and not placement.waiters:
                self._counts.evictions += 1
                self._unload(placement)
                return True
        return False

    def _unload_when_idle(self, placement: Placement) -> None:
        if placement.in_flight:
            placement.retired = placement.watched = True
        else:
            self._unload(placement)

    def _unload(self, placement: Placement) -> None:
        self._drop(placement)
        placement.session.unload(placement)

    def _drop(self, placement: Placement) -> None:
        """No call goes there any more."""
        if self._placements.get(placement.version) is placement:
            del self._placements[placement.version]

    def _want_code(self, placement: Placement) -> None:
        placement.wants_code = placement.watched = True

    # --- what sessions tell ---

    def on_loaded(self, placement: Placement, report: LoadReport) -> None:
        if report.cache_rejected:
            log.warning("V8 refused the code cache of %s, which is made anew", placement.version.id)
            self._frames.forget(placement.version)
            self._want_code(placement)
        placement.settle(report)

    def on_load_failed(self, placement: Placement, failure: Failure) -> None:
        self._counts.load_failures += 1
        self._drop(placement)
        placement.settle(failure)
        for call in placement.session.calls.of(placement):
            if failure.code in TRY_ELSEWHERE:
                self._retry(placement.session, call, failure)
            else:
                placement.session.calls.end(call, failure)

    def on_unloaded(self, placement: Placement, failure: Failure | None) -> None:
        if failure is not None:
            self._counts.condemned += 1
            log.warning("%s was condemned: %s", placement.version.worker_name, failure.message)
        self._drop(placement)
        placement.settle(failure or GONE)
        # The engine has failed every call it knew of. The others crossed its UNLOADED and never began.
        for call in placement.session.calls.of(placement):
            self._retry(placement.session, call, failure or GONE)

    def on_offence(self, placement: Placement, failure: Failure) -> None:
        """Code of a version is stuck for ever, and with it a thread of an engine, which has to go."""
        self._counts.offences += 1
        log.warning("%s took an engine with it: %s", placement.version.worker_name, failure.message)
        self._drop(placement)
        placement.settle(failure)
        # Also those that wait to begin: elsewhere they would do the same.
        for call in placement.session.calls.of(placement):
            placement.session.calls.end(call, failure)

    def on_code(self, placement: Placement, cache: CodeCache) -> None:
        if self._save_code_cache is None or not any(cache):
            return
        try:
            self._save_code_cache(placement.version, placement.session.v8, cache)
        except Exception:
            log.exception("keeping the code cache of %s failed", placement.version.id)
            return
        self._frames.forget(placement.version)

    def on_watched(self, placement: Placement) -> None:
        """A call is over in a placement that is to be unloaded, whose code cache is wanted or whose room is."""
        if placement.retired and not placement.in_flight:
            self._unload(placement)
        elif placement.wants_code and placement.ready:
            placement.wants_code = False
            if self._save_code_cache is not None:
                placement.session.ask_code(placement)
        if not placement.in_flight:
            self._serve_queue()
        placement.watched = placement.retired or placement.wants_code or len(self._queue) > 0

    def on_stuck(self, placement: Placement) -> None:
        """A call in it does not end, whatever it is told. New calls get a new isolate, the others may finish here."""
        log.warning("a call of %s does not end: its isolate is replaced", placement.version.worker_name)
        self._drop(placement)
        self._unload_when_idle(placement)

    def on_lost(self, session: Session, reason: str) -> None:
        """An engine is gone. What had not started in it moves, the rest fails."""
        if session in self._sessions:
            self._sessions.remove(session)
            self._counts.engines_lost += not self._closed
        died = STOPPING if self._closed else Failure(ErrorCode.ENGINE_DIED, "the engine ended while the call ran in it")
        for placement in session.loads.values():
            self._drop(placement)
            placement.settle(died)
        for call in list(session.calls.calls.values()):
            if session.calls.may_have_begun(call):
                session.calls.end(call, died)
            else:
                self._retry(session, call, died)

    def _retry(self, session: Session, call: Call, failure: Failure) -> None:
        """A call that never started: try elsewhere if it can still be sent again."""
        if call.state == SENT and call.movable() and not self._closed:
            left = session.calls.release(call)
            self.move(call, left)
        else:
            session.calls.end(call, failure)

    # --- what the supervisor does ---

    def session(self) -> Session:
        """A session for an engine about to start; `add` it once it has said HELLO."""
        return Session(self, self._broker, self._record, self._clock, self._limits.ops_per_call)

    def add(self, session: Session) -> None:
        """An engine is ready: it takes calls from now on, first those that waited."""
        self._sessions.append(session)
        waiters, self._engine_waiters = self._engine_waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
        self._serve_queue()

    def leave(self, session: Session) -> None:
        """Another engine has taken the place of a condemned one: no call goes there any more, those in it finish."""
        for placement in session.loads.values():
            self._drop(placement)

    def sweep(self) -> None:
        """End what took too long, unload what nobody uses."""
        now = self._clock()
        while (late := self._queue.pop_late(now)) is not None:
            self._refuse(late, BUSY if self._sessions else NO_ENGINE)
        self._serve_queue()
        for session in list(self._sessions):
            session.calls.sweep(now)
        if now >= self._next_idle_sweep:
            self._next_idle_sweep = now + IDLE_SWEEP
            self._sweep_placements(now)
            for session in list(self._sessions):
                session.check_unloads(now)

    def _sweep_placements(self, now: float) -> None:
        idle_since = now - self._limits.idle_seconds
        for placement in list(self._placements.values()):
            if not placement.ready:
                if placement.placed_at < now - LOAD_SECONDS:
                    message = f"the top-level code did not finish within {LOAD_SECONDS:g} s"
                    placement.session.give_up(placement, Failure(ErrorCode.STARTUP, message))
            elif placement.last_used < idle_since and not placement.in_flight:
                self._unload(placement)

    @property
    def busy(self) -> bool:
        return len(self._queue) > 0 or any(session.calls.calls for session in self._sessions)

    def close(self) -> None:
        """Refuse every call from now on, also those that wait. Engines are the supervisor's to end."""
        self._closed = True
        while len(self._queue):
            self._refuse(self._queue.pop(), STOPPING)

    def stats(self) -> PoolStats:
        return replace(
            self._counts,
            engines=len(self._sessions),
            loaded=len(self._placements),
            queued=len(self._queue),
            in_flight=sum(len(session.calls.calls) for session in self._sessions),
        )
