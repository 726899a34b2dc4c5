"""Which call goes where. What is loaded where is placing.py's business, which this asks and tells.

A call to a version that is not loaded sends LOAD and the call right behind it, without waiting. A call whose handler
never started (its engine died, its isolate went away) is sent once more elsewhere, at most twice; one that may have
started never is. Calls that find too many others of their worker or tenant are refused at once.

Nothing here waits or makes a task per call. The supervisor adds and loses engines and calls `sweep` ten times a second.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Final

from atoll.broker import Broker
from atoll.engine.calls import OVER, QUEUED, SENT, Call, Caller
from atoll.engine.cells import NO_ENGINE, Cell
from atoll.engine.homes import Home, Homes
from atoll.engine.ledger import Ledger
from atoll.engine.loads import CodeCache, LoadCodeCache, LoadReport, SaveCodeCache
from atoll.engine.measures import PoolLimits, PoolStats, TenantCaps
from atoll.engine.placement import Placement
from atoll.engine.placing import BUSY, TRY_ELSEWHERE, Placer
from atoll.engine.queue import QUEUE_FULL, CallQueue
from atoll.engine.session import Session
from atoll.engine.solo import is_solo, solo_placement, spend
from atoll.errors import Failure, LoadFailed
from atoll.logs import Invocation, Said, Skim
from atoll.wire.generated import ErrorCode, Outcome
from atoll.workers import Version

log = logging.getLogger("atoll.pool")

__all__ = ["Pool", "PoolLimits", "PoolStats", "TenantCaps"]

SLOW_SWEEP = 1.0

GONE: Final = Failure(ErrorCode.UNLOADED, "the isolate of the worker went away before the call began")
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
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._broker = broker
        self._record = record
        self._skim = skim
        self.limits = limits = limits or PoolLimits()
        self._clock = clock
        self._counts = PoolStats()
        self._calls = 0
        self._hits = 0  # calls that found their version ready
        self._placer = Placer(limits, self._counts, clock, load_code_cache, save_code_cache)
        self._homes: Homes = self._placer.homes
        self._queue = CallQueue(limits.worker_queue)  # calls that no engine can take yet
        self._last_slow_sweep = clock()
        self._closed = False
        self.hears: Callable[[Said], None] | None = None  # set while somebody wants console lines as they come

        # What others may use
        self.cells = self._placer.cells
        self.tenants = self._placer.tenants
        self.offences = self._placer.offences
        self.check = self._placer.check
        self.retire = self._placer.retire
        self.warm = self._placer.warm
        self.prepare = self._placer.prepare
        self.recent = self._placer.recent

    # --- calls ---

    def call(
        self, version: Version, head: bytes, body: bytes, ended: bool, caller: Caller, event: int = 0, hops: int = 0
    ) -> Call:
        """Start a call. Never raises; failures go to `caller.on_failure`, possibly before this returns."""
        self._calls += 1
        call = Call(version, head, body, ended, caller, self, self._clock(), event, hops)
        home: Home | None = self._homes.get(version)
        if home is not None:
            placement = home.first or home.lightest()
            tenant = home.tenant
            if placement.in_flight < placement.room and tenant.in_flight < tenant.fast_calls:
                self._hits += 1
                self._homes.used(version)
                placement.session.calls.start(call, placement)
                return call
            self._hits += placement.ready
        refusal = self.tenants.of(version.tenant).admit(call.started)
        if refusal is not None:
            self._refuse(call, refusal)
        else:
            self._route(call)
        return call

    def move(self, call: Call, left: Placement) -> None:
        """A call that never started comes back from a placement which takes no more calls."""
        self._homes.drop(left)
        left.retired = left.watched = True
        call.moves += 1
        self._counts.moves += 1
        self._route(call)

    def withdraw(self, call: Call) -> None:
        self._queue.remove(call)
        self._finish_unsent(call)

    def _route(self, call: Call) -> None:
        """Send a call to where its version is or can be loaded, keep it until that is possible, or refuse it."""
        if self._closed:
            self._refuse(call, STOPPING)
            return
        home = self._homes.get(call.version)
        try:
            if home is None:
                cell = self._placer.cell_of(call.version)
                if self._queue.has(call.version) or not self._placer.has_room(call.version, cell):
                    self._keep(call)
                    return
                home = self._placer.place(call.version, cell)
            placement = self._placement_for(home)
        except LoadFailed as error:
            self._refuse(call, error.failure)
            return
        self._homes.used(call.version)
        placement.session.calls.start(call, placement)
        if is_solo(call.version):
            spend(self._placer, placement)

    def _placement_for(self, home: Home) -> Placement:
        """Where the next call of a version goes. LoadFailed if it has enough of them."""
        if is_solo(home.version):
            return solo_placement(self._placer, home, self.limits.worker_queue)
        placement = home.lightest()
        if not placement.ready:
            if placement.in_flight >= self.limits.worker_queue:
                raise _too_many(f"{placement.in_flight} calls wait for this worker already")
        elif placement.in_flight >= placement.room:
            what = "wait for" if self._placer.is_throttled(placement) else "are under way in"
            raise _too_many(f"{home.in_flight} calls {what} this worker already")
        return placement

    def _keep(self, call: Call) -> None:
        if not self._queue.add(call, self._clock()):
            self._refuse(call, BUSY)
            return
        for home in self._homes:  # the first to become idle makes room
            for placement in home.placements:
                placement.watched = True

    def _serve_queue(self) -> None:
        """Route what waits, in turns, as far as there is room."""
        for version in self._queue.turns() if self._queue else ():
            try:
                has_room = version in self._homes or self._placer.has_room(version, self._placer.cell_of(version))
            except LoadFailed:
                has_room = True  # to be told so
            if has_room:
                for call in self._queue.take(version):
                    self._route(call)

    def _turn_away(self) -> None:
        """What came in a burst and waits beyond the queue of its worker; as it came, nobody could tell it would."""
        for session in self.cells.sessions():
            for placement, calls in session.waiting.backlog.items():
                for call in calls[self.limits.worker_queue :] if self._placer.is_throttled(placement) else ():
                    self._counts.refused += 1
                    session.calls.turn_away(call, QUEUE_FULL)

    def _refuse(self, call: Call, failure: Failure) -> None:
        self._counts.refused += failure.code in (ErrorCode.OVERLOADED, ErrorCode.QUOTA_EXCEEDED, ErrorCode.CPU_QUOTA)
        call.failure = failure
        caller = call.caller
        self._finish_unsent(call)
        caller.on_failure(failure)

    def _finish_unsent(self, call: Call) -> None:
        assert call.state == QUEUED
        call.state = OVER
        self._record(call.invocation(Outcome.INTERNAL_ERROR, 0, self._clock()))

    # --- what sessions tell ---

    def on_loaded(self, placement: Placement, report: LoadReport) -> None:
        self._placer.on_loaded(placement, report)

    def on_load_failed(self, placement: Placement, failure: Failure) -> None:
        self._counts.load_failures += 1
        self._homes.drop(placement)
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
        self._homes.drop(placement)
        placement.settle(failure or GONE)
        # The engine has failed every call it knew of. The others crossed its UNLOADED and never began.
        for call in placement.session.calls.of(placement):
            self._retry(placement.session, call, failure or GONE)
        if failure is not None and not self._closed:
            self._placer.replace(placement)

    def on_offence(self, placement: Placement, failure: Failure, number: int, cpu_us: int) -> None:
        """Code of a version is stuck for ever, and with it a thread of an engine, which has to go."""
        self._counts.offences += 1
        log.warning("%s took an engine with it: %s", placement.version.worker_name, failure.message)
        self._homes.drop(placement)
        self._accuse(placement.session, [placement.version], is_certain=True)
        placement.settle(failure)
        # Also those that wait to begin: elsewhere they would do the same.
        for call in placement.session.calls.of(placement):
            placement.session.calls.end(call, failure, cpu_us if call.id == number else 0)

    def on_code(self, placement: Placement, cache: CodeCache) -> None:
        self._placer.on_code(placement, cache)

    def on_watched(self, placement: Placement) -> None:
        """A call is over in a placement that is to be unloaded, whose code cache is wanted or whose room is."""
        if placement.retired and placement.is_idle:
            if placement.wants_code and placement.ready:
                self._placer.ask_code(placement)
            self._placer.unload(placement)
        elif placement.wants_code and placement.ready:
            self._placer.ask_code(placement)
        if not placement.in_flight:
            self._serve_queue()
        placement.watched = placement.retired or placement.wants_code or len(self._queue) > 0

    def on_stuck(self, placement: Placement) -> None:
        """A call in it does not end, whatever it is told. New calls get a new isolate, the others may finish here."""
        log.warning("a call of %s does not end: its isolate is replaced", placement.version.worker_name)
        self._homes.drop(placement)
        self._placer.unload_when_idle(placement)

    def on_lost(self, session: Session, reason: str) -> None:
        """An engine is gone. What had not started in it moves, the rest fails."""
        if session.cell.remove(session):
            self._counts.engines_lost += not (self._closed or session.cell.is_closing)
        # Only now: once it is known to have crashed, the ledger and what was loaded are gone.
        session.suspects = [p.version for number in session.ledger.running() if (p := session.loads.get(number))]
        died = STOPPING if self._closed else Failure(ErrorCode.ENGINE_DIED, "the engine ended while the call ran in it")
        for placement in session.loads.values():
            self._homes.drop(placement)
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

    # --- what others do ---

    def set_caps(self, tenant: str, caps: TenantCaps | None) -> None:
        """What one tenant may have from now on; None: what every tenant may."""
        self.tenants.set_caps(tenant, caps)
        self._placer.rehouse(tenant)

    def session(self, cell: Cell, ledger: Ledger | None = None) -> Session:
        """A session for an engine about to start; `add` it once it has said HELLO."""
        return Session(
            self, cell, self._broker, self._record, self._skim, self._clock, self.limits.ops_per_call, ledger
        )

    def add(self, session: Session) -> None:
        """An engine is ready: it takes calls from now on, first those that waited."""
        session.cell.add(session)
        self._serve_queue()

    def leave(self, session: Session) -> None:
        """Another engine has taken the place of a condemned one: no call goes there any more, those in it finish."""
        self._placer.leave(session)

    def has_left(self, session: Session) -> bool:
        """Whether nothing goes on in an engine that was left, and nothing will."""
        return not session.calls.calls and not any(map(self._homes.holds, session.loads.values()))

    def relieve(self) -> int:
        """Memory is short: unload some of what is idle; returns how many that were."""
        return self._placer.relieve()

    def on_crash(self, session: Session) -> None:
        """An engine died of what ran in it, and has been lost before."""
        self._counts.crashes += 1
        self._accuse(session, session.suspects)

    def _accuse(self, session: Session, suspects: list[Version], *, is_certain: bool = False) -> None:
        """These were executing as an engine died, or one of them is said to have ended it."""
        now, cell = self._clock(), session.cell
        for version in suspects:
            # Among those of one tenant the word of the engine is enough: if it lies, it is that tenant's.
            proven = cell.name == self._placer.own_cell(version)
            proven = proven or (is_certain and cell.name == self._placer.apart_cell(version))
            self.offences.accuse(version, now, was_alone=proven)
        tenants = {version.tenant for version in suspects}
        if len(tenants) == 1 and not cell.is_own:
            [tenant] = tenants
            loaded = (home.version.worker_id for home in self._homes if home.tenant.name == tenant)
            self.offences.blame(tenant, now, loaded)

    def sweep(self) -> None:
        """End what took too long, unload what nobody uses."""
        now = self._clock()
        for late in self._queue.take_late(now):
            self._refuse(late, BUSY if self.cells.shared.is_open else NO_ENGINE)
        self._serve_queue()
        for session in self.cells.sessions():
            session.calls.sweep(now)
        self._placer.look(now)
        self._turn_away()
        if now >= self._last_slow_sweep + SLOW_SWEEP:
            self._placer.tidy(now, now - self._last_slow_sweep)
            self.cells.sweep(now)
            self._last_slow_sweep = now

    @property
    def busy(self) -> bool:
        return len(self._queue) > 0 or any(session.calls.calls for session in self.cells.sessions())

    def close(self) -> None:
        """Refuse every call from now on, also those that wait. Engines are the supervisor's to end."""
        self._closed = True
        for call in self._queue.take_all():
            self._refuse(call, STOPPING)

    def stats(self) -> PoolStats:
        sessions = self.cells.sessions()
        return replace(
            self._counts,
            engines=len(sessions),
            loaded=self._homes.loaded,
            queued=len(self._queue),
            in_flight=sum(len(session.calls.calls) for session in sessions),
            calls=self._calls,
            hits=self._hits,
        )


def _too_many(message: str) -> LoadFailed:
    return LoadFailed(Failure(ErrorCode.OVERLOADED, message))
