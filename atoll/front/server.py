"""The life of the front: listen, serve, keep time, drain.

One timer a few times a second does all timekeeping: it sets the coarse clock and the Date line that every connection
reads, and sweeps over the connections for those that ran out of time.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import ssl
import time
from pathlib import Path
from typing import cast

from atoll.errors import StartError
from atoll.front.bounds import Bounds
from atoll.front.connection import Connection
from atoll.front.control import AsgiApp, Control
from atoll.front.pages import Detail
from atoll.front.peer import Proxies
from atoll.front.shared import Explain, Pool, Shared
from atoll.front.tls import Certificates
from atoll.router import Router

BACKLOG = 2048
SWEEP_SECONDS = 0.5


class Listening:
    """The sockets of one address: `localhost` is two of them, one per address family."""

    def __init__(self) -> None:
        self.sockets: list[socket.socket] = []

    @property
    def port(self) -> int:
        port: int = self.sockets[0].getsockname()[1]
        return port

    def open(self, family: int, address: tuple[str | int, ...]) -> None:
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            sock.bind(address)
            sock.listen(BACKLOG)
            sock.setblocking(False)
        except OSError:
            sock.close()
            raise
        self.sockets.append(sock)

    def close(self) -> None:
        for sock in self.sockets:
            sock.close()


def listen(host: str, port: int) -> Listening:
    """Open a port (0: any free one); clients that connect wait until a server starts on it. Raises StartError.

    It is apart from `Server.startup` so that a taken port is found before anything else of a node is touched.
    """
    listening = Listening()
    failure: OSError | None = None
    try:
        for family, _, _, _, address in socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        ):
            try:
                # port 0 is decided by the first
                listening.open(family, (address[0], listening.port if listening.sockets else port, *address[2:]))
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    raise
                failure = failure or error  # an address family that this machine lacks: the other may do
    except OSError as error:
        listening.close()
        raise start_error(error, host, port) from error
    if not listening.sockets:
        raise start_error(failure or OSError("no such address"), host, port) from failure
    return listening


class Server:
    """HTTP/1.1 on what `listen` opened. `startup`, then requests are served until `shutdown`."""

    def __init__(
        self,
        *,
        pool: Pool,
        router: Router,
        control: AsgiApp | None = None,
        header_bytes: int = Bounds.header_bytes,
        url_bytes: int = Bounds.url_bytes,
        body_bytes: int = Bounds.body_bytes,
        header_timeout: float = Bounds.header_timeout,
        body_timeout: float = Bounds.body_timeout,
        idle_timeout: float = Bounds.idle_timeout,
        socket_timeout: float = Bounds.socket_timeout,
        drain_seconds: float = 30.0,
        detail: Detail = Detail.PUBLIC,
        explain: Explain | None = None,
        proxies: Proxies | None = None,
    ) -> None:
        self.port = 0
        self.drain_seconds = drain_seconds
        bounds = Bounds(header_bytes, url_bytes, body_bytes, header_timeout, body_timeout, idle_timeout, socket_timeout)
        self.shared = Shared(
            pool,
            router,
            Control(control) if control is not None else None,
            bounds,
            detail,
            explain,
            proxies or Proxies(),
        )
        self.period = min(SWEEP_SECONDS, header_timeout / 4, body_timeout / 4, idle_timeout / 4)
        self.listeners: list[asyncio.Server] = []
        self.timer: asyncio.TimerHandle | None = None

    async def startup(self, listening: Listening) -> None:
        """Take the connections that arrive, those that waited since `listen` first. The sockets are ours now."""
        self.port = listening.port
        self.sweep()
        await self._serve(listening, None)

    async def startup_secure(self, listening: Listening, certificates: Certificates) -> None:
        """The same with HTTPS."""
        await self._serve(listening, certificates.context)

    async def _serve(self, listening: Listening, tls: ssl.SSLContext | None) -> None:
        loop = asyncio.get_running_loop()
        handshake = self.shared.bounds.header_timeout if tls is not None else None
        for sock in listening.sockets:
            listener = await loop.create_server(
                self._connection, sock=sock, backlog=BACKLOG, ssl=tls, ssl_handshake_timeout=handshake
            )
            self.listeners.append(listener)

    def _connection(self) -> asyncio.Protocol:
        return cast(asyncio.Protocol, Connection(self.shared))

    async def shutdown(self) -> None:
        """Stop listening, let exchanges in flight finish for up to `drain_seconds`, then cut what is left."""
        shared = self.shared
        shared.is_draining = True
        for listener in self.listeners:
            listener.close()
        for connection in tuple(shared.connections):
            connection.drain()
        if not await shared.emptied(self.drain_seconds):
            for connection in tuple(shared.connections):
                connection.transport.abort()
            await shared.emptied(1.0)
        if self.timer is not None:
            self.timer.cancel()

    def sweep(self) -> None:
        loop = asyncio.get_running_loop()
        self.shared.tick(loop.time(), time.time())
        for connection in tuple(self.shared.connections):
            connection.sweep(self.shared.now)
        self.timer = loop.call_later(self.period, self.sweep)


def start_error(error: OSError, host: str, port: int) -> StartError:
    """Why we cannot listen, in words, with what to do about it."""
    if error.errno == errno.EADDRINUSE:
        pid = pid_listening_on(port)
        holder = f"process {pid} ({process_name(pid)})" if pid is not None else "another process"
        return StartError(
            f"port {port} is taken by {holder}",
            f"stop it, or start on another port: atoll serve --port {port + 1}",
        )
    if error.errno == errno.EACCES:
        return StartError(f"not allowed to listen on port {port}", "ports below 1024 need root; try --port 8080")
    return StartError(f"cannot listen on {host}:{port}: {error.strerror or error}", "check --host and --port")


def pid_listening_on(port: int) -> int | None:
    """Who listens on a TCP port, as far as /proc lets us see."""
    inodes = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        try:
            rows = Path(table).read_text().splitlines()[1:]
        except OSError:
            continue
        for row in rows:
            columns = row.split()
            if columns[3] == "0A" and int(columns[1].rpartition(":")[2], 16) == port:  # 0A: listening
                inodes.add(f"socket:[{columns[9]}]")
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if any(os.readlink(link) in inodes for link in (folder / "fd").iterdir()):
                return int(folder.name)
        except OSError:
            continue
    return None


def process_name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return "unknown"
