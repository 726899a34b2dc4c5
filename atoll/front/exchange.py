"""One request and its response, from the route to the last byte.

An exchange is the Caller of its call: the pool tells it of the response, it writes to its connection. It is also the
error boundary of the front: before the head of the response has gone a failure becomes an error page, afterwards the
connection is cut so that the client sees that something is missing.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from atoll.errors import Failure
from atoll.front.flow import DISCARD, Download, Upload
from atoll.front.http1 import (
    BODYLESS,
    CHUNKED_BODY,
    CLOSE,
    KEEP_ALIVE,
    LAST_CHUNK,
    LENGTH,
    BadResponse,
    header,
    response_bytes,
    response_head,
    told_length,
)
from atoll.front.pages import error_page
from atoll.wire.generated import INLINE_BODY, WINDOW, ErrorCode
from atoll.workers import Version

if TYPE_CHECKING:
    from atoll.front.connection import Connection
    from atoll.front.shared import Call

log = logging.getLogger("atoll.front")


# How far the response is. Plain ints: an enum's members cost a lookup each.
WAITING: Final = 0
STREAMING: Final = 1
MUTED: Final = 2  # the response is over for the client (HEAD, 304), the worker still streams a body nobody reads
OVER: Final = 3


class Exchange:
    __slots__ = (
        "call", "connection", "download", "gathered", "head", "is_chunked", "is_plain", "keeps", "left", "minor",
        "muted", "state", "streams_up", "upload", "version",
    )  # fmt: skip

    def __init__(
        self, connection: Connection, version: Version | None, head: bytes, minor: int, keeps: bool, is_plain: bool
    ) -> None:
        # the request
        self.connection = connection
        self.version = version  # None: the control API answers
        self.head = head
        self.minor = minor
        self.keeps = keeps
        self.is_plain = is_plain  # HTTP/1.1, kept alive, not HEAD, no body to come: the response needs no thought
        # its way to the worker
        self.call: Call | None = None
        self.upload: Upload | None = None
        # the response
        self.state = WAITING
        self.download: Download | None = None

    # The request body, from the connection

    def expect_body(self, streams: bool) -> None:
        self.gathered = b""
        self.streams_up = streams

    def on_request_body(self, chunk: bytes, ended: bool) -> None:
        """A body is inline in the call when it is small and whole; else the call begins without it."""
        if self.upload is not None:
            self.upload.take(chunk, ended)
        elif self.call is None and self.state == WAITING:
            self.gathered += chunk
            if ended and len(self.gathered) <= INLINE_BODY:
                self.start(self.gathered, ended=True)
            elif self.streams_up:
                gathered, self.gathered = self.gathered, b""
                upload = self.start(b"", ended=False)
                if upload is not None:
                    upload.take(gathered, ended)

    def on_request_end(self, keeps: bool) -> None:
        """llhttp has seen the whole request."""
        self.keeps = self.keeps and keeps
        if self.state == WAITING and not self.connection.shared.is_draining:
            self.is_plain = self.keeps and self.minor == 1 and not self.head.startswith(b"HEAD ")

    def start(self, body: bytes, *, ended: bool) -> Upload | None:
        """Make the call. Unless the body has ended with it, the rest goes through the Upload returned."""
        connection = self.connection
        shared = connection.shared
        call: Call
        if self.version is not None:
            call = shared.pool.call(self.version, self.head, body, ended, self)
        else:
            assert shared.control is not None
            call = shared.control.call(self.head, self.minor, body, ended, self, (connection.peer.client(self.head), 0))
        self.call = call
        if not ended and self.state == WAITING:
            self.upload = Upload(call)
        return self.upload

    # The Caller side

    def on_response(self, status: int, head: bytes, body: bytes, ended: bool) -> None:
        if self.state:
            return self.break_off("the engine answered twice")
        connection = self.connection
        try:
            if ended and self.is_plain:
                data = response_bytes(status, head, body, connection.shared.date)
                self.state = OVER
                connection.shared.send(connection, data)
                connection.finish(True)
            else:
                self.respond(status, head, body, ended)
        except BadResponse as error:
            self.reject(error)

    def respond(self, status: int, block: bytes, body: bytes, ended: bool) -> None:
        length = -1
        is_head = self.head.startswith(b"HEAD ")
        if (not ended or (is_head and not body)) and block.startswith(LENGTH):
            length, block = told_length(block)
        elif is_head and ended and body:
            length = len(body)
        connection = self.connection
        date = connection.shared.date
        is_mute = is_head or status in BODYLESS
        has_end = ended or is_mute or self.minor == 1 or length >= 0  # the client can tell where the body ends
        keeps = self.keeps and has_end and connection.can_keep()
        line = (KEEP_ALIVE if self.minor == 0 else b"") if keeps else CLOSE
        if ended and not is_mute:
            data = response_bytes(status, block, body, date, line)
        elif is_mute:  # without a body nobody knows what GET would bring: then HEAD tells no length either
            told = length >= 0 and status not in BODYLESS
            data = response_head(status, block, b"content-length: %d\r\n" % length if told else b"", date, line)
        else:
            framing = CHUNKED_BODY if self.minor else b""
            if length >= 0:
                framing = b"content-length: %d\r\n" % length
            self.stream(response_head(status, block, framing, date, line), body, keeps, length)
            return
        self.state = OVER if ended else MUTED
        connection.shared.send(connection, data)
        if not ended:
            self.muted = 0
        connection.finish(keeps)

    def stream(self, head: bytes, body: bytes, keeps: bool, length: int) -> None:
        assert self.call is not None
        self.keeps = keeps
        self.is_chunked = self.minor == 1 and length < 0
        self.left = length  # of a body whose length the client was told; negative for others
        self.state = STREAMING
        self.download = Download(self.call, self.connection.is_write_paused)
        self.connection.shared.send(self.connection, head)
        if self.left < 0 or self.counts(body, ended=False):
            self.write_body(body, ended=False)  # brings no credit: what a RESPONSE carries is not counted by the engine

    def counts(self, chunk: bytes, ended: bool) -> bool:
        """Hold the engine to the length it told. A body that is longer or shorter is broken off where that shows."""
        self.left -= len(chunk)
        if self.left >= 0 and (not ended or self.left == 0):
            return True
        self.break_off("the engine sent a body that is not as long as it said")
        return False

    def write_body(self, chunk: bytes, ended: bool) -> None:
        connection = self.connection
        if self.is_chunked:
            if chunk:
                chunk = b"%x\r\n%b\r\n%b" % (len(chunk), chunk, LAST_CHUNK if ended else b"")
            elif ended:
                chunk = LAST_CHUNK
        if chunk:
            connection.shared.send(connection, chunk)

    def on_body(self, chunk: bytes, ended: bool) -> None:
        if self.state == STREAMING:
            download = self.download
            assert download is not None
            if self.left >= 0 and not self.counts(chunk, ended):
                return
            self.write_body(chunk, ended)
            if ended:
                self.state = OVER
                self.connection.finish(self.keeps)
            elif download.owed + len(chunk) > 2 * WINDOW:
                self.break_off("the engine sent more body than it was granted")
            else:
                download.sent(len(chunk))
        elif self.state == MUTED:
            self.state = OVER if ended else MUTED
            self.mute(len(chunk))
        elif self.state == WAITING:
            self.reject(BadResponse("the engine sent a body before its response"))

    def mute(self, amount: int) -> None:
        """Let a worker finish a short body that nobody reads; stop a long one."""
        self.muted += amount
        if self.call is None or self.state == OVER:
            return
        if self.muted > DISCARD:
            self.state = OVER
            self.call.cancel()
        elif amount:
            self.call.grant(amount)

    def on_failure(self, failure: Failure) -> None:
        if self.state == WAITING:
            self.answer_failure(failure)
        elif self.state == STREAMING:
            self.state = OVER
            self.connection.cut()
        else:
            self.state = OVER

    def on_upload_credit(self, amount: int) -> None:
        if self.upload is not None and self.state != OVER:
            self.upload.add_credit(amount)
            self.connection.gate()

    def on_upload_stop(self) -> None:
        if self.upload is not None:
            self.upload.stop()
            if self.state != OVER:
                self.connection.gate()

    # What goes wrong

    def answer_failure(self, failure: Failure) -> None:
        shared = self.connection.shared
        if shared.explain is not None and self.version is not None:
            failure = shared.explain(self.version.id, failure)
        page = error_page(failure, header(self.head.lower(), b"accept") or b"", shared.detail)
        self.respond(page.status, page.block, page.body, ended=True)

    def reject(self, error: BadResponse) -> None:
        """The worker, or its engine, sent what no client may see. The client is told so, and so are the logs."""
        failure = Failure(ErrorCode.INTERNAL, str(error))
        if self.version is None:
            log.error("response of the control API refused: %s", error)
            self.cancel_call()
        else:
            log.warning("response of %s refused: %s", self.version.worker_name, error)
            failure = Failure(ErrorCode.NOT_A_RESPONSE, f"the response was refused: {error}")
            if self.call is not None:
                self.call.refuse(failure)
        self.answer_failure(failure)

    def break_off(self, reason: str) -> None:
        if self.state != OVER:
            log.error("response broken off: %s", reason)
            streaming = self.state == STREAMING
            self.abandon()
            if streaming:
                self.connection.cut()

    def abandon(self) -> None:
        """The client is gone, or has been told something else: nothing of the call is wanted any more."""
        if self.state != OVER:
            self.state = OVER
            self.cancel_call()

    def cancel_call(self) -> None:
        if self.call is not None:
            self.call.cancel()
