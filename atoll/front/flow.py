"""Back-pressure both ways, so that neither a slow client nor a slow worker grows our memory.

Upload: at most WINDOW bytes of a request body are on their way to a worker that has not taken them; past that the
socket is not read. Download: a worker may send WINDOW bytes before we grant more, and we grant only what the
transport's write buffer has room for. The engine is hostile: it cannot talk itself into more credit than WINDOW.
"""

from __future__ import annotations

from typing import Final, Protocol

from atoll.wire.generated import CHUNK, WINDOW

# Below this, sending credit back costs more than it brings.
GRANT_STEP: Final = WINDOW // 4

# Bytes of a body nobody wants that are read and dropped to keep a connection alive.
DISCARD: Final = 1 << 20


class BodySink(Protocol):
    """The half of a call that takes a request body."""

    def send_body(self, chunk: bytes, ended: bool) -> None: ...


class Granter(Protocol):
    """The half of a call that is told how much response body has gone out."""

    def grant(self, amount: int) -> None: ...


class Upload:
    """A request body on its way to a call."""

    __slots__ = ("call", "credit", "dropped", "is_complete", "is_stopped", "waiting")

    def __init__(self, call: BodySink) -> None:
        self.call = call
        self.credit = WINDOW
        self.waiting = b""
        self.is_complete = False  # every byte is here, in `waiting` or sent
        self.is_stopped = False  # the worker does not want the rest,
        self.dropped = 0  # of which so much came all the same

    @property
    def is_full(self) -> bool:
        return bool(self.waiting) or self.dropped > DISCARD

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
        """Send what credit allows. The last piece says that it is the last."""
        data, self.waiting = self.waiting, b""  # what is sent may bring credit before it is all sent
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


class Download:
    """A response body on its way to the client."""

    __slots__ = ("call", "is_paused", "owed")

    def __init__(self, call: Granter, is_paused: bool) -> None:
        self.call = call
        self.owed = 0  # bytes handed to the transport and not granted yet
        self.is_paused = is_paused

    def sent(self, amount: int) -> None:
        self.owed += amount
        if not self.is_paused and self.owed >= GRANT_STEP:
            self.grant()

    def grant(self) -> None:
        owed, self.owed = self.owed, 0
        if owed:
            self.call.grant(owed)

    def pause(self) -> None:
        self.is_paused = True

    def resume(self) -> None:
        self.is_paused = False
        self.grant()
