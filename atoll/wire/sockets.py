"""WebSockets without I/O: between the bytes of a connection and the messages of a worker, for either side of it.

The protocol (frames, masks, fragments, pings, deflate, closing) is the `websockets` package's. Messages travel to and
from an engine where a call or a fetch has bodies, as a stream of frames of our own, under the same back-pressure:

    u8 kind (1 text, 2 binary, 3 close), u32 length, bytes; of a close u16 code, reason

Both ends are strangers. What the other side of the connection does wrong ends its socket; what no worker would send
was made up by an engine, and raises BadMessage.
"""

from __future__ import annotations

import logging
import struct

from websockets.exceptions import ProtocolError
from websockets.extensions.base import Extension
from websockets.frames import Frame, Opcode
from websockets.protocol import CLIENT, SERVER, Protocol, Side, State

__all__ = ["CLIENT", "SERVER", "BadMessage", "Codec", "FrameCheck", "pack_close"]

QUIET_LOG = logging.getLogger("atoll.websockets")  # the package tells of every connection
QUIET_LOG.setLevel(logging.CRITICAL)

MAX_MESSAGE = 32 << 20
CLOSE_SECONDS = 10.0  # for the other side to answer a close, and for the worker to end its call afterwards
GOING_AWAY, NO_STATUS, ABNORMAL, INVALID_TEXT, INTERNAL_ERROR = 1001, 1005, 1006, 1007, 1011

_TEXT, _BINARY, _CLOSE = 1, 2, 3
_HEAD = struct.Struct("<BI")
_CODE = struct.Struct("<H")
_NOTHING = bytearray()  # never written to: an idle socket has no buffers of its own


class BadMessage(ValueError):
    """An engine sent what is no message."""


def pack_close(code: int, reason: str = "") -> bytes:
    """The frame that tells a worker, or the other end of an inner call, of a close."""
    payload = _CODE.pack(code) + reason.encode()
    return _HEAD.pack(_CLOSE, len(payload)) + payload


class FrameCheck:
    """Looks at messages that go from one engine to another: none may claim to be longer than one may be."""

    __slots__ = ("_head", "_left", "messages")

    def __init__(self) -> None:
        self.messages = 0  # that have begun so far
        self._head = b""  # the beginning of a head that is not whole
        self._left = 0  # bytes of a message that are still to come

    def look(self, chunk: bytes) -> bytes:
        """The chunk, if it goes on as it should. BadMessage otherwise."""
        at = min(self._left, len(chunk))
        self._left -= at
        while at < len(chunk):
            start = at - len(self._head)
            head = self._head + chunk[at : start + _HEAD.size]
            if len(head) < _HEAD.size:
                self._head = head
                break
            self._head = b""
            kind, length = _HEAD.unpack(head)
            if kind not in (_TEXT, _BINARY, _CLOSE) or length > MAX_MESSAGE:
                raise BadMessage("the engine sent what is no message")
            self.messages += 1
            end = start + _HEAD.size + length
            self._left = max(0, end - len(chunk))
            at = min(end, len(chunk))
        return chunk


class Codec:
    """The protocol of one WebSocket. After each method, what `outgoing` has is to be written."""

    __slots__ = ("_kind", "_message", "_spoken", "has_told", "messages", "protocol")

    def __init__(self, side: Side, extensions: list[Extension]) -> None:
        self.protocol = Protocol(side, max_size=MAX_MESSAGE, logger=QUIET_LOG)
        self.protocol.extensions = extensions
        self.messages = 0  # that the last `receive` gave
        self.has_told = False  # the worker knows that the other side has closed
        self._kind = _TEXT
        self._message = _NOTHING  # fragments of a message
        self._spoken = _NOTHING  # what an engine sent of a frame that is not whole

    @property
    def is_open(self) -> bool:
        """Neither side has closed."""
        return self.protocol.state is State.OPEN

    @property
    def is_closing(self) -> bool:
        """A close was sent, and the connection should end soon."""
        return self.protocol.state is State.CLOSING

    # --- the other side of the connection ---

    def receive(self, data: bytes) -> bytes:
        """What came on the connection; returns what that is to the worker. With a close, nothing follows it."""
        protocol = self.protocol
        self.messages = 0
        protocol.receive_data(data)
        found = [self._take(event) for event in protocol.events_received() if isinstance(event, Frame)]
        if protocol.parser_exc is not None:
            found.append(self.tell_close())
        return b"".join(found)

    def _take(self, event: Frame) -> bytes:
        opcode = event.opcode
        if opcode is Opcode.CLOSE:
            return self.tell_close()
        if opcode is Opcode.PING or opcode is Opcode.PONG:
            return b""
        if opcode is not Opcode.CONT:
            self._kind = _TEXT if opcode is Opcode.TEXT else _BINARY
        if event.fin and not self._message:
            return self._deliver(event.data)
        if self._message is _NOTHING:
            self._message = bytearray()
        self._message += event.data
        if not event.fin:
            return b""
        message, self._message = self._message, _NOTHING
        return self._deliver(message)

    def _deliver(self, message: bytes | bytearray | memoryview) -> bytes:
        if self.has_told:
            return b""
        if self._kind == _TEXT:
            try:
                str(message, "utf-8")
            except UnicodeDecodeError:
                self.protocol.fail(INVALID_TEXT, "a text message is not UTF-8")
                return self.tell_close()
        self.messages += 1
        return _HEAD.pack(self._kind, len(message)) + message

    def tell_close(self) -> bytes:
        """How the other side closed, for the worker, which is told once; b"" if it knows."""
        if self.has_told:
            return b""
        self.has_told = True
        protocol = self.protocol
        close = protocol.close_rcvd
        if close is not None and protocol.parser_exc is None:
            return pack_close(close.code, close.reason)
        broken = protocol.parser_exc
        return pack_close(ABNORMAL, str(broken)[:120] if isinstance(broken, ProtocolError) else "")

    # --- the worker ---

    def speak(self, chunk: bytes) -> None:
        """What an engine sent. BadMessage if no worker would."""
        data = self._spoken if self._spoken else bytearray()
        data += chunk
        at = 0
        while len(data) >= at + _HEAD.size:
            kind, length = _HEAD.unpack_from(data, at)
            if kind not in (_TEXT, _BINARY, _CLOSE) or length > MAX_MESSAGE:
                raise BadMessage("the engine sent what is no message")
            end = at + _HEAD.size + length
            if len(data) < end:
                break
            self._say(kind, bytes(data[at + _HEAD.size : end]))
            at = end
        del data[:at]
        self._spoken = data if data else _NOTHING

    def _say(self, kind: int, payload: bytes) -> None:
        if not self.is_open:
            return
        if kind == _CLOSE:
            code = _CODE.unpack_from(payload)[0] if len(payload) >= _CODE.size else NO_STATUS
            self.close(code, payload[_CODE.size : 125].decode("utf-8", "ignore"))
        elif kind == _TEXT:
            self.protocol.send_text(payload)
        else:
            self.protocol.send_binary(payload)

    # --- ourselves ---

    def close(self, code: int, reason: str = "") -> None:
        """Begin to close, unless that has begun."""
        if not self.is_open:
            return
        try:
            self.protocol.send_close(None if code == NO_STATUS else code, "" if code == NO_STATUS else reason)
        except ProtocolError:  # a code that may not be sent: the worker's half has refused it, so the engine made it up
            self.protocol.send_close(INTERNAL_ERROR)

    def ping(self) -> None:
        if self.is_open:
            self.protocol.send_ping(b"")

    def end(self) -> None:
        """The other side has ended the connection."""
        self.protocol.receive_eof()

    def outgoing(self) -> list[bytes]:
        """What is to be written; an empty piece says that the connection is to be closed after what came before."""
        return self.protocol.data_to_send()
