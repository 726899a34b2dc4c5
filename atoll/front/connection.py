"""One client connection: bytes in, one exchange at a time, bytes out.

There is no task, future or coroutine per request. The usual request (a whole head in one packet, no body) goes from
`data_received` to the pool in one chain of calls, and its response comes back through `ClientExchange.on_response`.
Everything else (heads in pieces, bodies, pipelining) waits in `buffer`, and `pump` processes it in order: a request
starts when the response to the one before it is written. One `pump` does a bounded step. If more could be done, the
connection waits for a later turn of the event loop (turns.py).

Python cuts the bytes into heads and bodies, and llhttp parses all of them. A request that llhttp rejects reaches no
worker.

Timeouts cost the hot path one store: `touched` is the time of the last relevant event, and the server's sweep reads it.
"""

from __future__ import annotations

import asyncio
from typing import Final, cast

from atoll.errors import Failure
from atoll.front.exchange import ClientExchange
from atoll.front.flow import DISCARD
from atoll.front.framing import EMPTY_LINE, NOT_PLAIN
from atoll.front.http1 import (
    CHUNKED,
    CONTINUE,
    MAX_HEADER_LINES,
    Rejection,
    check_size,
    request_head,
    waits_for_invitation,
)
from atoll.front.line import ClientLine
from atoll.front.shared import Shared
from atoll.front.upgrade import became_socket
from atoll.holdings import FREE_BYTES
from atoll.router import host_name
from atoll.wire.generated import INLINE_BODY, ErrorCode
from atoll.workers import Version

# A head up to this size cannot have too many header lines: the shortest line is `a:\r\n`.
SMALL_HEAD: Final = 4 * MAX_HEADER_LINES

BLANK: Final = 32  # a space, or a control character below it
TLS_HANDSHAKE: Final = 0x16

# Packets of this size are processed in steps from the start. Usual requests are shorter.
LARGE: Final = 16384

# Bytes of a chunked body that one step takes out of the buffer.
BODY_STEP: Final = 65536

# RFC 9112 lets a server skip empty lines before a request. Real clients send one at most.
MAX_EMPTY_LINES: Final = 8


class ClientConnection(ClientLine):
    """Serves as an asyncio.Protocol, without inheriting from it: compiled classes inherit from compiled ones only."""

    __slots__ = ("body_seen", "discarded", "empty_lines", "has_left", "is_pumping", "searched")

    def __init__(self, shared: Shared) -> None:
        super().__init__(shared)
        # of the connection
        self.searched = 0  # bytes of `buffer` known to hold no empty line
        self.empty_lines = 0  # skipped since the last head
        self.is_pumping = False
        self.has_left = False  # the client, and we have yet to close
        # of the request
        self.body_seen = 0
        self.discarded = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.peer = self.shared.proxies.peer(transport)
        bounds = self.shared.bounds
        # The first request must come within the header timeout, later ones within the idle timeout.
        self.touched = self.shared.now + min(0.0, bounds.header_timeout - bounds.idle_timeout)
        self.shared.connections.add(self)
        if self.shared.is_draining:
            transport.close()

    def connection_lost(self, error: Exception | None) -> None:
        self.is_lost = self.is_closing = self.is_busy = True
        self.shared.forget(self)
        self.buffer.clear()
        if self.exchange is not None:
            self.exchange.abandon()
            self.exchange = None
        if self.counted:
            self.count()
        if self.is_noted:
            self.forget_held()

    def eof_received(self) -> bool:
        """A client that closes its side gets no response: `connection_lost` follows.

        Closing takes longer than all else that a connection needs, so thousands that leave at once are closed in turns.
        """
        if not self.is_in_a_crowd() or not self.transport.can_write_eof():  # TLS is closed at once
            return False
        self.has_left = True
        if not self.is_waiting:
            self.is_waiting = True
            self.shared.turns.add(self)
        return True

    # Bytes in

    def data_received(self, data: bytes) -> None:
        if not self.is_busy and len(data) < LARGE:
            at = data.find(EMPTY_LINE)
            if at > 0 and data[0] > BLANK:
                self.is_busy = True
                at += 4
                if at == len(data):
                    self.begin(data)
                else:
                    self.buffer += data[at:]
                    self.begin(data[:at])
                    if self.buffer:
                        self.pump()
                return
            if at < 0:
                self.searched = len(data)
        self.receive(data)

    def receive(self, data: bytes) -> None:
        """Take bytes that are not simply a whole head on an idle connection."""
        if self.is_closing:
            self.put_off()  # drop the bytes, and let other connections read first
            return
        if self.is_reading and not self.buffer and not self.shared.turns.waiting:
            self.touched = self.shared.now
            used = self.read_body(data)
            if used == len(data):
                if self.is_in_a_crowd():
                    self.put_off()
                else:
                    self.gate()
                return
            data = data[used:]
            if self.is_reading:  # this was one step, and the body goes on
                self.buffer += data
                self.put_off()
                return
        if not self.is_busy:
            self.is_busy = True
            self.touched = self.shared.now
        self.buffer += data
        if self.shared.turns.waiting or len(data) >= LARGE:
            self.put_off()  # queue behind the others: all waiting clients together get the time of one turn
        else:
            self.pump()

    def put_off(self) -> None:
        """Continue in a later turn of the event loop, and pause reading if needed."""
        if not self.is_waiting:
            self.is_waiting = True
            self.shared.turns.add(self)
        self.gate()

    def step(self) -> None:
        """Continue after `put_off`."""
        self.is_waiting = False
        if self.has_left:
            self.transport.close()
        elif not self.is_lost:
            if self.is_reading:
                self.touched = self.shared.now
            self.pump()

    def pump(self) -> None:
        """Process the buffer: at most one head, and what has arrived of its body."""
        if self.is_pumping or self.is_waiting:
            return
        self.is_pumping = True
        try:
            can_begin = True
            while self.buffer and not self.is_closing:
                if self.is_write_paused and self.exchange is None:
                    break  # start no request for a client that does not read its responses
                if self.is_reading:
                    if not self.read_waiting_body():
                        self.put_off()
                        break
                elif self.exchange is not None:
                    break
                elif not can_begin:
                    self.put_off()
                    break
                else:
                    head = self.cut_head()
                    if head is None:
                        break
                    can_begin = False
                    self.begin(head)
        except Rejection as refusal:
            self.refuse(refusal)
        finally:
            self.is_pumping = False
        if not (self.buffer or self.exchange is not None or self.is_reading or self.is_closing):
            self.is_busy = self.is_write_paused or self.empty_lines > 0
        self.gate()

    def cut_head(self) -> bytes | None:
        """Take the next head out of the buffer, or None while it is incomplete. Raises Rejection if it is too long."""
        buffer = self.buffer
        if buffer[0] <= BLANK:
            self.skip_empty_lines()
        bounds = self.shared.bounds
        longest = bounds.url_bytes + bounds.header_bytes
        at = buffer.find(EMPTY_LINE, max(0, self.searched - 3), longest + 4)
        if at < 0:
            self.searched = len(buffer)
            if len(buffer) > bounds.url_bytes + 64 and buffer.find(b"\r\n", 0, bounds.url_bytes + 66) < 0:
                raise Rejection(414, f"the URL is longer than {bounds.url_bytes} bytes")
            if len(buffer) > longest:
                raise Rejection(431, f"the headers are longer than {bounds.header_bytes} bytes")
            if len(buffer) > FREE_BYTES:
                self.served = None
                self.note_held(len(buffer))
            return None
        if self.is_noted:
            self.forget_held()
        head = bytes(buffer[: at + 4])
        del buffer[: at + 4]
        self.searched = self.empty_lines = 0
        return head

    def skip_empty_lines(self) -> None:
        """Drop empty lines before a request. Raises Rejection if there are too many, or for any other blank character.

        llhttp also skips single CRs and LFs. We do not: they would become part of the method.
        """
        buffer = self.buffer
        self.searched = 0
        while buffer[:2] == b"\r\n":
            self.empty_lines += 1
            if self.empty_lines > MAX_EMPTY_LINES:
                raise Rejection(400, f"more than {MAX_EMPTY_LINES} empty lines before a request")
            del buffer[:2]
        if not buffer or buffer == b"\r":
            return
        if buffer[0] == TLS_HANDSHAKE:  # the client sends nothing more until it gets an answer
            raise Rejection(400, "this port speaks plain HTTP, and the client started TLS: use http://")
        if buffer[0] <= BLANK:
            raise Rejection(400, "a request begins with its method")

    def begin(self, head: bytes) -> None:
        """Route a whole head, and call the worker if the request is complete: no body, or a body that is here too."""
        shared = self.shared
        framing = self.framing
        bounds = shared.bounds
        try:
            if len(head) > SMALL_HEAD or len(head) > bounds.header_bytes:
                check_size(head, bounds.header_bytes)
            method, host, target, minor, call_head = request_head(head, bounds.url_bytes, self.peer)
            try:
                framing.feed(head)
            except NOT_PLAIN as error:
                framing.judge(head, error)
                if became_socket(self, head):
                    return
            version = shared.router.find(host, target, head)
            body = b""
            if framing.kept is None and version is not None and self.buffer:
                body = framing.whole_body(head, self.buffer, bounds.body_bytes)
            keeps = framing.kept
            framing.kept = None
            if version is None or keeps is None:
                self.begin_rare(head, version, host, minor, call_head, keeps)
                return
        except Rejection as refusal:
            self.refuse(refusal, head)
            return
        self.served = version
        is_plain = keeps and minor == 1 and method != b"HEAD"
        if version.assets is not None and is_plain and method == b"GET" and shared.ready is not None:
            data = shared.ready.find(version, target, head, shared.date)
            if data is not None:
                shared.send(self, data)
                if shared.access is not None:
                    shared.access.add_ready(self.peer, call_head, data, version)
                self.finish(True)
                return
        exchange = self.exchange = ClientExchange(self, shared, version, call_head, minor, keeps, is_plain)
        pool = shared.pool if version.assets is None else shared.site
        exchange.call = pool.call(version, call_head, body, True, exchange)

    def begin_rare(
        self, head: bytes, version: Version | None, host: bytes, minor: int, call_head: bytes, kept: bool | None
    ) -> None:
        """Begin a request that has a body, is for the control API, or matches no worker. Raises Rejection."""
        shared = self.shared
        self.served = version
        has_body = kept is None
        lower = head.lower() if has_body else b""
        keeps = self.framing.wants_to_stay() if kept is None else kept
        if version is None:  # the control API applies its own rules for proxies
            call_head = request_head(head, shared.bounds.url_bytes)[4]
        exchange = self.exchange = ClientExchange(self, shared, version, call_head, minor, keeps, False)
        length = self.framing.expect_body(lower, minor) if has_body else 0
        if length > shared.bounds.body_bytes:
            raise Rejection(413, f"the body is longer than {shared.bounds.body_bytes} bytes")
        self.is_reading = has_body
        self.body_seen = self.discarded = 0
        self.touched = shared.now  # the body timeout starts here
        if version is None and not (shared.control is not None and shared.router.is_control(host)):
            if host_name(host) is None:
                raise Rejection(400, "the Host header holds no valid host name")
            exchange.answer_failure(Failure(ErrorCode.UNKNOWN_HOST, host.decode("ascii")))
        elif not has_body:
            exchange.start(b"", ended=True)
        else:
            if waits_for_invitation(lower, minor) and not self.buffer:  # a body that has arrived needs no 100 Continue
                shared.send(self, CONTINUE)
            exchange.expect_body(length == CHUNKED or length > INLINE_BODY)
            self.read_little()
            if not self.buffer:
                exchange.on_request_body(b"", ended=False)
            if self.is_in_a_crowd():
                self.put_off()

    def read_body(self, data: bytes) -> int:
        """Take the bytes that belong to the body of this request, and return how many they are."""
        framing = self.framing
        try:
            used = framing.take(data)
            chunk = b"".join(framing.parts)
            framing.parts.clear()
            self.body_seen += len(chunk)
            if self.body_seen > self.shared.bounds.body_bytes:
                raise Rejection(413, f"the body is longer than {self.shared.bounds.body_bytes} bytes")
        except Rejection as refusal:
            framing.parts.clear()
            self.refuse(refusal)
            return len(data)
        kept = framing.kept
        ended = kept is not None
        framing.kept = None
        self.is_reading = not ended
        if (exchange := self.exchange) is not None:
            if ended:
                exchange.on_request_end(bool(kept))
            exchange.on_request_body(chunk, ended)
        else:
            self.discarded += used
            if self.discarded > DISCARD or kept is False:
                self.linger()
        return used

    def read_waiting_body(self) -> bool:
        """Take body bytes from the buffer. False if more may be there after this step."""
        size = BODY_STEP if self.framing.left == CHUNKED else self.framing.left
        piece = bytes(self.buffer[:size])
        used = self.read_body(piece)
        del self.buffer[:used]
        return used == len(piece) or not self.is_reading

    def pause_writing(self) -> None:
        self.is_write_paused = True
        self.unsent = 0
        if self.exchange is not None and self.exchange.download is not None:
            self.exchange.download.pause()
        self.note_unsent()

    def resume_writing(self) -> None:
        self.is_write_paused = False
        if self.is_noted:
            self.forget_held()
        if self.exchange is None:
            self.pump()
        elif self.exchange.download is not None:
            self.exchange.download.resume()

    # The end of an exchange, and of the connection

    def can_keep(self) -> bool:
        """Whether the connection can serve another request, as far as is known when the response starts."""
        if self.shared.is_draining:
            return False
        upload = self.exchange.upload if self.exchange is not None else None
        wanted = upload is not None and not upload.is_stopped
        return wanted or not self.is_reading or self.framing.left <= DISCARD

    def finish(self, keeps: bool) -> None:
        """The response is written. The rest of the request body is read and dropped, unless it is too long."""
        self.exchange = None
        self.touched = self.shared.now
        if self.counted:
            self.count()
        if keeps and self.shared.heir is not None and self.leave():
            pass  # the process that takes our place goes on with it
        elif not keeps or self.shared.is_draining or (self.is_reading and self.framing.left > DISCARD):
            self.linger()  # a next request may be in the kernel already
        elif self.buffer or self.is_held or self.is_write_paused:
            self.pump()
        elif not self.is_reading:
            self.is_busy = False
