"""Where one message ends and the next begins, by llhttp's judgement.

A head is cut out of the stream by its empty line and fed to llhttp exactly; llhttp gets no callback for the URL and the
headers, so it checks every byte of them in C and Python is called once, when the message is complete. If that happens
with the head, there is no body. Otherwise the body is fed in pieces that end no later than the message can:
Content-Length says where, and a chunked body can only end right after an empty line. So llhttp never sees a byte of the
next message before we know that this one is over, and the two of us cannot disagree about framing unnoticed.
"""

from __future__ import annotations

import re
from typing import Final

import httptools

from atoll.front.http1 import CHUNKED, Rejection, body_length, header
from atoll.wire.generated import INLINE_BODY

EMPTY_LINE: Final = b"\r\n\r\n"
UPGRADE_LINES: Final = re.compile(rb"\r\n(?:upgrade|(?:proxy-)?connection):", re.IGNORECASE)
LAST_REQUEST: Final = b"connection: close\r\n\r\n"
TOKEN: Final = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,32} ")

# What llhttp raises for a head that is invalid, or that asks for another protocol.
NOT_PLAIN: Final = (httptools.HttpParserError, httptools.HttpParserUpgrade)

# A chunked body is fed in pieces, because llhttp calls back for each chunk. `take` stops after so many pieces, so
# many chunks, or after so many bytes without content: chunk sizes, extensions and trailers are the slowest to parse.
MAX_FEED: Final = 8192
MAX_FEEDS: Final = 512
MAX_PARTS: Final = 1024
MAX_BARREN: Final = 16384

# Bytes of chunk sizes, extensions and trailers that a chunked body may have: CHUNK_OVERHEAD per byte of content, and
# TRAILER_BYTES on top.
CHUNK_OVERHEAD: Final = 8
TRAILER_BYTES: Final = 65536


class Framing:
    """llhttp for one connection.

    `kept` is llhttp's answer about keep-alive once a message is complete. The reader resets it to None.
    """

    __slots__ = ("carried", "feed", "kept", "left", "on_body", "parser", "parts", "tail", "wire")

    def __init__(self) -> None:
        # of the connection
        self.parts: list[bytes] = []  # body bytes llhttp handed out since the last `take`
        self.on_body = self.parts.append
        self.renew()
        # of the message
        self.kept: bool | None = None
        self.left = 0  # bytes of body still to come, or CHUNKED
        self.wire = 0  # of a chunked body: bytes fed,
        self.carried = 0  # bytes it carried,
        self.tail = b""  # and the last bytes fed, where an empty line may have begun

    def renew(self) -> None:
        self.parser = httptools.HttpRequestParser(self)
        self.feed = self.parser.feed_data

    def on_message_complete(self) -> None:
        if self.kept is not None:
            raise ValueError("two messages where we saw one")
        self.kept = self.parser.should_keep_alive()

    def wants_to_stay(self) -> bool:
        """Whether the client wants to keep the connection after the request whose head was fed."""
        return bool(self.parser.should_keep_alive())

    def head(self, head: bytes) -> None:
        """Check the head of a message. Raises Rejection. (`ClientConnection.begin` does it with one call less.)"""
        try:
            self.feed(head)
        except NOT_PLAIN as error:
            self.judge(head, error)

    def judge(self, head: bytes, error: Exception) -> None:
        """Handle an exception of llhttp: refuse the head, unless it is valid and asks for another protocol."""
        if isinstance(error, httptools.HttpParserUpgrade):
            self.without_upgrade(head)
        elif isinstance(error, httptools.HttpParserInvalidMethodError) and TOKEN.match(head) is not None:
            raise Rejection(501, "unknown method")
        else:
            raise Rejection(400, str(error))

    def without_upgrade(self, head: bytes) -> None:
        """Check the head of a message that asks for another protocol, which RFC 9110 lets a server ignore.

        llhttp stops at such a head whether or not a body follows, so it gets a copy without these headers. Some proxies
        stop reading requests there as well, so it is the last request on its connection.
        """
        if head.startswith(b"CONNECT "):
            raise Rejection(501, "CONNECT is not supported")
        self.renew()
        self.kept = None  # llhttp has treated the head as a whole message
        try:
            self.feed(UPGRADE_LINES.sub(b"\r\nx-ignored:", head[:-2]) + LAST_REQUEST)
        except httptools.HttpParserError as error:
            raise Rejection(400, str(error)) from None

    def expect_body(self, lower: bytes, minor: int) -> int:
        """Prepare for the body after a head (in lower case). Returns its length or CHUNKED. Raises Rejection."""
        self.left = body_length(lower, minor)
        self.wire = self.carried = 0
        self.tail = b""
        return self.left

    def whole_body(self, head: bytes, buffer: bytearray, limit: int) -> bytes:
        """Cut a body out of `buffer` if all of it is there and fits into a call. `kept` is set if so."""
        lower = head.lower()
        length = header(lower, b"content-length")
        if length is None or len(length) > 5 or lower.find(b"\nexpect:") > 0 or not length.isdigit():
            return b""
        size = int(length)
        if size > len(buffer) or size > INLINE_BODY or size > limit:
            return b""
        self.left = size
        self.take(bytes(buffer[:size]))
        del buffer[:size]
        body = b"".join(self.parts)
        self.parts.clear()
        return body

    def take(self, data: bytes) -> int:
        """Feed body bytes; returns how many of them were fed. The body is in `parts`. Raises Rejection.

        Those that were not fed belong to the next message if `kept` is set, else to the next call of `take`.
        """
        try:
            return self.take_chunked(data) if self.left == CHUNKED else self.take_counted(data)
        except httptools.HttpParserError as error:
            raise Rejection(400, str(error)) from None

    def take_counted(self, data: bytes) -> int:
        piece = data if len(data) <= self.left else data[: self.left]
        self.left -= len(piece)
        self.feed(piece)
        if (self.left == 0) is not (self.kept is not None) or sum(map(len, self.parts)) != len(piece):
            raise Rejection(400, "the length of the body is unclear")
        return len(piece)

    def take_chunked(self, data: bytes) -> int:
        parts = self.parts
        seam = len(self.tail)
        window = self.tail + data
        start = seam
        feeds = carried = counted = 0
        while start < len(window) and self.kept is None and feeds < MAX_FEEDS and counted < MAX_PARTS:
            at = window.find(EMPTY_LINE, max(0, start - 3), start + MAX_FEED)
            end = min(start + MAX_FEED, len(window)) if at < 0 else at + 4
            self.feed(window[start:end])
            start = end
            feeds += 1
            while counted < len(parts):
                carried += len(parts[counted])
                counted += 1
            if start - seam - carried > MAX_BARREN:
                break
        self.tail = window[max(0, start - 3) : start]
        used = start - seam
        self.wire += used
        self.carried += carried
        if self.wire - self.carried > TRAILER_BYTES + CHUNK_OVERHEAD * self.carried:
            raise Rejection(400, "a chunked body with more framing than content")
        return used
