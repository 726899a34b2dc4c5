"""WebSockets: a request that becomes one, and the connection it is from then on.

The protocol itself is wire/sockets.py; here it is joined to a call. Messages travel on the call where others have
bodies, under the same credit.

A connection that becomes a socket gives its transport to a Socket and is forgotten. The call stays open as long as
the socket; what ends it is a close from either side, a client that is gone, the end of the worker, or the server's.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import logging
from typing import TYPE_CHECKING

from websockets.exceptions import InvalidHeader, NegotiationError
from websockets.extensions.base import Extension
from websockets.extensions.permessage_deflate import ServerPerMessageDeflateFactory
from websockets.headers import build_extension, parse_extension

from atoll.errors import Failure
from atoll.front.exchange import OVER, WAITING, Exchange
from atoll.front.flow import Download, Upload
from atoll.front.http1 import BadResponse, Refusal, check_block, header, request_head
from atoll.wire.generated import WINDOW
from atoll.wire.sockets import CLOSE_SECONDS, GOING_AWAY, INTERNAL_ERROR, SERVER, BadMessage, Codec
from atoll.workers import Version

if TYPE_CHECKING:
    from atoll.front.connection import Connection

log = logging.getLogger("atoll.front")

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
MAX_UNREAD = 4 * WINDOW  # what a client has not read: credit bounds the worker's part of it, this the answers to pings
OURS = (b"sec-websocket-accept", b"sec-websocket-extensions", b"sec-websocket-key", b"sec-websocket-version")
# Contexts kept between messages would cost each idle socket a few hundred kilobytes.
DEFLATE = ServerPerMessageDeflateFactory(server_no_context_takeover=True, client_no_context_takeover=True)


def begin_socket(connection: Connection, head: bytes) -> bool:
    """Call the worker with a request for a WebSocket. False if no worker answers there. Raises Refusal."""
    shared = connection.shared
    _, host, target, minor, call_head = request_head(head, shared.bounds.url_bytes, connection.peer)
    version = shared.router.find(host, target)
    if version is None:
        return False
    lower = head.lower()
    if header(lower, b"sec-websocket-version") != b"13":
        raise Refusal(426, "only version 13 of the WebSocket protocol is spoken here")
    key = _exact(head, b"sec-websocket-key")
    try:
        if minor != 1 or len(base64.b64decode(key, validate=True)) != 16:
            raise ValueError
    except (binascii.Error, ValueError):
        raise Refusal(400, "the request for a WebSocket is malformed") from None
    offers = header(lower, b"sec-websocket-extensions") or b""
    exchange = SocketExchange(connection, version, call_head, key, offers)
    connection.exchange = exchange
    exchange.call = shared.pool.call(version, call_head, b"", False, exchange)
    return True


def _exact(head: bytes, name: bytes) -> bytes:
    """The value of a header as it was written."""
    at = head.lower().find(b"\n" + name + b":")
    if at < 0:
        return b""
    start = at + len(name) + 2
    return head[start : head.find(b"\r", start)].strip()


def negotiate(offers: bytes) -> tuple[bytes, list[Extension]]:
    """The header line that accepts what a client offers, and the extensions to use."""
    try:
        for name, params in parse_extension(offers.decode("latin-1")):
            if name == DEFLATE.name:
                answer, extension = DEFLATE.process_request_params(params, [])
                line = build_extension([(DEFLATE.name, answer)])
                return f"sec-websocket-extensions: {line}\r\n".encode(), [extension]
    except (InvalidHeader, NegotiationError):
        pass  # RFC 6455 lets a server decline whatever it likes
    return b"", []


class SocketExchange(Exchange):
    """A request for a WebSocket: an exchange like any other if the worker answers with something else."""

    __slots__ = ("key", "offers", "socket")

    def __init__(self, connection: Connection, version: Version, head: bytes, key: bytes, offers: bytes) -> None:
        super().__init__(connection, version, head, 1, True, False)
        self.key = key
        self.offers = offers
        self.socket: Socket | None = None

    def on_response(self, status: int, head: bytes, body: bytes, ended: bool) -> None:
        if status != 101 or ended or self.state != WAITING or self.connection.is_lost:
            super().on_response(status, head, body, ended)
            return
        try:
            self._switch(head)
        except BadResponse as error:
            self.reject(error)

    def _switch(self, block: bytes) -> None:
        """Answer with 101 and hand the connection over."""
        check_block(block)
        lines = [line for line in block.split(b"\r\n") if line and line.split(b":")[0].lower() not in OURS]
        accept = base64.b64encode(hashlib.sha1(self.key + GUID, usedforsecurity=False).digest())
        accepted, extensions = negotiate(self.offers)
        connection, shared = self.connection, self.connection.shared
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
        early = bytes(connection.buffer)
        self.socket = Socket(self, extensions)
        # The connection is no longer the client's: its transport has another protocol.
        connection.is_lost = connection.is_closing = connection.is_busy = True
        connection.exchange = None
        shared.connections.add(self.socket)
        shared.forget(connection)
        connection.transport.set_protocol(self.socket)
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
            self.socket.on_credit(amount)

    def on_upload_stop(self) -> None: ...  # the worker's end is closed; what comes is dropped with the call


class Socket(asyncio.Protocol):
    """The connection, once it is a WebSocket. There may be tens of thousands: an idle one has nothing to spare."""

    __slots__ = (
        "call",
        "codec",
        "download",
        "is_flooded",
        "is_held",
        "is_leaving",
        "is_lost",
        "is_over",
        "is_pinged",
        "shared",
        "touched",
        "transport",
        "upload",
    )

    def __init__(self, exchange: SocketExchange, extensions: list[Extension]) -> None:
        assert exchange.call is not None
        self.shared = exchange.connection.shared
        self.transport = exchange.connection.transport
        self.call = exchange.call
        self.codec = Codec(SERVER, extensions)
        self.upload = Upload(self.call)
        self.download = Download(self.call, False)
        self.is_lost = False
        self.is_held = False
        self.is_flooded = False  # it pings and does not read the answers
        self.is_over = False  # the call has ended, or was told that the client is gone
        self.is_leaving = False  # a close was sent: the client has some seconds to answer
        self.touched = self.shared.now
        self.is_pinged = False

    # --- the client ---

    def data_received(self, data: bytes) -> None:
        self.touched = self.shared.now
        self.is_pinged = False
        messages = self.codec.receive(data)
        if messages:
            self.call.hear(self.codec.messages)
            self.upload.take(messages, self.codec.has_told)
        self._write()
        self.is_flooded = self.transport.get_write_buffer_size() > MAX_UNREAD
        self._gate()

    def _gate(self) -> None:
        """Read on, or wait until the worker or the client has taken what is there."""
        full = self.upload.is_full or self.is_flooded
        if full is self.is_held or self.is_lost:
            return
        self.is_held = full
        if full:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def _write(self) -> None:
        if self.is_lost:
            return
        for data in self.codec.outgoing():
            if data:
                self.transport.write(data)
            else:
                self._close_transport()
        if not self.is_leaving and self.codec.is_closing:
            self.is_leaving = True  # once: a client may go on sending
            asyncio.get_running_loop().call_later(CLOSE_SECONDS, self._close_transport)

    def _close_transport(self) -> None:
        if not self.is_lost:
            self.transport.close()

    def pause_writing(self) -> None:
        self.download.pause()

    def resume_writing(self) -> None:
        self.is_flooded = False
        self.download.resume()
        self._gate()

    def eof_received(self) -> bool:
        self.codec.end()
        self._write()
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self.is_lost = True
        self.shared.forget(self)
        if self.is_over:
            return
        if self.codec.has_told:
            # It ends by itself, its handlers may still run; an engine that does not end it is told to.
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

    def on_credit(self, amount: int) -> None:
        self.upload.add_credit(amount)
        self._gate()

    def on_end(self, code: int) -> None:
        """The call is over: say good-bye if nobody has."""
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
        self.codec.close(GOING_AWAY, "the server is shutting down")
        self._write()

    def cut(self) -> None:
        self.transport.abort()

    def sweep(self, now: float) -> None:
        """A silent client is asked whether it is there; one that does not answer is gone."""
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
