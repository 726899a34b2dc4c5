"""One engine as Python sees it while it lives: its link, what is loaded in it, its calls and its ops.

Everything here dies with the engine. The session checks that frames name workers that are loaded, keeps the loads in
their states, and passes what matters to its owner, the pool, which decides.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from atoll.broker import Broker
from atoll.engine.calls import CANCEL_SECONDS, EVENT_NAMES
from atoll.engine.cells import Cell
from atoll.engine.ledger import Ledger
from atoll.engine.link import CLOSED, Link
from atoll.engine.loads import CodeCache, LoadReport, read_loaded
from atoll.engine.ops import Ops
from atoll.engine.placement import Placement
from atoll.engine.spread import Waiting
from atoll.engine.table import CallTable
from atoll.engine.tenants import Tenant
from atoll.errors import EngineError, Failure
from atoll.logs import Invocation, LogLine, Said, Skim
from atoll.wire.codec import (
    Handler,
    encode_code,
    encode_load,
    encode_unload,
    read_code,
    read_failure,
    read_log,
)
from atoll.wire.fields import int_field, read_json
from atoll.wire.generated import Flag, Frame
from atoll.workers import Version

_FAIL: Final = int(Flag.FAIL)
CORES = os.cpu_count() or 1


class SessionOwner(Protocol):
    """What the pool hears of an engine."""

    hears: Callable[[Said], None] | None  # who wants console lines as they come; mostly nobody

    def on_loaded(self, placement: Placement, report: LoadReport) -> None: ...

    def on_load_failed(self, placement: Placement, failure: Failure) -> None: ...

    def on_unloaded(self, placement: Placement, failure: Failure | None) -> None: ...  # failure: it was condemned

    def on_code(self, placement: Placement, cache: CodeCache) -> None: ...

    # Its code can be neither run nor ended, and that of this call (or 0) has used so much.
    def on_offence(self, placement: Placement, failure: Failure, number: int, cpu_us: int) -> None: ...

    def on_lost(self, session: Session, reason: str) -> None: ...  # the engine is gone with all that was in it


class Session:
    def __init__(
        self,
        owner: SessionOwner,
        cell: Cell,
        broker: Broker,
        record: Callable[[Invocation], None],
        skim: Skim,
        clock: Callable[[], float],
        ops_per_call: int,
        ledger: Ledger | None = None,
    ) -> None:
        self._owner = owner
        self.cell = cell
        self._clock = clock
        self.link = Link(self)
        self.loads: dict[int, Placement] = {}
        self._last_load = 0
        self._unloaded: deque[tuple[int, str]] = deque(maxlen=64)  # the last ones, and of which worker they were
        self.ledger = ledger or Ledger()
        self.calls = CallTable(self.link, self.ledger, self._is_gone, record, skim, clock)
        self.ops = Ops(self.link, self.calls, broker, ops_per_call)
        self.v8 = ""
        self.waiting = Waiting()  # as the pool last saw it
        self.suspects: list[Version] = []  # what was executing when it was lost
        self.is_urgent = False  # a condemned one must not stay for long
        self.kill: Callable[[], None] = lambda: None  # ends the process at once
        self.greeted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.over: asyncio.Future[str] = asyncio.get_running_loop().create_future()  # gives the reason
        self.condemned: asyncio.Future[str] = asyncio.get_running_loop().create_future()  # gives the reason

    @property
    def load(self) -> int:
        """How much it has to do, for choosing between engines."""
        return len(self.calls.calls) + len(self.loads)

    @property
    def takes_loads(self) -> bool:
        return not self.condemned.done()

    def condemn(self, reason: str, *, is_urgent: bool = True) -> None:
        """It goes on only until another has taken its place: nothing new is loaded, what is loaded still serves.

        When it is not urgent, its calls have all the time they need.
        """
        if not self.condemned.done():
            self.is_urgent = is_urgent
            self.condemned.set_result(reason)

    # --- what the pool asks for ---

    def place(self, version: Version, tenant: Tenant, payload: bytes, now: float) -> Placement:
        """Send LOAD. Calls may follow at once; the engine keeps them until the version is ready."""
        self._last_load += 1
        placement = self.loads[self._last_load] = Placement(version, tenant, self, self._last_load, now)
        self.link.send(encode_load(self._last_load, version.limits.memory_mb, payload))
        return placement

    def unload(self, placement: Placement) -> None:
        if not placement.unloading and not placement.failed and placement.load_id in self.loads:
            placement.unloading = True
            placement.unload_by = self._clock() + CANCEL_SECONDS
            self.link.send(encode_unload(placement.load_id))

    def give_up(self, placement: Placement, failure: Failure) -> None:
        """A load that takes too long is a load that failed."""
        self.unload(placement)
        placement.failed = True
        self._owner.on_load_failed(placement, failure)

    def ask_code(self, placement: Placement) -> None:
        if placement.load_id in self.loads and not placement.unloading:
            placement.asked_code += 1
            self.link.send(encode_code(placement.load_id))

    def check_unloads(self, now: float) -> None:
        """An isolate that does not go has a thread that is stuck: the process has to."""
        for placement in self.loads.values():
            if placement.unload_by < now:
                self.link.break_off(f"the isolate of {placement.version.worker_name} does not end")
                return

    def charge_open_calls(self) -> None:
        """The engine's word is taken as in DONE, about workers that it runs, and for no more than there can be of it.

        One that was taken over could else use up the quota of another tenant for years.
        """
        told = self.link.pong.get("cpu_us")
        if isinstance(told, dict):
            now = self._clock()
            for number, placement in self.loads.items():
                cpu_us = told.get(str(number))
                if isinstance(cpu_us, int):
                    most = int((now - placement.placed_at) * 1e6) * CORES
                    placement.charge_open(max(min(cpu_us, most) - placement.cpu_us, 0))

    def close(self) -> None:
        """Let go of what is left, once the engine is gone."""
        self.link.break_off("it was stopped")
        self.ledger.close()

    # --- what the link tells ---

    @property
    def maker(self) -> str:
        """Whose code caches may be used here. V8 does not verify them, and whoever controls an engine can make any: so
        those of shared engines stay among them, and so do those of each tenant or worker with engines of its own."""
        return f"{self.v8} {self.cell.name}" if self.cell.is_own else self.v8

    def on_hello(self, v8: str, ops: tuple[str, ...]) -> None:
        self.ops.bind(ops)
        self.v8 = v8
        self.greeted.set_result(None)

    def on_broken(self, reason: str) -> None:
        if reason != CLOSED:  # it still runs: it must begin nothing that is about to be sent elsewhere
            self.kill()
        self._owner.on_lost(self, reason)
        self.loads.clear()
        if not self.greeted.done():
            self.greeted.set_exception(EngineError(reason))
            self.greeted.exception()  # whoever waits still gets it; nobody waiting is no error
        if not self.over.done():
            self.over.set_result(reason)

    # --- frames about workers ---

    def handlers(self) -> dict[Frame, Handler]:
        calls = self.calls
        return {
            Frame.LOADED: self._on_loaded,
            Frame.UNLOADED: self._on_unloaded,
            Frame.CODE: self._on_code,
            Frame.STUCK: self._on_stuck,
            Frame.LOG: self._on_log,
            Frame.OP: self._on_op,
            Frame.RESPONSE: calls.on_response,
            Frame.BODY: calls.on_body,
            Frame.CREDIT: calls.on_credit,
            Frame.CANCEL: calls.on_cancel,
            Frame.FAIL: calls.on_fail,
            Frame.DONE: calls.on_done,
            Frame.ECHO: calls.on_echo,
        }

    def _find(self, kind: str, worker: int) -> Placement:
        placement = self.loads.get(worker)
        if placement is None:
            raise EngineError(f"{kind} for worker {worker}, which is not loaded")
        return placement

    def _is_gone(self, worker: int) -> bool:
        """Whether a worker was loaded once and is no more, or never came to be."""
        placement = self.loads.get(worker)
        return 0 < worker <= self._last_load if placement is None else placement.failed

    def _on_loaded(self, flags: int, worker: int, call: int, data: bytes, start: int, end: int) -> None:
        placement = self._find("LOADED", worker)
        if placement.failed and placement.unloading:  # it came, or failed, after we gave up
            return
        if placement.ready or placement.failed:
            raise EngineError(f"a second LOADED for worker {worker}")
        if flags & _FAIL:
            failure = read_failure(data[start:end])
            placement.failed = True
            self._owner.on_load_failed(placement, failure)
        else:
            report = read_loaded(data[start:end], placement.logs)
            placement.ready = True
            placement.report = report
            self._owner.on_loaded(placement, report)

    def _on_unloaded(self, flags: int, worker: int, call: int, data: bytes, start: int, end: int) -> None:
        placement = self._find("UNLOADED", worker)
        fields = read_json(data[start:end]) if end > start else {}
        failure = read_failure(data[start:end]) if fields.get("code") else None
        if failure is None and not placement.unloading and not placement.failed:
            raise EngineError(f"worker {worker} was unloaded without being asked and without a reason")
        del self.loads[worker]
        placement.charge_open(0)
        self._unloaded.append((worker, placement.version.worker_name))
        if not placement.failed:  # else its calls have ended before
            self._owner.on_unloaded(placement, failure)

    def _on_code(self, flags: int, worker: int, call: int, data: bytes, start: int, end: int) -> None:
        placement = self._find("CODE", worker)
        if not placement.asked_code:
            raise EngineError(f"CODE for worker {worker}, which nobody asked for")
        cache = read_code(data, start, end, len(placement.version.modules))
        placement.asked_code -= 1
        self._owner.on_code(placement, cache)

    def _on_stuck(self, flags: int, worker: int, number: int, data: bytes, start: int, end: int) -> None:
        failure = read_failure(data[start:end])
        if self._is_gone(worker):  # V8 ran out of memory while it took the isolate apart: one thread less
            gone = self.loads.get(worker)
            names = dict(self._unloaded)
            name = gone.version.worker_name if gone is not None else names.get(worker, "a worker that is gone")
            self.condemn(f"{name}: {failure.message}")
            return
        placement = self._find("STUCK", worker)
        if not placement.failed:
            placement.failed = True
            self._owner.on_offence(placement, failure, number, int_field(read_json(data[start:end]), "cpu_us"))
        self.condemn(f"{placement.version.worker_name}: {failure.message}")

    def _on_log(self, flags: int, worker: int, number: int, data: bytes, start: int, end: int) -> None:
        placement = self._find("LOG", worker)
        call = self.calls.calls.get(number)
        level, timestamp_ms, text = read_log(data, start, end)
        if call is not None and call.worker == worker:
            call.add_log(level, timestamp_ms, text)
        else:  # top-level code, or code that outlived its call
            call = None
            placement.add_log(level, timestamp_ms, text)
        if self._owner.hears is not None:
            event, head = (EVENT_NAMES[call.event], call.head) if call is not None else ("", b"")
            line = LogLine(timestamp_ms, level, text)
            self._owner.hears(Said(placement.version, call.id if call is not None else 0, event, head, line))

    def _on_op(self, flags: int, worker: int, number: int, data: bytes, start: int, end: int) -> None:
        self.ops.begin(self._find("OP", worker), number, data, start, end)
