"""Calls that one isolate of an engine makes to another without Python (engine/src/worker/routes.h).

Python decides which: a call through a service binding that came this way and met its callee in the same engine opens a
route (ROUTE). From then on the engine posts such calls itself and announces each of them (INNER). A call that was
announced is a call like any other: it counts, has a deadline and a scope, and gets a record. Most are over when they
are announced.

The answer of a call stays in the engine if it is whole, small and no error. Any other takes the usual way: RESPONSE or
FAIL comes here, and the op that began the call is run as if it had come by OP, except that its call exists already
(`InsideCaller.take_over`). So streams, stubs, errors and limits have one implementation.

A call of a Durable Object goes through its door (doors.py). It stays in the engine only while neither the caller nor
the callee, if they are objects, has a commit that is not durable. Otherwise the call or its answer takes the usual way,
and waits at the output gate (objects/output_gate.py).

The engine is not trusted: it may announce only calls over routes that were opened here, so caller and callee are of one
tenant and are loaded in this engine.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, cast

from atoll.bindings.scope import QUIET, CallScope
from atoll.bindings.services import ServiceWay
from atoll.broker import Op
from atoll.engine.calls.call import NOBODY, SENT, Call
from atoll.engine.calls.call_table import CallTable, wall_seconds
from atoll.engine.calls.doors import OPEN, Doors, HasDoor
from atoll.engine.calls.inside_caller import InsideCaller
from atoll.engine.calls.isolate_state import IsolateState
from atoll.engine.calls.op_runner import OpRunner
from atoll.engine.link.link import Link
from atoll.errors import EngineError
from atoll.logs import Invocation, Skim
from atoll.wire.generated import INNER_CALLS, MAX_HOPS, Flag
from atoll.wire.inner import InnerParts, encode_no_route, encode_route, read_inner
from atoll.workers import Isolation

MOST_ROOM: Final = 1_000  # calls inside the engine that one isolate has at a time
MOST_ROUTES: Final = 1_000  # of one isolate, closed ones included
MOST_OBJECT_ROUTES: Final = 5_000  # the same, with those to objects
_DONE: Final = int(Flag.DONE)


class InnerRoute:
    """A service binding of one isolate, or an object, and the isolate that its calls go to."""

    __slots__ = ("callee", "caller", "holder", "most", "name", "number")

    def __init__(
        self,
        number: int,
        name: bytes,
        caller: IsolateState,
        callee: IsolateState,
        most: int,
        holder: HasDoor | None,
    ) -> None:
        self.number = number
        self.name = name
        self.caller = caller
        self.callee = callee
        self.most = most
        self.holder = holder  # the object, if it leads to one


class InsideCalls:
    """The calls inside one engine."""

    def __init__(
        self,
        link: Link,
        calls: CallTable,
        ops: OpRunner,
        record: Callable[[Invocation], None],
        skim: Skim,
        clock: Callable[[], float],
    ) -> None:
        self._link = link
        self._calls = calls
        self._ops = ops
        self._record = record
        self._skim = skim
        self._clock = clock
        self._last = 0
        self.is_off = False  # every call comes over Python
        self.doors = Doors(link, clock, self._drop)
        # Closed routes are kept as long as both isolates are: calls over them may still be announced.
        self._routes: dict[int, InnerRoute] = {}
        self._kept: dict[IsolateState, set[InnerRoute]] = {}  # the same by caller and by callee
        self._open: dict[tuple[int, bytes], InnerRoute] = {}  # open ones, by load id of the caller and binding,
        self._to: dict[IsolateState, set[InnerRoute]] = {}  # and by callee

    # --- routes ---

    def offer(self, made: Call, way: ServiceWay, call: Call) -> None:
        """`made` has called `call` through a binding, over Python. Open a route if later calls need not."""
        if made.isolate is not None and call.isolate is not None:
            self.connect(made.isolate, way, call.isolate, cast("HasDoor | None", call.object))

    def connect(
        self, caller: IsolateState, way: ServiceWay, callee: IsolateState, holder: HasDoor | None = None
    ) -> None:
        """Open a route, unless something speaks against it."""
        version, tenant = callee.version, callee.tenant
        most = MOST_ROUTES if holder is None else MOST_OBJECT_ROUTES
        if (caller.load_id, way.name) in self._open or len(self._kept.get(caller, ())) >= most:
            return
        may = (
            callee.ready
            and callee.room > 0
            and not callee.draining
            and tenant is caller.tenant
            and tenant.fast_calls > 0  # a rate or a budget of CPU time is checked for each call
            and version.assets is None
            and not self._ops.is_traced
            and not self.is_off
            and (holder is None or holder.takes_inside)
            and all(each.version.isolation in (Isolation.POOL, Isolation.PROCESS) for each in (caller, callee))
        )
        if not may:
            return
        self._last += 1
        room = min(callee.room, tenant.fast_calls, MOST_ROOM)
        route = InnerRoute(
            self._last, way.name, caller, callee, 4 * room + 64, holder
        )  # ends may come later than beginnings
        self._routes[route.number] = self._open[caller.load_id, way.name] = route
        self._to.setdefault(callee, set()).add(route)
        for each in (caller, callee):
            self._kept.setdefault(each, set()).add(route)
        slot, address = 0, way.address
        if holder is not None:
            holder.door = OPEN
            holder.routes.add(route)
            slot, address = holder.slot, holder.address()
        numbers = (route.number, callee.load_id, slot, room, caller.version.limits.internal_subrequests)
        self._link.send(encode_route(caller.load_id, numbers, way.name, way.is_named, way.entry, address, way.zone))

    def close_to(self, callee: IsolateState) -> None:
        """Calls of an isolate come over Python from now on."""
        for route in self._to.pop(callee, ()):
            self._close(route)

    def close_named(self, tenant: str, worker_name: str) -> None:
        """The same for calls of a worker, or of all workers of the tenant if the name is empty."""
        for callee in list(self._to):
            version = callee.version
            if version.tenant == tenant and version.worker_name == (worker_name or version.worker_name):
                self.close_to(callee)

    def _close(self, route: InnerRoute) -> None:
        key = route.caller.load_id, route.name
        if self._open.get(key) is route:
            del self._open[key]
            self._link.send(encode_no_route(route.caller.load_id, route.name))

    def _drop(self, holder: HasDoor) -> None:
        """The door of an object is shut: no call over its routes can be announced any more."""
        for route in cast("set[InnerRoute]", holder.routes):
            self._close(route)
            self._routes.pop(route.number, None)
            for table in (self._kept, self._to):
                for each in (route.caller, route.callee):
                    if each in table:
                        table[each].discard(route)
        holder.routes.clear()

    def forget(self, isolate: IsolateState) -> None:
        """An isolate is gone."""
        self.close_to(isolate)
        for route in self._kept.pop(isolate, ()):
            self._routes.pop(route.number, None)
            other = route.caller if route.callee is isolate else route.callee
            for table in (self._kept, self._to):
                if other in table:
                    table[other].discard(route)
            self._close(route)
            if route.holder is not None:
                route.holder.routes.discard(route)

    # --- frames ---

    def on_inner(self, flags: int, worker: int, number: int, data: bytes, start: int, end: int) -> None:
        parts = read_inner(data, start, end)
        route = self._routes.get(parts.route)
        made = self._calls.calls.get(parts.callers_call)
        if (
            route is None
            or route.callee.load_id != worker
            or route.caller.load_id != parts.caller
            or made is None
            or made.isolate is not route.caller
            or number < INNER_CALLS
            or number in self._calls.calls
        ):
            raise EngineError(f"INNER for call {number} of worker {worker}, which cannot be")
        op = self._ops.op(parts.op)
        scope = self._ops.scope_of(made)
        scope.count_internal(1)
        now = self._clock()
        callee = route.callee
        callee.last_inner = now
        holder = route.holder
        if flags & _DONE:
            self._count(scope, op, parts.wall_us)
            if holder is not None:
                holder.entered(None, now)
            callee.last_used = now
            callee.cpu_us += parts.cpu_us
            callee.tenant.cpu_us += parts.cpu_us
            version = callee.version
            is_plain = callee.logs is None and self._skim(
                version, parts.outcome, parts.status, parts.cpu_us, parts.wall_us
            )
            if not is_plain:
                call = self._call(made, scope, route, parts, now - parts.wall_us / 1e6)
                self._record(call.invocation(parts.outcome, parts.cpu_us, now))
            if callee.watched:
                made.owner.on_watched(callee)
            return
        if callee.inner >= route.most:
            raise EngineError(f"more than {route.most} calls inside the engine for worker {worker}")
        call = self._call(made, scope, route, parts, now)
        caller = InsideCaller(self, scope, op, parts, call)
        call.caller = self._calls.inside[number] = caller
        self._adopt(call, callee, number, now + wall_seconds(call))
        scope.inside.add(caller)
        if holder is not None:
            holder.entered(call, now)
        if scope.hops % QUIET >= MAX_HOPS:  # the engine knows only its own part of the chain
            caller.take_over()

    def _adopt(self, call: Call, callee: IsolateState, number: int, deadline: float) -> None:
        """Enter a call into the table, as if it had been sent."""
        self._calls.calls[number] = call
        call.id = number
        call.port = self._calls
        call.state = SENT
        call.deadline = deadline
        callee.in_flight += 1
        callee.inner += 1
        callee.tenant.in_flight += 1

    def _call(self, made: Call, scope: CallScope, route: InnerRoute, parts: InnerParts, started: float) -> Call:
        callee, holder = route.callee, route.holder
        owner = made.owner if holder is None else holder.owner
        call = Call(callee.version, parts.head, b"", True, NOBODY, owner, started, parts.event, scope.hops + 1)
        call.object = holder
        call.isolate = callee
        call.worker = callee.load_id
        call.within = scope
        call.status = parts.status
        call.memory_mb = parts.memory_mb
        call.streamed = True  # its body is in the engine: it cannot be sent to another one
        return call

    @staticmethod
    def _count(scope: CallScope, op: Op, wall_us: int) -> None:
        op.tally.times.add(wall_us)
        scope.ops[op.name] = scope.ops.get(op.name, 0) + 1

    # --- for callers ---

    def count_answer(self, caller: InsideCaller) -> None:
        self._count(caller.scope, caller.op, int((self._clock() - caller.call.started) * 1e6))

    def run_op(self, caller: InsideCaller) -> None:
        made = caller.scope.origin
        assert isinstance(made, Call) and made.isolate is not None
        self._ops.run(caller.scope, caller.parts.op_id, caller.op, made.isolate, caller.parts.meta, b"")
