"""The caller of a call inside the engine, as Python sees it (inside.py)."""

from __future__ import annotations

from typing import Final, Protocol

from atoll.bindings.scope import CallScope
from atoll.bindings.services import InnerRequest
from atoll.broker import Op
from atoll.engine.calls.call import CANCELLED, NOBODY, SENT, Call
from atoll.engine.calls.isolate_state import IsolateState
from atoll.errors import EngineError, Failure
from atoll.wire.generated import ErrorCode
from atoll.wire.inner import InnerParts

LOST: Final = Failure(ErrorCode.UNAVAILABLE, "the worker was unloaded before the call began")


class InsideOps(Protocol):
    """What the engine's calls do for one of their callers (inside.py)."""

    def run_op(self, caller: InsideCaller) -> None: ...

    def count_answer(self, caller: InsideCaller) -> None: ...


class InsideCaller:
    """Listens to a call inside the engine, as long as nothing is to be done for its caller but to account."""

    __slots__ = ("_calls", "call", "op", "parts", "scope")

    def __init__(self, calls: InsideOps, scope: CallScope, op: Op, parts: InnerParts, call: Call) -> None:
        self._calls = calls
        self.scope = scope
        self.op = op
        self.parts = parts
        self.call = call

    def take_over(self) -> None:
        """Run the op that began the call. From now on its binding is the caller."""
        call, scope = self.call, self.scope
        scope.inside.discard(self)
        call.caller = NOBODY
        if scope.is_over:
            call.cancel()
            return
        scope.count_internal(-1)  # the op counts itself
        scope.adopted = call
        try:
            self._calls.run_op(self)
        finally:
            scope.adopted = None
        self._check_taken()

    def _check_taken(self) -> None:
        """Not in take_over(): there mypyc would take the caller for what it was before."""
        if self.call.caller is NOBODY:  # the op was refused
            self.call.cancel()

    def answered(self) -> None:
        self.scope.inside.discard(self)
        self._calls.count_answer(self)

    def never_began(self) -> None:
        """The caller makes the call again, over Python."""
        self.scope.inside.discard(self)
        self.scope.count_internal(-1)

    def drop_reply(self) -> None:
        """The engine answers the op that has taken the call over."""
        pending = self.scope.pending.get(self.parts.op_id)
        if pending is not None:
            pending.cancel()

    def close(self) -> None:
        """The call that made this one is over."""
        self.call.cancel()

    def on_response(self, status: int, head: bytes, body: bytes, ended: bool) -> None:
        self.take_over()
        self.call.caller.on_response(status, head, body, ended)

    def on_body(self, chunk: bytes, ended: bool) -> None: ...

    def on_failure(self, failure: Failure) -> None:
        self.take_over()
        self.call.caller.on_failure(failure)

    def on_upload_credit(self, amount: int) -> None: ...

    def on_upload_stop(self) -> None: ...


def take_over_all(scope: CallScope) -> None:
    """An op is about to use what its calls inside the engine have begun."""
    for caller in list(scope.inside):
        if isinstance(caller, InsideCaller):
            caller.take_over()


def answered_inside(call: Call, first: InsideCaller | None, status: int, is_empty: bool) -> None:
    """RESPONSE says that the engine gave the response to the caller."""
    caller = call.caller
    if first is None or not is_empty:
        raise EngineError(f"RESPONSE for call {call.id}, which is not inside the engine")
    call.caller = NOBODY
    if caller is first:
        first.answered()
    elif call.state == SENT:  # an op has taken it over: it ends, without its reply
        first.drop_reply()
        caller.on_response(status, b"", b"", True)


def never_began(call: Call, first: InsideCaller | None) -> None:
    """DONE says that a call came too late: its isolate is unloaded. The caller makes it again, over Python."""
    if first is None or call.state not in (SENT, CANCELLED):
        raise EngineError(f"DONE for call {call.id}, which began")
    caller, call.caller = call.caller, NOBODY
    if caller is first:
        first.never_began()
    else:  # an op has taken it over: it ends, without its reply
        first.drop_reply()
        caller.on_failure(LOST)


def maker_of(request: InnerRequest) -> Call | None:
    """The call that makes a request which later may go without Python."""
    made = request.within.origin if request.way is not None and request.within is not None else None
    return made if isinstance(made, Call) else None


def near_to(made: Call | None) -> IsolateState | None:
    """The isolate that a callee is best loaded with."""
    return made.isolate if made is not None else None


def adopted_by(scope: CallScope | None) -> Call | None:
    """The call that the engine has begun for the op under way."""
    if scope is None or not isinstance(scope.adopted, Call):
        return None
    call, scope.adopted = scope.adopted, None
    return call


def offer_route(made: Call | None, request: InnerRequest, call: object) -> None:
    """`made` has made `call`: if both are in one engine, later calls may stay there."""
    if made is None or request.way is None or request.version.assets is not None:
        return
    if isinstance(call, Call) and call.port is not None and call.port is made.port:  # a file answers without an isolate
        call.port.offer(made, request.way, call)
