"""Encodes WebSocket frames to the peer, from a worker's messages as its engine sends them.

A message of up to MAX_WHOLE bytes is one frame. A longer one is sent in fragments as it arrives, so that it is never
buffered as a whole, and is compressed piece by piece.
"""

from __future__ import annotations

import secrets
import struct
import zlib
from typing import Any, Final

from websockets.speedups import apply_mask

from atoll.wire.incoming import BINARY, MAX_MESSAGE, TEXT

MAX_WHOLE: Final = 64 << 10
DEFLATE_FROM: Final = 128  # bytes of a message below which compression costs more than it saves
# zlib's levels. The event loop waits while a message is compressed.
LEVEL: Final = 6
LONG_LEVEL: Final = 1

CLOSE_KIND: Final = 3
MAX_CLOSE: Final = 125
_CLOSE: Final = 8
_PING: Final = 9
_PONG: Final = 10
_FIN: Final = 0x80
_PACKED: Final = 0x40
_HEAD: Final = struct.Struct("<BI")
_CODE: Final = struct.Struct("<H")
_MEDIUM: Final = struct.Struct(">BBH")
_LONG: Final = struct.Struct(">BBQ")


class BadMessage(ValueError):
    """An engine sent something that is not a message."""


class Outgoing:
    """Messages of an engine in, frames out. `said_close` is the close that the worker sent."""

    __slots__ = (
        "_deflater", "_is_begun", "_is_masked", "_kind", "_left", "_out", "_part", "_window", "is_open", "said_close",
    )  # fmt: skip

    def __init__(self, is_masked: bool, window: int) -> None:
        """`is_masked`: this side is a client. `window`: bits of the deflate window, 0 without deflate."""
        self._is_masked = is_masked
        self._window = window
        self.is_open = True  # no close was sent; after a close only pongs may follow
        self.said_close: tuple[int, str] | None = None
        self._out: list[bytes] = []
        self._part = b""  # the beginning of a header, or of a message that becomes one frame
        # A message that is sent in fragments
        self._left = 0  # bytes that the engine has not sent yet
        self._is_begun = False
        self._kind = TEXT
        self._deflater: Any = None

    def take(self) -> bytes:
        """What is to be written."""
        out = self._out
        if not out:
            return b""
        self._out = []
        return out[0] if len(out) == 1 else b"".join(out)

    # --- the worker ---

    def speak(self, chunk: bytes) -> None:
        """Handle data from the engine. Raises BadMessage if no worker could send it."""
        at = 0
        size = len(chunk)
        if self._part:
            chunk = self._part + chunk
            size = len(chunk)
            self._part = b""
        while at < size:
            if self._left:
                piece = chunk[at : at + self._left]
                at += len(piece)
                self._left -= len(piece)
                self._fragment(piece)
                continue
            start = at + _HEAD.size
            if size < start:
                break
            kind, length = read_head(chunk, at)
            if size < start + length:
                if length <= MAX_WHOLE:
                    break
                self._kind = kind
                self._left = length
                self._is_begun = False
                at = start
                continue
            at = start + length
            self._say(kind, chunk[start:at])
        if at < size:
            self._part = chunk[at:] if at else chunk

    def _say(self, kind: int, payload: bytes) -> None:
        if not self.is_open or self.said_close is not None:
            return
        if kind == CLOSE_KIND:
            code = _CODE.unpack_from(payload)[0] if len(payload) >= _CODE.size else 0
            self.said_close = code, payload[_CODE.size :].decode("utf-8", "ignore")
        elif self._window and len(payload) >= DEFLATE_FROM:
            deflater: Any = zlib.compressobj(LONG_LEVEL if len(payload) > MAX_WHOLE else LEVEL, wbits=-self._window)
            packed = deflater.compress(payload) + deflater.flush(zlib.Z_SYNC_FLUSH)
            self._frame(_FIN | _PACKED | kind, packed[:-4])
        else:
            self._frame(_FIN | kind, payload)

    def _fragment(self, piece: bytes) -> None:
        """One more piece of a long message."""
        is_last = not self._left
        if not self.is_open:
            self._deflater = None
            return
        first = 0 if self._is_begun else self._kind
        if self._window:
            if not self._is_begun:
                first |= _PACKED
            if self._deflater is None:
                self._deflater = zlib.compressobj(LONG_LEVEL, wbits=-self._window)
            piece = self._deflater.compress(piece)
            if is_last:
                piece = (piece + self._deflater.flush(zlib.Z_SYNC_FLUSH))[:-4]
                self._deflater = None
            elif not piece:
                return
        self._is_begun = True
        self._frame(first | _FIN if is_last else first, piece)

    # --- frames ---

    def _frame(self, first: int, payload: bytes) -> None:
        size = len(payload)
        bit = 0x80 if self._is_masked else 0
        if size < 126:
            head = bytes((first, bit | size))
        elif size < 65536:
            head = _MEDIUM.pack(first, bit | 126, size)
        else:
            head = _LONG.pack(first, bit | 127, size)
        if self._is_masked:
            mask = secrets.token_bytes(4)
            self._out.append(head + mask + apply_mask(payload, mask))
        elif size < MAX_WHOLE:
            self._out.append(head + payload)
        else:
            self._out += (head, payload)

    def close(self, payload: bytes) -> None:
        """The last frame except for pongs. It may come between the fragments of a message."""
        if self.is_open:
            self.is_open = False
            self._frame(_FIN | _CLOSE, payload)

    def ping(self) -> None:
        if self.is_open:
            self._frame(_FIN | _PING, b"")

    def pong(self, payload: bytes) -> None:
        self._frame(_FIN | _PONG, payload)


def read_head(chunk: bytes, at: int) -> tuple[int, int]:
    """Kind and length of a message from an engine."""
    kind, length = _HEAD.unpack_from(chunk, at)
    if not TEXT <= kind <= CLOSE_KIND or length > (MAX_CLOSE if kind == CLOSE_KIND else MAX_MESSAGE):
        raise BadMessage("the engine sent something that is not a message")
    return kind, length


assert (TEXT, BINARY, CLOSE_KIND) == (1, 2, 3)  # the kinds of messages are the opcodes of their frames
