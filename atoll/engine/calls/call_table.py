"""The calls of one engine, from CALL to DONE: what Python does to them, and which frames the engine may send.

The engine is not trusted: a frame that the state of its call does not allow raises EngineError, which ends that engine.
Only FAIL and DONE for an unloaded isolate are ignored: they cross our CALL when the engine ends an isolate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from atoll.bindings.services import ServiceWay
from atoll.engine.calls.call import (
    CANCEL_SECONDS,
    CANCELLED,
    ENDED,
    NOBODY,
    OVER,
    QUEUED,
    RESPONDED,
    SENT,
    WAIT_UNTIL_SECONDS,
    Call,
    CallPort,
)
from atoll.engine.calls.inside_caller import InsideCaller, answered_inside, never_began
from atoll.engine.calls.isolate_state import IsolateState
from atoll.engine.calls.waiting_bodies import WaitingBodies
from atoll.engine.link.ledger import Ledger
from atoll.engine.link.link import Link
from atoll.errors import EngineError, Failure
from atoll.holdings import Holdings
from atoll.logs import Invocation, Skim
from atoll.wire.codec import (
    encode_body,
    encode_call,
    encode_call_head,
    encode_cancel,
    read_credit,
    read_done,
    read_failure,
    read_response,
)
from atoll.wire.generated import INNER_CALLS, ErrorCode, Event, Flag, Outcome
from atoll.workers import Isolation

NEVER: Final = float("inf")
BACKGROUND: Final = int(Event.BACKGROUND)
BACKGROUND_SECONDS: Final = 900.0  # no client waits for such a call
LARGE: Final = 256 << 10  # bodies above this size are not copied
_END: Final = int(Flag.END)
_DONE: Final = int(Flag.DONE)
_FAIL: Final = int(Flag.FAIL)
_INNER: Final = int(Flag.INNER)
_OK: Final = Outcome.OK  # looking it up in the enum costs as much as a dict access


def wall_seconds(call: Call) -> float:
    return BACKGROUND_SECONDS if call.event == BACKGROUND else call.version.limits.wall_ms / 1000


class CallTable(CallPort):
    """The calls of one engine, from CALL to DONE."""

    def __init__(
        self,
        link: Link,
        ledger: Ledger,
        is_gone: Callable[[int], bool],
        record: Callable[[Invocation], None],
        skim: Skim,
        clock: Callable[[], float],
        holdings: Holdings,
    ) -> None:
        super().__init__(link)
        self._ledger = ledger
        self._is_gone = is_gone  # by load id: whether the isolate is unloaded
        self._record = record
        self._skim = skim
        self._clock = clock
        self.calls: dict[int, Call] = {}
        self.inside: dict[int, InsideCaller] = {}  # the callers of those that the engine began
        self._free: list[int] = []  # ids that may be used again
        self._last_id = 0
        self._bodies = WaitingBodies(holdings)
        self.on_offer: Callable[[Call, ServiceWay, Call], None] | None = None  # InsideCalls.offer

    # --- what Python does to a call ---

    def start(self, call: Call, isolate: IsolateState) -> None:
        """Send the call to the engine."""
        free = self._free
        if free:
            number = free.pop()
        else:
            number = self._last_id = self._last_id + 1
        self.calls[number] = call
        call.id = number
        call.port = self
        call.isolate = isolate
        call.worker = worker = isolate.load_id
        call.state = SENT
        call.deadline = call.started + (isolate.wall_seconds if not call.event else wall_seconds(call))
        call.uncredited = len(call.body)
        isolate.in_flight += 1
        isolate.tenant.in_flight += 1
        self._ledger.clear(number)
        if len(call.body) <= LARGE:
            hops = call.hops % 256
            self.link.send(encode_call(worker, number, call.event, call.head, call.body, call.ended, hops))
        else:  # arguments of a method: sent after their head, without a copy
            size = len(call.body)
            self.link.send_pieces(
                [encode_call_head(worker, number, call.event, call.head, size, call.ended, call.hops % 256), call.body]
            )
        if call.backlog is not None:
            for chunk, ended in call.take_backlog():
                call.send_body(chunk, ended)

    def offer(self, made: Call, way: ServiceWay, call: Call) -> None:
        if self.on_offer is not None:
            self.on_offer(made, way, call)

    def send_body(self, call: Call, chunk: bytes, ended: bool) -> None:
        """Send a part of the request body, now or when there is room. All other frames may overtake it."""
        if not self._bodies.by_tenant and not self.link.is_full:
            self.link.send_body(encode_body(call.worker, call.id, chunk, ended))
        else:
            self._bodies.add(call, chunk, ended)

    def send_bodies(self) -> None:
        """There is room: send waiting parts, one of each tenant in turn."""
        bodies, link = self._bodies, self.link
        while bodies.by_tenant and not link.is_full:
            call, chunk, ended = bodies.next()
            if call.port is self and SENT <= call.state <= ENDED:  # otherwise its id may belong to another call by now
                link.send_body(encode_body(call.worker, call.id, chunk, ended))

    def cancel(self, call: Call, code: ErrorCode) -> None:
        """Have the engine end a call. With CANCELED, waitUntil may go on for a while; with WALL it may not."""
        call.state = CANCELLED
        call.forced = code == ErrorCode.WALL
        call.deadline = self._clock() + CANCEL_SECONDS if call.forced else self._last_moment(call)
        if call.unsent:
            self._bodies.drop(call)
        self.link.send(encode_cancel(call.worker, call.id, code))

    def end(self, call: Call, failure: Failure, cpu_us: int = 0) -> None:
        """End a call whose engine or isolate is gone, in place of the engine.

        `cpu_us` is the CPU time that the engine reported; it is capped at the time that has passed.
        """
        is_answered = not SENT <= call.state <= RESPONDED
        if not is_answered:
            call.failure = failure
        most = int((self._clock() - call.started) * 1e6)
        self._over(call, Outcome.INTERNAL_ERROR, max(0, min(cpu_us, most)))
        if not is_answered:
            call.caller.on_failure(failure)

    def turn_away(self, call: Call, failure: Failure) -> None:
        """Refuse a call whose handler has not begun: the engine skips calls that were cancelled before their turn."""
        call.failure = failure
        self.cancel(call, ErrorCode.CANCELED)
        call.caller.on_failure(failure)

    def release(self, call: Call) -> IsolateState:
        """Take out a call that never started, to send it elsewhere. Its isolate is gone, so its id is free at once."""
        self._forget(call)
        left = call.isolate
        assert left is not None
        call.state, call.port, call.isolate = QUEUED, None, None
        return left

    def may_have_begun(self, call: Call) -> bool:
        """Whether the handler of a call in a dead engine may have started."""
        return call.isolate is not None and call.isolate.ready and self._ledger.begun(call.id)

    def of(self, isolate: IsolateState) -> list[Call]:
        return [call for call in self.calls.values() if call.isolate is isolate]

    def sweep(self, now: float) -> None:
        """Cancel the calls that take too long."""
        for call in [call for call in self.calls.values() if call.deadline < now]:
            if call.forced:
                self._abandon(call)
                continue
            is_waiting = call.state == SENT
            if is_waiting:
                seconds = wall_seconds(call)
                call.failure = Failure(ErrorCode.WALL, f"the worker did not respond within {seconds:g} s")
            self.cancel(call, ErrorCode.WALL)
            if is_waiting:
                call.caller.on_failure(call.failure)  # type: ignore[arg-type]  # just set

    # --- frames of the engine ---

    def on_response(self, flags: int, worker: int, number: int, data: bytes, start: int, end: int) -> None:
        call = self.calls.get(number)
        if call is None or call.worker != worker:
            raise EngineError(f"RESPONSE for call {number}, which is not under way in worker {worker}")
        status, call.memory_mb, cpu_us, head, body = read_response(data, start, end)
        state = call.state
        if flags & _INNER:
            answered_inside(call, self.inside.get(number), status, flags & _END != 0 and not head and not body)
        if state == CANCELLED:
            if flags & _DONE:
                self._over(call, Outcome.OK, cpu_us)
            return
        if state != SENT or not call.isolate.ready:  # type: ignore[union-attr]  # a call in the table has one
            raise EngineError(f"RESPONSE for call {number} out of turn")
        call.status = status
        if flags & _DONE:
            isolate = self._forget(call)
            call.state = OVER
            call.caller.on_response(status, head, body, True)  # may refuse the response, so the record comes after
            # Call and caller refer to each other. Cutting that here frees both without the garbage collector.
            call.caller = NOBODY
            self._settle(call, isolate, _OK, cpu_us)
        elif flags & _END:
            self.responded(call)
            call.caller.on_response(status, head, body, True)
        else:
            call.state = RESPONDED
            call.deadline = NEVER
            if status == 101:
                self._become_socket(call)
            call.caller.on_response(status, head, body, False)

    def responded(self, call: Call) -> None:
        """The response is over: the call may go on for a while, or as long as it has connections of an object."""
        call.state = ENDED
        call.deadline = self._last_moment(call)
        if call.deadline == NEVER and not call.is_socket:
            self._become_socket(call)

    def _last_moment(self, call: Call) -> float:
        return NEVER if call.scope is not None and call.scope.is_kept else self._clock() + WAIT_UNTIL_SECONDS

    def _become_socket(self, call: Call) -> None:
        """Count the call as a socket. It may stay open for days: it takes no room of calls, but keeps its isolate."""
        isolate: IsolateState = call.isolate  # type: ignore[assignment]  # a call in the table has one
        if call.version.isolation in (Isolation.CONTEXT, Isolation.ISOLATE):
            return  # one call at a time: the isolate serves no other call
        self._uncount(call, isolate)
        call.is_socket = True
        isolate.sockets += 1

    def on_body(self, flags: int, worker: int, number: int, data: bytes, start: int, end: int) -> None:
        call = self.calls.get(number)
        if call is None or call.worker != worker:
            raise EngineError(f"BODY for call {number}, which is not under way in worker {worker}")
        if call.state == CANCELLED:
            return
        ended = bool(flags & _END)
        if call.state != RESPONDED or (start == end and not ended):
            raise EngineError(f"BODY for call {number} out of turn")
        call.allowed -= end - start
        if call.allowed < 0:
            raise EngineError(f"BODY for call {number} beyond its credit")
        if ended:
            self.responded(call)
        call.caller.on_body(data[start:end], ended)

    def on_done(self, flags: int, worker: int, number: int, data: bytes, start: int, end: int) -> None:
        if self._is_gone(worker):
            return
        call = self._find("DONE", worker, number)
        cpu_us, outcome = read_done(data, start)
        if flags & _FAIL:
            never_began(call, self.inside.get(number))
            self._forget(call)
            call.state = OVER
            return
        if call.state != ENDED and call.state != CANCELLED:
            raise EngineError(f"DONE for call {number}, whose response is not over")
        self._over(call, outcome, cpu_us)

    def on_fail(self, flags: int, worker: int, number: int, data: bytes, start: int, end: int) -> None:
        if self._is_gone(worker):
            return
        call = self._find("FAIL", worker, number)
        failure = read_failure(data[start:end])
        if call.state == CANCELLED:
            return
        if failure.code == ErrorCode.UNLOADED and call.movable():
            left = self._stand_in(call)
            call.owner.move(call, left)
            return
        if flags & _END:
            self._fail_early(call, failure)
            return
        if call.failure is None:
            call.failure = failure
        if call.state != ENDED:  # otherwise waitUntil failed: that is recorded, but the caller has its answer
            self.responded(call)
            call.caller.on_failure(failure)

    def _fail_early(self, call: Call, failure: Failure) -> None:
        """The code of a call did not end when terminated. Fail the call now and drop what it still sends."""
        if call.state != SENT:
            raise EngineError(f"FAIL before the end for call {call.id}, which was answered")
        call.failure = failure
        call.state = CANCELLED
        call.deadline = self._clock() + CANCEL_SECONDS
        if call.unsent:
            self._bodies.drop(call)
        call.caller.on_failure(failure)

    def on_credit(self, flags: int, worker: int, number: int, data: bytes, start: int, end: int) -> None:
        call = self._find("CREDIT", worker, number)
        amount = read_credit(data, start)
        if amount > call.uncredited:
            raise EngineError(f"CREDIT for call {number} for more than it was sent")
        call.uncredited -= amount
        if call.state == CANCELLED:
            return
        call.caller.on_upload_credit(amount)

    def on_cancel(self, flags: int, worker: int, number: int, data: bytes, start: int, end: int) -> None:
        call = self._find("CANCEL", worker, number)
        if call.state != CANCELLED:
            call.caller.on_upload_stop()

    # --- ends ---

    def _find(self, kind: str, worker: int, number: int) -> Call:
        call = self.calls.get(number)
        if call is None or call.worker != worker:
            raise EngineError(f"{kind} for call {number}, which is not under way in worker {worker}")
        return call

    def _over(self, call: Call, outcome: Outcome, cpu_us: int) -> None:
        isolate = self._forget(call)
        call.state = OVER
        self._settle(call, isolate, outcome, cpu_us)

    def _settle(self, call: Call, isolate: IsolateState, outcome: Outcome, cpu_us: int) -> None:
        """Record a call that is over, and count its CPU time."""
        now = self._clock()
        isolate.last_used = now
        isolate.cpu_us += cpu_us
        isolate.tenant.cpu_us += cpu_us
        if not call.silent:
            is_detailed = call.failure or call.logs or call.scope or isolate.logs or call.cancelled
            wall_us = int((now - call.started) * 1e6)
            if is_detailed or not self._skim(call.version, outcome, call.status, cpu_us, wall_us):
                self._record(call.invocation(outcome, cpu_us, now))
        if isolate.watched:
            call.owner.on_watched(isolate)

    def _forget(self, call: Call) -> IsolateState:
        number = call.id
        del self.calls[number]
        isolate: IsolateState = call.isolate  # type: ignore[assignment]  # a call in the table has one
        if number >= INNER_CALLS:
            del self.inside[number]
            isolate.inner -= 1
        else:
            self._free.append(number)
        if not call.abandoned:
            self._uncount(call, isolate)
        if call.unsent:
            self._bodies.drop(call)
        if call.scope is not None:
            call.scope.close()
            call.direct = call.diverted = None  # they refer to the call
        return isolate

    def _uncount(self, call: Call, isolate: IsolateState) -> None:
        if call.is_socket:
            isolate.sockets -= 1
        else:
            isolate.in_flight -= 1
            isolate.tenant.in_flight -= 1

    def _abandon(self, call: Call) -> None:
        """The engine does not end the call: have its isolate unloaded. The id stays taken until then."""
        isolate = call.isolate
        assert isolate is not None
        call.deadline = NEVER
        if call.scope is not None:
            call.scope.close()
        if not call.silent:
            self._record(call.invocation(Outcome.EXCEEDED_WALL_TIME, 0, self._clock()))
        call.silent = call.abandoned = True
        self._uncount(call, isolate)
        call.owner.on_stuck(isolate)

    def _stand_in(self, call: Call) -> IsolateState:
        """Replace a call that is sent elsewhere by a stand-in, which waits for DONE under its id."""
        ghost = Call(call.version, call.head, b"", True, NOBODY, call.owner, call.started)
        ghost.id, ghost.worker, ghost.port, ghost.isolate = call.id, call.worker, self, call.isolate
        ghost.uncredited, ghost.silent = call.uncredited, True
        ghost.state, ghost.deadline = CANCELLED, self._clock() + CANCEL_SECONDS
        self.calls[call.id] = ghost
        left = call.isolate
        assert left is not None
        call.state, call.port, call.isolate = QUEUED, None, None
        return left
