"""WebSockets of clients: the request for one, and the connection after the upgrade.

wire/sockets.py has the protocol; this file connects it to a call. Messages travel on the call as bodies do, under the
same credit.

When a request is upgraded, the connection hands its transport to a Socket and is forgotten. The call stays open as long
as the socket. It ends when either side closes, the client disconnects, the worker ends, or the server stops.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import logging

from websockets.exceptions import InvalidHeader, NegotiationError
from websockets.extensions.permessage_deflate import ServerPerMessageDeflateFactory
from websockets.headers import build_extension, parse_extension

from atoll.engine.calls.call import HandedSocket, SocketCall
from atoll.errors import Failure
from atoll.front.exchange import OVER, WAITING, ClientExchange
from atoll.front.flow import ClientDownload, Messages
from atoll.front.http1 import BadResponse, Rejection, check_block, header, request_head
from atoll.front.line import ClientLine
from atoll.wire.generated import WINDOW
from atoll.wire.sockets import CLOSE_SECONDS, GOING_AWAY, INTERNAL_ERROR, TRY_LATER, BadMessage, Codec
from atoll.workers import Version

log = logging.getLogger("atoll.front")

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
CONTROL_SOCKETS = b"/client/v4/"  # the control API has WebSockets below this path only
MAX_UNREAD = 64 << 10  # bytes that a client has not read; beyond that, its pings wait until it reads
TOO_MUCH = "the WebSockets of this tenant hold too many bytes of unfinished or unread messages"
OURS = (b"sec-websocket-accept", b"sec-websocket-extensions", b"sec-websocket-key", b"sec-websocket-version")
# Compression contexts kept between messages would cost each idle socket a few hundred kilobytes.
DEFLATE = ServerPerMessageDeflateFactory(server_no_context_takeover=True, client_no_context_takeover=True)


def begin_socket(connection: ClientLine, head: bytes) -> bool:
    """Call the worker or the control API with a request for a WebSocket. False if neither has it. Raises Rejection."""
    shared = connection.shared
    _, host, target, minor, call_head = request_head(head, shared.bounds.url_bytes, connection.peer)
    version = shared.router.find(host, target, head)
    control = None
    if version is None:
        control = shared.control
        if control is None or not shared.router.is_control(host) or not target.startswith(CONTROL_SOCKETS):
            return False
        call_head = request_head(head, shared.bounds.url_bytes)[4]  # it applies its own rules for proxies
    lower = head.lower()
    if header(lower, b"sec-websocket-version") != b"13":
        raise Rejection(426, "only version 13 of the WebSocket protocol is supported")
    key = _exact(head, b"sec-websocket-key")
    try:
        if minor != 1 or len(base64.b64decode(key, validate=True)) != 16:
            raise ValueError
    except (binascii.Error, ValueError):
        raise Rejection(400, "the request for a WebSocket is malformed") from None
    offers = header(lower, b"sec-websocket-extensions") or b""
    exchange = SocketExchange(connection, version, call_head, key, offers)
    connection.exchange = exchange
    connection.framing.kept = None
    if version is None:
        assert control is not None
        exchange.call = control.open(call_head, exchange, (connection.peer.client(call_head), 0))
    else:
        exchange.call = shared.pool.call(version, call_head, b"", False, exchange)
    return True


def _exact(head: bytes, name: bytes) -> bytes:
    """The value of a header, with its case."""
    at = head.lower().find(b"\n" + name + b":")
    if at < 0:
        return b""
    start = at + len(name) + 2
    return head[start : head.find(b"\r", start)].strip()


def negotiate(offers: bytes) -> tuple[bytes, int, int]:
    """The header line that accepts a client's offer, and the bits of the deflate windows: the client's, then ours."""
    try:
        for name, params in parse_extension(offers.decode("latin-1")):
            if name == DEFLATE.name:
                answer, extension = DEFLATE.process_request_params(params, [])
                line = build_extension([(DEFLATE.name, answer)])
                windows = extension.remote_max_window_bits, extension.local_max_window_bits
                return f"sec-websocket-extensions: {line}\r\n".encode(), *windows
    except (InvalidHeader, NegotiationError):
        pass  # RFC 6455 lets a server decline any offer
    return b"", 0, 0


class SocketExchange(ClientExchange):
    """A request for a WebSocket. It is the last exchange of its connection, even if the worker declines.

    A client or proxy may treat the bytes after such a request as WebSocket frames, so we never read them as requests.
    """

    __slots__ = ("key", "line", "offers", "socket")

    def __init__(self, connection: ClientLine, version: Version | None, head: bytes, key: bytes, offers: bytes) -> None:
        super().__init__(connection, connection.shared, version, head, 1, False, False)
        self.line = connection
        self.key = key
        self.offers = offers
        self.socket: Socket | None = None

    def on_response(self, status: int, head: bytes, body: bytes, ended: bool) -> None:
        handed: HandedSocket | None = getattr(self.call, "handed", None)  # not every call is that of a worker
        if status != 101 or (ended and handed is None) or self.state != WAITING or self.connection.is_lost:
            super().on_response(status, head, body, ended)
            return
        try:
            self._switch(head, handed)
        except BadResponse as error:
            self.reject(error)

    def _switch(self, block: bytes, handed: HandedSocket | None) -> None:
        """Answer with 101 and hand the connection over. `handed` takes the place of the call, which is over."""
        block, _ = check_block(block, self.shared.base)
        lines = [line for line in block.split(b"\r\n") if line and line.split(b":")[0].lower() not in OURS]
        accept = base64.b64encode(hashlib.sha1(self.key + GUID, usedforsecurity=False).digest())
        accepted, theirs, ours = negotiate(self.offers)
        connection, shared = self.line, self.shared
        answer = [
            b"HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: Upgrade\r\n",
            b"sec-websocket-accept: %b\r\n" % accept,
            accepted,
            *(line + b"\r\n" for line in lines),
            shared.date,
            b"\r\n",
        ]
        shared.send(connection, b"".join(answer))
        shared.flush()
        self.state = OVER
        self.note(101, 0)
        early = bytes(connection.buffer)
        self.socket = Socket(self, Codec(False, theirs, ours), handed)
        # From here on the transport belongs to the Socket.
        connection.is_lost = connection.is_closing = connection.is_busy = True
        connection.exchange = None
        shared.connections.add(self.socket)
        shared.forget(connection)
        connection.transport.set_protocol(self.socket)
        if handed is not None:
            handed.adopt(self.socket)
        if early:
            self.socket.data_received(early)

    def on_body(self, chunk: bytes, ended: bool) -> None:
        if self.socket is not None:
            self.socket.on_body(chunk, ended)
        else:
            super().on_body(chunk, ended)

    def on_failure(self, failure: Failure) -> None:
        if self.socket is not None:
            self.socket.on_end(INTERNAL_ERROR)
        else:
            super().on_failure(failure)

    def on_upload_credit(self, amount: int) -> None:
        if self.socket is not None:
            self.socket.on_upload_credit(amount)

    def on_upload_stop(self) -> None: ...  # the worker's end is closed; the call drops further messages


class Socket(asyncio.Protocol):
    """A client's connection after the upgrade. A node may have tens of thousands, so an idle one must be small."""

    __slots__ = (
        "call",
        "codec",
        "download",
        "is_held",
        "is_leaving",
        "is_lost",
        "is_over",
        "is_pinged",
        "is_queued",
        "shared",
        "tenant",
        "touched",
        "transport",
        "unread",
        "upload",
    )

    def __init__(self, exchange: SocketExchange, codec: Codec, handed: HandedSocket | None) -> None:
        assert exchange.call is not None
        self.shared = exchange.shared
        self.tenant = exchange.tenant
        self.transport = exchange.connection.transport
        self.call: SocketCall = handed if handed is not None else exchange.call
        self.codec = codec
        self.upload = Messages(self.call, WINDOW if handed is None else handed.window)
        if exchange.version is None:
            codec.allow_unmasked()
        codec.is_manual = handed is not None and handed.is_manual
        self.download = ClientDownload(self.call, False, self.shared.holdings, self.tenant)
        self.unread = 0  # bytes that a client which does not read holds
        self.is_lost = False
        self.is_held = False
        self.is_queued = False  # the pacer will call `_step`
        self.is_over = False  # the call has ended or is cancelled
        self.is_leaving = False  # a close was sent: the client has CLOSE_SECONDS to answer
        self.touched = self.shared.now
        self.is_pinged = False

    # --- the client ---

    def data_received(self, data: bytes) -> None:
        self.touched = self.shared.now
        self.is_pinged = False
        self.codec.feed(data)
        self._work()

    def _work(self) -> None:
        """Process received bytes if the worker takes more. Then pause or resume reading."""
        if not self.is_queued and not self.codec.is_hungry and not self.upload.is_full:
            self.is_queued = True
            if self.shared.pacer.run(self.tenant, self._step):
                return
        self._gate()

    def _step(self) -> bool:
        """Process a small part of the received bytes. True if there is more to do."""
        codec, upload = self.codec, self.upload
        if not self.is_lost:
            messages = codec.step(self.shared.now)
            found = codec.take()
            if found:
                self.call.hear(messages)
                upload.take(found, codec.has_told)
            self._write()
            self._note()
        if not self.is_lost and not codec.is_hungry and not upload.is_full:
            return True
        self.is_queued = False
        self._gate()
        return False

    def _gate(self) -> None:
        """Pause reading while received bytes wait to be parsed or to be sent to the worker."""
        full = self.upload.is_full or not self.codec.is_hungry
        if full is self.is_held or self.is_lost:
            return
        self.is_held = full
        if full:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def _note(self) -> None:
        self.shared.holdings.note(self.tenant, self, self.codec.held + self.upload.held + self.unread)

    def shed(self) -> None:
        """Close this socket: its tenant's sockets hold too many bytes, and this one holds the most."""
        self.upload.drop()
        self.codec.fail(TRY_LATER, TOO_MUCH)
        self._end_call()
        if self.unread:
            self.transport.abort()  # the client would not read why either
        else:
            self._write()

    def _write(self) -> None:
        if self.is_lost:
            return
        codec = self.codec
        if self.transport.get_write_buffer_size() <= MAX_UNREAD:
            codec.answer_ping()
        data = codec.outgoing()
        if data:
            self.transport.write(data)
        if codec.is_over:
            self._close_transport()
        elif not self.is_leaving and not codec.is_open:
            self.is_leaving = True  # only once: a client may still send
            asyncio.get_running_loop().call_later(CLOSE_SECONDS, self._close_transport)

    def _close_transport(self) -> None:
        if not self.is_lost:
            self.transport.close()

    def pause_writing(self) -> None:
        self.download.pause()
        self.unread = self.transport.get_write_buffer_size() + self.download.expected
        self._note()

    def resume_writing(self) -> None:
        self.unread = 0
        self._note()
        self.download.resume()
        self._write()

    def eof_received(self) -> bool:
        self.codec.end()
        self._write()
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self.is_lost = True
        self.shared.forget(self)
        self.shared.holdings.note(self.tenant, self, 0)
        if self.is_over:
            return
        if self.codec.has_told:
            # The worker knows of the close, and its handlers may still run. Cancel the call if it does not end.
            asyncio.get_running_loop().call_later(CLOSE_SECONDS, self._end_call)
        else:
            self._end_call()

    def _end_call(self) -> None:
        if not self.is_over:
            self.is_over = True
            self.call.cancel()

    # --- the worker ---

    def on_body(self, chunk: bytes, ended: bool) -> None:
        if self.download.owed + len(chunk) > 2 * WINDOW:
            self._break("the engine sent more than it was granted")
            return
        try:
            self.codec.speak(chunk)
        except BadMessage as error:
            self._break(str(error))
            return
        self._write()
        if ended:
            self.on_end(GOING_AWAY)
        else:
            self.download.sent(len(chunk))

    def on_response(self, status: int, head: bytes, body: bytes, ended: bool) -> None: ...  # it has come

    def on_upload_stop(self) -> None: ...

    def on_failure(self, failure: Failure) -> None:
        """Of a socket that outlives its call: the object did not answer the client's close."""
        self.is_over = True
        if not self.is_lost:
            self.cut()

    def on_upload_credit(self, amount: int) -> None:
        self.upload.add_credit(amount)
        if not self.is_lost:
            self._note()
            self._work()

    def on_end(self, code: int) -> None:
        """The call is over: close the socket, unless it is closed."""
        self.is_over = True
        if not self.is_lost:
            self.codec.close(code)
            self._write()

    def _break(self, reason: str) -> None:
        log.error("WebSocket broken off: %s", reason)
        self._end_call()
        if not self.is_lost:
            self.transport.abort()

    # --- the server ---

    def drain(self) -> None:
        """The server stops."""
        self.codec.close(*self.shared.farewell)
        self._write()

    def cut(self) -> None:
        self.transport.abort()

    def sweep(self, now: float) -> None:
        """Ping a silent client, and abort if it does not answer."""
        limit = self.shared.bounds.socket_timeout
        idle = now - self.touched
        if not limit or self.is_lost:
            return
        if idle > limit:
            self.transport.abort()
        elif idle > limit / 2 and not self.is_pinged:
            self.is_pinged = True
            self.codec.ping()
            self._write()
