"""The calls of one engine, from CALL to DONE: what Python does to them and what the engine may say of them.

The engine is hostile: a frame that the state of its call does not allow raises EngineError, which ends that engine.
Only FAIL and DONE for a worker that is gone are let pass: they cross our CALL when an isolate is condemned.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from atoll.engine.calls import (
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
)
from atoll.engine.echo import Echo
from atoll.engine.ledger import Ledger
from atoll.engine.link import Link
from atoll.engine.placement import Placement
from atoll.errors import EngineError, Failure
from atoll.logs import Invocation, Skim
from atoll.wire.codec import (
    encode_call,
    encode_cancel,
    read_credit,
    read_done,
    read_failure,
    read_response,
)
from atoll.wire.generated import ErrorCode, Event, Flag, Outcome
from atoll.workers import Isolation

NEVER: Final = float("inf")
LONG_EVENTS: Final = (Event.SCHEDULED, Event.QUEUE)  # nobody waits for them: they may take longer than a request
EVENT_SECONDS: Final = 900.0
_END: Final = int(Flag.END)
_DONE: Final = int(Flag.DONE)
_OK: Final = Outcome.OK  # looking it up in the enum costs as much as a dict access


def wall_seconds(call: Call) -> float:
    return EVENT_SECONDS if call.event in LONG_EVENTS else call.version.limits.wall_ms / 1000


class CallTable:
    """The calls of one engine, from CALL to DONE."""

    def __init__(
        self,
        link: Link,
        ledger: Ledger,
        is_gone: Callable[[int], bool],
        record: Callable[[Invocation], None],
        skim: Skim,
        clock: Callable[[], float],
    ) -> None:
        self.link = link
        self._ledger = ledger
        self._is_gone = is_gone  # whether a worker was loaded once and is no more
        self._record = record
        self._skim = skim
        self._clock = clock
        self.calls: dict[int, Call] = {}
        self._free: list[int] = []  # ids of calls that are over
        self._last_id = 0

    # --- what Python does to a call ---

    def start(self, call: Call, placement: Placement) -> None:
        """Send the call to the engine."""
        free = self._free
        if free:
            number = free.pop()
        else:
            number = self._last_id = self._last_id + 1
        self.calls[number] = call
        call.id = number
        call.table = self
        call.placement = placement
        call.worker = worker = placement.load_id
        call.state = SENT
        call.deadline = call.started + (placement.wall_seconds if not call.event else wall_seconds(call))
        call.uncredited = len(call.body)
        placement.in_flight += 1
        placement.tenant.in_flight += 1
        self._ledger.clear(number)
        self.link.send(encode_call(worker, number, call.event, call.head, call.body, call.ended))
        if call.backlog is not None:
            backlog, call.backlog = call.backlog, None
            for chunk, ended in backlog:
                call.send_body(chunk, ended)

    def cancel(self, call: Call, code: ErrorCode) -> None:
        """Tell the engine to end a call: CANCELED lets what waitUntil holds go on for a while, WALL does not."""
        call.state = CANCELLED
        call.forced = code == ErrorCode.WALL
        call.deadline = self._clock() + (CANCEL_SECONDS if call.forced else WAIT_UNTIL_SECONDS)
        self.link.send(encode_cancel(call.worker, call.id, code))

    def end(self, call: Call, failure: Failure, cpu_us: int = 0) -> None:
        """The engine will never end this call, because it or the isolate is gone: Python does. It has used so much, by
        the engine's word, which is taken for no more than there can be of it."""
        told = SENT <= call.state <= RESPONDED
        if told:
            call.failure = failure
        most = int((self._clock() - call.started) * 1e6)
        self._over(call, Outcome.INTERNAL_ERROR, max(0, min(cpu_us, most)))
        if told:
            call.caller.on_failure(failure)

    def turn_away(self, call: Call, failure: Failure) -> None:
        """Its handler has not begun and is not to: the engine leaves out a call whose CANCEL comes before its turn."""
        call.failure = failure
        self.cancel(call, ErrorCode.CANCELED)
        call.caller.on_failure(failure)

    def release(self, call: Call) -> Placement:
        """The call never started and goes elsewhere. Only when its worker is gone: the id is free at once."""
        self._forget(call)
        left = call.placement
        assert left is not None
        call.state, call.table, call.placement = QUEUED, None, None
        return left

    def may_have_begun(self, call: Call) -> bool:
        """For a call of an engine that has died."""
        return call.placement is not None and call.placement.ready and self._ledger.begun(call.id)

    def of(self, placement: Placement) -> list[Call]:
        return [call for call in self.calls.values() if call.placement is placement]

    def sweep(self, now: float) -> None:
        """Find the calls that took too long."""
        for call in [call for call in self.calls.values() if call.deadline < now]:
            if call.forced:
                self._abandon(call)
                continue
            told = call.state == SENT
            if told:
                seconds = wall_seconds(call)
                call.failure = Failure(ErrorCode.WALL, f"the worker did not respond within {seconds:g} s")
            self.cancel(call, ErrorCode.WALL)
            if told:
                call.caller.on_failure(call.failure)  # type: ignore[arg-type]  # just set

    # --- what the engine says of a call ---

    def on_response(self, flags: int, worker: int, number: int, data: bytes, start: int, end: int) -> None:
        call = self.calls.get(number)
        if call is None or call.worker != worker:
            raise EngineError(f"RESPONSE for call {number}, which is not under way in worker {worker}")
        status, call.memory_mb, cpu_us, head, body = read_response(data, start, end)
        state = call.state
        if state == CANCELLED:
            if flags & _DONE:
                self._over(call, Outcome.OK, cpu_us)
            return
        if state != SENT or not call.placement.ready:  # type: ignore[union-attr]  # a call in the table has one
            raise EngineError(f"RESPONSE for call {number} out of turn")
        call.status = status
        if flags & _DONE:
            placement = self._forget(call)
            call.state = OVER
            call.caller.on_response(status, head, body, True)  # who may refuse it: the record comes after
            # The two hold each other: letting go here frees both at once, without the garbage collector.
            call.caller = NOBODY
            self._settle(call, placement, _OK, cpu_us)
        elif flags & _END:
            call.state = ENDED
            call.deadline = self._clock() + WAIT_UNTIL_SECONDS
            call.caller.on_response(status, head, body, True)
        else:
            call.state = RESPONDED
            call.deadline = NEVER
            if status == 101:
                self._become_socket(call)
            call.caller.on_response(status, head, body, False)

    def _become_socket(self, call: Call) -> None:
        """A socket may live for days: it takes no place among the calls, but its isolate stays."""
        placement: Placement = call.placement  # type: ignore[assignment]  # a call in the table has one
        if call.version.isolation in (Isolation.CONTEXT, Isolation.ISOLATE):
            return  # one call at a time: the isolate is this call's alone
        self._leave(call, placement)
        call.is_socket = True
        placement.sockets += 1

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
            call.state = ENDED
            call.deadline = self._clock() + WAIT_UNTIL_SECONDS
        call.caller.on_body(data[start:end], ended)

    def on_echo(self, flags: int, worker: int, number: int, data: bytes, start: int, end: int) -> None:
        call = self._find("ECHO", worker, number)
        if call.state == CANCELLED:
            return
        if call.state != RESPONDED or call.ended or call.echo is not None:
            raise EngineError(f"ECHO for call {number} out of turn")
        if call.uploaded:
            return  # the end of the request body crossed it
        call.echo = Echo(call)
        call.echo.on_engine_credit()

    def on_done(self, flags: int, worker: int, number: int, data: bytes, start: int, end: int) -> None:
        if self._is_gone(worker):
            return
        call = self._find("DONE", worker, number)
        cpu_us, outcome = read_done(data, start)
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
        if call.state != ENDED:  # else waitUntil failed: worth a record, but nobody waits
            call.state = ENDED
            call.deadline = self._clock() + WAIT_UNTIL_SECONDS
            call.caller.on_failure(failure)

    def _fail_early(self, call: Call, failure: Failure) -> None:
        """Its code has not ended when told to: whoever waits is told, and whatever comes of it is dropped."""
        if call.state != SENT:
            raise EngineError(f"FAIL before the end for call {call.id}, which was answered")
        call.failure = failure
        call.state = CANCELLED
        call.deadline = self._clock() + CANCEL_SECONDS
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
        if call.echo is not None:
            call.echo.on_engine_credit()

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
        placement = self._forget(call)
        call.state = OVER
        self._settle(call, placement, outcome, cpu_us)

    def _settle(self, call: Call, placement: Placement, outcome: Outcome, cpu_us: int) -> None:
        """The record of a call that is over, and what it adds to the counts."""
        now = self._clock()
        placement.last_used = now
        placement.cpu_us += cpu_us
        placement.tenant.cpu_us += cpu_us
        if not call.silent:
            said = call.failure or call.logs or call.scope or placement.logs or call.cancelled
            wall_us = int((now - call.started) * 1e6)
            if said or not self._skim(call.version, outcome, call.status, cpu_us, wall_us):
                self._record(call.invocation(outcome, cpu_us, now))
        if placement.watched:
            call.owner.on_watched(placement)

    def _forget(self, call: Call) -> Placement:
        number = call.id
        del self.calls[number]
        self._free.append(number)
        placement: Placement = call.placement  # type: ignore[assignment]  # a call in the table has one
        if not call.abandoned:
            self._leave(call, placement)
        if call.scope is not None:
            call.scope.close()
        return placement

    def _leave(self, call: Call, placement: Placement) -> None:
        if call.is_socket:
            placement.sockets -= 1
        else:
            placement.in_flight -= 1
            placement.tenant.in_flight -= 1

    def _abandon(self, call: Call) -> None:
        """The engine does not end the call: its isolate has to go. The id stays taken until that is so."""
        placement = call.placement
        assert placement is not None
        call.deadline = NEVER
        if call.scope is not None:
            call.scope.close()
        if not call.silent:
            self._record(call.invocation(Outcome.EXCEEDED_WALL_TIME, 0, self._clock()))
        call.silent = call.abandoned = True
        self._leave(call, placement)
        call.owner.on_stuck(placement)

    def _stand_in(self, call: Call) -> Placement:
        """Leave a stand-in that waits for DONE under the id of a call which goes elsewhere."""
        ghost = Call(call.version, call.head, b"", True, NOBODY, call.owner, call.started)
        ghost.id, ghost.worker, ghost.table, ghost.placement = call.id, call.worker, self, call.placement
        ghost.uncredited, ghost.silent = call.uncredited, True
        ghost.state, ghost.deadline = CANCELLED, self._clock() + CANCEL_SECONDS
        self.calls[call.id] = ghost
        left = call.placement
        assert left is not None
        call.state, call.table, call.placement = QUEUED, None, None
        return left
