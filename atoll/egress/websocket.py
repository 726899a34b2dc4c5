"""WebSockets to other servers: the handshake, and the connection after it.

The server is not trusted. Its answer to the handshake is checked strictly, the codec (wire/sockets.py) checks its
frames, unread messages are limited, and a silent server that answers no pings is disconnected. A socket has the
interface of an exchange: read, write, close.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable
from typing import NamedTuple

from websockets.client import ClientProtocol
from websockets.datastructures import Headers
from websockets.exceptions import InvalidHandshake
from websockets.extensions.permessage_deflate import ClientPerMessageDeflateFactory, PerMessageDeflate
from websockets.http11 import Response
from websockets.typing import Subprotocol
from websockets.uri import parse_uri

from atoll.egress.exchange import pairs_of
from atoll.errors import InvalidArgument, NetworkError
from atoll.holdings import Holdings
from atoll.pacer import Pacer
from atoll.wire.sockets import CLOSE_SECONDS, GOING_AWAY, TRY_LATER, BadMessage, Codec

QUIET_LOG = logging.getLogger("atoll.websockets")  # the package logs every connection
QUIET_LOG.setLevel(logging.CRITICAL)

HIGH = 256 << 10  # with more bytes of unread messages, the connection is paused
LOW = 128 << 10  # with fewer, it is resumed
READ_BYTES = 128 << 10  # the most that one read returns
MAX_UNSENT = 64 << 10  # bytes that the server has not read; beyond that, its pings wait until it reads
TOO_MUCH = "the WebSockets of this tenant hold too many bytes of unfinished or unread messages"

# Compression contexts kept between messages would cost each idle socket a few hundred kilobytes.
DEFLATE = ClientPerMessageDeflateFactory(server_no_context_takeover=True, client_no_context_takeover=True)
ANYWHERE = parse_uri("ws://x/")  # we write the request; the package makes the key and checks the answer


class Handshake:
    """The handshake with one server. `protocols` are those that the worker offers."""

    def __init__(self, protocols: Iterable[str] = ()) -> None:
        offered = [Subprotocol(name) for name in protocols]
        self._client = ClientProtocol(ANYWHERE, extensions=[DEFLATE], subprotocols=offered or None, logger=QUIET_LOG)

    def lines(self) -> str:
        """The headers of the request, without the protocols: the worker has set these itself."""
        asked = self._client.connect().headers
        names = ("Upgrade", "Connection", "Sec-WebSocket-Key", "Sec-WebSocket-Version", "Sec-WebSocket-Extensions")
        return "".join(f"{name.lower()}: {asked[name]}\r\n" for name in names)

    def check(self, where: str, lines: bytes) -> Codec:
        """Check the answer, and make a codec for what was agreed. Raises NetworkError for an invalid answer."""
        fields = Headers()
        for name, value in pairs_of(lines):
            fields[name] = value
        try:
            self._client.process_response(Response(101, "", fields))
        except InvalidHandshake as error:
            raise NetworkError(f"the WebSocket handshake with {where} failed: {error}") from None
        for extension in self._client.extensions:
            if isinstance(extension, PerMessageDeflate):
                return Codec(True, extension.remote_max_window_bits, extension.local_max_window_bits)
        return Codec(True, 0, 0)


class SocketContext(NamedTuple):
    """The tenant of a socket, and what all sockets of the node share."""

    tenant: str
    pacer: Pacer
    holdings: Holdings


class ServerSocket(asyncio.Protocol):
    """One WebSocket to a server. Calls `release` when its connection is closed."""

    def __init__(
        self,
        where: str,
        transport: asyncio.Transport,
        lines: bytes,
        codec: Codec,
        context: SocketContext,
        release: Callable[[], None],
    ) -> None:
        self.where = where
        self.lines = lines  # header lines of the answer to the handshake
        self.touched = asyncio.get_running_loop().time()
        self.is_pinged = False
        self._transport = transport
        self._codec = codec
        self._context = context
        self._release = release
        self._is_lost = False
        self._is_held = False
        self._is_queued = False  # the pacer will call `_step`
        self._is_leaving = False
        self._is_closed = False  # by the worker, or with its call: nothing is read any more
        self._waiting: deque[bytes | bytearray] = deque()  # messages for the worker
        self._at = 0  # bytes read of the first message
        self._size = 0
        self._reader: asyncio.Future[None] | None = None
        self._writer: asyncio.Future[None] | None = None
        self._is_write_paused = False

    # --- for the worker ---

    async def read(self) -> bytes:
        """More messages, as frames for the worker; b"" at the end. One read at a time."""
        while not self._waiting and not self._has_ended:
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        return self.read_nowait()

    def read_nowait(self) -> bytes:
        taken: list[bytes | bytearray] = []
        size = 0
        while self._waiting and size < READ_BYTES:
            first = self._waiting[0]
            piece = first[self._at : self._at + READ_BYTES - size]
            self._at += len(piece)
            if self._at == len(first):
                self._waiting.popleft()
                self._at = 0
            taken.append(piece)
            size += len(piece)
        self._size -= size
        self._note()
        self._work()
        return b"".join(taken)

    @property
    def at_end(self) -> bool:
        return self._has_ended and not self._waiting

    @property
    def _has_ended(self) -> bool:
        return self._codec.has_told or self._is_closed

    async def write(self, chunk: bytes, ended: bool) -> bool:
        """Send frames of the worker, and wait for room. False if the connection is closed."""
        try:
            self._codec.speak(chunk)
        except BadMessage as error:
            self._transport.abort()
            raise InvalidArgument(f"WebSocket: {error}") from None
        self._flush()
        while self._is_write_paused and not self._is_lost and not self._is_closed:
            self._writer = asyncio.get_running_loop().create_future()
            await self._writer
        return not self._is_lost

    def close(self) -> None:
        """Close the socket from the worker's side."""
        if self._is_closed:
            return
        self._is_closed = True
        self._drop()
        self._codec.close(GOING_AWAY)
        self._flush()
        self._wake()
        self._work()  # to read the server's answer to the close

    def abort(self) -> None:
        self._transport.abort()

    # --- the connection ---

    def data_received(self, data: bytes) -> None:
        self.touched = asyncio.get_running_loop().time()
        self.is_pinged = False
        self._codec.feed(data)
        self._work()

    def _work(self) -> None:
        """Process received bytes if the worker reads. Then pause or resume reading."""
        if not self._is_queued and not self._codec.is_hungry and not self._is_full:
            self._is_queued = True
            if self._context.pacer.run(self._context.tenant, self._step):
                return
        self._gate()

    def _step(self) -> bool:
        """Process a small part of the received bytes. True if there is more to do."""
        codec = self._codec
        if not self._is_lost:
            codec.step(self.touched)
            self._push(codec.take())
            self._flush()
            self._note()
            if codec.has_told:
                self._close_soon()
        if not self._is_lost and not codec.is_hungry and not self._is_full:
            return True
        self._is_queued = False
        self._gate()
        return False

    def _push(self, found: list[bytes | bytearray]) -> None:
        if found and not self._is_closed:
            self._waiting += found
            self._size += sum(map(len, found))
            self._wake()

    def _drop(self) -> None:
        self._waiting.clear()
        self._size = self._at = 0

    def _note(self) -> None:
        self._context.holdings.note(self._context.tenant, self, self._codec.held + self._size)

    def shed(self) -> None:
        """Close this socket: its tenant's sockets hold too many bytes, and this one holds the most."""
        self._drop()
        self._codec.fail(TRY_LATER, TOO_MUCH)
        self._codec.tell_close()  # the frame is dropped: the worker sees an end without a close
        self._flush()
        self._close_soon()
        self._wake()

    def _wake(self) -> None:
        for waiter in (self._reader, self._writer):
            if waiter is not None and not waiter.done():
                waiter.set_result(None)

    @property
    def _is_full(self) -> bool:
        return self._size > (LOW if self._is_held else HIGH)

    def _gate(self) -> None:
        """Pause reading while the worker does not read, or received bytes wait to be parsed."""
        full = self._is_full or not self._codec.is_hungry
        if full is self._is_held or self._is_lost:
            return
        self._is_held = full
        if full:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()

    def _flush(self) -> None:
        if self._is_lost:
            return
        codec = self._codec
        if self._transport.get_write_buffer_size() <= MAX_UNSENT:
            codec.answer_ping()
        data = codec.outgoing()
        if data:
            self._transport.write(data)
        if codec.is_over:
            self._transport.close()
        elif not codec.is_open:
            self._close_soon()

    def _close_soon(self) -> None:
        """A close was sent: the server has CLOSE_SECONDS to end the connection."""
        if not self._is_leaving:
            self._is_leaving = True
            asyncio.get_running_loop().call_later(CLOSE_SECONDS, self._cut)

    def _cut(self) -> None:
        if not self._is_lost:
            self._transport.abort()

    def pause_writing(self) -> None:
        self._is_write_paused = True

    def resume_writing(self) -> None:
        self._is_write_paused = False
        self._wake()
        self._flush()

    def eof_received(self) -> bool:
        self._codec.end()
        self._flush()
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self._is_lost = True
        if not self._codec.has_told:
            self._push([self._codec.tell_close()])
        self._wake()
        self._note()
        self._release()

    def sweep(self, now: float, limit: float) -> None:
        """Ping a silent server, and abort if it does not answer within `limit`. 0 means no limit."""
        idle = now - self.touched
        if self._is_held:  # it is the worker that does not read
            self.touched = now
        elif limit and idle > limit:
            self._transport.abort()
        elif limit and idle > limit / 2 and not self.is_pinged:
            self.is_pinged = True
            self._codec.ping()
            self._flush()
