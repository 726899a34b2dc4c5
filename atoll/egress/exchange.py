"""One request to another server and its response.

The other server is hostile too: its head and its body are bounded, it may be silent only so long (the client's sweep
looks), and what is no HTTP ends the exchange. llhttp has the say on the grammar.

An Exchange outlives its place on the connection: when the last byte has come the connection may serve the next one,
while what came waits here to be read.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

import httptools

from atoll.egress.gate import in_words
from atoll.errors import AtollError, NetworkError
from atoll.wire.generated import MAX_REASON

if TYPE_CHECKING:
    from atoll.egress.connection import Connection

HIGH = 256 << 10  # bytes of body that wait to be read before the socket is paused,
LOW = 128 << 10  # and how few before it goes on
READ_BYTES = 128 << 10  # the most that one read gives
HEAD_BYTES = 128 << 10  # the longest response head
MAX_HEADERS = 1_000
# Bytes of chunk sizes, extensions and trailers that a chunked body may cost besides what it carries, as on the front.
CHUNK_OVERHEAD = 8
TRAILER_BYTES = 64 << 10
SWITCHING = 101
OK = b"HTTP/1.1 200 OK"
NOT_IN_REASON = re.compile(rb"[^\t\x20-\x7e\x80-\xff]")
FOLD = re.compile(rb"[ \t]*\r\n[ \t]+")  # https://www.rfc-editor.org/rfc/rfc9112#name-obsolete-line-folding


class Exchange:
    """One request and its response. Its methods named on_… are llhttp's.

    What begins the same for each is said in the class: there are many, and setting a dozen fields costs as much as
    parsing a small head.
    """

    # of the request
    connection: Connection | None = None
    is_upgrade = False  # a WebSocket was asked for: 101 is an answer
    is_reused = False  # it went out on a connection that had served before
    is_out = False  # some of it was written
    # of the response
    status = 0
    reason = ""
    lines = b""  # `Name: value CRLF` for each header, by the grammar of llhttp; trailers are not among them
    early = b""  # what came behind a 101
    heard = 0.0  # when the server last sent something; the client's sweep keeps the time
    is_new = True  # nothing has come yet
    has_head = False
    length: int | None = None  # of the body, if it says so
    has_ended = False
    error: AtollError | None = None
    _is_framed = False  # it said where its body ends
    _head_bytes = 0
    _wire = 0  # bytes that came behind the head
    _size = 0  # of what waits to be read
    _is_fed = False  # llhttp is at it
    _is_news = False
    _listener: Callable[[], None] | None = None

    def __init__(self, where: str, is_head: bool, is_whole: bool, chunked: bool, max_bytes: int) -> None:
        self.where = where
        self.is_head = is_head
        self.is_sent = is_whole  # all of the request has been written
        self.is_chunked = chunked
        self._head: list[bytes] = []  # what came until the head was whole
        self._chunks: deque[bytes] = deque()
        self._room = self._max_bytes = max_bytes
        # Knows the methods of this very object: dropped at the end, or only the garbage collector could free the two.
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)
        # Values as https://fetch.spec.whatwg.org/#header-value has them; what could end a line is looked for below.
        self._parser.set_dangerous_leniencies(lenient_headers=True)

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
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def wake() -> None:
            if not waiter.done():
                waiter.set_result(None)

        self.listen(wake)
        await waiter

    def listen(self, listener: Callable[[], None] | None) -> None:
        """Who is told when there is a head, more of the body, an end or an error. One at a time, until the next."""
        self._listener = listener

    def _wake(self) -> None:
        self._is_news = True
        if not self._is_fed:
            self._tell()

    def _tell(self) -> None:
        """Once for all that one read of the socket brought, and not from within llhttp."""
        if self._is_news:
            self._is_news = False
            if self._listener is not None:
                self._listener()

    # --- what the server says ---

    def feed(self, data: bytes) -> bool:
        """Take what came. False: it was wrong, or more than one response."""
        self.is_new = False
        self.heard = 0.0
        if self.status == SWITCHING:  # until the connection is handed over
            self.early += data
            return True
        self._is_fed = True
        try:
            return self._parse(data)
        finally:
            self._is_fed = False
            if self.has_ended or self.error is not None:
                self._parser = None
            self._tell()

    def _parse(self, data: bytes) -> bool:
        if not self.has_head:
            self._head.append(data)
            self._head_bytes += len(data)
        else:
            self._wire += len(data)
        try:
            cast(httptools.HttpResponseParser, self._parser).feed_data(data)
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
        if not self.has_head and self._head_bytes > HEAD_BYTES:
            self.fail(self._too_long())
        carried = self._max_bytes - self._room
        if self._wire > TRAILER_BYTES + (CHUNK_OVERHEAD + 1) * carried:
            self.fail(NetworkError(f"{self.where} sends a chunked body with more framing than content"))
        return True

    def _too_long(self) -> NetworkError:
        return NetworkError(f"the response head of {self.where} is longer than {HEAD_BYTES >> 10} KB")

    def fail(self, error: AtollError) -> None:
        if self.error is None and not self.has_ended:
            self.error = error
            if self.connection is not None:
                self.connection.leave(False)
            if not self._is_fed:
                self._parser = None
            self._wake()

    def on_lost(self, error: Exception | None) -> None:
        """The connection is gone: the end of a body that has no other end, else a failure."""
        self._parser = None
        if self.has_ended or self.error is not None:
            return
        if self.has_head and not self._is_framed and error is None:
            self._end(False)
            return
        how = in_words(error) if isinstance(error, OSError) else "it was closed"
        when = "before the whole body had come" if self.has_head else "before an answer came"
        self.error = NetworkError(f"Network connection lost: {how} by {self.where} {when}")
        self._wake()

    def on_headers_complete(self) -> None:
        parser = cast(httptools.HttpResponseParser, self._parser)
        status = parser.get_status_code()
        head, _, rest = b"".join(self._head).lstrip(b"\r\n").partition(b"\r\n\r\n")
        if status == SWITCHING and not self.is_upgrade:
            raise NetworkError(f"{self.where} switched to another protocol, which nobody asked for")
        if status < 200 and status != SWITCHING:
            self._head = [rest]
            return  # on_message_complete follows, and then the real one
        if status > 599:
            raise NetworkError(f"{self.where} answered with the status {status}, which does not exist")
        if len(head) > HEAD_BYTES or head.count(b"\n") > MAX_HEADERS:
            raise self._too_long()
        self._read_head(head)
        self.status = status
        self.has_head = True
        self._head.clear()
        if self.is_head:
            self._end(parser.should_keep_alive())
        else:
            self._wake()

    def _read_head(self, head: bytes) -> None:
        """What llhttp has agreed to: lines that end in CRLF, and no other CR or LF."""
        if b"\0" in head:
            raise NetworkError(f"{self.where} answered with something that is no HTTP/1.1: a header holds a NUL")
        if b"\r\n " in head or b"\r\n\t" in head:
            head = FOLD.sub(b" ", head)
        line, mark, lines = head.partition(b"\r\n")
        self.reason = "OK" if line == OK else reason_of(line)
        self.lines = lines + mark
        lower = head.lower()
        at = lower.find(b"\ncontent-length:")
        if at >= 0:
            self.length = int(lower[at + 16 :].partition(b"\r")[0])
        coding = lower.find(b"\ntransfer-encoding:")
        if coding >= 0 and lower[coding + 19 :].partition(b"\r")[0].strip(b" \t") != b"chunked" and not self.is_head:
            raise NetworkError(f"{self.where} answered in a transfer coding that nobody asked for")
        self._is_framed = at >= 0 or coding >= 0

    def on_body(self, chunk: bytes) -> None:
        if self.has_ended or self.error is not None:
            raise NetworkError("a body of a HEAD, or one that nobody wants")  # of a connection nobody trusts any more
        self._room -= len(chunk)
        if self._room < 0:
            raise NetworkError(f"the response of {self.where} is longer than {self._max_bytes} bytes")
        self._chunks.append(chunk)
        self._size += len(chunk)
        if self._size > HIGH and self.connection is not None:
            self.connection.hold(True)
        self._wake()

    def on_message_complete(self) -> None:
        if self.has_head and not self.has_ended and self.status != SWITCHING:  # else it is the end of a 100 or 103
            self._end(cast(httptools.HttpResponseParser, self._parser).should_keep_alive())

    def on_message_begin(self) -> None:
        if self.has_ended:
            raise NetworkError("a second response")  # of a connection that nobody trusts any more

    def _end(self, keeps: bool) -> None:
        self.has_ended = True
        if self.connection is not None:
            self.connection.leave(bool(keeps) and self.is_sent)
        self._wake()


def reason_of(line: bytes) -> str:
    """The reason phrase of a status line, without what a worker could not send on."""
    return NOT_IN_REASON.sub(b"", line[13 : 13 + MAX_REASON]).decode("latin-1")  # after `HTTP/1.1 200 `


def pairs_of(lines: bytes) -> list[tuple[str, str]]:
    """Header lines as names in lower case and values."""
    pairs = []
    for line in lines.decode("latin-1").split("\r\n"):
        name, mark, value = line.partition(":")
        if mark:
            pairs.append((name.lower(), value.strip(" \t")))
    return pairs
