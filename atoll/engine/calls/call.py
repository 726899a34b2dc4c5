"""One call in flight, as its caller holds it: send the request body, grant response credit, cancel.

The pool makes a Call. From CALL to DONE it belongs to the CallTable (call_table.py) of the engine it was sent to. A
call has no task, future or timer: frames drive it, and a sweep finds the calls that take too long. At the end it
becomes an invocation record.

    QUEUED ──► SENT ──► RESPONDED ──► ENDED ──► OVER        ENDED: the response is over, waitUntil may go on
                 └──────────┴──────────► CANCELLED ──► OVER  CANCELLED: frames before DONE are dropped
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import Final, Protocol

from atoll.bindings.scope import CallScope
from atoll.bindings.services import ServiceWay
from atoll.engine.calls.isolate_state import ConsoleLines, IsolateState
from atoll.engine.link.link import Link
from atoll.errors import Failure
from atoll.logs import NO_OPS, Invocation, LogLine
from atoll.wire.codec import encode_credit
from atoll.wire.generated import CHUNK, ERRORS, WINDOW, ErrorCode, Event, Level, Outcome
from atoll.workers import Version

# The states are plain ints, because they are compared for every frame.
QUEUED: Final = 0
SENT: Final = 1
RESPONDED: Final = 2
ENDED: Final = 3
CANCELLED: Final = 4
OVER: Final = 5

WAIT_UNTIL_SECONDS = 30.0  # the limit of waitUntil, after the response is over or the client has disconnected
# The time an engine has to end a call, and then to end an isolate. After that its thread is stuck and the engine is
# killed. Longer than the highest CPU limit of a worker (30 s): until then its threads may simply be busy.
CANCEL_SECONDS = 45.0
MAX_MOVES: Final = 2  # how often a call that never started may be sent to another engine
NOTHING_TOLD: Final = (NO_OPS, (), None, 0, 0)  # as CallScope.told() of a call without ops
GRANT_BATCH: Final = CHUNK  # credit goes back in steps of this size: a quarter of the window


class CallListener(Protocol):
    """Receives the answer to a call. All methods are called on the event loop; none may block or raise."""

    def on_response(self, status: int, head: bytes, body: bytes, ended: bool) -> None: ...

    def on_body(self, chunk: bytes, ended: bool) -> None: ...

    def on_failure(self, failure: Failure) -> None: ...

    def on_upload_credit(self, amount: int) -> None: ...

    def on_upload_stop(self) -> None: ...


class CallOwner(Protocol):
    """What the pool does for calls."""

    def move(self, call: Call, left: IsolateState) -> None: ...  # it never started: send it to another isolate

    def withdraw(self, call: Call) -> None: ...  # a queued call was cancelled

    def on_backlog(self, call: Call, change: int) -> None: ...  # a queued call holds more, or less, of its body

    def on_watched(self, isolate: IsolateState) -> None: ...  # a call of a watched isolate is over

    def on_stuck(self, isolate: IsolateState) -> None: ...  # a call in it cannot be ended: unload the isolate


class OutputHolder(Protocol):
    """A Durable Object, as its calls see it (objects/live_object.py)."""

    is_gated: bool  # what its calls send has to wait until its commits are durable

    @property
    def key(self) -> object: ...  # of its storage


class SocketCall(Protocol):
    """What the client's end of a WebSocket uses of the call that the socket is."""

    def send_body(self, chunk: bytes, ended: bool) -> None: ...

    def hear(self, messages: int) -> None: ...

    def grant(self, amount: int) -> None: ...

    def cancel(self) -> None: ...


class HandedSocket(SocketCall, Protocol):
    """A WebSocket that outlives its call (objects/held_socket.py): it takes the place of the call with the response."""

    is_manual: bool  # the worker answers a close of the client
    via: Call | None  # the call whose response it is, until its client has it

    @property
    def window(self) -> int: ...  # the credit that its client begins with

    def adopt(self, caller: CallListener) -> None: ...  # this is the client's end from now on

    def release(self, unread: bytes) -> None: ...  # a worker passes it on


class DirectSender(Protocol):
    """Sends the response body in place of the engine (direct_body.py)."""

    def on_grant(self, amount: int) -> None: ...

    def wake(self) -> None: ...


class BodyTaker(Protocol):
    """Takes the request body in place of the engine (direct_body.py)."""

    def take(self, chunk: bytes, ended: bool) -> None: ...

    def wake(self) -> None: ...


class CallPort:
    """The engine that a call was sent to, as far as the call uses it. CallTable implements it."""

    def __init__(self, link: Link) -> None:
        self.link = link

    def send_body(self, call: Call, chunk: bytes, ended: bool) -> None:
        raise NotImplementedError

    def cancel(self, call: Call, code: ErrorCode) -> None:
        raise NotImplementedError

    def offer(self, made: Call, way: ServiceWay, call: Call) -> None:
        """`made` has made `call`, in the same engine: later calls like it may stay there."""
        raise NotImplementedError


class Call:
    """One call in flight, as its caller holds it."""

    __slots__ = (
        "abandoned",
        "allowed",
        "backlog",
        "body",
        "caller",
        "cancelled",
        "deadline",
        "direct",
        "diverted",
        "ended",
        "event",
        "failure",
        "forced",
        "handed",
        "has_sent_all",
        "head",
        "hops",
        "id",
        "is_socket",
        "isolate",
        "logs",
        "memory_mb",
        "messages",
        "moves",
        "object",
        "owner",
        "port",
        "scope",
        "sent_up",
        "session",
        "silent",
        "started",
        "state",
        "status",
        "streamed",
        "uncredited",
        "ungranted",
        "unsent",
        "version",
        "within",
        "worker",
    )

    def __init__(
        self,
        version: Version,
        head: bytes,
        body: bytes,
        ended: bool,
        caller: CallListener,
        owner: CallOwner,
        now: float,
        event: int = 0,
        hops: int = 0,
    ) -> None:
        # The request, kept so that a call that never started can be sent again
        self.version = version
        self.head = head
        self.body = body
        self.ended = ended
        self.caller = caller
        self.owner = owner
        self.started = now
        self.event = event  # an Event; 0 is fetch
        self.hops = hops
        self.within: CallScope | None = None  # the scope of the call that made this one, if another worker did
        self.session: object = None  # the RPC session of a method call (bindings/rpc)
        self.moves = 0
        self.object: OutputHolder | None = None  # the object that it goes to: it may run only where that lives

        # Where it runs
        self.state = QUEUED
        self.id = 0
        self.worker = 0
        self.port: CallPort | None = None
        self.isolate: IsolateState | None = None
        self.deadline = 0.0
        self.forced = False  # the engine was told to end it at once
        self.abandoned = False  # the engine did not: no longer counted, ends with its isolate

        # Bodies
        self.backlog: list[tuple[bytes, bool]] | None = None  # request body that came while QUEUED
        self.unsent = 0  # bytes of it that wait, here or for room in the engine's socket
        self.streamed = False  # BODY frames were sent: the call cannot be sent again
        self.sent_up = 0  # bytes in them
        self.has_sent_all = False  # and the last of them was among them
        self.diverted: BodyTaker | None = None  # gets the rest of the request body in place of the engine
        self.uncredited = 0  # request body bytes that the engine has not consumed yet
        self.allowed = WINDOW  # response body bytes the engine may still send
        self.ungranted = 0  # response body bytes that the client consumed, not yet credited to the engine
        self.direct: DirectSender | None = None
        self.handed: HandedSocket | None = None  # what its caller gets in its place with a response of status 101

        # For the record
        self.status = 0
        self.memory_mb = 0
        self.failure: Failure | None = None
        self.cancelled = False
        self.is_socket = False  # it became a WebSocket, and counts as one
        self.messages = 0  # WebSocket messages received
        self.silent = False  # a stand-in for a call that was moved: it makes no record
        self.logs: ConsoleLines | None = None
        self.scope: CallScope | None = None  # shared by its ops; made with the first op

    def send_body(self, chunk: bytes, ended: bool) -> None:
        """Send more of the request body. The caller stays within its credit."""
        state = self.state
        if state == QUEUED:
            if self.backlog is None:
                self.backlog = []
            self.backlog.append((chunk, ended))
            self.unsent += len(chunk)
            self.owner.on_backlog(self, len(chunk))
        elif SENT <= state <= ENDED:
            assert self.port is not None
            if self.diverted is not None:
                self.diverted.take(chunk, ended)
                return
            self.streamed = True
            self.sent_up += len(chunk)
            self.has_sent_all = ended
            self.uncredited += len(chunk)
            self.port.send_body(self, chunk, ended)

    def take_backlog(self) -> list[tuple[bytes, bool]]:
        """What came of the request body while the call was QUEUED. It is no longer held here."""
        backlog, self.backlog = self.backlog or [], None
        unsent, self.unsent = self.unsent, 0
        self.owner.on_backlog(self, -unsent)
        return backlog

    def hear(self, messages: int) -> None:
        """Count messages of a call that became a WebSocket."""
        self.messages += messages
        if self.scope is not None:
            self.scope.messages = self.messages

    def grant(self, amount: int) -> None:
        """The client consumed `amount` bytes of the response body: the engine may send as many more."""
        if self.state != RESPONDED:
            return
        if self.direct is not None:
            self.direct.on_grant(amount)
            return
        self.ungranted += amount
        if self.ungranted >= GRANT_BATCH:
            assert self.port is not None
            self.allowed += self.ungranted
            self.port.link.send(encode_credit(self.worker, self.id, self.ungranted))
            self.ungranted = 0

    def cancel(self) -> None:
        """The client has disconnected: the caller is not called again. waitUntil may go on."""
        state = self.state
        self.caller = NOBODY
        if state == QUEUED:
            self.cancelled = True
            self.owner.withdraw(self)
        elif SENT <= state <= RESPONDED:
            assert self.port is not None
            self.cancelled = True
            self.port.cancel(self, ErrorCode.CANCELED)
            if self.direct is not None:
                self.direct.wake()
            if self.diverted is not None:
                self.diverted.wake()

    def refuse(self, failure: Failure) -> None:
        """The response cannot be sent to the client: the caller is not called again. waitUntil may go on."""
        self.failure, self.status, self.caller = failure, 0, NOBODY
        if SENT <= self.state <= RESPONDED:
            assert self.port is not None
            self.port.cancel(self, ErrorCode.CANCELED)

    def add_log(self, level: Level, timestamp_ms: float, text: str) -> None:
        if self.logs is None:
            self.logs = ConsoleLines()
        self.logs.add(level, timestamp_ms, text)

    def movable(self) -> bool:
        """Whether it can be sent to another engine, provided that its handler never started."""
        return self.state == SENT and not self.streamed and self.moves < MAX_MOVES and self.object is None

    def invocation(self, outcome: Outcome, cpu_us: int, now: float) -> Invocation:
        version = self.version
        failure = self.failure
        status = self.status
        if self.cancelled:
            outcome = Outcome.CANCELED
            status = status or ERRORS[ErrorCode.CANCELED].status
        elif failure is not None:
            outcome = failure.facts.outcome
            status = status or failure.facts.status
        wall = now - self.started
        isolate = self.isolate
        if self.logs is None and (isolate is None or isolate.logs is None):
            lines: Sequence[LogLine] = ()
            truncated = False
        else:
            lines, truncated = self._said()
        head, event, entrypoint = self.recorded()
        told = self.scope.told() if self.scope is not None else NOTHING_TOLD
        return Invocation(
            version, outcome, status, cpu_us, int(wall * 1e6), time.time() - wall, head, lines, failure, truncated,
            event, entrypoint, self.hops, *told, self.memory_mb,
        )  # fmt: skip

    def recorded(self) -> tuple[bytes, str, str]:
        """Head, event and entry point as logs show them. A fetch of a named entry point is a fetch."""
        if not self.event:
            return self.head, "fetch", ""
        if self.event < Event.RPC:
            name, _, head = self.head.partition(b" ")
            return head, name.decode("ascii"), ""
        line, _, rest = self.head.partition(b"\n")
        address, _, block = rest.partition(b"\n")
        if self.event == Event.RPC:
            return self.head, "rpc", _entrypoint(address)
        return line + b"\n" + block, "fetch", _entrypoint(address)

    def _said(self) -> tuple[Sequence[LogLine], bool]:
        """The console lines of top-level code since the last record, then those of the call."""
        lines: list[LogLine] = []
        truncated = False
        isolate = self.isolate
        if isolate is not None and isolate.logs is not None:
            lines += isolate.logs.lines
            truncated = isolate.logs.truncated
            isolate.logs = None
        if self.logs is not None:
            lines += self.logs.lines
            truncated = truncated or self.logs.truncated
        return lines, truncated


@lru_cache(maxsize=256)
def _entrypoint(address: bytes) -> str:
    return str(json.loads(address).get("entrypoint") or "")


class Nobody:
    """The caller of a call whose answer is no longer wanted."""

    def on_response(self, status: int, head: bytes, body: bytes, ended: bool) -> None: ...

    def on_body(self, chunk: bytes, ended: bool) -> None: ...

    def on_failure(self, failure: Failure) -> None: ...

    def on_upload_credit(self, amount: int) -> None: ...

    def on_upload_stop(self) -> None: ...


NOBODY: Final = Nobody()
