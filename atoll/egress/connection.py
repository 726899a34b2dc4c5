"""One HTTP/1.1 connection to another server, and one exchange on it at a time."""

from __future__ import annotations

import asyncio
import select
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:
    from atoll.egress.client import Pool, Tenant
    from atoll.egress.exchange import Exchange


class Connection(asyncio.Protocol):
    """`release` is told when an exchange has left it and it may be used again, or not."""

    def __init__(self, where: str, release: Callable[[Connection, bool], None]) -> None:
        # of the connection
        self.where = where  # host:port, for errors
        self.tenant: Tenant = cast("Tenant", None)
        self.pool: Pool | None = None  # where it waits when it is idle; None when the client does not count it
        self.transport: asyncio.Transport = cast(asyncio.Transport, None)
        self.is_lost = False
        self.idle_since = 0.0
        self._release = release
        self._writer: asyncio.Future[None] | None = None  # waits for the write buffer to empty
        self._is_write_paused = False
        # of the exchange
        self.exchange: Exchange | None = None
        self._is_held = False

    def begin(self, exchange: Exchange) -> None:
        """The next exchange is on it; what it sends goes to `transport`."""
        self.exchange = exchange
        exchange.connection = self

    def hand_over(self, protocol: asyncio.BaseProtocol) -> None:
        """What the exchange made of the connection is no HTTP any more: another protocol has it from now on."""
        if self.exchange is not None:
            self.exchange.connection = None
            self.exchange = None
        self.transport.set_protocol(protocol)

    def leave(self, keeps: bool) -> None:
        """The exchange is over: serve the next one, or close."""
        exchange, self.exchange = self.exchange, None
        if exchange is not None:
            exchange.connection = None
        self._wake_writer()
        keeps = keeps and not self.is_lost
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
        if held:
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
        """Whether something has come on an idle connection that the event loop has not seen yet: its end, mostly."""
        look = select.poll()
        look.register(self.transport.get_extra_info("socket").fileno(), select.POLLIN)
        return bool(look.poll(0))

    async def drain(self) -> None:
        """Wait until what was written has mostly gone."""
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
        # More than was asked for: whatever it is, the next response could not be told from it.
        if self.exchange is None or not self.exchange.feed(data):
            self.transport.abort()

    def eof_received(self) -> bool:
        return False

    def connection_lost(self, error: Exception | None) -> None:
        self.is_lost = True
        self._wake_writer()
        exchange = self.exchange
        if exchange is not None:
            exchange.on_lost(error)
        if self.exchange is not None:  # else it has left
            self.leave(False)
        elif exchange is None:
            self._release(self, False)

    def pause_writing(self) -> None:
        self._is_write_paused = True

    def resume_writing(self) -> None:
        self._is_write_paused = False
        self._wake_writer()
