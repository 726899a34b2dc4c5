"""What all connections of one front share, and the seams it stands between.

The front knows a pool by one method and a call by three (`atoll.engine.calls` says the same from its side), so it can
be driven exactly in tests and the control API can stand in the place of an engine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from email.utils import formatdate
from typing import TYPE_CHECKING, Protocol, TypeAlias

from atoll.errors import Failure
from atoll.front.pages import Detail
from atoll.front.peer import Proxies
from atoll.router import Router
from atoll.workers import Version

if TYPE_CHECKING:
    from atoll.front.connection import Connection
    from atoll.front.control import Control
    from atoll.front.exchange import Exchange
    from atoll.front.sockets import Socket


# What waits for the end of a turn is small and not much: back-pressure must see the rest at once.
MAX_WAITING = 128
MAX_WAITING_BYTES = 8192


class Call(Protocol):
    """One call in flight."""

    def send_body(self, chunk: bytes, ended: bool) -> None: ...
    def grant(self, amount: int) -> None: ...
    def cancel(self) -> None: ...
    def refuse(self, failure: Failure) -> None: ...
    def hear(self, messages: int) -> None: ...


class Pool(Protocol):
    """Where calls are made. Never raises; failures reach the exchange."""

    def call(self, version: Version, head: bytes, body: bytes, ended: bool, caller: Exchange) -> Call: ...


Explain: TypeAlias = Callable[[str, Failure], Failure]  # by id of the version


@dataclass(frozen=True)
class Bounds:
    """How much and how long a client may. Bytes and seconds."""

    header_bytes: int = 131_072
    url_bytes: int = 16_384
    body_bytes: int = 100 * 1024 * 1024
    header_timeout: float = 10.0  # from the first byte of a head to its last
    body_timeout: float = 30.0  # without a byte of the body
    idle_timeout: float = 75.0  # between requests, and without the client reading a byte of a response
    socket_timeout: float = 120.0  # of a WebSocket that says nothing and answers no ping; 0: none


@dataclass(slots=True)
class Shared:
    pool: Pool
    router: Router
    control: Control | None
    bounds: Bounds
    detail: Detail = Detail.PUBLIC  # how much error pages tell
    explain: Explain | None = None  # where they tell stacks: what becomes of the places in them
    proxies: Proxies = field(default_factory=Proxies)  # whose word on clients is taken
    # changed by the server's ticker only: coarse, but free to read
    now: float = 0.0
    date: bytes = b""
    # of one turn of the loop
    out: list[tuple[Connection, bytes]] = field(default_factory=list)
    # the life of the server
    connections: set[Connection | Socket] = field(default_factory=set)
    is_draining: bool = False
    last_left: asyncio.Event = field(default_factory=asyncio.Event)

    def send(self, connection: Connection, data: bytes) -> None:
        """Write to a client at the end of this turn.

        The responses of one turn leave back to back: a client that the first one wakes finds the others when it looks.
        Written one by one, between the work for each, every write wakes somebody up, which costs more than the write.
        """
        out = self.out
        if not out:
            asyncio.get_running_loop().call_soon(self.flush)
        out.append((connection, data))
        if len(data) > MAX_WAITING_BYTES or len(out) > MAX_WAITING:
            self.flush()

    def flush(self) -> None:
        out, self.out = self.out, []
        for connection, data in out:
            if not connection.is_lost:
                connection.transport.write(data)

    def forget(self, connection: Connection | Socket) -> None:
        self.connections.discard(connection)
        if not self.connections:
            self.last_left.set()

    async def emptied(self, seconds: float) -> bool:
        """Wait until no connection is left, or give up after some seconds."""
        while self.connections:
            self.last_left.clear()
            try:
                await asyncio.wait_for(self.last_left.wait(), seconds)
            except TimeoutError:
                return False
        return True

    def tick(self, now: float, epoch: float) -> None:
        self.now = now
        self.date = b"date: %b\r\n" % formatdate(epoch, usegmt=True).encode()
