"""One HTTP/1.1 connection to another server, with one exchange at a time.

The server is not trusted: a read of 256 KB may hold 40,000 chunks. So received bytes are parsed in pieces, in smaller
ones if they take long to parse, when the pacer allows it. Meanwhile the connection is not read.
"""

from __future__ import annotations

import asyncio
import select
from collections import deque
from collections.abc import Callable
from typing import cast

from atoll.egress.exchange import ServerExchange
from atoll.pacer import Pacer

COARSE = 64 << 10  # bytes that are parsed at once
FINE = 4 << 10  # the same for a head, or for a body in tiny chunks


class TenantConnections:
    """The connections of one tenant."""

    __slots__ = ("idle", "name", "open", "waiters")

    def __init__(self, name: str) -> None:
        self.name = name
        self.open = 0
        self.idle: dict[ServerConnection, None] = {}  # the one idle longest first
        self.waiters: deque[asyncio.Future[None]] = deque()


class ConnectionPool:
    """Connections that may serve the same requests: of one tenant, under the same rules, to one server."""

    __slots__ = ("idle", "open")

    def __init__(self) -> None:
        self.open = 0
        self.idle: list[ServerConnection] = []  # the one idle longest first


class ServerConnection(asyncio.Protocol):
    """A connection to a server. Calls `release` when its exchange has ended; True: the connection can be reused."""

    def __init__(self, where: str, release: Callable[[ServerConnection, bool], None], pacer: Pacer) -> None:
        # of the connection
        self.where = where  # host:port, for errors
        self.tenant: TenantConnections = cast(TenantConnections, None)
        self.pool: ConnectionPool | None = None  # None while the client does not count it
        self.transport: asyncio.Transport = cast(asyncio.Transport, None)
        self.is_lost = False
        self.idle_since = 0.0
        self._release = release
        self._writer: asyncio.Future[None] | None = None  # waits for the write buffer to empty
        self._is_write_paused = False
        self._pacer = pacer
        self._input = b""  # received and not parsed yet
        self._at = 0
        self._is_queued = False  # the pacer will call `_step`
        self._is_paused = False  # reading is paused
        # of the exchange
        self.exchange: ServerExchange | None = None
        self._is_held = False  # its reader is too slow

    def begin(self, exchange: ServerExchange) -> None:
        """Start the next exchange. The caller writes the request to `transport`."""
        self.exchange = exchange
        exchange.connection = self

    def hand_over(self, protocol: asyncio.BaseProtocol) -> None:
        """Give the transport to another protocol, after an upgrade."""
        if self.exchange is not None:
            self.exchange.early += self._input[self._at :]
            self._input = b""
            self.exchange.connection = None
            self.exchange = None
        self.transport.set_protocol(protocol)

    def leave(self, keeps: bool) -> None:
        """The exchange is over: keep the connection for the next one, or close it."""
        exchange, self.exchange = self.exchange, None
        if exchange is not None:
            exchange.connection = None
        self._wake_writer()
        keeps = keeps and not self.is_lost and self._at >= len(self._input)  # else the server sent extra bytes
        if keeps:
            self.hold(False)
        else:
            self.transport.abort()
        self._release(self, keeps)

    def hold(self, held: bool) -> None:
        """Pause or resume reading."""
        if held is self._is_held or self.is_lost:
            return
        self._is_held = held
        self._work()

    def _work(self) -> None:
        """Parse received bytes if there is room. Then pause or resume reading."""
        if not self._is_queued and not self._is_held and self._input:
            self._is_queued = True
            if self._pacer.run(self.tenant.name, self._step):
                return
        self._gate()

    def _step(self) -> bool:
        """Parse a piece. True if there is more to do."""
        if not self.is_lost and self._input and not self._is_held:
            self._parse()
        if not self.is_lost and self._input and not self._is_held:
            return True
        self._is_queued = False
        self._gate()
        return False

    def _parse(self) -> None:
        exchange = self.exchange
        at = self._at
        size = FINE if exchange is None or exchange.is_laborious else COARSE
        piece = self._input[at : at + size] if at or len(self._input) > size else self._input
        self._at = at + len(piece)
        is_last = self._at == len(self._input)
        # The server sent more than the response. The next response could not be told apart from it.
        if exchange is None or not exchange.feed(piece):
            self._input = b""
            self.transport.abort()
        elif is_last:
            self._input = b""
        if not self._input:
            self._at = 0

    def _gate(self) -> None:
        paused = self._is_held or bool(self._input)
        if paused is self._is_paused or self.is_lost:
            return
        self._is_paused = paused
        if paused:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    @property
    def is_held(self) -> bool:
        return self._is_held

    @property
    def is_write_paused(self) -> bool:
        return self._is_write_paused

    @property
    def is_stale(self) -> bool:
        """Whether an idle connection has input that the event loop has not read yet. It is mostly the end."""
        look = select.poll()
        look.register(self.transport.get_extra_info("socket").fileno(), select.POLLIN)
        return bool(look.poll(0))

    async def drain(self) -> None:
        """Wait until the write buffer has room."""
        if self._is_write_paused and not self.is_lost:
            self._writer = asyncio.get_running_loop().create_future()
            await self._writer

    def _wake_writer(self) -> None:
        if self._writer is not None and not self._writer.done():
            self._writer.set_result(None)

    # --- asyncio.Protocol ---

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        if self.exchange is None or not self.exchange.is_out:  # an answer to no request, or before the request
            self.transport.abort()
            return
        self._input = self._input[self._at :] + data if self._input else data
        self._at = 0
        self._work()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self.is_lost = True
        self._input = b""
        self._wake_writer()
        exchange = self.exchange
        if exchange is not None:
            exchange.on_lost(error)
        if self.exchange is not None:  # otherwise it has called `leave`
            self.leave(False)
        elif exchange is None:
            self._release(self, False)

    def pause_writing(self) -> None:
        self._is_write_paused = True

    def resume_writing(self) -> None:
        self._is_write_paused = False
        self._wake_writer()
