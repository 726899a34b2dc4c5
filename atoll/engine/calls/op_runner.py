"""Runs the ops of one engine. Each op counts to its call, is answered by the broker, and is dropped with the call."""

from __future__ import annotations

import logging
from time import perf_counter_ns

from atoll.bindings.base import Reply
from atoll.bindings.loops import read_loops
from atoll.bindings.scope import CallScope
from atoll.broker import Broker, Op, OpRefusal
from atoll.engine.calls.call import CANCELLED, Call
from atoll.engine.calls.call_table import CallTable
from atoll.engine.calls.direct_body import DirectBody, DirectUpload
from atoll.engine.calls.inside_caller import InsideCaller, take_over_all
from atoll.engine.calls.isolate_state import IsolateState
from atoll.engine.link.link import Link
from atoll.errors import EngineError
from atoll.tallies import OpSpan
from atoll.tracing import trace_of
from atoll.wire.codec import encode_reply, encode_reply_head
from atoll.wire.generated import INNER_CALLS, OPS_PER_CALL, ErrorCode, Flag

log = logging.getLogger("atoll.engine")

MAX_SPANS = 500  # ops of one call in a trace
PENDING_BYTES = 256 << 20  # bodies of pending ops, of one tenant in one engine; each of its workers has 64 MB
MOST_PENDING_BYTES = 1 << 30  # the same over all tenants, in case the engine is compromised
LARGE = 256 << 10  # reply bodies above this size are not copied
MAX_UNDER_WAY = OPS_PER_CALL + 24  # ops of one call, including those in line; the engine refuses more

CALL_OVER = OpRefusal(ErrorCode.CANCELED, "the call that asked is over")


class OpRunner:
    def __init__(self, link: Link, calls: CallTable, broker: Broker, per_call: int) -> None:
        self._link = link
        self._calls = calls
        self._broker = broker
        self._per_call = per_call
        self._by_index: tuple[Op, ...] = ()
        self._pending_bytes = 0
        self._pending_of: dict[str, int] = {}  # by tenant

    def bind(self, names: tuple[str, ...]) -> None:
        """The op list of the engine's HELLO. EngineError if it is not ours."""
        self._by_index = self._broker.bind(names)

    def begin(self, isolate: IsolateState, number: int, index: int, call_id: int, meta: bytes, body: bytes) -> None:
        """Run the op of one OP frame. It is refused if its call is over, or the id belongs to another worker by now."""
        op = self.op(index)
        worker = isolate.load_id
        call = self._calls.calls.get(call_id)
        if call is None or call.worker != worker or call.state == CANCELLED:
            self._reply(worker, number, CALL_OVER)
            return
        scope = self.scope_of(call)
        if op.continues and (scope.inside or call.id >= INNER_CALLS):
            self._take_over(call, scope)
        pending, line = scope.pending, scope.line
        if number in pending or number in line:
            raise EngineError(f"a second OP {number} while the first waits")
        if len(pending) + len(line) >= MAX_UNDER_WAY:
            message = "too many operations at once in one call: wait for some of them first"
            self._reply(worker, number, OpRefusal(ErrorCode.QUOTA_EXCEEDED, message))
        elif body and not self._has_room(isolate, len(body)):
            message = "too much data is on its way to bindings: wait for some of it first"
            self._reply(worker, number, OpRefusal(ErrorCode.QUOTA_EXCEEDED, message))
        elif len(pending) >= self._per_call and not op.is_free:  # another op may wait for a free one
            line[number] = (op, meta, body)
            self._hold(isolate, len(body))
        else:
            self.run(scope, number, op, isolate, meta, body)

    def op(self, index: int) -> Op:
        if index >= len(self._by_index):
            raise EngineError(f"OP {index}, of {len(self._by_index)}")
        return self._by_index[index]

    @property
    def is_traced(self) -> bool:
        """Whether some calls are traced: then each of their ops is timed."""
        return self._broker.trace_share > 0

    def scope_of(self, call: Call) -> CallScope:
        """The scope of a call; made with its first op."""
        if call.scope is None:
            hops, others = (0, "") if call.event else read_loops(call.head)
            call.scope = CallScope(call.version, max(call.hops, hops), DirectBody(call), DirectUpload(call))
            call.scope.origin = call
            call.scope.caller = call.within
            call.scope.object_key = call.object.key if call.object is not None else None
            call.scope.session = call.session
            call.scope.others = others or (call.within.others if call.within is not None else "")
            call.scope.messages = call.messages
            if self._broker.trace_share:
                trace = call.scope.trace = trace_of(call.head, self._broker.trace_share)
                call.scope.spans = [] if trace.is_kept else None
        return call.scope

    @staticmethod
    def _take_over(call: Call, scope: CallScope) -> None:
        """An op is about to use what was begun inside the engine: the fetches and RPC sessions of a call, or the
        session that it was called through."""
        if isinstance(call.caller, InsideCaller):
            call.caller.take_over()
            scope.session = call.session
        if scope.inside:
            take_over_all(scope)

    def _take_next(self, scope: CallScope, isolate: IsolateState) -> None:
        """Run the next ops in line while there is room. When the call is over, drop them."""
        while scope.line and (scope.is_over or len(scope.pending) < self._per_call):
            number = next(iter(scope.line))
            op, meta, body = scope.line.pop(number)
            self._hold(isolate, -len(body))
            if not scope.is_over:
                self.run(scope, number, op, isolate, meta, body)

    def run(self, scope: CallScope, number: int, op: Op, isolate: IsolateState, meta: bytes, body: bytes) -> None:
        worker = isolate.load_id
        began = perf_counter_ns()

        def respond(answer: Reply | OpRefusal) -> None:
            tally = op.tally
            took_us = (perf_counter_ns() - began) // 1000
            refused = isinstance(answer, OpRefusal)
            tally.times.add(took_us)
            tally.refused += refused
            scope.ops[op.name] = scope.ops.get(op.name, 0) + 1
            if scope.spans is not None and len(scope.spans) < MAX_SPANS:
                scope.spans.append(OpSpan(op.name, began, took_us, refused))
            if not scope.is_over:
                self._reply(worker, number, answer)

        task = self._broker.answer(op, scope, meta, body, respond)
        if task is None:
            return
        scope.pending[number] = task
        self._broker.storing += op.keeps_data
        size = len(body)
        self._hold(isolate, size)

        def forget(_: object) -> None:
            scope.pending.pop(number, None)
            self._broker.storing -= op.keeps_data
            self._hold(isolate, -size)
            self._take_next(scope, isolate)

        task.add_done_callback(forget)

    def _has_room(self, isolate: IsolateState, size: int) -> bool:
        pending = self._pending_of.get(isolate.version.tenant, 0)
        return pending + size <= PENDING_BYTES and self._pending_bytes + size <= MOST_PENDING_BYTES

    def _hold(self, isolate: IsolateState, size: int) -> None:
        if not size:
            return
        tenant = isolate.version.tenant
        self._pending_bytes += size
        left = self._pending_of.get(tenant, 0) + size
        if left:
            self._pending_of[tenant] = left
        else:
            del self._pending_of[tenant]

    def _reply(self, worker: int, number: int, answer: Reply | OpRefusal) -> None:
        if isinstance(answer, OpRefusal):
            frame = self._refusal(worker, number, answer)
        else:
            body = answer.body
            try:
                if len(body) > LARGE:  # sent after its head, without a copy
                    self._link.send_pieces([encode_reply_head(worker, number, answer.meta, len(body)), body])
                    return
                frame = encode_reply(worker, number, answer.meta, body)
            except (EngineError, TypeError, ValueError, RecursionError) as error:
                log.error("the reply to op %d cannot be sent", number, exc_info=error)
                frame = self._refusal(worker, number, OpRefusal(ErrorCode.INTERNAL, "internal error"))
        self._link.send(frame)

    def _refusal(self, worker: int, number: int, refusal: OpRefusal) -> bytes:
        return encode_reply(
            worker, number, {"code": int(refusal.code), "message": refusal.message}, b"", flags=int(Flag.FAIL)
        )
