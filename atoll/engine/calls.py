"""One call in flight as its caller holds it: request body in, response credit in, cancel; and its record at the end.

A Call is made by the pool and belongs to one CallTable (table.py), that of the engine it was sent to, from CALL to
DONE. There is no task, future or timer per call: frames drive it, and a sweep finds the ones that are late.

    QUEUED ──► SENT ──► RESPONDED ──► ENDED ──► OVER        ENDED: the response is over, waitUntil may go on
                 └──────────┴──────────► CANCELLED ──► OVER  CANCELLED: whatever comes before DONE is dropped
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final, Protocol

from atoll.bindings.scope import Scope
from atoll.engine.direct import DirectBody
from atoll.engine.echo import Echo
from atoll.engine.placement import Lines, Placement
from atoll.errors import Failure
from atoll.logs import NO_OPS, Invocation, LogLine
from atoll.wire.codec import encode_body, encode_credit
from atoll.wire.generated import CHUNK, ERRORS, WINDOW, ErrorCode, Event, Level, Outcome
from atoll.workers import Version

if TYPE_CHECKING:
    from atoll.engine.table import CallTable

# Plain ints: these are compared for every frame.
QUEUED: Final = 0
SENT: Final = 1
RESPONDED: Final = 2
ENDED: Final = 3
CANCELLED: Final = 4
OVER: Final = 5

WAIT_UNTIL_SECONDS = 30.0  # what waitUntil holds has so long, after the response or when the client has gone
# What an engine has to end a call, and then to end an isolate; after that its thread is stuck and the engine is killed.
# Longer than the most CPU time a worker may be given (30 s): until then its threads may simply be busy.
CANCEL_SECONDS = 45.0
MAX_MOVES: Final = 2  # how often a call that never started may be tried in another engine
EVENT_NAMES: Final = tuple(event.name.lower() for event in Event)
NOTHING_TOLD: Final = (NO_OPS, (), None, 0, 0)  # as Scope.told() of a call without ops
GRANT_BATCH: Final = CHUNK  # credit goes back in steps of this size: a quarter of the window


class Caller(Protocol):
    """Who made a call and hears of it. All methods are called on the event loop, none may block or raise."""

    def on_response(self, status: int, head: bytes, body: bytes, ended: bool) -> None: ...

    def on_body(self, chunk: bytes, ended: bool) -> None: ...

    def on_failure(self, failure: Failure) -> None: ...

    def on_upload_credit(self, amount: int) -> None: ...

    def on_upload_stop(self) -> None: ...


class CallOwner(Protocol):
    """What the pool does for calls."""

    def move(self, call: Call, left: Placement) -> None: ...  # it never started where it was: try elsewhere

    def withdraw(self, call: Call) -> None: ...  # a queued call was cancelled

    def on_watched(self, placement: Placement) -> None: ...  # a call of a watched placement is over

    def on_stuck(self, placement: Placement) -> None: ...  # a call in it does not end: the isolate must


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
        "echo",
        "ended",
        "event",
        "failure",
        "forced",
        "head",
        "heard",
        "hops",
        "id",
        "is_socket",
        "logs",
        "memory_mb",
        "moves",
        "owner",
        "placement",
        "scope",
        "silent",
        "started",
        "state",
        "status",
        "streamed",
        "table",
        "uncredited",
        "ungranted",
        "uploaded",
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
        caller: Caller,
        owner: CallOwner,
        now: float,
        event: int = 0,
        hops: int = 0,
    ) -> None:
        # As it was made; kept so that a call which never started can be sent again
        self.version = version
        self.head = head
        self.body = body
        self.ended = ended
        self.caller = caller
        self.owner = owner
        self.started = now
        self.event = event  # an Event; 0 is fetch
        self.hops = hops
        self.within: Scope | None = None  # that of the call of another worker which made this one
        self.moves = 0

        # Where it is
        self.state = QUEUED
        self.id = 0
        self.worker = 0
        self.table: CallTable | None = None
        self.placement: Placement | None = None
        self.deadline = 0.0
        self.forced = False  # the engine was told to end it at once
        self.abandoned = False  # and did not: counts no more, waits for the end of its isolate

        # Bodies
        self.backlog: list[tuple[bytes, bool]] | None = None  # request body that came while QUEUED
        self.streamed = False  # request body left in BODY frames: cannot be sent again
        self.uploaded = False  # and the last of it has left
        self.uncredited = 0  # request body bytes the engine has not taken yet
        self.allowed = WINDOW  # response body bytes the engine may still send
        self.ungranted = 0  # response body bytes the client took, not yet told to the engine
        self.direct: DirectBody | None = None  # what sends the response body in the place of the engine
        self.echo: Echo | None = None  # what makes the request body the response body in its place

        # For the record
        self.status = 0
        self.memory_mb = 0
        self.failure: Failure | None = None
        self.cancelled = False
        self.is_socket = False  # it became a WebSocket, and counts as one
        self.heard = 0  # messages of it
        self.silent = False  # a stand-in for a call that moved away: no record
        self.logs: Lines | None = None
        self.scope: Scope | None = None  # what its ops share, from the first op on

    def send_body(self, chunk: bytes, ended: bool) -> None:
        """More of the request body. The caller keeps within the credit it was given."""
        state = self.state
        if self.echo is not None:
            if state == RESPONDED:
                self.echo.take(chunk, ended)
        elif state == QUEUED:
            if self.backlog is None:
                self.backlog = []
            self.backlog.append((chunk, ended))
        elif SENT <= state <= ENDED:
            assert self.table is not None
            self.streamed = True
            self.uploaded = ended
            self.uncredited += len(chunk)
            self.table.link.send(encode_body(self.worker, self.id, chunk, ended))

    def hear(self, messages: int) -> None:
        """So many messages have come, for a call that became a WebSocket."""
        self.heard += messages
        if self.scope is not None:
            self.scope.messages = self.heard

    def grant(self, amount: int) -> None:
        """The client took `amount` bytes of the response body: the engine may send as many more."""
        if self.state != RESPONDED:
            return
        if self.echo is not None and self.echo.is_open:
            self.echo.grant(amount)
            return
        if self.direct is not None:
            self.direct.on_grant(amount)
            return
        self.ungranted += amount
        if self.ungranted >= GRANT_BATCH:
            assert self.table is not None
            self.allowed += self.ungranted
            self.table.link.send(encode_credit(self.worker, self.id, self.ungranted))
            self.ungranted = 0

    def cancel(self) -> None:
        """The client is gone: the caller hears nothing more. What waitUntil holds may go on."""
        state = self.state
        self.caller = NOBODY
        if state == QUEUED:
            self.cancelled = True
            self.owner.withdraw(self)
        elif SENT <= state <= RESPONDED:
            assert self.table is not None
            self.cancelled = True
            self.table.cancel(self, ErrorCode.CANCELED)
            if self.direct is not None:
                self.direct.wake()

    def refuse(self, failure: Failure) -> None:
        """What the worker answered cannot be sent: the caller hears nothing more. What waitUntil holds may go on."""
        self.failure, self.status, self.caller = failure, 0, NOBODY
        if SENT <= self.state <= RESPONDED:
            assert self.table is not None
            self.table.cancel(self, ErrorCode.CANCELED)

    def add_log(self, level: Level, timestamp_ms: float, text: str) -> None:
        if self.logs is None:
            self.logs = Lines()
        self.logs.add(level, timestamp_ms, text)

    def movable(self) -> bool:
        """Whether it can be sent to another engine, given that its handler never started."""
        return self.state == SENT and not self.streamed and self.moves < MAX_MOVES

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
        placement = self.placement
        if self.logs is None and (placement is None or placement.logs is None):
            lines: Sequence[LogLine] = ()
            truncated = False
        else:
            lines, truncated = self._said()
        head, event, entrypoint = self.head, EVENT_NAMES[self.event], ""
        if self.event >= Event.RPC:
            head, event, entrypoint = addressed(head, event)
        told = self.scope.told() if self.scope is not None else NOTHING_TOLD
        return Invocation(
            version, outcome, status, cpu_us, int(wall * 1e6), time.time() - wall, head, lines, failure, truncated,
            event, entrypoint, self.hops, *told, self.memory_mb,
        )  # fmt: skip

    def _said(self) -> tuple[Sequence[LogLine], bool]:
        """The console lines of the call, after what top-level code said since the last record."""
        lines: list[LogLine] = []
        truncated = False
        placement = self.placement
        if placement is not None and placement.logs is not None:
            lines += placement.logs.lines
            truncated = placement.logs.truncated
            placement.logs = None
        if self.logs is not None:
            lines += self.logs.lines
            truncated = truncated or self.logs.truncated
        return lines, truncated


@lru_cache(maxsize=256)
def _entrypoint(address: bytes) -> str:
    return str(json.loads(address).get("entrypoint") or "")


def addressed(head: bytes, event: str) -> tuple[bytes, str, str]:
    """Head, event and entry point of a call through a service binding: its second line tells whom it is for.

    A fetch of a named entry point is a fetch as people know it.
    """
    line, _, rest = head.partition(b"\n")
    address, _, block = rest.partition(b"\n")
    name = _entrypoint(address)
    return (head, event, name) if event == "rpc" else (line + b"\n" + block, "fetch", name)


class Nobody:
    """The caller of a call that nobody waits for any more."""

    def on_response(self, status: int, head: bytes, body: bytes, ended: bool) -> None: ...

    def on_body(self, chunk: bytes, ended: bool) -> None: ...

    def on_failure(self, failure: Failure) -> None: ...

    def on_upload_credit(self, amount: int) -> None: ...

    def on_upload_stop(self) -> None: ...


NOBODY: Final = Nobody()
