"""One HTTP/1.1 connection to another server, and one exchange on it at a time.

The other server is hostile too: its head and its body are bounded, it may be silent only so long (the client's sweep
looks), and what is no HTTP ends the exchange. llhttp has the say on the grammar.

An Exchange outlives its place on the connection: when the last byte has come the connection may serve the next one,
while what came waits here to be read.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Any, cast

import httptools

from atoll.egress.gate import in_words
from atoll.errors import AtollError, NetworkError

HIGH = 256 << 10  # bytes of body that wait to be read before the socket is paused,
LOW = 128 << 10  # and how few before it goes on
READ_BYTES = 128 << 10  # the most that one read gives
HEAD_BYTES = 128 << 10  # the longest response head
MAX_HEADERS = 1_000
SWITCHING = 101


class Connection(asyncio.Protocol):
    """`release` is told when an exchange has left it and it may be used again, or not."""

    def __init__(self, where: str, release: Callable[[Connection, bool], None]) -> None:
        # of the connection
        self.where = where  # host:port, for errors
        self.tenant = ""
        self.key: tuple[Any, ...] = ()
        self.transport: asyncio.Transport = cast(asyncio.Transport, None)
        self.is_lost = False
        self.idle_since = 0.0
        self._release = release
        self._writer: asyncio.Future[None] | None = None  # waits for the write buffer to empty
        self._is_write_paused = False
        # of the exchange
        self.exchange: Exchange | None = None
        self._is_held = False

    def begin(self, exchange: Exchange, data: bytes) -> None:
        self.exchange = exchange
        exchange.connection = self
        self.transport.write(data)

    def hand_over(self, protocol: asyncio.BaseProtocol) -> None:
        """What the exchange made of the connection is no HTTP any more: another protocol has it from now on."""
        if self.exchange is not None:
            self.exchange.connection = None
            self.exchange = None
        self.transport.set_protocol(protocol)

    def leave(self, keeps: bool) -> None:
        """The exchange is over: serve the next one, or close."""
        exchange, self.exchange = self.exchange, None
        if exchange is not None:
            exchange.connection = None
        self._wake_writer()
        keeps = keeps and not self.is_lost
        if keeps:
            self.hold(False)
        else:
            self.transport.abort()
        self._release(self, keeps)

    def hold(self, held: bool) -> None:
        """Pause or resume reading."""
        if held is self._is_held or self.is_lost:
            return
        self._is_held = held
        if held:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    @property
    def is_held(self) -> bool:
        return self._is_held

    @property
    def is_write_paused(self) -> bool:
        return self._is_write_paused

    async def drain(self) -> None:
        """Wait until what was written has mostly gone."""
        if self._is_write_paused and not self.is_lost:
            self._writer = asyncio.get_running_loop().create_future()
            await self._writer

    def _wake_writer(self) -> None:
        if self._writer is not None and not self._writer.done():
            self._writer.set_result(None)

    # --- asyncio.Protocol ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        # More than was asked for: whatever it is, the next response could not be told from it.
        if self.exchange is None or not self.exchange.feed(data):
            self.transport.abort()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self.is_lost = True
        self._wake_writer()
        exchange = self.exchange
        if exchange is not None:
            exchange.on_lost(error)
        if self.exchange is not None:  # else it has left
            self.leave(False)
        elif exchange is None:
            self._release(self, False)

    def pause_writing(self) -> None:
        self._is_write_paused = True

    def resume_writing(self) -> None:
        self._is_write_paused = False
        self._wake_writer()


class Exchange:
    """One request and its response. Its methods named on_… are llhttp's."""

    def __init__(self, where: str, is_head: bool, is_whole: bool, chunked: bool, max_bytes: int) -> None:
        # the request
        self.where = where
        self.is_head = is_head
        self.is_sent = is_whole  # all of the request has been written
        self.is_chunked = chunked
        self.is_upgrade = False  # a WebSocket was asked for: 101 is an answer
        self.connection: Connection | None = None
        # the response
        self.early = b""  # what came behind a 101
        self.status = 0
        self.reason = ""
        self.headers: list[tuple[bytes, bytes]] = []
        self.heard = 0.0  # when the server last sent something; the client's sweep keeps the time
        self.is_new = True  # nothing has come yet
        self.is_reused = False  # it went out on a connection that had served before
        self.has_head = False
        self.has_ended = False
        self.error: AtollError | None = None
        self._parser = httptools.HttpResponseParser(self)
        # Values as https://fetch.spec.whatwg.org/#header-value has them; what could end a line is sorted out later.
        self._parser.set_dangerous_leniencies(lenient_headers=True)
        self._is_framed = False  # it said where its body ends
        self._head_bytes = 0
        self._room = max_bytes
        self._max_bytes = max_bytes
        self._chunks: deque[bytes] = deque()
        self._size = 0
        self._waiter: asyncio.Future[None] | None = None

    # --- what the one who asked does with it ---

    async def head(self) -> None:
        """Wait for the head of the response. NetworkError when there will be none."""
        while not self.has_head:
            if self.error is not None:
                raise self.error
            await self._news()

    async def read(self) -> bytes:
        """More of the body; b"" at its end. NetworkError when it broke off. One read at a time."""
        while not self._chunks:
            if self.error is not None:
                raise self.error
            if self.has_ended:
                return b""
            await self._news()
        return self.read_nowait()

    def read_nowait(self) -> bytes:
        """What of the body is here already."""
        taken: list[bytes] = []
        size = 0
        while self._chunks and size < READ_BYTES:
            chunk = self._chunks.popleft()
            if size + len(chunk) > READ_BYTES:
                self._chunks.appendleft(chunk[READ_BYTES - size :])
                chunk = chunk[: READ_BYTES - size]
            taken.append(chunk)
            size += len(chunk)
        self._size -= size
        if self._size <= LOW and self.connection is not None:
            self.connection.hold(False)
        return taken[0] if len(taken) == 1 else b"".join(taken)

    @property
    def at_end(self) -> bool:
        return self.has_ended and not self._chunks and self.error is None

    async def write(self, chunk: bytes, ended: bool) -> bool:
        """More of the request body; returns when there is room for the next. False: nobody wants more of it."""
        connection = self.connection
        if connection is None or connection.is_lost:
            return False
        if self.is_chunked:
            chunk = b"%x\r\n%b\r\n" % (len(chunk), chunk) if chunk else b""
            if ended:
                chunk += b"0\r\n\r\n"
        if chunk:
            connection.transport.write(chunk)
        self.is_sent = ended
        await connection.drain()
        return self.connection is not None

    def close(self) -> None:
        """Nothing of it is wanted any more."""
        self._chunks.clear()
        self.fail(NetworkError("the exchange was closed"))

    async def _news(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        await self._waiter

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # --- what the server says ---

    def feed(self, data: bytes) -> bool:
        """Take what came. False: it was wrong, or more than one response."""
        self.is_new = False
        self.heard = 0.0
        if self.status == SWITCHING:  # until the connection is handed over
            self.early += data
            return True
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            if self.status == SWITCHING and self.connection is not None:
                self.early = data[upgrade.args[0] :]
                self.connection.hold(True)
                return True
            self.fail(NetworkError(f"{self.where} switched to another protocol, which nobody asked for"))
            return False
        except httptools.HttpParserError as error:
            if self.error is None and not self.has_ended:
                cause = error.__context__
                known = cause if isinstance(cause, AtollError) else None
                self.fail(known or NetworkError(f"{self.where} answered with something that is no HTTP/1.1: {error}"))
            return False
        if not self.has_head:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES:
                self.fail(NetworkError(f"the response head of {self.where} is longer than {HEAD_BYTES >> 10} KB"))
        return True

    def fail(self, error: AtollError) -> None:
        if self.error is None and not self.has_ended:
            self.error = error
            self._wake()
            if self.connection is not None:
                self.connection.leave(False)

    def on_lost(self, error: Exception | None) -> None:
        """The connection is gone: the end of a body that has no other end, else a failure."""
        if self.has_ended or self.error is not None:
            return
        if self.has_head and not self._is_framed and error is None:
            self._end(False)
            return
        how = in_words(error) if isinstance(error, OSError) else "it was closed"
        when = "before the whole body had come" if self.has_head else "before an answer came"
        self.error = NetworkError(f"Network connection lost: {how} by {self.where} {when}")
        self._wake()

    def on_status(self, reason: bytes) -> None:
        self.reason += reason.decode("latin-1")

    def on_header(self, name: bytes, value: bytes) -> None:
        self._head_bytes += len(name) + len(value) + 4
        if self._head_bytes > HEAD_BYTES or len(self.headers) >= MAX_HEADERS:
            raise NetworkError(f"the response head of {self.where} is longer than {HEAD_BYTES >> 10} KB")
        if b"\0" in value or b"\r" in value or b"\n" in value:
            raise NetworkError(f"{self.where} answered with something that is no HTTP/1.1: a header holds a NUL")
        if not self.has_head:  # else it is a trailer
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < 200:
            if status == SWITCHING:
                if self.is_upgrade:
                    self.status = status
                    self.has_head = True
                    self._wake()
                    return
                raise NetworkError(f"{self.where} switched to another protocol, which nobody asked for")
            return  # on_message_complete follows, and then the real one
        if status > 599:
            raise NetworkError(f"{self.where} answered with the status {status}, which does not exist")
        self.status = status
        self.has_head = True
        self._is_framed = any(name.lower() in (b"content-length", b"transfer-encoding") for name, _ in self.headers)
        if self.is_head:
            self._end(self._parser.should_keep_alive())
        else:
            self._wake()

    def on_body(self, chunk: bytes) -> None:
        if self.has_ended or self.error is not None:  # of a HEAD, or nobody listens
            if self.connection is not None:
                self.connection.leave(False)
            return
        self._room -= len(chunk)
        if self._room < 0:
            raise NetworkError(f"the response of {self.where} is longer than {self._max_bytes} bytes")
        self._chunks.append(chunk)
        self._size += len(chunk)
        if self._size > HIGH and self.connection is not None:
            self.connection.hold(True)
        self._wake()

    def on_message_complete(self) -> None:
        if not self.has_head:  # a 100 or 103
            self.headers.clear()
            self.reason = ""
        elif not self.has_ended and self.status != SWITCHING:
            self._end(self._parser.should_keep_alive())

    def on_message_begin(self) -> None:
        if self.has_ended:
            raise NetworkError("a second response")  # of a connection that nobody trusts any more

    def _end(self, keeps: bool) -> None:
        self.has_ended = True
        if self.connection is not None:
            self.connection.leave(bool(keeps) and self.is_sent)
        self._wake()
