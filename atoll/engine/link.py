"""One socket to one engine: frames of one loop turn leave in one write, what comes in is checked and dispatched.

The link knows bytes, the handshake and the heartbeat. What a frame means belongs to the session, whose handlers it
calls by kind. The engine is assumed hostile: the first thing that is wrong breaks the link for good, `on_broken` is
told why, and the engine is killed. Nothing an engine sends can raise out of here.

uvloop gathers the writes of one turn too; joining them here saves 0.2 us of 0.7 for each of 32 frames in a turn and
costs nothing for one.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final, Protocol, cast

from atoll.errors import EngineError
from atoll.wire.codec import Decoder, Handler, encode_hello, encode_ping
from atoll.wire.fields import read_json, text_field
from atoll.wire.generated import WIRE_HASH, Frame

log = logging.getLogger("atoll.engine")

UNREAD_BYTES = 256 << 20  # an engine that leaves so much unread is stuck; a burst of large LOADs stays far below
CLOSED: Final = "the engine closed the socket"
MAX_OPS: Final = 65536  # op indexes are u16


class LinkOwner(Protocol):
    """What a link needs of the session it serves."""

    def handlers(self) -> dict[Frame, Handler]: ...  # for every kind but HELLO and PONG

    def on_hello(self, v8: str, ops: tuple[str, ...]) -> None: ...  # may raise EngineError: does not fit

    def on_broken(self, reason: str) -> None: ...  # told once, also when the socket just closed


class Link:  # an asyncio.Protocol in all but name: compiled classes inherit from none that are not
    def __init__(self, owner: LinkOwner) -> None:
        self._owner = owner
        self._loop = asyncio.get_running_loop()

        # For as long as the socket lives
        self._transport: asyncio.Transport | None = None
        self._decoder = Decoder(self._only_hello())
        self.greeted = False
        self.broken = ""
        self.unanswered = 0  # PINGs without their PONG
        self.pong: dict[str, Any] = {}  # what the engine last said of itself; numbers to show, never to trust

        # For one turn of the loop
        self._out: list[bytes] = []

    # --- out ---

    def send(self, frame: bytes) -> None:
        """Queue a frame; it leaves at the end of this turn with all others."""
        out = self._out
        if not out:
            self._loop.call_soon(self._flush)
        out.append(frame)

    def ping(self, *, low_memory: bool = False) -> None:
        self.unanswered += 1
        self.send(encode_ping(low_memory=low_memory))

    def close(self) -> None:
        """Close the socket, which ends the engine. What was queued is still sent if the engine reads it."""
        if self._transport is not None:
            self._flush()
            self._transport.close()

    def _flush(self) -> None:
        out = self._out
        if not out:
            return
        self._out = []
        if self._transport is not None and not self.broken:
            self._transport.write(out[0] if len(out) == 1 else b"".join(out))

    # --- asyncio.Protocol ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=UNREAD_BYTES)
        # Our HELLO is the first frame whatever was queued before.
        self._transport.write(encode_hello({"wire": WIRE_HASH}))

    def data_received(self, data: bytes) -> None:
        try:
            self._decoder.feed(data)
        except EngineError as error:
            self.break_off(str(error))

    def eof_received(self) -> bool:
        self.break_off(CLOSED)
        return False

    def connection_lost(self, error: Exception | None) -> None:
        ended = error is None or isinstance(error, ConnectionError)  # reset: it ended with our frames unread
        self.break_off(CLOSED if ended else f"the socket broke: {error}")

    def pause_writing(self) -> None:
        self.break_off(f"the engine left {UNREAD_BYTES >> 20} MB unread")

    def break_off(self, reason: str) -> None:
        """End it: nothing is sent or taken from now on."""
        if self.broken:
            return
        self.broken = reason
        self._out = []
        if self._transport is not None:
            self._transport.abort()
        self._owner.on_broken(reason)

    # --- the frames of the link itself ---

    def _only_hello(self) -> dict[Frame, Handler]:
        """Until both sides have said HELLO nothing else is legal."""

        def too_early(flags: int, worker: int, call: int, data: bytes, start: int, end: int) -> None:
            raise EngineError("the engine's first frame is not HELLO")

        early: dict[Frame, Handler] = dict.fromkeys(Frame, too_early)
        return early | {Frame.HELLO: self._on_hello}

    def _on_hello(self, flags: int, worker: int, call: int, data: bytes, start: int, end: int) -> None:
        if self.greeted:
            raise EngineError("a second HELLO")
        fields = read_json(data[start:end])
        wire = text_field(fields, "wire", 64)
        if wire != WIRE_HASH:
            raise EngineError(
                f"the engine was built for wire {wire!r}, this Atoll speaks {WIRE_HASH!r}; run `make setup` to rebuild"
            )
        ops = fields.get("ops")
        if not isinstance(ops, list) or len(ops) > MAX_OPS or not all(isinstance(op, str) for op in ops):
            raise EngineError("HELLO without a list of ops")
        self._owner.on_hello(text_field(fields, "v8", 64), tuple(ops))
        self.greeted = True
        self._decoder.use(self._owner.handlers() | {Frame.HELLO: self._on_hello, Frame.PONG: self._on_pong})

    def _on_pong(self, flags: int, worker: int, call: int, data: bytes, start: int, end: int) -> None:
        if not self.unanswered:
            raise EngineError("a PONG nobody asked for")
        self.unanswered -= 1
        self.pong = read_json(data[start:end]) if end > start else {}
