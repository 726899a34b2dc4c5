"""One socket to one engine. Frames of one turn of the loop leave in one write; incoming frames are checked.

The link handles bytes, the handshake and the heartbeat. All other frames go to the handlers of its session. The engine
is not trusted: the first error breaks the link for good, `on_broken` gets the reason, and the engine is killed. Nothing
that an engine sends can raise an exception out of here.

uvloop joins the writes of one turn too. Joining them here saves 0.2 us of 0.7 for each of 32 frames in a turn,
and costs nothing for a single frame.

All tenants of an engine share its socket. When many bytes wait in it, request bodies wait outside until there is room
(`is_full`), so that no call is delayed by megabytes of another tenant's messages.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Final, Protocol, cast

from atoll.errors import EngineError
from atoll.wire.codec import Handler, encode_hello, encode_ping
from atoll.wire.decoder import FrameDecoder, LongOpHandler
from atoll.wire.fields import read_json, text_field
from atoll.wire.generated import WIRE_HASH, Frame

log = logging.getLogger("atoll.engine")

UNREAD_BYTES = 256 << 20  # unread by the engine: it is stuck. A burst of large LOADs stays far below
BODY_AHEAD: Final = 1 << 20  # bytes that wait in the socket before bodies wait outside
CLOSED: Final = "the engine closed the socket"
MAX_OPS: Final = 65536  # op indexes are u16


class LinkOwner(Protocol):
    """What a link needs of the session it serves."""

    def handlers(self) -> dict[Frame, Handler]: ...  # for every kind but HELLO and PONG

    def on_hello(self, v8: str, ops: tuple[str, ...]) -> None: ...  # raises EngineError if the engine does not fit

    def on_long_op(self, worker: int, number: int, head: bytes, body: bytes) -> None: ...  # an OP, its body apart

    def on_room(self) -> None: ...  # waiting bodies may be sent; called at the end of each turn while there is room

    def on_broken(self, reason: str) -> None: ...  # called once, also when the socket was closed normally


class Link:  # an asyncio.Protocol in all but name: compiled classes inherit from none that are not
    def __init__(self, owner: LinkOwner) -> None:
        self._owner = owner
        self._loop = asyncio.get_running_loop()

        # For as long as the socket lives
        self._transport: asyncio.Transport | None = None
        self._decoder = FrameDecoder(self._only_hello())
        self.greeted = False
        self.broken = ""
        self.unanswered = 0  # PINGs without their PONG
        self.is_paused = False  # the engine has much to read
        self.pong: dict[str, Any] = {}  # the engine's last report of itself, not verified: for display only

        # For one turn of the loop
        self._out: list[bytes] = []
        self._is_large = False  # whether the frames are too large to be joined
        self._body_bytes = 0  # of the body frames among them

    # --- out ---

    @property
    def is_full(self) -> bool:
        """Whether bodies have to wait for `on_room`."""
        return self.is_paused or self._body_bytes > BODY_AHEAD

    def send_body(self, frame: bytes) -> None:
        """Queue a BODY frame. The caller has checked `is_full`."""
        self._body_bytes += len(frame)
        self.send(frame)

    def send(self, frame: bytes) -> None:
        """Queue a frame; it leaves at the end of this turn with all others."""
        out = self._out
        if not out:
            self._loop.call_soon(self._flush)
        out.append(frame)

    def send_pieces(self, pieces: list[bytes]) -> None:
        """Queue a frame in pieces, which are not copied if there are several."""
        for piece in pieces:
            self.send(piece)
        if len(pieces) > 1:
            self._is_large = True

    def use(self, handlers: dict[Frame, Handler], on_long_op: LongOpHandler) -> None:
        """Give later frames to other handlers than those of the session."""
        self._decoder.use(handlers | {Frame.HELLO: self._on_hello, Frame.PONG: self._on_pong}, on_long_op)

    def ping(self, *, low_memory: bool = False) -> None:
        self.unanswered += 1
        self.send(encode_ping(low_memory=low_memory))

    def close(self) -> None:
        """Close the socket, which ends the engine. Queued frames are still sent if the engine reads them."""
        if self._transport is not None:
            self._flush()
            self._transport.close()

    def _flush(self) -> None:
        out = self._out
        if not out:
            return
        self._out = []
        is_large, self._is_large = self._is_large, False
        had_bodies, self._body_bytes = self._body_bytes > 0, 0
        transport = self._transport
        if transport is not None and not self.broken:
            if is_large:
                for piece in out:
                    transport.write(piece)
            else:
                transport.write(out[0] if len(out) == 1 else b"".join(out))
            if self.is_paused:
                if transport.get_write_buffer_size() > UNREAD_BYTES:
                    self.break_off(f"the engine left {UNREAD_BYTES >> 20} MB unread")
            elif had_bodies:
                self._owner.on_room()

    # --- asyncio.Protocol ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(high=BODY_AHEAD, low=BODY_AHEAD // 4)
        # Our HELLO is the first frame, before any that are queued.
        self._transport.write(encode_hello({"wire": WIRE_HASH}))

    def data_received(self, data: bytes) -> None:
        try:
            if self._decoder.feed(data) and self._transport is not None and not self.broken:
                # The rest waits for the next turn of the loop, so that one engine does not delay everything else.
                self._transport.pause_reading()
                self._loop.call_soon(self._go_on)
        except EngineError as error:
            self.break_off(str(error))

    def _go_on(self) -> None:
        if self.broken or self._transport is None:
            return
        try:
            if self._decoder.go_on():
                self._loop.call_soon(self._go_on)
            elif not self.broken:
                self._transport.resume_reading()
        except EngineError as error:
            self.break_off(str(error))

    def eof_received(self) -> bool:
        self.break_off(CLOSED)
        return False

    def connection_lost(self, error: Exception | None) -> None:
        ended = error is None or isinstance(error, ConnectionError)  # a reset: the engine ended with our frames unread
        self.break_off(CLOSED if ended else f"the socket broke: {error}")

    def pause_writing(self) -> None:
        self.is_paused = True

    def resume_writing(self) -> None:
        self.is_paused = False
        if not self.broken:
            self._owner.on_room()

    def break_off(self, reason: str) -> None:
        """Break the link: nothing is sent or received from now on."""
        if self.broken:
            return
        self.broken = reason
        self._out = []
        if self._transport is not None:
            self._transport.abort()
        self._owner.on_broken(reason)

    # --- the frames of the link itself ---

    def _only_hello(self) -> dict[Frame, Handler]:
        """The handlers before HELLO: every other frame is an error."""

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
        self.use(self._owner.handlers(), self._owner.on_long_op)

    def _on_pong(self, flags: int, worker: int, call: int, data: bytes, start: int, end: int) -> None:
        if not self.unanswered:
            raise EngineError("a PONG without a PING")
        self.unanswered -= 1
        self.pong = read_json(data[start:end]) if end > start else {}
