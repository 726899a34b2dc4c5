"""One TCP connection of a worker: bytes in both directions, with bounded buffers.

Received bytes wait here until the worker reads them. Above HIGH the connection is not read, so the peer has to wait; a
tenant that holds more than its room gets less. A write returns when the peer has taken most of it. The peer is not
trusted, and neither is the engine: one read and one write at a time.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from contextlib import suppress
from socket import SO_LINGER, SOL_SOCKET
from typing import cast

from atoll.egress.tls_ends import send_end
from atoll.errors import InvalidArgument, NetworkError
from atoll.holdings import SMALL_WINDOW, Holdings

HIGH = 256 << 10  # with this many unread bytes, the connection is paused
READ = 64 << 10  # the most that is read from the kernel at once
MAX_WRITE = 1 << 20  # of one op
UNSENT = 64 << 10  # bytes that the peer has not taken; beyond that, a write waits
LINGER = 3.0  # seconds for the last bytes after a close
RESET = struct.pack("ii", 1, 0)  # a linger of 0 seconds
LOST = "Network connection lost."

# All reads of the process go here first. A read is copied out before the next one begins.
_BUFFER = memoryview(bytearray(READ))
_SMALL = _BUFFER[:SMALL_WINDOW]


class TcpConnection(asyncio.BufferedProtocol):
    """Calls `on_lost` once, when the connection is closed."""

    def __init__(self, tenant: str, holdings: Holdings, on_lost: Callable[[], None]) -> None:
        self.transport: asyncio.Transport = cast(asyncio.Transport, None)
        self.is_tls = False
        self.is_closed = False  # by the worker, or with its call
        self.is_lost = False
        self._tenant = tenant
        self._holdings = holdings
        self._on_lost = on_lost
        # what was received
        self._data = bytearray()
        self._is_held = False  # not read, because too much waits
        self._has_ended = False  # the peer sends no more
        self._has_failed = False
        self._reader: asyncio.Future[None] | None = None
        # what is sent
        self._is_paused = False
        self._has_sent_end = False
        self._writer: asyncio.Future[None] | None = None
        self._is_writing = False

    # --- for the worker ---

    async def read(self) -> bytes:
        """What has arrived, after waiting for at least one byte; b"" at the end."""
        if self._reader is not None:
            raise InvalidArgument("a socket has one read at a time")
        if not (self._data or self._has_ended or self.is_closed):
            self._reader = asyncio.get_running_loop().create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        data = bytes(self._data)
        if not data and self._has_failed and not self.is_closed:
            raise NetworkError(LOST)
        self._drop()
        if self._is_held and not self.is_lost and not self.transport.is_closing():
            self._is_held = False
            self.transport.resume_reading()
        return data

    @property
    def at_end(self) -> bool:
        """Whether everything that arrives has been read."""
        return self.is_closed or (self._has_ended and not self._has_failed and not self._data)

    async def write(self, chunk: bytes, *, ended: bool) -> None:
        """Send bytes, and wait for room. NetworkError if the connection is lost."""
        if self._is_writing:
            raise InvalidArgument("a socket has one write at a time")
        if self._has_sent_end or len(chunk) > MAX_WRITE:
            raise InvalidArgument("the socket has been closed for writing, or the piece is too long")
        self._is_writing = True
        try:
            await self._room()
            if chunk:
                self.transport.write(chunk)
                await self._room()
            if ended:
                self._has_sent_end = True
                self._send_end()
        finally:
            self._is_writing = False

    def _send_end(self) -> None:
        if self.transport.can_write_eof():
            self.transport.write_eof()
            return
        if not self._is_held:
            send_end(self.transport)

    async def _room(self) -> None:
        while self._is_paused and not self.is_lost and not self.is_closed:
            self._writer = asyncio.get_running_loop().create_future()
            try:
                await self._writer
            finally:
                self._writer = None
        if self.is_lost or self.is_closed or self.transport.is_closing():
            raise NetworkError(LOST)

    def close(self) -> None:
        """Close it from the worker's side. Bytes that were written have LINGER seconds to leave."""
        if self.is_closed:
            return
        self.is_closed = True
        self._drop()
        self._wake()
        if self.is_lost:
            return
        if self._is_held:
            self._is_held = False
            self.transport.resume_reading()  # a TLS connection must read the peer's goodbye
        self.transport.close()
        asyncio.get_running_loop().call_later(LINGER, self.abort)

    def abort(self) -> None:
        """End it at once. The kernel drops what the peer has not taken, too."""
        if not self.is_lost:
            if (socket := self.transport.get_extra_info("socket")) is not None:
                with suppress(OSError):
                    socket.setsockopt(SOL_SOCKET, SO_LINGER, RESET)
            self.transport.abort()

    def take_over(self, other: TcpConnection) -> None:
        """Become what another connection is, with all that has arrived there. The other one is gone then."""
        self.is_tls, self._has_ended, self._is_held = other.is_tls, other._has_ended, other._is_held
        self._data, other._data = other._data, bytearray()
        other._on_lost = lambda: None
        other.is_lost = other.is_closed = True
        self.transport = other.transport
        self.transport.set_protocol(self)

    def prepare_tls(self) -> None:
        """Before the handshake: what came before it was not encrypted, so anybody may have put it there."""
        if self._data:
            self.abort()
            raise NetworkError("the peer sent bytes before the TLS handshake")
        if self._is_writing or self._has_ended or self.is_lost or self.is_closed or self.transport.is_closing():
            raise NetworkError(LOST)
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    def finish_tls(self, transport: asyncio.Transport) -> None:
        self.is_tls = True
        self._adopt(transport)
        if self.is_closed:
            transport.abort()

    # --- the connection ---

    def _adopt(self, transport: asyncio.Transport) -> None:
        self.transport = transport
        transport.set_write_buffer_limits(high=UNSENT)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.is_tls = transport.get_extra_info("sslcontext") is not None
        self._adopt(cast(asyncio.Transport, transport))

    def get_buffer(self, hint: int) -> memoryview:
        return _SMALL if self._holdings.is_tight(self._tenant) else _BUFFER

    def buffer_updated(self, count: int) -> None:
        if self.is_closed:
            return
        self._data += _BUFFER[:count]
        self._holdings.count(self._tenant, count)
        room = SMALL_WINDOW if self._holdings.is_tight(self._tenant) else HIGH
        if len(self._data) >= room and not self._is_held and not self.transport.is_closing():
            self._is_held = True
            self.transport.pause_reading()
        self._wake()

    def _drop(self) -> None:
        if self._data:
            self._holdings.count(self._tenant, -len(self._data))
            self._data = bytearray()

    def eof_received(self) -> bool:
        self._has_ended = True
        self._wake()
        return not self.is_tls  # the worker may still write

    def pause_writing(self) -> None:
        self._is_paused = True

    def resume_writing(self) -> None:
        self._is_paused = False
        self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        self.is_lost = True
        self._has_failed = error is not None
        self._has_ended = True
        self._wake()
        self._on_lost()

    def _wake(self) -> None:
        for waiter in (self._reader, self._writer):
            if waiter is not None and not waiter.done():
                waiter.set_result(None)
