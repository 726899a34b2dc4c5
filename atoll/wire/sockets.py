"""WebSockets without I/O: converts between the bytes of a connection and a worker's messages, as client or server.

incoming.py and outgoing.py handle the frames of the protocol; the `websockets` package does the handshake and its
negotiation. Messages travel to and from an engine like the body of a call or a fetch, with the same back-pressure, in
frames of Atoll's own:

    u8 kind (1 text, 2 binary, 3 close), u32 length, bytes; of a close u16 code, reason

Both ends are untrusted. An error of the peer ends its socket. Data that no worker could send was forged by an engine
and raises BadMessage.
"""

from __future__ import annotations

import struct
from typing import Final

from atoll.wire.incoming import CLOSE_CODES, NO_STATUS, Broken, Incoming
from atoll.wire.outgoing import CLOSE_KIND, BadMessage, Outgoing, read_head

__all__ = ["BadMessage", "Codec", "FrameCheck", "pack_close", "pack_message", "read_close"]

CLOSE_SECONDS = 10.0  # seconds for the peer to answer a close, and for the worker to end its call afterwards
GOING_AWAY, ABNORMAL, INTERNAL_ERROR, TRY_LATER = 1001, 1006, 1011, 1013
MAX_REASON: Final = 123  # bytes

_HEAD: Final = struct.Struct("<BI")
_HEAD_SIZE: Final = 5
_CODE: Final = struct.Struct("<H")
_WIRE_CODE: Final = struct.Struct(">H")


def pack_close(code: int, reason: str = "") -> bytes:
    """The frame that reports a close to a worker, or to the other end of an inner call."""
    payload = _CODE.pack(code) + _cut(reason)
    return _HEAD.pack(CLOSE_KIND, len(payload)) + payload


def pack_message(kind: int, payload: bytes) -> bytes:
    return _HEAD.pack(kind, len(payload)) + payload


def read_close(payload: bytes) -> tuple[int, str]:
    """Code and reason of a close from an engine or for one."""
    code = _CODE.unpack_from(payload)[0] if len(payload) >= _CODE.size else NO_STATUS
    return code, payload[_CODE.size :].decode("utf-8", "ignore")


def _cut(reason: str) -> bytes:
    """The reason of a close, cut to the allowed length."""
    data = reason.encode("utf-8", "replace")
    return data if len(data) <= MAX_REASON else data[:MAX_REASON].decode("utf-8", "ignore").encode()


class FrameCheck:
    """Checks messages that go from one engine to another: none may claim to be longer than the limit."""

    __slots__ = ("_head", "_left", "has_closed", "messages")

    def __init__(self) -> None:
        self.messages = 0  # that have begun so far
        self.has_closed = False
        self._head = b""  # the beginning of an incomplete header
        self._left = 0  # bytes of a message that are still to come

    @property
    def is_between(self) -> bool:
        """Whether the last message is complete."""
        return not self._left and not self._head

    def look(self, chunk: bytes) -> bytes:
        """Return the chunk if it is valid. Raises BadMessage otherwise."""
        size = len(chunk)
        at = min(self._left, size)
        self._left -= at
        if self._head and at < size:
            missing = _HEAD_SIZE - len(self._head)
            head = self._head + chunk[at : at + missing]
            if len(head) < _HEAD_SIZE:
                self._head = head
                return chunk
            self._head = b""
            at = self._skip(head, 0, at + missing, size)
        while at < size:
            start = at + _HEAD_SIZE
            if size < start:
                self._head = chunk[at:]
                break
            at = self._skip(chunk, at, start, size)
        return chunk

    def _skip(self, head: bytes, at: int, start: int, size: int) -> int:
        """The end of the message whose content begins at `start`, or the end of the chunk."""
        kind, length = read_head(head, at)
        end = start + length
        self.messages += 1
        self.has_closed = self.has_closed or kind == CLOSE_KIND
        if end <= size:
            return end
        self._left = end - size
        return size


class Codec:
    """The protocol of one WebSocket.

    `feed` it the received bytes, then `step` until it `is_hungry`, and forward the results of each step. After every
    method call, write `outgoing`, and close the connection if `is_over`.
    """

    __slots__ = ("_broken", "_incoming", "_is_client", "_outgoing", "has_told", "is_manual", "is_over")

    def __init__(self, is_client: bool, their_window: int, our_window: int) -> None:
        """`is_client`: this side is the client. The windows are those of permessage-deflate in bits, 0 without it."""
        self._is_client = is_client
        self._incoming = Incoming(not is_client, their_window)
        self._outgoing = Outgoing(is_client, our_window)
        self._broken = ""  # the peer's error
        self.is_manual = False  # the worker answers the peer's close
        self.has_told = False  # the worker knows that the peer has closed
        self.is_over = False  # this side must close the connection

    @property
    def is_open(self) -> bool:
        """Neither side has closed."""
        return self._outgoing.is_open

    @property
    def is_hungry(self) -> bool:
        """All received bytes are read."""
        return self._incoming.is_hungry

    @property
    def held(self) -> int:
        """Received bytes that are buffered."""
        return self._incoming.held

    def allow_unmasked(self) -> None:
        """Read frames of a client that has not masked them: the first one of `wrangler tail` is such a frame."""
        self._incoming.is_strict = False

    # --- the peer ---

    def feed(self, data: bytes) -> None:
        """Add received bytes. After a close they are dropped."""
        if self._incoming.close is None and not self._broken and not self.is_over:
            self._incoming.feed(data)

    def step(self, now: float) -> int:
        """Read some of the received bytes. Returns the number of messages for `take`."""
        incoming = self._incoming
        incoming.messages = 0
        try:
            incoming.step(now)
        except Broken as broken:
            self.fail(broken.code, broken.reason)
        if incoming.close is not None:
            self._on_close(incoming.close[2])
        return incoming.messages

    def take(self) -> list[bytes | bytearray]:
        """The results of the last step, for the worker. Nothing follows a close."""
        incoming = self._incoming
        found, incoming.found = incoming.found, []
        if self.has_told:
            return []
        if incoming.close is not None or self._broken:
            found.append(self.tell_close())
        return found

    def _on_close(self, payload: bytes) -> None:
        self._incoming.ping = None
        if self.is_manual and self._outgoing.is_open:
            return
        self._outgoing.close(payload)
        if not self._is_client:  # a client waits for the server to close the connection
            self.is_over = True

    def fail(self, code: int, reason: str) -> None:
        """Close because of an error of the peer."""
        self._broken = self._broken or reason
        self._incoming.drop()
        self._incoming.ping = None
        self._outgoing.close(_WIRE_CODE.pack(code) + _cut(reason))
        if not self._is_client:
            self.is_over = True

    def tell_close(self) -> bytes:
        """The peer's close, for the worker; b"" once the worker has it."""
        if self.has_told:
            return b""
        self.has_told = True
        close = self._incoming.close
        if close is not None and not self._broken:
            return pack_close(close[0], close[1])
        return pack_close(ABNORMAL, self._broken)

    def answer_ping(self) -> None:
        """Answer the latest ping. Call it only when the connection can write: a client may ping and never read."""
        incoming = self._incoming
        if incoming.ping is not None and not self.is_over:
            self._outgoing.pong(incoming.ping)
            incoming.ping = None

    # --- the worker ---

    def speak(self, chunk: bytes) -> None:
        """Handle data from the engine. Raises BadMessage if no worker could send it."""
        outgoing = self._outgoing
        outgoing.speak(chunk)
        if outgoing.said_close is not None:
            self.close(outgoing.said_close[0] or NO_STATUS, outgoing.said_close[1])

    # --- Atoll itself ---

    def close(self, code: int, reason: str = "") -> None:
        """Start the close, unless it has begun."""
        if code == NO_STATUS:
            payload = b""
        elif code in CLOSE_CODES or 3000 <= code < 5000:
            payload = _WIRE_CODE.pack(code) + _cut(reason)
        else:  # an invalid code: the JavaScript half rejects it, so the engine forged it
            payload = _WIRE_CODE.pack(INTERNAL_ERROR)
        self._outgoing.close(payload)
        if self._incoming.close is not None and not self._is_client:
            self.is_over = True  # the peer has closed before

    def ping(self) -> None:
        self._outgoing.ping()

    def end(self) -> None:
        """The peer has closed the connection."""
        self._outgoing.is_open = False
        self.is_over = True

    def outgoing(self) -> bytes:
        """What is to be written."""
        return self._outgoing.take()
