"""What a node has for its bindings to work with. Each takes of it what it needs, in its constructor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from msgspec import Struct

from atoll.bindings.queue.store import QueueStore
from atoll.bindings.scope import Scope
from atoll.config import Settings
from atoll.db.sqlite import Database
from atoll.egress.gate import Gate
from atoll.errors import Failure
from atoll.workers import Version


class InnerRequest(NamedTuple):
    """What a worker is called with. `head` is that of a CALL frame."""

    version: Version
    head: bytes
    body: bytes = b""
    ended: bool = True  # else more of the body follows by `write`
    hops: int = 0  # of the scope that asks
    event: int = 0
    within: Scope | None = None  # the scope that asks, if what the worker asks for counts as its own


class InnerResponse(NamedTuple):
    """What a worker answered: `head` is that of a RESPONSE frame. Both come from an engine: check them."""

    status: int
    head: bytes


class InnerCall(Protocol):
    """A call of a worker by another one of this node, under way. Close it when nothing of it is wanted any more."""

    async def response(self) -> InnerResponse:
        """Status and header lines. CalleeFailed when the call ended without them."""

    @property
    def answer(self) -> InnerResponse | Failure | None:
        """The same, or how the call ended without it; None: it is not known yet."""

    def listen(self, listener: Callable[[], None]) -> None:
        """Who is told, once, when `answer` is known or the call was closed."""

    async def read(self) -> bytes:
        """More of the response body; b"" at its end. CalleeFailed when it broke off. One read at a time."""

    def read_nowait(self) -> bytes:
        """What of the response body is here already."""

    @property
    def at_end(self) -> bool:
        """Whether all of the response body has come and was read."""

    async def write(self, chunk: bytes, ended: bool) -> bool:
        """More of the request body; returns when there is room for the next. False: the worker wants no more of it."""

    def hear(self, messages: int) -> None:
        """What is written next holds so many messages of a WebSocket."""

    def leave(self, last: bytes, seconds: float) -> None:
        """Send the last of the request body and wait for nothing: what comes is dropped, and it ends in time."""

    def close(self) -> None: ...


class MethodCall(InnerCall, Protocol):
    """A call of a method of another worker, under way. `answer` has come when its value has begun to come."""

    on_end: Callable[[], None] | None  # called when it is over: streams in its value have been sent by then
    thrown: dict[str, Any]  # what besides name and message is told of an exception that it threw

    def value_nowait(self) -> bytes | None:
        """What the method returned, if all of it is here."""

    async def value(self) -> bytes:
        """What the method returned. CalleeFailed if it threw, or ended in another way."""


class InnerCalls(Protocol):
    """Calls between the workers of this node, past every socket (engine/inner.py).

    LoopDetected when too many workers have called each other. All else that goes wrong is the call's answer.
    """

    def start(self, request: InnerRequest) -> InnerCall: ...

    def method(self, request: InnerRequest) -> MethodCall: ...


class Workers(Protocol):
    """Which workers there are (control/deploy.py)."""

    def find_worker(self, tenant: str, name: str) -> Version | None:
        """The active version of a worker of a tenant."""


class Routes(Protocol):
    """Which version answers on a host and path of this node (router.py)."""

    def find(self, host: bytes, target: bytes) -> Version | None: ...


class Services(Struct, frozen=True):
    settings: Settings
    database: Database
    routes: Routes
    inner: InnerCalls
    queues: QueueStore
    workers: Workers
    gate: Gate
