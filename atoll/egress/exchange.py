"""One request to another server and its response.

The server is not trusted: head and body have a maximum size, silence has a timeout (the client checks it), and invalid
HTTP ends the exchange. llhttp decides on the grammar.

An exchange outlives its use of the connection. After the last byte the connection may serve the next exchange, while
the body waits here to be read.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Callable
from typing import Protocol, cast

import httptools

from atoll.egress.gate import in_words
from atoll.errors import AtollError, NetworkError
from atoll.holdings import SMALL_WINDOW, Holdings
from atoll.wire.generated import MAX_REASON

HIGH = 256 << 10  # with more bytes of unread body, the socket is paused
LOW = 128 << 10  # with fewer, it is resumed
TIGHT_HIGH = 64 << 10  # as HIGH, while the tenant holds more than its room (atoll/holdings.py)
READ_BYTES = 128 << 10  # the most that one read returns
HEAD_BYTES = 128 << 10  # the longest response head
MAX_HEADERS = 1_000
# Bytes of chunk sizes, extensions and trailers that a chunked body may have: CHUNK_OVERHEAD per byte of content, and
# TRAILER_BYTES on top, as in the front.
CHUNK_OVERHEAD = 8
TRAILER_BYTES = 64 << 10
SMALL = 1 << 10  # smaller chunks are joined to the one before
JOINED = 32 << 10  # up to this size
MANY_PIECES = 64  # chunks in one piece that make a body laborious
SWITCHING = 101
OK = b"HTTP/1.1 200 OK"
NOT_IN_REASON = re.compile(rb"[^\t\x20-\x7e\x80-\xff]")
EMPTY_LINE = re.compile(rb"\r?\n\r?\n")
# https://www.rfc-editor.org/rfc/rfc9112#name-obsolete-line-folding. A match starts where a run of blanks starts:
# trying again from each blank of a long run would be quadratic.
FOLD = re.compile(rb"(?<![ \t])[ \t]*+\r\n[ \t]++")


class Carrier(Protocol):
    """What an exchange needs of the connection it is on."""

    transport: asyncio.Transport
    is_lost: bool

    def hold(self, held: bool) -> None: ...
    def leave(self, keeps: bool) -> None: ...
    async def drain(self) -> None: ...


def _head_of(data: bytes) -> tuple[bytes, bytes]:
    """The head, without its empty line and with CRLF after each line, and what follows it."""
    head, _, rest = data.partition(b"\r\n\r\n")
    if head.count(b"\n") == head.count(b"\r\n"):
        return head, rest
    end = EMPTY_LINE.search(data)
    if end is None:
        return head, rest
    lines = data[: end.start()].split(b"\n")
    return b"\r\n".join(line.removesuffix(b"\r") for line in lines), data[end.end() :]


class ServerExchange:
    """One request and its response. llhttp calls the methods named on_….

    Initial values that all exchanges share are class attributes: setting a dozen fields costs as much as parsing a
    small head.
    """

    # of the request
    connection: Carrier | None = None
    is_upgrade = False  # the request asks for a WebSocket: 101 is allowed
    is_reused = False  # sent on a connection that served a request before
    is_out = False  # written, at least in part
    # of the response
    status = 0
    reason = ""
    lines = b""  # `Name: value CRLF` for each header, by the grammar of llhttp; trailers are not among them
    early = b""  # bytes after a 101
    heard = 0.0  # when the server last sent something; set by the client's sweep
    is_new = True  # nothing received yet
    is_laborious = True  # a head, or tiny chunks: parse less at once
    has_head = False
    length: int | None = None  # Content-Length, if there is one
    has_ended = False
    error: AtollError | None = None
    _is_framed = False  # the head tells where the body ends
    _head_bytes = 0
    _wire = 0  # bytes received after the head
    _size = 0  # bytes of unread body
    _is_fed = False  # llhttp is parsing
    _is_news = False
    _pieces = 0  # body chunks in the piece that is parsed
    _listener: Callable[[], None] | None = None
    # for whom the body is held
    _holdings: Holdings | None = None
    _tenant = ""
    _counted = 0

    def __init__(self, where: str, is_head: bool, is_whole: bool, chunked: bool, max_bytes: int) -> None:
        self.where = where
        self.is_head = is_head
        self.is_sent = is_whole  # all of the request has been written
        self.is_chunked = chunked
        self._head: list[bytes] = []  # bytes received until the head is complete
        self._chunks: deque[bytes | bytearray] = deque()
        self._room = self._max_bytes = max_bytes
        # The parser refers to this object. It is dropped at the end, or only the garbage collector could free both.
        self._parser: httptools.HttpResponseParser | None = httptools.HttpResponseParser(self)
        # Accept values as in https://fetch.spec.whatwg.org/#header-value. `_read_head` checks the rest.
        # Some servers end lines in LF alone. RFC 9112, 2.2 lets a client accept that.
        self._parser.set_dangerous_leniencies(lenient_headers=True, lenient_optional_cr_before_lf=True)

    def charge(self, holdings: Holdings, tenant: str) -> None:
        """Count unread bytes of the body to this tenant."""
        self._holdings = holdings
        self._tenant = tenant

    def _count(self) -> None:
        size = self._size if self._size > SMALL_WINDOW else 0
        if self._holdings is not None and size != self._counted:
            self._holdings.count(self._tenant, size - self._counted)
            self._counted = size

    def __del__(self) -> None:
        if self._counted and self._holdings is not None:  # nobody has read the body to its end, nor closed it
            self._holdings.count(self._tenant, -self._counted)

    # --- for the reader ---

    async def head(self) -> None:
        """Wait for the head of the response. Raises NetworkError if there is none."""
        while not self.has_head:
            if self.error is not None:
                raise self.error
            await self._news()

    async def read(self) -> bytes:
        """The next part of the body; b"" at its end. Raises NetworkError if it is cut off. One read at a time."""
        while not self._chunks:
            if self.error is not None:
                raise self.error
            if self.has_ended:
                return b""
            await self._news()
        return self.read_nowait()

    def read_nowait(self) -> bytes:
        """The part of the body that is here already."""
        taken: list[bytes | bytearray] = []
        size = 0
        while self._chunks and size < READ_BYTES:
            chunk = self._chunks.popleft()
            if size + len(chunk) > READ_BYTES:
                self._chunks.appendleft(chunk[READ_BYTES - size :])
                chunk = chunk[: READ_BYTES - size]
            taken.append(chunk)
            size += len(chunk)
        self._size -= size
        if self._counted:
            self._count()
        if self._size <= LOW and self.connection is not None:
            self.connection.hold(False)
        return taken[0] if len(taken) == 1 and isinstance(taken[0], bytes) else b"".join(taken)

    @property
    def at_end(self) -> bool:
        return self.has_ended and not self._chunks and self.error is None

    async def write(self, chunk: bytes, ended: bool) -> bool:
        """Send more of the request body, and wait for room. False if the server wants no more."""
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
        """Cancel the exchange."""
        self._chunks.clear()
        self._size = 0
        self._count()
        self.fail(NetworkError("the exchange was closed"))

    async def _news(self) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def wake() -> None:
            if not waiter.done():
                waiter.set_result(None)

        self.listen(wake)
        await waiter

    def listen(self, listener: Callable[[], None] | None) -> None:
        """Set the listener for a head, more body, the end, or an error. It replaces the one before."""
        self._listener = listener

    def _wake(self) -> None:
        self._is_news = True
        if not self._is_fed:
            self._tell()

    def _tell(self) -> None:
        """Call the listener once per read of the socket, and never from within llhttp."""
        if self._is_news:
            self._is_news = False
            if self._listener is not None:
                self._listener()

    # --- from the server ---

    def feed(self, data: bytes) -> bool:
        """Parse received bytes. False if they are invalid, or more than one response."""
        self.is_new = False
        self.heard = 0.0
        if self.status == SWITCHING:  # until the connection is handed over
            self.early += data
            return True
        self._is_fed = True
        self._pieces = 0
        try:
            return self._parse(data)
        finally:
            self.is_laborious = not self.has_head or self._pieces > MANY_PIECES
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
            self.fail(NetworkError(f"{self.where} switched to another protocol without being asked"))
            return False
        except httptools.HttpParserError as error:
            if self.error is None and not self.has_ended:
                cause = error.__context__
                known = cause if isinstance(cause, AtollError) else None
                self.fail(known or NetworkError(f"{self.where} sent an invalid HTTP/1.1 response: {error}"))
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
        """The connection is closed. That ends a body without a length; otherwise it is a failure."""
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
        head, rest = _head_of(b"".join(self._head).lstrip(b"\r\n"))
        if status == SWITCHING and not self.is_upgrade:
            raise NetworkError(f"{self.where} switched to another protocol without being asked")
        if status < 200 and status != SWITCHING:
            self._head = [rest]
            return  # on_message_complete follows, and then the final response
        if status > 599:
            raise NetworkError(f"{self.where} answered with the invalid status {status}")
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
        """Read a head that llhttp has accepted: lines end in CRLF, and there is no other CR or LF."""
        if b"\0" in head:
            raise NetworkError(f"{self.where} sent an invalid HTTP/1.1 response: a header holds a NUL")
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
            raise NetworkError(f"{self.where} used a transfer coding that was not requested")
        self._is_framed = at >= 0 or coding >= 0

    def on_body(self, chunk: bytes) -> None:
        if self.has_ended or self.error is not None:
            raise NetworkError("a body after the end of the response")  # the connection is aborted
        self._room -= len(chunk)
        if self._room < 0:
            raise NetworkError(f"the response of {self.where} is longer than {self._max_bytes} bytes")
        self._pieces += 1
        self._keep(chunk)
        self._size += len(chunk)
        if self._size > SMALL_WINDOW:
            self._count()
            if (self._size > HIGH or self._is_too_much()) and self.connection is not None:
                self.connection.hold(True)
        self._wake()

    def _is_too_much(self) -> bool:
        holdings = self._holdings
        return self._size > TIGHT_HIGH and holdings is not None and holdings.is_tight(self._tenant)

    def _keep(self, chunk: bytes) -> None:
        """Store a chunk. Small chunks are joined: an object for each would take fifty times its bytes."""
        chunks = self._chunks
        if len(chunk) >= SMALL or not chunks or len(chunks[-1]) >= JOINED:
            chunks.append(chunk)
            return
        last = chunks[-1]
        if not isinstance(last, bytearray):
            last = chunks[-1] = bytearray(last)
        last += chunk

    def on_message_complete(self) -> None:
        if self.has_head and not self.has_ended and self.status != SWITCHING:  # otherwise it is the end of a 100 or 103
            self._end(cast(httptools.HttpResponseParser, self._parser).should_keep_alive())

    def on_message_begin(self) -> None:
        if self.has_ended:
            raise NetworkError("a second response")  # the connection is aborted

    def _end(self, keeps: bool) -> None:
        self.has_ended = True
        if self.connection is not None:
            self.connection.leave(bool(keeps) and self.is_sent)
        self._wake()


def reason_of(line: bytes) -> str:
    """The reason phrase of a status line, without characters that a worker could not forward."""
    return NOT_IN_REASON.sub(b"", line[13 : 13 + MAX_REASON]).decode("latin-1")  # after `HTTP/1.1 200 `


def pairs_of(lines: bytes) -> list[tuple[str, str]]:
    """Header lines as names in lower case and values."""
    pairs = []
    for line in lines.decode("latin-1").split("\r\n"):
        name, mark, value = line.partition(":")
        if mark:
            pairs.append((name.lower(), value.strip(" \t")))
    return pairs
