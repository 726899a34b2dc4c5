"""The ops of one engine: each is counted to its call, answered by the broker, and dropped when the call is over."""

from __future__ import annotations

import logging
import re
from time import perf_counter_ns

from atoll.bindings.base import Reply
from atoll.bindings.scope import MAX_HOPS, Scope
from atoll.broker import Broker, Op, Refusal
from atoll.engine.calls import CANCELLED
from atoll.engine.direct import DirectBody
from atoll.engine.link import Link
from atoll.engine.placement import Placement
from atoll.engine.table import CallTable
from atoll.errors import EngineError
from atoll.tallies import OpSpan
from atoll.tracing import trace_of
from atoll.wire.codec import encode_reply, read_op
from atoll.wire.generated import ErrorCode, Flag

log = logging.getLogger("atoll.engine")

MAX_SPANS = 500  # ops of one call that a trace tells of
PENDING_BYTES = 256 << 20  # bodies of ops that wait, of one tenant in one engine; its workers have 64 MB each
MOST_PENDING_BYTES = 1 << 30  # and over all of them, should the engine lie
MAX_UNDER_WAY = 1_024  # ops of one call, those that wait for their turn included; the engine allows 1,000

# What our fetch() tells a server it calls: how many workers have called each other until then.
VIA = re.compile(rb"\ncf-ew-via:[ \t]*(\d{1,4})[ \t]*\r", re.IGNORECASE)

OVER = Refusal(ErrorCode.CANCELED, "the call that asked is over")


class Ops:
    def __init__(self, link: Link, calls: CallTable, broker: Broker, per_call: int) -> None:
        self._link = link
        self._calls = calls
        self._broker = broker
        self._per_call = per_call
        self._by_index: tuple[Op, ...] = ()
        self._pending_bytes = 0
        self._pending_of: dict[str, int] = {}  # of it, each tenant's

    def bind(self, names: tuple[str, ...]) -> None:
        """The op list of the engine's HELLO. EngineError if it is not ours."""
        self._by_index = self._broker.bind(names)

    def begin(self, placement: Placement, number: int, data: bytes, start: int, end: int) -> None:
        """Answer one OP frame of a worker. A call that is over, or is another worker's by now, gets nothing done."""
        index, call_id, meta, body = read_op(data, start, end)
        if index >= len(self._by_index):
            raise EngineError(f"OP {index}, of {len(self._by_index)}")
        worker = placement.load_id
        call = self._calls.calls.get(call_id)
        if call is None or call.worker != worker or call.state == CANCELLED:
            self._reply(worker, number, OVER)
            return
        if call.scope is None:
            hops = call.hops if call.event else max(call.hops, hops_of(call.head))
            call.scope = Scope(call.version, hops, DirectBody(call))
            call.scope.caller = call.within
            call.scope.messages = call.heard
            if self._broker.trace_share:
                trace = call.scope.trace = trace_of(call.head, self._broker.trace_share)
                call.scope.spans = [] if trace.is_kept else None
        pending, line, op = call.scope.pending, call.scope.line, self._by_index[index]
        if number in pending or number in line:
            raise EngineError(f"a second OP {number} while the first waits")
        if len(pending) + len(line) >= MAX_UNDER_WAY:
            message = "too many operations at once in one call: wait for some of them first"
            self._reply(worker, number, Refusal(ErrorCode.QUOTA_EXCEEDED, message))
        elif body and not self._has_room(placement, len(body)):
            message = "too much data is on its way to bindings: wait for some of it first"
            self._reply(worker, number, Refusal(ErrorCode.QUOTA_EXCEEDED, message))
        elif len(pending) >= self._per_call and not op.is_free:  # a free one goes on with another: it may be waited for
            line[number] = (op, meta, body)
            self._hold(placement, len(body))
        else:
            self._run(call.scope, number, op, placement, meta, body)

    def _take_next(self, scope: Scope, placement: Placement) -> None:
        """Begin what waits in line, as far as there is room; or forget it when the call is over."""
        while scope.line and (scope.is_over or len(scope.pending) < self._per_call):
            number = next(iter(scope.line))
            op, meta, body = scope.line.pop(number)
            self._hold(placement, -len(body))
            if not scope.is_over:
                self._run(scope, number, op, placement, meta, body)

    def _run(self, scope: Scope, number: int, op: Op, placement: Placement, meta: bytes, body: bytes) -> None:
        worker = placement.load_id
        began = perf_counter_ns()

        def respond(answer: Reply | Refusal) -> None:
            tally = op.tally
            took_us = (perf_counter_ns() - began) // 1000
            refused = isinstance(answer, Refusal)
            tally.times.add(took_us)
            tally.refused += refused
            scope.ops[op.name] = scope.ops.get(op.name, 0) + 1
            if scope.spans is not None and len(scope.spans) < MAX_SPANS:
                scope.spans.append(OpSpan(op.name, began, took_us, refused))
            if not scope.is_over:  # else the call ended while the op ran
                self._reply(worker, number, answer)

        task = self._broker.answer(op, scope, meta, body, respond)
        if task is None:
            return
        scope.pending[number] = task
        size = len(body)
        self._hold(placement, size)

        def forget(_: object) -> None:
            scope.pending.pop(number, None)
            self._hold(placement, -size)
            self._take_next(scope, placement)

        task.add_done_callback(forget)

    def _has_room(self, placement: Placement, size: int) -> bool:
        pending = self._pending_of.get(placement.version.tenant, 0)
        return pending + size <= PENDING_BYTES and self._pending_bytes + size <= MOST_PENDING_BYTES

    def _hold(self, placement: Placement, size: int) -> None:
        if not size:
            return
        tenant = placement.version.tenant
        self._pending_bytes += size
        left = self._pending_of.get(tenant, 0) + size
        if left:
            self._pending_of[tenant] = left
        else:
            del self._pending_of[tenant]

    def _reply(self, worker: int, number: int, answer: Reply | Refusal) -> None:
        if isinstance(answer, Refusal):
            frame = self._refusal(worker, number, answer)
        else:
            try:
                frame = encode_reply(worker, number, answer.meta, answer.body)
            except (EngineError, TypeError, ValueError, RecursionError) as error:
                log.error("the reply to op %d cannot be sent", number, exc_info=error)
                frame = self._refusal(worker, number, Refusal(ErrorCode.INTERNAL, "internal error"))
        self._link.send(frame)

    def _refusal(self, worker: int, number: int, refusal: Refusal) -> bytes:
        return encode_reply(
            worker, number, {"code": int(refusal.code), "message": refusal.message}, b"", flags=int(Flag.FAIL)
        )


def hops_of(head: bytes) -> int:
    """How many workers led to a request that came in over a socket. Who lies here ends only their own request early:
    more than may be are as many as may be, lest the call is taken for one of a tail worker (QUIET)."""
    found = VIA.search(head)
    return min(int(found[1]), MAX_HOPS) if found is not None else 0
