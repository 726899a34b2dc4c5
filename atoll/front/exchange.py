"""One request and its response, from the route to the last byte.

An exchange is the Caller of its call: it receives the response from the pool and writes it to its connection. It is
also the error boundary of the front. Before the head of the response is sent, a failure becomes an error page. After
that, the connection is cut, so that the client sees that the response is incomplete.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from atoll.errors import Failure
from atoll.front.endpoint import Endpoint
from atoll.front.flow import DISCARD, ClientDownload, ClientUpload
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
from atoll.front.kernel_send import KernelSend
from atoll.front.pages import error_page
from atoll.front.shared import MAX_WAITING_BYTES, PoolCall, Shared
from atoll.holdings import SMALL_WINDOW
from atoll.wire.generated import INLINE_BODY, WINDOW, ErrorCode
from atoll.workers import Version

log = logging.getLogger("atoll.front")


# States of the response. Plain ints: each access to an enum member costs a lookup.
WAITING: Final = 0
STREAMING: Final = 1
MUTED: Final = 2  # the client has its response (HEAD, 304), the worker still streams a body that is dropped
OVER: Final = 3

CLIENT_LEFT: Final = 499  # in the access log, for a client that left before its response, as in those of nginx


class ClientExchange:
    __slots__ = (
        "began", "call", "connection", "download", "gathered", "head", "is_chunked", "is_plain", "keeps", "left",
        "minor", "muted", "sends_file", "sent", "shared", "state", "status", "streams_up", "upload", "version",
    )  # fmt: skip

    def __init__(
        self,
        connection: Endpoint,
        shared: Shared,
        version: Version | None,
        head: bytes,
        minor: int,
        keeps: bool,
        is_plain: bool,
    ) -> None:
        # the request
        self.connection = connection
        self.shared = shared
        self.version = version  # None for the control API
        self.head = head
        self.minor = minor
        self.keeps = keeps
        self.is_plain = is_plain  # HTTP/1.1, kept alive, not HEAD, no body to come: the fast path of `on_response`
        access = shared.access
        self.began = 0.0 if access is None else access.begin()  # 0: it is not in the access log, or is noted already
        # its way to the worker
        self.call: PoolCall | None = None
        self.upload: ClientUpload | None = None
        # the response
        self.state = WAITING
        self.download: ClientDownload | None = None
        self.sends_file = False  # the kernel sends the body, past the transport

    # The request body, from the connection

    def expect_body(self, streams: bool) -> None:
        self.gathered = b""
        self.streams_up = streams

    def on_request_body(self, chunk: bytes, ended: bool) -> None:
        """A small body that is complete travels inside the call. Otherwise the call starts and the body is streamed."""
        if self.upload is not None:
            self.upload.take(chunk, ended)
        elif self.call is None and self.state == WAITING:
            self.gathered += chunk
            if ended and len(self.gathered) <= INLINE_BODY:
                self.start(self.gathered, ended=True)
            elif self.streams_up or (len(self.gathered) > SMALL_WINDOW and self.is_tight()):
                gathered, self.gathered = self.gathered, b""
                upload = self.start(b"", ended=False)
                if upload is not None:
                    upload.take(gathered, ended)

    @property
    def tenant(self) -> str:
        """To whom its bytes are counted, as in ClientLine."""
        version = self.version
        return version.tenant if version is not None else ""

    def is_tight(self) -> bool:
        return self.shared.holdings.is_tight(self.tenant)

    def held(self) -> int:
        """Bytes of the request body in this process."""
        if self.upload is not None:
            return 0 if self.upload.is_stopped else self.upload.held
        return len(self.gathered) if self.call is None and self.state == WAITING else 0

    def on_request_end(self, keeps: bool) -> None:
        """The request is complete. `keeps` is what llhttp says about keep-alive."""
        self.keeps = self.keeps and keeps
        if self.state == WAITING and not self.shared.is_draining:
            self.is_plain = self.keeps and self.minor == 1 and not self.head.startswith(b"HEAD ")

    def start(self, body: bytes, *, ended: bool) -> ClientUpload | None:
        """Start the call. Returns the ClientUpload for the rest of the body, if there is more."""
        connection = self.connection
        shared = self.shared
        call: PoolCall
        if self.version is not None and self.version.assets is not None:
            call = shared.site.call(self.version, self.head, body, ended, self)
        elif self.version is not None:
            call = shared.pool.call(self.version, self.head, body, ended, self)
        else:
            assert shared.control is not None
            call = shared.control.call(self.head, self.minor, body, ended, self, (connection.peer.client(self.head), 0))
        self.call = call
        if not ended and self.state == WAITING:
            self.upload = ClientUpload(call)
        return self.upload

    # The Caller side

    def on_response(self, status: int, head: bytes, body: bytes, ended: bool) -> None:
        if self.state:
            return self.break_off("the engine answered twice")
        connection = self.connection
        try:
            if ended and self.is_plain:
                shared = self.shared
                data = response_bytes(status, head, body, shared.date, b"", shared.base)
                self.state = OVER
                shared.send(connection, data)
                if self.began > 0.0:
                    self.note(status, len(body))
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
        date, base = self.shared.date, self.shared.base
        is_mute = is_head or status in BODYLESS
        has_end = ended or is_mute or self.minor == 1 or length >= 0  # the client can see where the body ends
        keeps = self.keeps and has_end and connection.can_keep()
        line = (KEEP_ALIVE if self.minor == 0 else b"") if keeps else CLOSE
        if ended and not is_mute:
            data = response_bytes(status, block, body, date, line, base)
        elif is_mute:  # HEAD without a known length sends none
            told = length >= 0 and status not in BODYLESS
            data = response_head(status, block, b"content-length: %d\r\n" % length if told else b"", date, line, base)
        else:
            framing = CHUNKED_BODY if self.minor else b""
            if length >= 0:
                framing = b"content-length: %d\r\n" % length
            self.stream(status, response_head(status, block, framing, date, line, base), body, keeps, length)
            return
        self.state = OVER if ended else MUTED
        self.shared.send(connection, data)
        self.note(status, 0 if is_mute else len(body))
        if not ended:
            self.muted = 0
        connection.finish(keeps)

    def note(self, status: int, size: int, is_whole: bool = True) -> None:
        """Note the request for the access log, once."""
        began, self.began = self.began, 0.0
        access = self.shared.access
        if access is not None and began > 0.0:
            access.add(began, self.connection.peer, self.head, self.minor, status, size, is_whole, self.version)

    def stream(self, status: int, head: bytes, body: bytes, keeps: bool, length: int) -> None:
        assert self.call is not None
        self.keeps = keeps
        self.status = status
        self.sent = 0  # bytes of the body
        self.is_chunked = self.minor == 1 and length < 0
        self.left = length  # bytes left of a body with Content-Length; negative for others
        self.state = STREAMING
        self.download = ClientDownload(self.call, self.connection.is_write_paused, self.shared.holdings, self.tenant)
        self.shared.send(self.connection, head)
        if self.left < 0 or self.counts(body, ended=False):
            self.write_body(body, ended=False)  # grants no credit: engines do not count the body in a RESPONSE

    def counts(self, chunk: bytes, ended: bool) -> bool:
        """Check a piece against the announced length. Breaks off the response if the body is too long or too short."""
        self.left -= len(chunk)
        if self.left >= 0 and (not ended or self.left == 0):
            return True
        self.break_off("the engine sent a body of another length than it announced")
        return False

    def write_body(self, chunk: bytes, ended: bool) -> None:
        connection = self.connection
        self.sent += len(chunk)
        if self.is_chunked:
            if chunk:
                chunk = b"%x\r\n%b\r\n%b" % (len(chunk), chunk, LAST_CHUNK if ended else b"")
            elif ended:
                chunk = LAST_CHUNK
        if chunk:
            self.shared.send(connection, chunk)

    @property
    def is_streaming(self) -> bool:
        return self.state == STREAMING

    def takes_file(self, size: int) -> bool:
        """Whether the kernel can send the next `size` bytes of the body from a file: there is no TLS, no chunk."""
        if self.state != STREAMING or self.left < size:
            return False
        transport = self.connection.transport
        return transport.get_extra_info("sslcontext") is None and transport.get_extra_info("socket") is not None

    def send_file(
        self,
        file: int,
        span: tuple[int, int],
        threads: ThreadPoolExecutor,
        ended: Callable[[BaseException | None], None],
    ) -> KernelSend:
        """Have the kernel send a part of the body, if `takes_file`. The rest may follow as usual."""
        self.left -= span[1] - span[0]
        return KernelSend(self, file, span, threads, ended)

    def sent_past(self) -> None:
        """The kernel has sent the whole body."""
        self.state = OVER
        self.note(self.status, self.sent)
        self.connection.finish(self.keeps)

    def on_body(self, chunk: bytes, ended: bool) -> None:
        if self.state == STREAMING:
            download = self.download
            assert download is not None
            if self.left >= 0 and not self.counts(chunk, ended):
                return
            size = len(chunk)
            if not ended and download.owed + download.waiting + size > 2 * WINDOW:
                self.break_off("the engine sent more body than it was granted")
            elif not ended and size > MAX_WAITING_BYTES:
                self.sent += size
                pieces = [b"%x\r\n" % size, chunk, b"\r\n"] if self.is_chunked else [chunk]
                self.shared.send_part(self.connection, pieces, size, download)
            else:
                self.write_body(chunk, ended)
                if ended:
                    self.state = OVER
                    self.note(self.status, self.sent)
                    self.connection.finish(self.keeps)
                else:
                    download.sent(size)
        elif self.state == MUTED:
            self.state = OVER if ended else MUTED
            self.mute(len(chunk))
        elif self.state == WAITING:
            self.reject(BadResponse("the engine sent a body before its response"))

    def mute(self, amount: int) -> None:
        """Let a worker finish a short body that is dropped, and cancel a long one."""
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
            self.note(self.status, self.sent, False)
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

    # Failures

    def answer_failure(self, failure: Failure) -> None:
        shared = self.shared
        if shared.explain is not None and self.version is not None:
            failure = shared.explain(self.version.id, failure)
        page = error_page(failure, header(self.head.lower(), b"accept") or b"", shared.detail)
        self.respond(page.status, page.block, page.body, ended=True)

    def reject(self, error: BadResponse) -> None:
        """Refuse an invalid response of a worker or its engine: answer with an error page, and log it."""
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
        """Cancel the call: the client has disconnected, or has another answer."""
        if self.state != OVER:
            if self.state == STREAMING:
                self.note(self.status, self.sent, False)
            else:
                self.note(CLIENT_LEFT, 0, False)
            self.state = OVER
            self.cancel_call()

    def cancel_call(self) -> None:
        if self.call is not None:
            self.call.cancel()
