"""One client connection: bytes in, one exchange at a time, bytes out.

No task, future or coroutine per request: the usual request (a whole head in one packet, no body) goes from
`data_received` to the pool in one chain of calls, and its response comes back through `Exchange.on_response`.
Everything else (heads in pieces, bodies, pipelining) waits in `buffer` and is worked off by `pump`, in order: the next
request is not begun before the response to the last one is written.

Timeouts cost the hot path one store: `touched` is the time of the last event that counts, read by the server's sweep.
"""

from __future__ import annotations

import asyncio
from typing import Final, cast

from atoll.errors import Failure
from atoll.front.exchange import WAITING, Exchange
from atoll.front.flow import DISCARD
from atoll.front.framing import EMPTY_LINE, NOT_PLAIN, Framing
from atoll.front.http1 import (
    CHUNKED,
    CONTINUE,
    MAX_HEADER_LINES,
    Refusal,
    check_size,
    keeps_alive,
    request_head,
    waits_for_invitation,
)
from atoll.front.pages import refusal_bytes
from atoll.front.shared import Shared
from atoll.front.upgrade import became_socket
from atoll.router import host_name
from atoll.wire.generated import INLINE_BODY, ErrorCode
from atoll.workers import Version

# A head up to this size cannot have too many header lines: the shortest line is `a:\r\n`.
SMALL_HEAD: Final = 4 * MAX_HEADER_LINES

# Bytes of later requests that may wait for the response to an earlier one.
READ_AHEAD: Final = 65536

# How long a client may go on sending after we have answered and closed our side: it may not have read the answer yet.
LINGER_SECONDS: Final = 2.0


class Connection:  # an asyncio.Protocol in all but name: compiled classes inherit from none that are not
    __slots__ = (
        "body_seen", "buffer", "discarded", "exchange", "framing",
        "is_busy", "is_closing", "is_held", "is_lost", "is_pumping", "is_reading", "is_write_paused",
        "last", "peer", "searched", "shared", "touched", "transport", "unsent",
    )  # fmt: skip

    transport: asyncio.Transport

    def __init__(self, shared: Shared) -> None:
        # of the connection
        self.shared = shared
        self.framing = Framing()
        self.buffer = bytearray()
        self.searched = 0  # bytes of `buffer` known to hold no empty line
        self.touched = 0.0
        self.last = (b"", b"", b"", b"")  # the last plain request: its head, and host, target and CALL head made of it
        self.unsent = 0  # the write buffer when the client last made progress
        self.is_busy = False  # False: nothing waits and nothing is under way, the next byte begins a head
        self.is_pumping = False
        self.is_held = False  # reading is paused
        self.is_write_paused = False
        self.is_closing = False  # no further request will be read
        self.is_lost = False
        # of the request
        self.exchange: Exchange | None = None
        self.is_reading = False  # a body is being received
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

    def eof_received(self) -> bool:
        return False  # a client that closes its side is gone: `connection_lost` follows

    # Bytes in

    def data_received(self, data: bytes) -> None:
        if not self.is_busy:
            at = data.find(EMPTY_LINE)
            if at > 0 and data[0] > 32:
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
        self.receive(data)

    def receive(self, data: bytes) -> None:
        """Everything but a whole head that nothing waits before."""
        if self.is_closing:
            return
        if self.is_reading:
            self.touched = self.shared.now
            used = self.read_body(data)
            if used == len(data):
                self.gate()
                return
            data = data[used:]
        if not self.is_busy:
            self.is_busy = True
            self.touched = self.shared.now
        self.buffer += data
        self.pump()

    def pump(self) -> None:
        """Work off what waits, as far as it goes."""
        if self.is_pumping:
            return
        self.is_pumping = True
        try:
            while self.buffer and not self.is_closing:
                if self.is_write_paused and self.exchange is None:
                    break  # a client that does not read its answers gets no further ones
                if self.is_reading:
                    size = len(self.buffer) if self.framing.left == CHUNKED else self.framing.left
                    del self.buffer[: self.read_body(bytes(self.buffer[:size]))]
                elif self.exchange is None:
                    head = self.cut_head()
                    if head is None:
                        break
                    self.begin(head)
                else:
                    break
        except Refusal as refusal:
            self.refuse(refusal)
        finally:
            self.is_pumping = False
        if not (self.buffer or self.exchange is not None or self.is_reading or self.is_closing):
            self.is_busy = self.is_write_paused
        self.gate()

    def cut_head(self) -> bytes | None:
        """Take the next head out of the buffer, or None while it is incomplete. Raises Refusal when it is too long."""
        buffer = self.buffer
        while buffer[:2] == b"\r\n":  # RFC 9112 lets a server skip empty lines before a request
            del buffer[:2]
            self.searched = 0
        at = buffer.find(EMPTY_LINE, max(0, self.searched - 3))
        if at < 0:
            self.searched = len(buffer)
            bounds = self.shared.bounds
            if buffer[:1] == b"\x16":  # TLS: its client says no more before it is answered
                raise Refusal(400, "this port speaks plain HTTP, and TLS was begun: use http://")
            if len(buffer) > bounds.url_bytes + 64 and buffer.find(b"\r\n") < 0:
                raise Refusal(414, f"the URL is longer than {bounds.url_bytes} bytes")
            if len(buffer) > bounds.url_bytes + bounds.header_bytes:
                raise Refusal(431, f"the headers are longer than {bounds.header_bytes} bytes")
            return None
        head = bytes(buffer[: at + 4])
        del buffer[: at + 4]
        self.searched = 0
        return head

    def begin(self, head: bytes) -> None:
        """A whole head is here: route it, and call the worker when there is no body or it is here too."""
        shared = self.shared
        known, host, target, call_head = self.last
        if head == known:  # word for word as before: it has been judged
            version = shared.router.find(host, target)
            if version is not None:
                exchange = self.exchange = Exchange(self, version, call_head, 1, True, True)
                exchange.call = shared.pool.call(version, call_head, b"", True, exchange)
                return
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
                    framing.kept = None
                    return
            version = shared.router.find(host, target)
            body = b""
            if framing.kept is None and version is not None and self.buffer:
                body = framing.whole_body(head, self.buffer, bounds.body_bytes)
            keeps = framing.kept
            framing.kept = None
            if version is None or keeps is None:
                self.begin_rare(head, version, host, minor, call_head, keeps)
                return
        except Refusal as refusal:
            self.refuse(refusal)
            return
        is_plain = keeps and minor == 1 and method != b"HEAD"
        if is_plain and not body and len(head) <= SMALL_HEAD:
            self.last = head, host, target, call_head
        exchange = self.exchange = Exchange(self, version, call_head, minor, keeps, is_plain)
        exchange.call = shared.pool.call(version, call_head, body, True, exchange)

    def begin_rare(
        self, head: bytes, version: Version | None, host: bytes, minor: int, call_head: bytes, kept: bool | None
    ) -> None:
        """A request with a body, for the control API, or for nobody. Raises Refusal."""
        shared = self.shared
        has_body = kept is None
        lower = head.lower() if has_body else b""
        keeps = keeps_alive(lower, minor) if kept is None else kept
        if version is None:  # the control API makes up its own mind about proxies
            call_head = request_head(head, shared.bounds.url_bytes)[4]
        exchange = self.exchange = Exchange(self, version, call_head, minor, keeps, False)
        length = self.framing.expect_body(lower, minor) if has_body else 0
        if length > shared.bounds.body_bytes:
            raise Refusal(413, f"the body is longer than {shared.bounds.body_bytes} bytes")
        self.is_reading = has_body
        self.body_seen = self.discarded = 0
        self.touched = shared.now  # the time for the body counts from here
        if version is None and not (shared.control is not None and shared.router.is_control(host)):
            if host_name(host) is None:
                raise Refusal(400, "the Host header holds no valid host name")
            exchange.answer_failure(Failure(ErrorCode.UNKNOWN_HOST, host.decode("ascii")))
        elif not has_body:
            exchange.start(b"", ended=True)
        else:
            if waits_for_invitation(lower, minor) and not self.buffer:  # a body that is here needs none
                shared.send(self, CONTINUE)
            exchange.expect_body(length == CHUNKED or length > INLINE_BODY)
            if not self.buffer:
                exchange.on_request_body(b"", ended=False)

    def read_body(self, data: bytes) -> int:
        """Take what belongs to the body of this request; returns how many bytes that were."""
        framing = self.framing
        try:
            used = framing.take(data)
            chunk = b"".join(framing.parts)
            framing.parts.clear()
            self.body_seen += len(chunk)
            if self.body_seen > self.shared.bounds.body_bytes:
                raise Refusal(413, f"the body is longer than {self.shared.bounds.body_bytes} bytes")
        except Refusal as refusal:
            framing.parts.clear()
            self.refuse(refusal)
            return len(data)
        kept = framing.kept
        ended = kept is not None
        framing.kept = None
        self.is_reading = not ended
        exchange = self.exchange
        if exchange is not None:
            if ended:
                exchange.on_request_end(bool(kept))
            exchange.on_request_body(chunk, ended)
        else:
            self.discarded += used
            if self.discarded > DISCARD:
                self.linger()
        return used

    # Flow

    def gate(self) -> None:
        """Read from the socket only while there is room for what comes."""
        exchange = self.exchange
        if exchange is not None and exchange.upload is not None and exchange.upload.is_full:
            full = True
        else:
            full = len(self.buffer) > READ_AHEAD and (exchange is not None or self.is_write_paused)
        if full is self.is_held or self.is_lost:
            return
        self.is_held = full
        self.touched = self.shared.now
        if full:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def pause_writing(self) -> None:
        self.is_write_paused = True
        self.unsent = 0
        if self.exchange is not None and self.exchange.download is not None:
            self.exchange.download.pause()

    def resume_writing(self) -> None:
        self.is_write_paused = False
        if self.exchange is None:
            self.pump()
        elif self.exchange.download is not None:
            self.exchange.download.resume()

    # The end of an exchange, and of the connection

    def can_keep(self) -> bool:
        """May the connection serve another request after this one, as far as is known when its response begins?"""
        if self.shared.is_draining:
            return False
        upload = self.exchange.upload if self.exchange is not None else None
        wanted = upload is not None and not upload.is_stopped
        return wanted or not self.is_reading or self.framing.left <= DISCARD

    def finish(self, keeps: bool) -> None:
        """The response is written. What is left of the request body is read and dropped, if it is not too much."""
        self.exchange = None
        self.touched = self.shared.now
        if not keeps or self.shared.is_draining or (self.is_reading and self.framing.left > DISCARD):
            self.linger() if self.is_reading else self.close()
        elif self.buffer or self.is_held or self.is_write_paused:
            self.pump()
        elif not self.is_reading:
            self.is_busy = False

    def refuse(self, refusal: Refusal) -> None:
        """Answer a request that is no request, and end the connection: where the next one begins is unknown."""
        exchange, self.exchange = self.exchange, None
        if exchange is not None:
            if exchange.state != WAITING:
                exchange.abandon()
                self.cut()
                return
            exchange.abandon()
        self.shared.send(self, refusal_bytes(refusal.status, refusal.reason, self.shared.date))
        self.linger()

    def close(self) -> None:
        self.is_closing = self.is_busy = True
        self.buffer.clear()
        self.shared.flush()
        self.transport.close()

    def linger(self) -> None:
        """Close our side only. Closing both with bytes unread makes the kernel reset, and the answer could be lost."""
        if self.is_closing:
            return
        self.is_closing = self.is_busy = True
        self.is_reading = False
        self.touched = self.shared.now
        self.buffer.clear()
        self.gate()
        self.shared.flush()
        self.transport.write_eof()

    def cut(self) -> None:
        """End a response that cannot be completed in a way the client notices."""
        self.is_closing = self.is_busy = True
        self.exchange = None
        self.buffer.clear()
        self.shared.flush()
        self.transport.abort()

    def drain(self) -> None:
        """The server stops: leave now when idle, else after the response."""
        if self.exchange is not None:
            self.exchange.is_plain = False
        elif not self.is_busy:
            self.close()

    def sweep(self, now: float) -> None:
        """Called a few times a second for every connection."""
        bounds = self.shared.bounds
        idle = now - self.touched
        unsent = self.transport.get_write_buffer_size()
        if unsent:
            if unsent != self.unsent:
                self.unsent = unsent
                self.touched = now
            elif idle > bounds.idle_timeout:
                self.transport.abort()
        elif self.is_closing:
            if idle > LINGER_SECONDS:
                self.transport.abort()
        elif not self.is_busy:
            if idle > bounds.idle_timeout:
                self.close()
        elif self.is_reading:
            if idle > bounds.body_timeout and not self.is_held:
                self.refuse(Refusal(408, "the body did not arrive in time"))
        elif self.exchange is None and idle > bounds.header_timeout:
            self.refuse(Refusal(408, "the headers did not arrive in time"))
