"""Back-pressure in both directions, so that slow clients and slow workers use bounded memory.

Upload: at most WINDOW bytes of a request body are in flight to a worker. Beyond that the socket is not read. Download:
a worker may send WINDOW bytes before it needs credit, and credit is granted only while the transport's write buffer has
room. Engines are not trusted: credit never exceeds WINDOW, whatever an engine sends.

A tenant with very many connections gets smaller windows (atoll/holdings.py).
"""

from __future__ import annotations

from collections import deque
from typing import Final, Protocol

from atoll.holdings import Holdings
from atoll.wire.generated import CHUNK, WINDOW

# Each grant wakes the engine, and smaller ones cost more than they gain. A tenant that holds much gets them in steps.
GRANT_AT: Final = WINDOW // 2
GRANT_STEP: Final = WINDOW // 4

# Bytes of an unwanted body that are read and dropped to keep the connection alive.
DISCARD: Final = 1 << 20


class BodySink(Protocol):
    """The half of a call that takes a request body."""

    unsent: int  # bytes that it has taken and still holds in this process

    def send_body(self, chunk: bytes, ended: bool) -> None: ...


class SocketSink(Protocol):
    """The half of a call that takes messages."""

    def send_body(self, chunk: bytes, ended: bool) -> None: ...


class Granter(Protocol):
    """The half of a call that receives credit for response bodies."""

    def grant(self, amount: int) -> None: ...


class ClientUpload:
    """A request body on its way to a call."""

    __slots__ = ("call", "credit", "dropped", "is_complete", "is_stopped", "waiting")

    def __init__(self, call: BodySink) -> None:
        self.call = call
        self.credit = WINDOW
        self.waiting = b""
        self.is_complete = False  # the client has sent the whole body
        self.is_stopped = False  # the worker does not want the rest
        self.dropped = 0  # bytes that arrived after that

    @property
    def is_full(self) -> bool:
        return bool(self.waiting) or self.dropped > DISCARD

    @property
    def held(self) -> int:
        """Bytes of the body in this process."""
        return len(self.waiting) + self.call.unsent

    def take(self, chunk: bytes, ended: bool) -> None:
        if self.is_stopped:
            self.dropped += len(chunk)
            return
        self.waiting += chunk
        self.is_complete = ended
        self.send()

    def add_credit(self, amount: int) -> None:
        self.credit = min(self.credit + max(amount, 0), WINDOW)
        if self.waiting:
            self.send()

    def send(self) -> None:
        """Send what credit allows. The last piece is flagged as the last."""
        data, self.waiting = self.waiting, b""  # `send_body` may add credit, which must not send this again
        at = 0
        while True:
            piece = data[at : at + min(CHUNK, self.credit)]
            at += len(piece)
            ended = self.is_complete and at == len(data)
            if not piece and not ended:
                break
            self.credit -= len(piece)
            self.call.send_body(piece, ended)
            if ended or self.is_stopped:
                break
        self.waiting = b"" if self.is_stopped else data[at:]

    def stop(self) -> None:
        self.is_stopped = True
        self.waiting = b""


class Messages:
    """WebSocket messages on their way to a call. Long messages are cut when they are sent, without a copy before."""

    __slots__ = ("_at", "_waiting", "call", "credit", "is_complete", "size", "window")

    def __init__(self, call: SocketSink, window: int = WINDOW) -> None:
        self.call = call
        self.credit = self.window = window
        self.size = 0  # bytes that wait
        self.is_complete = False  # no message follows the waiting ones
        self._waiting: deque[bytes | bytearray] = deque()
        self._at = 0  # bytes sent of the first message

    @property
    def is_full(self) -> bool:
        return self.size > 0

    @property
    def held(self) -> int:
        """Bytes that wait here or are in flight to the worker."""
        return self.size + self.window - self.credit

    def take(self, found: list[bytes | bytearray], ended: bool) -> None:
        """Queue messages. All but the last are short."""
        if self.is_complete:
            return
        if len(found) > 1 and len(found[-1]) <= CHUNK:
            found = [b"".join(found)]
        for message in found:
            self.size += len(message)
            self._waiting.append(message)
        self.is_complete = ended
        self.send()

    def add_credit(self, amount: int) -> None:
        self.credit = min(self.credit + max(amount, 0), self.window)
        if self.size:
            self.send()

    def send(self) -> None:
        """Send what credit allows. The last piece is flagged as the last."""
        while self._waiting and self.credit:
            first = self._waiting[0]
            at = self._at
            whole = len(first)
            size = min(CHUNK, self.credit, whole - at)
            is_all = size == whole and isinstance(first, bytes)
            piece = bytes(first) if is_all else bytes(memoryview(first)[at : at + size])
            self._at = at + size
            if self._at == whole:
                self._waiting.popleft()
                self._at = 0
            self.size -= size
            self.credit -= size
            self.call.send_body(piece, self.is_complete and not self._waiting)

    def drop(self) -> None:
        """Discard the waiting messages."""
        self._waiting.clear()
        self.size = 0
        self._at = 0


class ClientDownload:
    """A response body on its way to the client."""

    __slots__ = ("call", "holdings", "is_paused", "owed", "tenant", "waiting")

    def __init__(self, call: Granter, is_paused: bool, holdings: Holdings, tenant: str) -> None:
        self.call = call
        self.holdings = holdings
        self.tenant = tenant
        self.owed = 0  # bytes handed to the transport and not granted yet
        self.waiting = 0  # bytes that the transport gets at the end of this turn (Shared.send_part)
        self.is_paused = is_paused

    def written(self) -> None:
        """The transport has what waited."""
        waiting, self.waiting = self.waiting, 0
        self.sent(waiting)

    def sent(self, amount: int) -> None:
        self.owed += amount
        if self.owed >= GRANT_AT and not self.is_paused:
            self.grant()

    def grant(self) -> None:
        owed = self.owed
        if owed > GRANT_STEP and self.holdings.is_tight(self.tenant):
            owed = GRANT_STEP  # the window stays this small until the tenant has room again
        self.owed -= owed
        if owed:
            self.call.grant(owed)

    @property
    def expected(self) -> int:
        """Bytes that the worker may still send without being asked."""
        return max(WINDOW - self.owed - self.waiting, 0)

    def pause(self) -> None:
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False
        self.grant()
