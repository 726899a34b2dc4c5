"""What all connections of one front share, and the seams it stands between.

The front knows a pool by one method and a call by three (`atoll.engine.calls` says the same from its side), so it can
be driven exactly in tests and the control API can stand in the place of an engine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from email.utils import formatdate
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias

from atoll.errors import Failure
from atoll.front.bounds import Bounds
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
MAX_WAITING: Final = 128
MAX_WAITING_BYTES: Final = 8192


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


class Shared:
    __slots__ = (
        "bounds", "connections", "control", "date", "detail", "explain", "is_draining", "last_left", "loop", "now",
        "out", "pool", "proxies", "router",
    )  # fmt: skip

    def __init__(
        self,
        pool: Pool,
        router: Router,
        control: Control | None,
        bounds: Bounds,
        detail: Detail = Detail.PUBLIC,
        explain: Explain | None = None,
        proxies: Proxies | None = None,
    ) -> None:
        self.pool = pool
        self.router = router
        self.control = control
        self.bounds = bounds
        self.detail = detail  # how much error pages tell
        self.explain = explain  # where they tell stacks: what becomes of the places in them
        self.proxies = proxies or Proxies()  # whose word on clients is taken
        # changed by the server's ticker only: coarse, but free to read
        self.now = 0.0
        self.date = b""
        # of one turn of the loop
        self.loop: asyncio.AbstractEventLoop | None = None  # known from the first turn on
        self.out: list[tuple[Connection, bytes]] = []
        # the life of the server
        self.connections: set[Connection | Socket] = set()
        self.is_draining = False
        self.last_left = asyncio.Event()

    def send(self, connection: Connection, data: bytes) -> None:
        """Write to a client at the end of this turn.

        The responses of one turn leave back to back: a client that the first one wakes finds the others when it looks.
        Written one by one, between the work for each, every write wakes somebody up, which costs more than the write.
        """
        out = self.out
        if not out:
            loop = self.loop
            if loop is None:
                loop = self.loop = asyncio.get_running_loop()
            loop.call_soon(self.flush)
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
