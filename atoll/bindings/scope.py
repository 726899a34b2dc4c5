"""The state that all ops of one call share: tenant and version, budgets, and open resources.

A binding that gives a worker a lasting resource (a response body, a socket) keeps it here and passes its number to the
worker; later ops find it by that number. When the call ends, for any reason, all resources are closed: none outlives
the call that opened it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from random import getrandbits
from typing import Any, Protocol, TypeVar

from atoll.errors import EngineError, InvalidArgument, LoopDetected, QuotaExceeded
from atoll.tallies import OpSpan
from atoll.tracing import Trace
from atoll.wire.fields import read_json
from atoll.wire.generated import MAX_HOPS
from atoll.workers import Version

log = logging.getLogger("atoll.bindings")

QUIET = 256  # added to the hops of a call that a tail worker made: such calls are not sent to tail workers
MAX_OPEN = 1_000  # resources that one call may hold open


def check_hops(hops: int) -> None:
    """The loop guard: LoopDetected if one more worker would be too many. `hops` is that of the calling scope."""
    if hops % QUIET >= MAX_HOPS:
        raise LoopDetected(f"error 1019: workers called each other {MAX_HOPS} times in one chain: it looks like a loop")


class Closable(Protocol):
    def close(self) -> None:
        """Release it at once, without waiting. Called once, possibly while one of its ops still waits."""


class Cancellable(Protocol):
    def cancel(self) -> object:
        """Cancel it: its result is not needed any more."""


class ResponseBody(Protocol):
    """The response body of a call, for a binding that sends it past the engine (engine/calls/direct_body.py)."""

    async def send(self, chunk: bytes) -> bool:
        """Send a piece once there is credit. False: the response has not begun, is over, or has no reader any more."""

    def takes_file(self, size: int) -> bool:
        """Whether the kernel can send the next `size` bytes to the client from a file."""

    def hand_over(self, socket: object) -> bool:
        """The response is this WebSocket of another worker's object. False: the call is over."""

    async def send_file(self, file: int, span: tuple[int, int], threads: ThreadPoolExecutor) -> bool:
        """Have the kernel send a part of an open file, and close it. False as for `send`; OSError if it cannot be read.

        `threads` read what is not in memory.
        """


class RequestBody(Protocol):
    """The request body of a call, for a binding that takes it past the engine (engine/calls/direct_body.py)."""

    def divert(self) -> int | None:
        """Take what comes from now on. How many bytes the worker gets before; None: it gets all of them."""

    async def read(self) -> bytes:
        """The next bytes; b"" at the end."""

    def stop(self) -> None:
        """The rest is not wanted."""


class Local(Closable, Protocol):
    """Per-call state of a binding, made from the scope of the call."""

    def __init__(self, scope: CallScope) -> None: ...


T = TypeVar("T", bound=Closable)
L = TypeVar("L", bound=Local)


class CallScope:
    __slots__ = (
        "_last",
        "_locals",
        "_open",
        "adopted",
        "caller",
        "external",
        "hops",
        "inside",
        "internal",
        "is_kept",
        "is_over",
        "line",
        "messages",
        "object_key",
        "ops",
        "origin",
        "others",
        "pending",
        "request",
        "response",
        "session",
        "spans",
        "trace",
        "version",
    )

    def __init__(
        self,
        version: Version,
        hops: int = 0,
        response: ResponseBody | None = None,
        request: RequestBody | None = None,
    ) -> None:
        self.version = version
        self.response = response
        self.request = request
        self.hops = hops  # workers in the chain before this call: loops end at a limit
        self.others = ""  # members of CDN-Loop that other nodes wrote (loops.py)
        self.external = 0  # subrequests so far: fetches
        self.internal = 0  # and ops of bindings
        self.messages = 0  # messages received, if the call is a WebSocket: each brings its own budget
        self.object_key: object = None  # the Durable Object that is called (objects/store.py)
        self.caller: CallScope | None = None  # of the caller through a service binding: its budget counts too
        self.session: object = None  # the RPC session through which this call was made (bindings/rpc)
        self.origin: object = None  # the call whose scope this is (engine/calls/call.py)
        self.inside: set[Closable] = set()  # calls inside the engine that it made and that are not over
        self.adopted: object = None  # the call that the op under way began inside the engine (engine/calls/inside.py)
        self.ops: dict[str, int] = {}  # number of replies of each op, for the logs
        self.trace: Trace | None = None  # set if calls are traced
        self.spans: list[OpSpan] | None = None  # spans of its ops, if its trace is kept
        self.is_over = False
        self.is_kept = False  # it has connections of a Durable Object, and stays open after its response
        self.pending: dict[int, Cancellable | None] = {}  # ops in progress, by op id
        self.line: dict[int, tuple[Any, bytes, bytes]] = {}  # ops that wait for their turn, by op id: name, meta, body
        self._open: dict[int, Closable] = {}
        self._last = 0
        self._locals: dict[type[Local], Local] = {}

    def spend(self, *, external: bool = False) -> None:
        """Count one subrequest. QuotaExceeded if the budget of the call, or of a call that led to it, is used up."""
        limits = self.version.limits
        most = limits.subrequests if external else limits.internal_subrequests
        if (self.external if external else self.internal) >= most * (1 + self.messages):
            what, name = ("fetches", "subrequests") if external else ("calls of bindings", "internal_subrequests")
            who = "one request, or one message of a WebSocket," if self.messages else "one request"
            told = f"{who} may make {most} {what}. Raise `limits.{name}` of the worker to allow more."
            raise QuotaExceeded(f"Too many subrequests: {told}")
        if self.caller is not None:
            self.caller.spend(external=external)
        if external:
            self.external += 1
        else:
            self.internal += 1

    def heard(self, is_socket: bool) -> None:
        """A connection that may stay open for long has brought something: as for a WebSocket, that brings a budget."""
        if is_socket and self.is_kept:
            self.messages += 1

    def count_internal(self, count: int) -> None:
        """Count ops that were made without asking, here and for all calls that led to this one."""
        scope: CallScope | None = self
        while scope is not None:
            scope.internal += count
            scope = scope.caller

    def told(self) -> tuple[Mapping[str, int], Sequence[OpSpan], Trace | None, int, int]:
        """The ops of the call, for its log record."""
        return self.ops, self.spans or (), self.trace, self.external + self.internal, self.external

    def local(self, kind: type[L]) -> L:
        """The per-call state of a binding; made on first use, closed with the call."""
        found = self._locals.get(kind)
        if found is None:
            if self.is_over:
                raise InvalidArgument("the call that made this op is over")
            found = self._locals[kind] = kind(self)
        assert isinstance(found, kind)
        return found

    def keep(self, thing: Closable) -> int:
        """Keep a resource open until it is released or the call is over; returns its number."""
        if self.is_over:
            thing.close()
            raise InvalidArgument("the call that made this op is over")
        if len(self._open) >= MAX_OPEN:
            thing.close()
            raise QuotaExceeded(f"more than {MAX_OPEN} things are open in one call: close or read some to their end")
        # Numbers differ between calls: a worker may use a number of one call in another.
        self._last = (self._last or getrandbits(47)) + 1
        self._open[self._last] = thing
        return self._last

    def find(self, number: object, kind: type[T]) -> T:
        """The resource of a number that came from the worker."""
        thing = self._open.get(number) if isinstance(number, int) else None
        if not isinstance(thing, kind):
            raise InvalidArgument("it is closed, or belongs to another request")
        return thing

    def holds(self, meta: bytes) -> bool:
        """Whether the arguments of an op name something that is open here."""
        try:
            fields = read_json(meta)
        except EngineError:
            return True  # the op says what is wrong with them
        return any(isinstance(value, int) and value in self._open for value in fields.values())

    def release(self, number: object) -> None:
        """Close a resource, if it is still open."""
        thing = self._open.pop(number, None) if isinstance(number, int) else None
        if thing is not None:
            thing.close()

    def forget(self, number: int) -> None:
        """Forget a resource that has ended by itself."""
        self._open.pop(number, None)

    def close(self) -> None:
        """The call is over: cancel its ops and close its resources."""
        self.is_over = True
        # Breaks reference cycles that only the garbage collector could free.
        self.response = self.request = self.origin = None
        pending, self.pending = self.pending, {}
        for task in pending.values():
            if task is not None:
                task.cancel()
        things = [*self._open.values(), *self._locals.values(), *self.inside]
        self.inside.clear()
        self._open.clear()
        self._locals.clear()
        for thing in things:
            try:
                thing.close()
            except Exception:
                log.exception("closing %s failed", type(thing).__name__)
