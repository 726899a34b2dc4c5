"""The output gate of one engine: frames of objects whose commits are not durable yet wait.

It is put before the handlers of a session when the first object opens there. Engines without objects are not slower.

On a node among others, nothing of an object leaves after the lease of the node has ended: another node may have the
object by then. `check_lease` ends all objects in that case; of a frame that comes then, only the end of a call counts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from atoll.engine.loaded.engine_session import EngineSession
from atoll.engine.objects.live_object import LiveObject
from atoll.wire.codec import Handler
from atoll.wire.generated import Frame

# Console lines are free, and what the engine has read of a request body is no output.
GATED: Final = (Frame.RESPONSE, Frame.BODY, Frame.FAIL, Frame.DONE)


def install(session: EngineSession, check_lease: Callable[[], None] | None = None) -> None:
    handlers = session.handlers()
    gated = {kind: _gated(session, handlers[kind]) for kind in GATED}
    gated[Frame.OP] = _gated_op(session, handlers[Frame.OP])
    if check_lease is not None:
        gated = {kind: _leased(check_lease, handler) for kind, handler in gated.items()}

    def long_op(worker: int, number: int, head: bytes, body: bytes) -> None:
        if check_lease is not None:
            check_lease()
        _long_op(session, worker, number, head, body)

    session.link.use(handlers | gated, long_op)


def _leased(check: Callable[[], None], handler: Handler) -> Handler:
    def handle(flags: int, worker: int, number: int, data: bytes, start: int, end: int) -> None:
        check()
        handler(flags, worker, number, data, start, end)

    return handle


def _call_of(data: bytes, start: int) -> int:
    """The call of an OP, after u16 op and u16 zero. The handler checks the rest of the frame."""
    return int.from_bytes(data[start + 4 : start + 8], "little")


def _gate_of(session: EngineSession, worker: int, number: int) -> LiveObject | None:
    call = session.calls.calls.get(number)
    if call is None or call.object is None or not call.object.is_gated or call.worker != worker:
        return None
    assert isinstance(call.object, LiveObject)
    return call.object


def _gated(session: EngineSession, handler: Handler) -> Handler:
    def handle(flags: int, worker: int, number: int, data: bytes, start: int, end: int) -> None:
        gate = _gate_of(session, worker, number)
        if gate is None:
            handler(flags, worker, number, data, start, end)
        else:
            gate.hold(handler, flags, worker, number, data[start:end])

    return handle


def _gated_op(session: EngineSession, handler: Handler) -> Handler:
    def handle(flags: int, worker: int, number: int, data: bytes, start: int, end: int) -> None:
        gate = _gate_of(session, worker, _call_of(data, start))
        if gate is None:
            handler(flags, worker, number, data, start, end)
        else:
            gate.hold(handler, flags, worker, number, data[start:end])

    return handle


def _long_op(session: EngineSession, worker: int, number: int, head: bytes, body: bytes) -> None:
    gate = _gate_of(session, worker, _call_of(head, 0))
    if gate is None:
        session.on_long_op(worker, number, head, body)
    else:
        gate.hold_step(lambda: session.on_long_op(worker, number, head, body), len(head) + len(body))
