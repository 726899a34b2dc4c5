"""Decodes WebSocket frames from the peer (RFC 6455, and RFC 7692 for permessage-deflate), in small steps.

The peer is untrusted. It may send a million empty frames in one packet, or a few bytes that inflate to gigabytes. So
each step is limited in frames and bytes of content, and the size of a message is checked while it is inflated, not
once it is complete.
"""

from __future__ import annotations

import codecs
import struct
import zlib
from typing import Any, Final

from websockets.speedups import apply_mask

MAX_MESSAGE: Final = 32 << 20
HEAD_SIZE: Final = 5  # the header of a message to an engine: kind and length
STEP_FRAMES: Final = 64  # limit of one step,
STEP_BYTES: Final = 64 << 10  # also for inflated content
# A message may have this many fragments, and one more for each of these bytes.
FREE_FRAGMENTS: Final = 1024
FRAGMENT_BYTES: Final = 16
# Maximum number of pings and pongs in a number of seconds.
MAX_CONTROLS: Final = 1000
CONTROL_SECONDS: Final = 10.0

NO_STATUS, PROTOCOL_ERROR, INVALID_TEXT, POLICY, TOO_BIG = 1005, 1002, 1007, 1008, 1009

_CONTINUATION: Final = 0
TEXT: Final = 1
BINARY: Final = 2
_CLOSE: Final = 8
_PING: Final = 9
_PONG: Final = 10

_HEAD: Final = struct.Struct("<BI")
_SHORT: Final = struct.Struct(">H")
_LONG: Final = struct.Struct(">Q")
_EMPTY_BLOCK: Final = b"\x00\x00\xff\xff"  # senders omit it at the end of a deflated message

# https://www.iana.org/assignments/websocket/websocket.xhtml#close-code-number
CLOSE_CODES: Final = frozenset((1000, 1001, 1002, 1003, 1007, 1008, 1009, 1010, 1011, 1012, 1013, 1014))


class Broken(Exception):
    """The peer broke the protocol. Holds the close code to send and the reason."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(reason)
        self.code = code
        self.reason = reason


class Incoming:
    """Frames in, messages out. `feed` bytes, then call `step` until it is hungry, and take its results after each."""

    __slots__ = (
        "_at", "_content", "_controls", "_controls_since", "_fragments", "_inflater", "_input", "_is_inside",
        "_is_last", "_is_masked", "_is_open", "_is_packed", "_is_swollen", "_kind", "_left", "_mask", "_packed",
        "_utf8", "_window", "_wire", "close", "found", "is_hungry", "is_strict", "messages", "ping",
    )  # fmt: skip

    def __init__(self, is_masked: bool, window: int) -> None:
        """`is_masked`: the peer is a client. `window`: bits of its deflate window, 0 without deflate."""
        self._is_masked = is_masked
        self.is_strict = True  # a frame without the mask that the peer owes is an error
        self._window = window
        # Results
        self.found: list[bytes | bytearray] = []  # messages, each with its header for an engine
        self.messages = 0  # number of messages in it
        self.ping: bytes | None = None  # payload of the latest ping; earlier ones need no answer
        self.close: tuple[int, str, bytes] | None = None  # code, reason, as sent; nothing is read after it
        # Received and not yet read
        self.is_hungry = True
        self._input = b""
        self._at = 0
        # The frame
        self._is_inside = False
        self._is_last = False  # of its message
        self._left = 0
        self._mask = b""
        # The message
        self._is_open = False  # begun and not complete
        self._kind = TEXT
        self._content: bytearray | None = None  # after space for its header; None while there is only one piece
        self._utf8: Any = None
        self._fragments = 0
        self._wire = 0  # bytes received
        self._is_packed = False
        self._inflater: Any = None
        self._packed = b""  # bytes of the frame that are not yet inflated
        self._is_swollen = False  # the inflater may have more output
        # Control frames
        self._controls = 0
        self._controls_since = 0.0

    @property
    def held(self) -> int:
        """Buffered bytes."""
        return len(self._input) + (len(self._content) if self._content is not None else 0)

    def feed(self, data: bytes) -> None:
        rest = self._input[self._at :]
        self._input = rest + data if rest else data
        self._at = 0
        self.is_hungry = False

    def drop(self) -> None:
        """Free all buffers: no more input is needed."""
        self._input = self._packed = b""
        self._content = self._inflater = self._utf8 = None
        self._is_swollen = self._is_inside = False
        self.is_hungry = True

    def step(self, now: float) -> None:
        """Read some frames, or some bytes of one. After Broken, no more may be read."""
        frames = STEP_FRAMES
        room = STEP_BYTES
        while frames > 0 and room > 0 and self.close is None:
            if self._packed or self._is_swollen:
                room -= self._inflate(room)
            elif self._is_inside:
                taken = self._take(room)
                if taken < 0:
                    break
                room -= taken
            elif self._read_head(now):
                frames -= 1
            else:
                self._starve()
                break
        if self.close is not None:
            self.drop()

    def _starve(self) -> None:
        """Keep only the incomplete header of a frame."""
        self.is_hungry = True
        if self._at:
            self._input = self._input[self._at :]
            self._at = 0

    # --- frames ---

    def _read_head(self, now: float) -> bool:
        """Begin a data frame, or read a control frame. False: it is not complete."""
        data = self._input
        at = self._at
        have = len(data) - at
        if have < 2:
            return False
        first = data[at]
        second = data[at + 1]
        is_masked = second & 0x80 != 0
        if is_masked is not self._is_masked:
            if self.is_strict:
                raise Broken(PROTOCOL_ERROR, "incorrect masking")
            self._is_masked = is_masked  # it is read again with each frame
        opcode = first & 0x0F
        length = second & 0x7F
        if opcode >= _CLOSE:
            self._check_control(first, opcode, length, now)
            size = 6 if self._is_masked else 2
            if have < size + length:
                return False
            self._controls += 1
            self._at = at + size + length
            payload = data[at + size : at + size + length]
            self._control(opcode, apply_mask(payload, data[at + 2 : at + 6]) if self._is_masked else payload)
            return True
        self._check_data(first, opcode)
        size = 2
        if length == 126:
            if have < 4:
                return False
            length = _SHORT.unpack_from(data, at + 2)[0]
            size = 4
        elif length == 127:
            if have < 10:
                return False
            length = _LONG.unpack_from(data, at + 2)[0]
            size = 10
        if length > MAX_MESSAGE - (self._wire if self._is_open else 0):
            raise Broken(TOO_BIG, f"a message is longer than {MAX_MESSAGE >> 20} MB")
        if self._is_masked:
            size += 4
            if have < size:
                return False
            self._mask = data[at + size - 4 : at + size]
        self._at = at + size
        self._begin(first, opcode, length)
        return True

    def _check_control(self, first: int, opcode: int, length: int, now: float) -> None:
        if first & 0x70:
            raise Broken(PROTOCOL_ERROR, "reserved bits must be 0")
        if opcode > _PONG:
            raise Broken(PROTOCOL_ERROR, "invalid opcode")
        if not first & 0x80:
            raise Broken(PROTOCOL_ERROR, "fragmented control frame")
        if length > 125:
            raise Broken(PROTOCOL_ERROR, "control frame too long")
        if now - self._controls_since > CONTROL_SECONDS:
            self._controls_since = now
            self._controls = 0
        if self._controls >= MAX_CONTROLS:
            raise Broken(POLICY, f"more than {MAX_CONTROLS} pings and pongs in {CONTROL_SECONDS:g} s")

    def _control(self, opcode: int, payload: bytes) -> None:
        if opcode == _PING:
            self.ping = payload
        elif opcode == _CLOSE:
            self.close = read_close(payload)

    def _check_data(self, first: int, opcode: int) -> None:
        if opcode > BINARY:
            raise Broken(PROTOCOL_ERROR, "invalid opcode")
        if opcode == _CONTINUATION and not self._is_open:
            raise Broken(PROTOCOL_ERROR, "unexpected continuation frame")
        if opcode != _CONTINUATION and self._is_open:
            raise Broken(PROTOCOL_ERROR, "expected a continuation frame")
        if first & 0x30 or (first & 0x40 and (opcode == _CONTINUATION or not self._window)):
            raise Broken(PROTOCOL_ERROR, "reserved bits must be 0")

    def _begin(self, first: int, opcode: int, length: int) -> None:
        if opcode != _CONTINUATION:
            self._is_open = True
            self._kind = opcode
            self._is_packed = first & 0x40 != 0
            self._fragments = self._wire = 0
        self._fragments += 1
        if self._fragments > FREE_FRAGMENTS + self._wire // FRAGMENT_BYTES:
            raise Broken(POLICY, "a message is made of too many small fragments")
        self._is_inside = True
        self._is_last = first & 0x80 != 0
        self._left = length

    # --- content ---

    def _take(self, room: int) -> int:
        """Read content of the frame. Returns the number of bytes; -1: there are none."""
        at = self._at
        size = min(self._left, len(self._input) - at, room)
        if not size and self._left:
            self._input = b""
            self._at = 0
            self.is_hungry = True
            return -1
        piece = self._input[at : at + size]
        if self._is_masked:
            piece = apply_mask(piece, self._mask)
            turn = size & 3
            if turn:
                self._mask = self._mask[turn:] + self._mask[:turn]
        self._at = at + size
        self._left -= size
        self._wire += size
        if not self._left:
            self._is_inside = False
        is_end = self._is_last and not self._left
        if not self._is_packed:
            self._add(piece, is_end)
            return size
        self._packed = piece + _EMPTY_BLOCK if is_end else piece
        return size

    def _inflate(self, room: int) -> int:
        """Inflate some of the input. Returns the number of bytes it gave, or 1."""
        if self._inflater is None:
            self._inflater = zlib.decompressobj(-self._window)
        inflater = self._inflater
        content = b""
        if inflater.eof:  # after its last block only padding may follow
            self._check_padding(self._packed)
            self._packed = b""
            self._is_swollen = False
        else:
            try:
                content = inflater.decompress(self._packed, room)
            except zlib.error:
                raise Broken(PROTOCOL_ERROR, "a compressed message is not valid deflate") from None
            self._packed = inflater.unconsumed_tail
            self._is_swollen = len(content) == room
            if inflater.eof:
                self._check_padding(inflater.unused_data)
        is_end = self._is_last and not self._is_inside and not self._packed and not self._is_swollen
        self._add(content, is_end)
        return len(content) or 1

    def _check_padding(self, data: bytes) -> None:
        if data.strip(b"\x00\xff"):
            raise Broken(PROTOCOL_ERROR, "a compressed message continues after its end")

    def _add(self, piece: bytes, is_end: bool) -> None:
        content = self._content
        if content is None:
            if is_end:
                self._check_whole(piece)
                self.found.append(_HEAD.pack(self._kind, len(piece)) + piece)
                self._finish()
                return
            content = self._content = bytearray(HEAD_SIZE)
            self._utf8 = codecs.getincrementaldecoder("utf-8")() if self._kind == TEXT else None
        if len(content) - HEAD_SIZE + len(piece) > MAX_MESSAGE:
            raise Broken(TOO_BIG, f"a message is longer than {MAX_MESSAGE >> 20} MB")
        content += piece
        if self._utf8 is not None:
            try:
                self._utf8.decode(piece, is_end)
            except UnicodeDecodeError:
                raise Broken(INVALID_TEXT, "a text message is not UTF-8") from None
        if is_end:
            _HEAD.pack_into(content, 0, self._kind, len(content) - HEAD_SIZE)
            self.found.append(content)
            self._finish()

    def _check_whole(self, piece: bytes) -> None:
        if self._kind == TEXT:
            try:
                str(piece, "utf-8")
            except UnicodeDecodeError:
                raise Broken(INVALID_TEXT, "a text message is not UTF-8") from None

    def _finish(self) -> None:
        self.messages += 1
        self._is_open = False
        self._content = self._utf8 = self._inflater = None


def read_close(payload: bytes) -> tuple[int, str, bytes]:
    """Code, reason and the payload of a close frame."""
    if not payload:
        return NO_STATUS, "", payload
    if len(payload) < 2:
        raise Broken(PROTOCOL_ERROR, "close frame too short")
    code: int = _SHORT.unpack_from(payload)[0]
    if code not in CLOSE_CODES and not 3000 <= code < 5000:
        raise Broken(PROTOCOL_ERROR, "invalid close code")
    try:
        return code, str(payload[2:], "utf-8"), payload
    except UnicodeDecodeError:
        raise Broken(INVALID_TEXT, "the reason of a close is not UTF-8") from None
