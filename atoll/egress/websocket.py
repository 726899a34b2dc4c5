"""WebSockets to other servers: the handshake, and the connection it becomes.

The server is a stranger. Its answer to the handshake is checked to the letter, its frames are the codec's to judge
(wire/sockets.py), what the worker has not read waits here only up to a bound, and a server that neither speaks nor
answers pings is gone. To the one who asked, a socket looks like any other exchange: read, write, close.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable

from websockets.client import ClientProtocol
from websockets.datastructures import Headers
from websockets.exceptions import InvalidHandshake
from websockets.extensions.base import Extension
from websockets.extensions.permessage_deflate import ClientPerMessageDeflateFactory
from websockets.http11 import Response
from websockets.typing import Subprotocol
from websockets.uri import parse_uri

from atoll.egress.exchange import pairs_of
from atoll.errors import InvalidArgument, NetworkError
from atoll.wire.sockets import CLIENT, CLOSE_SECONDS, GOING_AWAY, QUIET_LOG, BadMessage, Codec

HIGH = 256 << 10  # bytes of messages that wait to be read before the connection is paused,
LOW = 128 << 10  # and how few before it goes on
READ_BYTES = 128 << 10  # the most that one read gives
MAX_UNSENT = 1 << 20  # bytes that the server has not read, beside what a worker sends: the answers to its pings

# Contexts kept between messages would cost each idle socket a few hundred kilobytes.
DEFLATE = ClientPerMessageDeflateFactory(server_no_context_takeover=True, client_no_context_takeover=True)
ANYWHERE = parse_uri("ws://x/")  # the request is not the package's: it makes the key and judges the answer


class Handshake:
    """Asks one server for a WebSocket. `protocols` are those the worker offers."""

    def __init__(self, protocols: Iterable[str] = ()) -> None:
        offered = [Subprotocol(name) for name in protocols]
        self._client = ClientProtocol(ANYWHERE, extensions=[DEFLATE], subprotocols=offered or None, logger=QUIET_LOG)

    def lines(self) -> str:
        """The headers that ask for it, but for the protocols, which the worker has named itself."""
        asked = self._client.connect().headers
        names = ("Upgrade", "Connection", "Sec-WebSocket-Key", "Sec-WebSocket-Version", "Sec-WebSocket-Extensions")
        return "".join(f"{name.lower()}: {asked[name]}\r\n" for name in names)

    def check(self, where: str, lines: bytes) -> list[Extension]:
        """The extensions that the answer agrees to. NetworkError when it is no answer to what was asked."""
        fields = Headers()
        for name, value in pairs_of(lines):
            fields[name] = value
        try:
            self._client.process_response(Response(101, "", fields))
        except InvalidHandshake as error:
            raise NetworkError(f"{where} made no WebSocket of it: {error}") from None
        return self._client.extensions


class ServerSocket(asyncio.Protocol):
    """One WebSocket to a server. `release` is told when its connection is gone."""

    def __init__(
        self,
        where: str,
        transport: asyncio.Transport,
        lines: bytes,
        extensions: list[Extension],
        release: Callable[[], None],
    ) -> None:
        self.where = where
        self.lines = lines  # of the answer to the handshake
        self.touched = asyncio.get_running_loop().time()
        self.is_pinged = False
        self._transport = transport
        self._codec = Codec(CLIENT, extensions)
        self._release = release
        self._is_lost = False
        self._is_held = False
        self._is_leaving = False
        self._is_closed = False  # by the worker, or with its call: nobody reads any more
        self._waiting: deque[bytes] = deque()  # messages for the worker
        self._size = 0
        self._reader: asyncio.Future[None] | None = None
        self._writer: asyncio.Future[None] | None = None
        self._is_write_paused = False
        self._is_flooded = False  # it pings and does not read the answers

    # --- what the one who asked does with it ---

    async def read(self) -> bytes:
        """More of the messages, as frames for the worker; b"" at the end. One read at a time."""
        while not self._waiting and not self._has_ended:
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
        return self.read_nowait()

    def read_nowait(self) -> bytes:
        taken: list[bytes] = []
        size = 0
        while self._waiting and size < READ_BYTES:
            piece = self._waiting.popleft()
            if size + len(piece) > READ_BYTES:
                self._waiting.appendleft(piece[READ_BYTES - size :])
                piece = piece[: READ_BYTES - size]
            taken.append(piece)
            size += len(piece)
        self._size -= size
        self._gate()
        return b"".join(taken)

    @property
    def at_end(self) -> bool:
        return self._has_ended and not self._waiting

    @property
    def _has_ended(self) -> bool:
        return self._codec.has_told or self._is_closed

    async def write(self, chunk: bytes, ended: bool) -> bool:
        """More of what the worker says; returns when there is room for the next. False: nobody hears it."""
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
        """Nobody wants it any more: say so, and go."""
        if self._is_closed:
            return
        self._is_closed = True
        self._waiting.clear()
        self._size = 0
        self._codec.close(GOING_AWAY)
        self._flush()
        self._wake()
        self._gate()  # to hear how the server answers the close

    def abort(self) -> None:
        self._transport.abort()

    # --- the connection ---

    def data_received(self, data: bytes) -> None:
        self.touched = asyncio.get_running_loop().time()
        self.is_pinged = False
        self._push(self._codec.receive(data))
        self._flush()
        if self._codec.has_told:
            self._close_soon()
        self._is_flooded = self._transport.get_write_buffer_size() > MAX_UNSENT
        self._gate()

    def _push(self, messages: bytes) -> None:
        if messages and not self._is_closed:
            self._waiting.append(messages)
            self._size += len(messages)
        self._wake()

    def _wake(self) -> None:
        for waiter in (self._reader, self._writer):
            if waiter is not None and not waiter.done():
                waiter.set_result(None)

    def _gate(self) -> None:
        """Pause the connection while the worker does not read, or the server does not."""
        full = self._is_flooded or self._size > (LOW if self._is_held else HIGH)
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
        for data in self._codec.outgoing():
            if data:
                self._transport.write(data)
            else:
                self._transport.close()
        if self._codec.is_closing:
            self._close_soon()

    def _close_soon(self) -> None:
        """A close was said: the server has some seconds to end the connection, as is its part."""
        if not self._is_leaving:
            self._is_leaving = True
            asyncio.get_running_loop().call_later(CLOSE_SECONDS, self._cut)

    def _cut(self) -> None:
        if not self._is_lost:
            self._transport.abort()

    def pause_writing(self) -> None:
        self._is_write_paused = True

    def resume_writing(self) -> None:
        self._is_write_paused = self._is_flooded = False
        self._wake()
        self._gate()

    def eof_received(self) -> bool:
        self._codec.end()
        self._flush()
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self._is_lost = True
        self._push(self._codec.tell_close())
        self._release()

    def sweep(self, now: float, limit: float) -> None:
        """A silent server is asked whether it is there; one that does not answer is gone. 0: it may be silent."""
        idle = now - self.touched
        if self._is_held:  # it is the worker that does not listen
            self.touched = now
        elif limit and idle > limit:
            self._transport.abort()
        elif limit and idle > limit / 2 and not self.is_pinged:
            self.is_pinged = True
            self._codec.ping()
            self._flush()
