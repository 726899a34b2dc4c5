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

from atoll.front.http1 import CHUNKED, Refusal, body_length, header
from atoll.wire.generated import INLINE_BODY

EMPTY_LINE: Final = b"\r\n\r\n"
UPGRADE_LINE: Final = re.compile(rb"\r\nupgrade:", re.IGNORECASE)
TOKEN: Final = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,32} ")

# What llhttp raises at a head.
NOT_PLAIN: Final = (httptools.HttpParserError, httptools.HttpParserUpgrade)

# Bytes of chunk sizes, extensions and trailers that a chunked body may cost besides what it carries.
CHUNK_OVERHEAD: Final = 8
TRAILER_BYTES: Final = 65536


class Framing:
    """llhttp for one connection.

    `kept` is llhttp's word on keep-alive once a message is complete; its reader sets it back to None for the next.
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
        self.kept = self.parser.should_keep_alive()

    def head(self, head: bytes) -> None:
        """Check the head of a message. Raises Refusal. (`Connection.begin` does the same with one call less.)"""
        try:
            self.feed(head)
        except NOT_PLAIN as error:
            self.judge(head, error)

    def judge(self, head: bytes, error: Exception) -> None:
        """llhttp stumbled over a head: refuse it, unless all it did was ask for another protocol."""
        if isinstance(error, httptools.HttpParserUpgrade):
            self.without_upgrade(head)
        elif isinstance(error, httptools.HttpParserInvalidMethodError) and TOKEN.match(head) is not None:
            raise Refusal(501, "unknown method")
        else:
            raise Refusal(400, str(error))

    def without_upgrade(self, head: bytes) -> None:
        """Check the head of a message that asks for another protocol, which RFC 9110 lets a server ignore.

        llhttp stops at such a head whether or not a body follows, so it is shown one that asks for nothing.
        """
        if head.startswith(b"CONNECT "):
            raise Refusal(501, "CONNECT is for proxies")
        self.renew()
        self.kept = None  # llhttp took the head for a whole message
        try:
            self.feed(UPGRADE_LINE.sub(b"\r\nx-pgrade:", head))
        except httptools.HttpParserError as error:
            raise Refusal(400, str(error)) from None

    def expect_body(self, lower: bytes, minor: int) -> int:
        """Get ready for the body after a head, given in lower case; returns its length or CHUNKED. Raises Refusal."""
        self.left = body_length(lower, minor)
        self.wire = self.carried = 0
        self.tail = b""
        return self.left

    def whole_body(self, head: bytes, buffer: bytearray, limit: int) -> bytes:
        """Cut a body out of `buffer` that is there as a whole and fits into a call; `kept` tells whether it was."""
        lower = head.lower()
        length = header(lower, b"content-length")
        if length is None or len(length) > 5 or lower.find(b"\nexpect:") > 0 or not length.isdigit():
            return b""
        size = int(length)
        if size > len(buffer) or size > INLINE_BODY or size > limit:
            return b""
        body = bytes(buffer[:size])
        del buffer[:size]
        self.feed(body)
        self.parts.clear()
        if self.kept is None:
            raise Refusal(400, "the length of the body is unclear")
        return body

    def take(self, data: bytes) -> int:
        """Feed body bytes; returns how many belonged to this message. The body is in `parts`. Raises Refusal."""
        try:
            return self.take_chunked(data) if self.left == CHUNKED else self.take_counted(data)
        except httptools.HttpParserError as error:
            raise Refusal(400, str(error)) from None

    def take_counted(self, data: bytes) -> int:
        piece = data if len(data) <= self.left else data[: self.left]
        self.left -= len(piece)
        self.feed(piece)
        if (self.left == 0) is not (self.kept is not None):
            raise Refusal(400, "the length of the body is unclear")
        return len(piece)

    def take_chunked(self, data: bytes) -> int:
        before = len(self.parts)
        seam = len(self.tail)
        window = self.tail + data
        start = seam
        while start < len(window) and self.kept is None:
            at = window.find(EMPTY_LINE, max(0, start - 3))
            end = len(window) if at < 0 else at + 4
            self.feed(window[start:end])
            start = end
        self.tail = window[-3:]
        used = start - seam
        self.wire += used
        self.carried += sum(map(len, self.parts[before:]))
        if self.wire - self.carried > TRAILER_BYTES + CHUNK_OVERHEAD * self.carried:
            raise Refusal(400, "a chunked body with more framing than content")
        return used
