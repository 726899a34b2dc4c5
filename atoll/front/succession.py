"""Another process takes the place of this one: its connections are passed on, and the rest ends in its own time.

A connection without TLS is passed on whenever no request is under way on it: at once, or when its response has left.
Bytes that it sends meanwhile wait in the kernel. So no client that keeps connections loses one with a request on it.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable

from atoll.front.line import ClientLine
from atoll.front.server import Listening, Server
from atoll.front.sockets import Socket

SERVICE_RESTART = 1012
PASS_SECONDS = 0.002  # until the last response of a connection has left; it usually has at once
SPREAD_SECONDS = 0.02  # between two WebSockets at least, so that their clients do not all return at once


class Succession:
    """The end of a server whose place another process takes."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._shared = server.shared
        self._timer: asyncio.Handle | None = None

    def begin(self, heir: Callable[[int, bytes], None]) -> None:
        """Accept nothing more. New clients wait in the kernel; `heir` gets the connections, one by one."""
        self._server.stop_listening()
        self._shared.heir = heir
        self._shared.farewell = (SERVICE_RESTART, "the node restarts")
        for connection in tuple(self._shared.connections):
            if isinstance(connection, ClientLine):
                connection.leave()
        self._pass_on()

    def _pass_on(self) -> None:
        leaving, self._shared.leaving = self._shared.leaving, []
        self._shared.leaving += [connection for connection in leaving if not connection.pass_on()]
        self._timer = asyncio.get_running_loop().call_later(PASS_SECONDS, self._pass_on)

    async def finish(self, seconds: float) -> None:
        """Calls have `seconds` to end. WebSockets are told to come back one after the other, within that time."""
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        sockets = [each for each in self._shared.connections if isinstance(each, Socket)]
        for left, each in zip(range(len(sockets), 0, -1), sockets, strict=True):
            await asyncio.sleep(min(SPREAD_SECONDS, max(until - loop.time(), 0) / left))
            if each in self._shared.connections:
                each.drain()
        self._server.drain_seconds = max(until - loop.time(), 1.0)
        await self._server.shutdown()
        if self._timer is not None:
            self._timer.cancel()


def listening_on(sockets: list[socket.socket]) -> Listening:
    """Ports that another process has opened."""
    listening = Listening()
    for each in sockets:
        each.setblocking(False)
        listening.sockets.append(each)
    return listening


def copies_of(listening: Listening) -> list[socket.socket]:
    """The same sockets again, for whoever serves on them next."""
    return [socket.socket(fileno=os.dup(each.fileno())) for each in listening.sockets]
