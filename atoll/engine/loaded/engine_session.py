"""One running engine as Python sees it: its link, the isolates in it, its calls and its ops.

Everything here ends with the engine. The session checks that each frame names a loaded isolate and keeps the state of
each load. It reports to its owner, the pool, which decides. An Isolate and its session refer to each other, so both
are in this file.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections import deque
from collections.abc import Callable
from typing import Final, Protocol

from atoll.broker import Broker
from atoll.engine.calls.call import CANCEL_SECONDS
from atoll.engine.calls.call_table import CallTable
from atoll.engine.calls.inside import InsideCalls
from atoll.engine.calls.isolate_state import IsolateState
from atoll.engine.calls.late_calls import LateCalls
from atoll.engine.calls.op_runner import OpRunner
from atoll.engine.link.ledger import Ledger
from atoll.engine.link.link import CLOSED, Link
from atoll.engine.loaded.load_frames import CodeCache, LoadReport, read_loaded
from atoll.engine.tenant_usage import TenantUsage
from atoll.errors import EngineError, Failure, LoadFailed
from atoll.holdings import Holdings
from atoll.logs import Invocation, LogLine, Said, Skim
from atoll.wire.codec import Handler, encode_code, read_code, read_failure, read_log, read_op
from atoll.wire.fields import int_field, read_json
from atoll.wire.generated import Flag, Frame
from atoll.wire.load import encode_load, encode_unload
from atoll.workers import Version

_FAIL: Final = int(Flag.FAIL)
CORES = os.cpu_count() or 1


class LoadOwner(Protocol):
    """What the loader hears from an engine."""

    def on_loaded(self, isolate: Isolate, report: LoadReport) -> None: ...

    def on_code(self, isolate: Isolate, cache: CodeCache) -> None: ...


class SessionOwner(Protocol):
    """What the pool hears from an engine."""

    on_line: Callable[[Said], None] | None  # receives console lines as they come; usually None

    @property
    def loader(self) -> LoadOwner: ...

    def on_load_failed(self, isolate: Isolate, failure: Failure) -> None: ...

    # With a failure: the engine has ended the isolate because of it.
    def on_unloaded(self, isolate: Isolate, failure: Failure | None) -> None: ...

    # The code of an isolate can be neither run nor ended. `number` is the call that it runs for, or 0.
    def on_offence(self, isolate: Isolate, failure: Failure, number: int, cpu_us: int) -> None: ...

    def on_lost(self, session: EngineSession, reason: str) -> None: ...  # the engine is gone, and all its isolates


class Isolate(IsolateState):
    """One version in one engine, from LOAD to UNLOADED. Its load id is never used again on that link."""

    __slots__ = (
        "asked_code",
        "failed",
        "had_residents",
        "load_sent_at",
        "modules",
        "report",
        "session",
        "unload_by",
        "unloading",
        "waiters",
        "wants_code",
    )

    def __init__(self, version: Version, tenant: TenantUsage, session: EngineSession, load_id: int, now: float) -> None:
        super().__init__(version, tenant, load_id, now)
        self.session = session
        # From LOAD to LOADED
        self.load_sent_at = now
        self.failed = False  # LOADED reported a failure, or came too late; UNLOADED has yet to come
        self.waiters: list[asyncio.Future[LoadReport]] = []
        self.report: LoadReport | None = None
        # While it serves
        self.modules = 0  # the number of files it was loaded from
        self.wants_code = False  # ask for the code cache after the next response
        self.asked_code = 0  # CODE requests without their answer
        self.had_residents = False  # objects have lived in it: their last frames may still come
        # After UNLOAD
        self.unloading = False
        self.unload_by = float("inf")  # the deadline of UNLOADED

    def settle(self, outcome: LoadReport | Failure) -> None:
        """Give the outcome of the load to everyone who waits for it."""
        waiters, self.waiters = self.waiters, []
        for waiter in waiters:
            if waiter.done():
                continue
            if isinstance(outcome, Failure):
                waiter.set_exception(LoadFailed(outcome))
            else:
                waiter.set_result(outcome)


class EngineSession:
    def __init__(
        self,
        owner: SessionOwner,
        group: str,
        broker: Broker,
        record: Callable[[Invocation], None],
        skim: Skim,
        clock: Callable[[], float],
        ops_per_call: int,
        holdings: Holdings,
        ledger: Ledger | None = None,
    ) -> None:
        self._owner = owner
        self.group = group  # the name of its engine group; "" is the shared one
        self._clock = clock
        self.link = Link(self)
        self.isolates: dict[int, Isolate] = {}
        self._last_load = 0
        self._unloaded: deque[tuple[int, str]] = deque(maxlen=64)  # the last load ids and their workers
        self.ledger = ledger or Ledger()
        self.calls = CallTable(self.link, self.ledger, self._is_gone, record, skim, clock, holdings)
        self.ops = OpRunner(self.link, self.calls, broker, ops_per_call)
        self.inside = InsideCalls(self.link, self.calls, self.ops, record, skim, clock)
        self.calls.on_offer = self.inside.offer
        self.v8 = ""
        self.late_calls = LateCalls()  # at the pool's last look
        self.suspects: list[Version] = []  # the versions whose code ran when the engine was lost
        self.is_urgent = False  # once condemned, it must end soon
        self.kill: Callable[[], None] = lambda: None  # ends the process at once
        self.descriptors: socket.socket | None = None  # carries the files of objects to the engine
        self.greeted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.over: asyncio.Future[str] = asyncio.get_running_loop().create_future()  # gives the reason
        self.condemned: asyncio.Future[str] = asyncio.get_running_loop().create_future()  # gives the reason

    @property
    def work(self) -> int:
        """Calls and isolates: new isolates go to the engine with the least."""
        return len(self.calls.calls) + len(self.isolates)

    @property
    def takes_loads(self) -> bool:
        return not self.condemned.done()

    def condemn(self, reason: str, *, is_urgent: bool = True) -> None:
        """Have another engine take its place. From now on nothing is loaded here; loaded isolates still serve.

        Unless it is urgent, calls in it may take as long as they need.
        """
        if not self.condemned.done():
            self.is_urgent = is_urgent
            self.condemned.set_result(reason)

    # --- what the loader asks for ---

    def load(self, version: Version, tenant: TenantUsage, payload: list[bytes], now: float) -> Isolate:
        """Send LOAD. Calls may follow at once: the engine keeps them until the isolate is ready."""
        self._last_load += 1
        isolate = self.isolates[self._last_load] = Isolate(version, tenant, self, self._last_load, now)
        self.link.send_pieces(encode_load(self._last_load, version.limits.memory_mb, payload))
        return isolate

    def unload(self, isolate: Isolate) -> None:
        if not isolate.unloading and not isolate.failed and isolate.load_id in self.isolates:
            isolate.unloading = True
            isolate.unload_by = self._clock() + CANCEL_SECONDS
            self._evict(isolate)
            self.close_routes(isolate)
            self.link.send(encode_unload(isolate.load_id))

    def give_up(self, isolate: Isolate, failure: Failure) -> None:
        """Treat a load that takes too long as failed."""
        self.unload(isolate)
        isolate.failed = True
        self._owner.on_load_failed(isolate, failure)

    def _evict(self, isolate: Isolate) -> None:
        """The isolate ends: so do the objects in it."""
        residents, isolate.residents = isolate.residents, None
        if residents is not None:
            residents.on_gone()

    def close_routes(self, isolate: Isolate) -> None:
        """From now on calls of the isolate come over Python."""
        self.inside.close_to(isolate)

    def ask_code(self, isolate: Isolate) -> None:
        if isolate.load_id in self.isolates and not isolate.unloading:
            isolate.asked_code += 1
            self.link.send(encode_code(isolate.load_id))

    def check_unloads(self, now: float) -> None:
        """End the engine if an isolate is not unloaded in time: one of its threads is stuck. So with doors."""
        self.inside.doors.check(now)
        for isolate in self.isolates.values():
            if isolate.unload_by < now:
                self.link.break_off(f"the isolate of {isolate.version.worker_name} does not end")
                return

    def charge_open_calls(self) -> None:
        """Charge tenants for the CPU time of open calls, as the last heartbeat reported it.

        The report is capped at the CPU time that could have been used. Otherwise a compromised engine could exhaust the
        quota of another tenant.
        """
        told = self.link.pong.get("cpu_us")
        if isinstance(told, dict):
            now = self._clock()
            for number, isolate in self.isolates.items():
                cpu_us = told.get(str(number))
                if isinstance(cpu_us, int):
                    most = int((now - isolate.load_sent_at) * 1e6) * CORES
                    isolate.charge_open(max(min(cpu_us, most) - isolate.cpu_us, 0))

    def close(self) -> None:
        """Release what is left, once the engine is gone."""
        self.link.break_off("it was stopped")
        self.ledger.close()

    # --- what the link reports ---

    @property
    def maker(self) -> str:
        """The key under which code caches of this engine are stored: only engines with the same key use them.

        V8 does not verify code caches, and a compromised engine can forge them. So they never leave their engine group.
        """
        return f"{self.v8} {self.group}" if self.group else self.v8

    def on_room(self) -> None:
        self.calls.send_bodies()

    def on_hello(self, v8: str, ops: tuple[str, ...]) -> None:
        self.ops.bind(ops)
        self.v8 = v8
        self.greeted.set_result(None)

    def on_broken(self, reason: str) -> None:
        if reason != CLOSED:  # it still runs, and must not begin calls that are about to be sent elsewhere
            self.kill()
        for isolate in self.isolates.values():
            self._evict(isolate)
        self.inside.doors.close()
        self._owner.on_lost(self, reason)
        self.isolates.clear()
        if not self.greeted.done():
            self.greeted.set_exception(EngineError(reason))
            self.greeted.exception()  # mark it as retrieved: it is no error if nothing waits for it
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
            Frame.COMMIT: self._on_commit,
            Frame.RESET: self._on_reset,
            Frame.SOCKET: self._on_socket,
            Frame.LOG: self._on_log,
            Frame.OP: self._on_op,
            Frame.INNER: self._on_inner,
            Frame.SHUT: self.inside.doors.on_shut,
            Frame.RESPONSE: calls.on_response,
            Frame.BODY: calls.on_body,
            Frame.CREDIT: calls.on_credit,
            Frame.CANCEL: calls.on_cancel,
            Frame.FAIL: calls.on_fail,
            Frame.DONE: calls.on_done,
        }

    def _find(self, kind: str, worker: int) -> Isolate:
        isolate = self.isolates.get(worker)
        if isolate is None:
            raise EngineError(f"{kind} for worker {worker}, which is not loaded")
        return isolate

    def _is_gone(self, worker: int) -> bool:
        """Whether this load id was used and its isolate is unloaded, or failed to load."""
        isolate = self.isolates.get(worker)
        return 0 < worker <= self._last_load if isolate is None else isolate.failed

    def _on_loaded(self, flags: int, worker: int, call: int, data: bytes, start: int, end: int) -> None:
        isolate = self._find("LOADED", worker)
        if isolate.failed and isolate.unloading:  # LOADED came after we gave up
            return
        if isolate.ready or isolate.failed:
            raise EngineError(f"a second LOADED for worker {worker}")
        if flags & _FAIL:
            failure = read_failure(data[start:end])
            isolate.failed = True
            self._owner.on_load_failed(isolate, failure)
        else:
            report = read_loaded(data[start:end], isolate.logs)
            isolate.ready = True
            isolate.report = report
            self._owner.loader.on_loaded(isolate, report)

    def _on_unloaded(self, flags: int, worker: int, call: int, data: bytes, start: int, end: int) -> None:
        isolate = self._find("UNLOADED", worker)
        fields = read_json(data[start:end]) if end > start else {}
        failure = read_failure(data[start:end]) if fields.get("code") else None
        if failure is None and not isolate.unloading and not isolate.failed:
            raise EngineError(f"worker {worker} was unloaded without being asked and without a reason")
        del self.isolates[worker]
        self._evict(isolate)
        self.inside.forget(isolate)
        isolate.charge_open(0)
        self._unloaded.append((worker, isolate.version.worker_name))
        if not isolate.failed:  # otherwise its calls have ended already
            self._owner.on_unloaded(isolate, failure)

    def _on_code(self, flags: int, worker: int, call: int, data: bytes, start: int, end: int) -> None:
        isolate = self._find("CODE", worker)
        if not isolate.asked_code:
            raise EngineError(f"CODE for worker {worker}, which nobody asked for")
        cache = read_code(data, start, end, isolate.modules)
        isolate.asked_code -= 1
        self._owner.loader.on_code(isolate, cache)

    def _on_stuck(self, flags: int, worker: int, number: int, data: bytes, start: int, end: int) -> None:
        failure = read_failure(data[start:end])
        if self._is_gone(worker):  # V8 ran out of memory while it disposed of the isolate: a thread is lost
            gone = self.isolates.get(worker)
            names = dict(self._unloaded)
            name = gone.version.worker_name if gone is not None else names.get(worker, "a worker that is gone")
            self.condemn(f"{name}: {failure.message}")
            return
        isolate = self._find("STUCK", worker)
        if not isolate.failed:
            isolate.failed = True
            self._evict(isolate)
            self._owner.on_offence(isolate, failure, number, int_field(read_json(data[start:end]), "cpu_us"))
        self.condemn(f"{isolate.version.worker_name}: {failure.message}")

    def _on_commit(self, flags: int, worker: int, slot: int, data: bytes, start: int, end: int) -> None:
        isolate = self._find("COMMIT", worker)
        if isolate.residents is not None:
            isolate.residents.on_commit(slot, data, start, end)
        elif not isolate.had_residents:
            raise EngineError(f"COMMIT for slot {slot} of worker {worker}, which has no objects")

    def _on_reset(self, flags: int, worker: int, slot: int, data: bytes, start: int, end: int) -> None:
        isolate = self._find("RESET", worker)
        failure = read_failure(data[start:end])
        if isolate.residents is not None:
            isolate.residents.on_reset(slot, failure)
        elif not isolate.had_residents:
            raise EngineError(f"RESET for slot {slot} of worker {worker}, which has no objects")

    def _on_socket(self, flags: int, worker: int, slot: int, data: bytes, start: int, end: int) -> None:
        isolate = self._find("SOCKET", worker)
        if isolate.residents is not None:
            isolate.residents.on_socket(slot, data, start, end)
        elif not isolate.had_residents:
            raise EngineError(f"SOCKET for slot {slot} of worker {worker}, which has no objects")

    def _on_log(self, flags: int, worker: int, number: int, data: bytes, start: int, end: int) -> None:
        isolate = self._find("LOG", worker)
        call = self.calls.calls.get(number)
        level, timestamp_ms, text = read_log(data, start, end)
        if call is not None and call.worker == worker:
            call.add_log(level, timestamp_ms, text)
        else:  # top-level code, or code that outlived its call
            call = None
            isolate.add_log(level, timestamp_ms, text)
        if self._owner.on_line is not None:
            head, event, _ = call.recorded() if call is not None else (b"", "", "")
            line = LogLine(timestamp_ms, level, text)
            self._owner.on_line(Said(isolate.version, call.id if call is not None else 0, event, head, line))

    def _on_inner(self, flags: int, worker: int, number: int, data: bytes, start: int, end: int) -> None:
        isolate = self._find("INNER", worker)
        self.inside.on_inner(flags, worker, number, data, start, end)
        if isolate.unloading:  # the engine waits for the call: it ends by its own deadline
            isolate.unload_by = max(isolate.unload_by, self._clock() + isolate.wall_seconds + 2 * CANCEL_SECONDS)

    def _on_op(self, flags: int, worker: int, number: int, data: bytes, start: int, end: int) -> None:
        self.ops.begin(self._find("OP", worker), number, *read_op(data, start, end))

    def on_long_op(self, worker: int, number: int, head: bytes, body: bytes) -> None:
        self.ops.begin(self._find("OP", worker), number, *read_op(head, 0, len(head))[:3], body)
