"""What all ops of one call share: on whose behalf they run, what they may still ask for, and what they hold open.

A binding that gives a worker something lasting (a response body to read, a socket) keeps it here and tells the worker
its number; ops that go on with it find it by that number. When the call is over, in whatever way, all of it is closed:
nothing a worker opened outlives the call that opened it.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, Protocol, TypeVar

from atoll.errors import InvalidArgument, LoopDetected, QuotaExceeded
from atoll.tallies import OpSpan
from atoll.tracing import Trace
from atoll.workers import Version

log = logging.getLogger("atoll.bindings")

QUIET = 256  # added to the hops of a call that a tail worker made: no tail worker is told of it
MAX_HOPS = 16  # workers that may call each other in one chain, over the network too
MAX_OPEN = 1_000  # things one call may hold open


def check_hops(hops: int) -> None:
    """The loop guard: LoopDetected when one more worker would be too many. `hops` is that of the scope that asks."""
    if hops % QUIET >= MAX_HOPS:
        raise LoopDetected(f"error 1019: workers called each other {MAX_HOPS} times in one chain: it looks like a loop")


class Closable(Protocol):
    def close(self) -> None:
        """Let go, at once and without waiting. Called once, possibly while an op of the thing still waits."""


class Cancellable(Protocol):
    def cancel(self) -> object:
        """Nobody waits for it any more."""


class ResponseBody(Protocol):
    """The response body of a call, for a binding that sends it past the engine (engine/direct.py)."""

    async def send(self, chunk: bytes) -> bool:
        """Send a piece, when there is credit. False: the response has not begun, is over, or nobody wants it."""


class Local(Closable, Protocol):
    """What a binding keeps for a whole call is made of its scope."""

    def __init__(self, scope: Scope) -> None: ...


T = TypeVar("T", bound=Closable)
L = TypeVar("L", bound=Local)


class Scope:
    __slots__ = (
        "_last",
        "_locals",
        "_open",
        "caller",
        "external",
        "hops",
        "internal",
        "is_over",
        "line",
        "messages",
        "ops",
        "pending",
        "response",
        "spans",
        "trace",
        "version",
    )

    def __init__(self, version: Version, hops: int = 0, response: ResponseBody | None = None) -> None:
        self.version = version
        self.response = response
        self.hops = hops  # workers that called each other before this call: loops end at a limit
        self.external = 0  # subrequests that were made so far: fetches
        self.internal = 0  # and what was asked of bindings
        self.messages = 0  # that came, where the call is a WebSocket: each brings a budget of its own
        self.caller: Scope | None = None  # of the worker that called through a service binding: its budget counts too
        self.ops: dict[str, int] = {}  # how often each op was answered, for the logs
        self.trace: Trace | None = None  # where calls are traced
        self.spans: list[OpSpan] | None = None  # what its ops took, if its trace is kept
        self.is_over = False
        self.pending: dict[int, Cancellable | None] = {}  # ops under way, by op id
        self.line: dict[int, tuple[Any, bytes, bytes]] = {}  # ops that wait for their turn, by op id: what, meta, body
        self._open: dict[int, Closable] = {}
        self._last = 0
        self._locals: dict[type[Local], Local] = {}

    def spend(self, *, external: bool = False) -> None:
        """Count one subrequest. QuotaExceeded when the call, or one that led to it, has had all of its kind."""
        limits = self.version.limits
        most = limits.subrequests if external else limits.internal_subrequests
        if (self.external if external else self.internal) >= most * (1 + self.messages):
            what, name = ("fetches", "subrequests") if external else ("calls of bindings", "internal_subrequests")
            who = "one request, or one message of a WebSocket," if self.messages else "one request"
            told = f"{who} may make {most} {what}. `limits.{name}` of the worker allows more."
            raise QuotaExceeded(f"Too many subrequests: {told}")
        if self.caller is not None:
            self.caller.spend(external=external)
        if external:
            self.external += 1
        else:
            self.internal += 1

    def told(self) -> tuple[Mapping[str, int], Sequence[OpSpan], Trace | None, int, int]:
        """What the record of the call tells of its ops."""
        return self.ops, self.spans or (), self.trace, self.external + self.internal, self.external

    def local(self, kind: type[L]) -> L:
        """What one kind of binding keeps for the whole call; made when it is first asked for, closed with the call."""
        found = self._locals.get(kind)
        if found is None:
            if self.is_over:
                raise InvalidArgument("the call that asked is over")
            found = self._locals[kind] = kind(self)
        assert isinstance(found, kind)
        return found

    def keep(self, thing: Closable) -> int:
        """Keep something open until it is released or the call is over; returns its number."""
        if self.is_over:
            thing.close()
            raise InvalidArgument("the call that asked is over")
        if len(self._open) >= MAX_OPEN:
            thing.close()
            raise QuotaExceeded(f"more than {MAX_OPEN} things are open in one call: close or read some to their end")
        self._last += 1
        self._open[self._last] = thing
        return self._last

    def find(self, number: object, kind: type[T]) -> T:
        """What was kept under a number that came from the worker."""
        thing = self._open.get(number) if isinstance(number, int) else None
        if not isinstance(thing, kind):
            raise InvalidArgument("it is closed already")
        return thing

    def release(self, number: object) -> None:
        """Close one thing, if it is still open."""
        thing = self._open.pop(number, None) if isinstance(number, int) else None
        if thing is not None:
            thing.close()

    def forget(self, number: int) -> None:
        """One thing has ended by itself."""
        self._open.pop(number, None)

    def close(self) -> None:
        """The call is over: drop the ops under way and close what is open."""
        self.is_over = True
        self.response = None  # it knows the call, which knows this: a ring that only the garbage collector could free
        pending, self.pending = self.pending, {}
        for task in pending.values():
            if task is not None:
                task.cancel()
        things = [*self._open.values(), *self._locals.values()]
        self._open.clear()
        self._locals.clear()
        for thing in things:
            try:
                thing.close()
            except Exception:
                log.exception("closing %s failed", type(thing).__name__)
