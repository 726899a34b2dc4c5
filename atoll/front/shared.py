"""State that all connections of a server share, and the protocols by which the front knows pool and calls.

The front knows the pool by one method and a call by five. So tests can replace both, and the control API can take the
place of an engine.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from email.utils import formatdate
from typing import Final, Protocol

from atoll.engine.calls.call import CallListener
from atoll.errors import Failure
from atoll.front.access import AccessNotes
from atoll.front.bounds import Bounds
from atoll.front.control import Control
from atoll.front.endpoint import Endpoint
from atoll.front.flow import ClientDownload
from atoll.front.options import Explain, FrontOptions
from atoll.front.pages import Detail
from atoll.front.peer import Proxies
from atoll.front.ready import ReadyFiles
from atoll.front.turns import Turns
from atoll.holdings import Holdings
from atoll.pacer import Pacer
from atoll.router import Router
from atoll.wire.sockets import GOING_AWAY
from atoll.workers import Version

# Limits of what waits for the end of a turn. Larger writes go out at once, so that back-pressure sees them.
MAX_WAITING: Final = 128
MAX_WAITING_BYTES: Final = 8192
MAX_PART_BYTES: Final = 256 << 10  # of parts of bodies: about what one read of an engine's socket brings


class PoolCall(Protocol):
    """One call in flight."""

    unsent: int  # bytes of the request body that wait in this process

    def send_body(self, chunk: bytes, ended: bool) -> None: ...
    def grant(self, amount: int) -> None: ...
    def cancel(self) -> None: ...
    def refuse(self, failure: Failure) -> None: ...
    def hear(self, messages: int) -> None: ...


class CallPool(Protocol):
    """Starts calls. Never raises: failures go to the caller."""

    def call(self, version: Version, head: bytes, body: bytes, ended: bool, caller: CallListener) -> PoolCall: ...


class OpenConnection(Protocol):
    """A connection as the server knows it: it speaks HTTP, or has become a WebSocket."""

    transport: asyncio.Transport

    def drain(self) -> None: ...
    def sweep(self, now: float) -> None: ...


class LeavingConnection(Protocol):
    """A connection between two requests, which is not read any more: another process goes on with it."""

    def pass_on(self) -> bool: ...


class Shared:
    __slots__ = (
        "access", "base", "bounds", "connections", "control", "date", "detail", "explain", "farewell", "heir",
        "holdings", "is_draining", "last_left", "leaving", "loop", "now", "out", "pacer", "part_bytes", "parts",
        "pool", "proxies", "ready", "router", "site", "turns",
    )  # fmt: skip

    def __init__(self, pool: CallPool, router: Router, control: Control | None, options: FrontOptions) -> None:
        self.pool = pool
        self.site: CallPool = pool  # takes the calls of versions with static assets; the node sets it
        self.ready: ReadyFiles | None = None  # their responses that are kept; the node sets it too
        self.access: AccessNotes | None = None  # if there is an access log; the node sets it
        self.router = router
        self.base: str = router.base  # the base domain, on which workers may set no cookies
        self.control = control
        self.bounds: Bounds = options.bounds
        self.detail: Detail = options.detail
        self.explain: Explain | None = options.explain
        self.proxies: Proxies = options.proxies
        self.pacer: Pacer = options.pacer
        self.holdings: Holdings = options.holdings
        # set by the server's timer only: coarse, but free to read
        self.now = 0.0
        self.date = b""
        # of one turn of the event loop
        self.loop: asyncio.AbstractEventLoop | None = None  # set by the first `send`
        self.out: list[tuple[Endpoint, bytes]] = []
        self.parts: list[ClientDownload] = []  # those whose parts are in `out`
        self.part_bytes = 0
        self.turns = Turns()
        # the life of the server
        self.connections: set[OpenConnection] = set()
        self.is_draining = False
        self.last_left = asyncio.Event()
        self.farewell = (GOING_AWAY, "the server is shutting down")  # what WebSockets are told at the end
        # when another process takes the place of this one (front/succession.py)
        self.heir: Callable[[int, bytes], None] | None = None  # takes a connection, and what was read from it
        self.leaving: list[LeavingConnection] = []

    def send(self, connection: Endpoint, data: bytes) -> None:
        """Write to a client at the end of this turn.

        All responses of a turn are written back to back, so that a client that the first one wakes finds the others
        too. If each were written when it is ready, every write would wake a process, which costs more than the write.
        """
        out = self.out
        if not out:
            self.flush_later()
        out.append((connection, data))
        if len(data) > MAX_WAITING_BYTES or len(out) > MAX_WAITING:
            self.flush()

    def send_part(self, connection: Endpoint, pieces: list[bytes], size: int, download: ClientDownload) -> None:
        """Write a long part of a body at the end of this turn, in one write with other parts for the same client.

        The pieces are not joined, which would copy them. `download` grants `size` bytes once they are written.
        """
        out = self.out
        if not out:
            self.flush_later()
        for piece in pieces:
            out.append((connection, piece))
        download.waiting += size
        self.parts.append(download)
        self.part_bytes += size
        if self.part_bytes > MAX_PART_BYTES:
            self.flush()

    def flush_later(self) -> None:
        loop = self.loop
        if loop is None:
            loop = self.loop = asyncio.get_running_loop()
        loop.call_soon(self.flush)

    def flush(self) -> None:
        out, self.out = self.out, []
        if self.part_bytes:
            self.flush_parts(out)
            return
        for connection, data in out:
            if not connection.is_lost:
                connection.transport.write(data)

    def flush_parts(self, out: list[tuple[Endpoint, bytes]]) -> None:
        self.part_bytes = 0
        parts, self.parts = self.parts, []
        pieces: dict[Endpoint, list[bytes]] = {}
        for connection, data in out:
            pieces.setdefault(connection, []).append(data)
        for connection, mine in pieces.items():
            if not connection.is_lost:
                connection.transport.writelines(mine)
        for download in parts:
            download.written()

    def forget(self, connection: OpenConnection) -> None:
        self.connections.discard(connection)
        if not self.connections:
            self.last_left.set()

    async def emptied(self, seconds: float) -> bool:
        """Wait until no connection is left. False if some are left after `seconds`."""
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
