"""The HTTP server: listen, serve, enforce timeouts, drain.

One timer runs a few times a second. It sets the coarse clock and the Date line that every connection reads, and checks
all connections for timeouts.
"""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import ssl
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack
from itertools import islice
from pathlib import Path
from typing import cast

from atoll.config import Settings
from atoll.errors import StartError
from atoll.front.access_log import AccessLog, access_log_of
from atoll.front.connection import ClientConnection
from atoll.front.control import AsgiApp
from atoll.front.control_sockets import SocketControl
from atoll.front.line import CROWD
from atoll.front.options import FrontOptions
from atoll.front.reading import SmallReads
from atoll.front.shared import CallPool, OpenConnection, Shared
from atoll.front.tls import Certificates
from atoll.router import Router

BACKLOG = 2048
SWEEP_SECONDS = 0.5
SWEEP_STEP = 1000  # connections per turn of the event loop


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
    """Open a port (0: any free one). Clients that connect wait until a server starts on it. Raises StartError.

    It is separate from `Server.startup`, so that a node finds a taken port before it does anything else.
    """
    listening = Listening()
    failure: OSError | None = None
    try:
        for family, _, _, _, address in socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        ):
            try:
                # the first socket decides what port 0 means
                listening.open(family, (address[0], listening.port if listening.sockets else port, *address[2:]))
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    raise
                failure = failure or error  # this machine may lack the address family; try the others
    except OSError as error:
        listening.close()
        raise start_error(error, host, port) from error
    if not listening.sockets:
        raise start_error(failure or OSError("no such address"), host, port) from failure
    return listening


class Server:
    """Serves HTTP/1.1 on the sockets of `listen`, from `startup` to `shutdown`."""

    def __init__(
        self, pool: CallPool, router: Router, control: AsgiApp | None = None, options: FrontOptions | None = None
    ) -> None:
        options = options or FrontOptions()
        self.port = 0
        self.drain_seconds = options.drain_seconds
        self.shared = Shared(pool, router, SocketControl(control) if control is not None else None, options)
        bounds = options.bounds
        shortest = min(bounds.header_timeout, bounds.body_timeout, bounds.idle_timeout)
        self.period = min(SWEEP_SECONDS, shortest / 4)
        self.listeners: list[asyncio.Server] = []
        self.secure_listeners: list[asyncio.Server] = []
        self.timer: asyncio.Handle | None = None
        self.access_log: AccessLog | None = None

    def use_access_log(self, access_log: AccessLog | None) -> AccessLog | None:
        """Note requests in this log from now on. Returns the one before, which the caller closes."""
        former, self.access_log = self.access_log, access_log
        self.shared.access = None if access_log is None else access_log.notes
        return former

    @property
    def access_log_dropped(self) -> int:
        return 0 if self.access_log is None else self.access_log.dropped

    async def close_access_log(self) -> None:
        former = self.use_access_log(None)
        if former is not None:
            await former.close()

    async def startup(self, listening: Listening) -> None:
        """Accept connections, also those that have waited since `listen`. The server owns the sockets from now on."""
        self.port = listening.port
        self.sweep()
        await self._serve(listening, None)

    async def startup_secure(self, listening: Listening, certificates: Certificates) -> None:
        """Like `startup`, with HTTPS."""
        await self._serve(listening, certificates.context)

    async def _serve(self, listening: Listening, tls: ssl.SSLContext | None) -> None:
        loop = asyncio.get_running_loop()
        handshake = self.shared.bounds.header_timeout if tls is not None else None
        for sock in listening.sockets:
            listener = await loop.create_server(
                self._connection, sock=sock, backlog=BACKLOG, ssl=tls, ssl_handshake_timeout=handshake
            )
            (self.listeners if tls is None else self.secure_listeners).append(listener)

    def _connection(self) -> asyncio.Protocol:
        connection = ClientConnection(self.shared)
        if len(self.shared.connections) < CROWD:
            return cast(asyncio.Protocol, connection)
        connection.reads_little = True
        return cast(asyncio.Protocol, SmallReads(connection))

    def stop_listening(self) -> None:
        for listener in (*self.listeners, *self.secure_listeners):
            listener.close()
        self.listeners.clear()
        self.secure_listeners.clear()

    async def adopt(self, sock: socket.socket, data: bytes) -> None:
        """Go on with a connection of another process, which has read `data` of the next request."""
        sock.setblocking(False)
        connection = ClientConnection(self.shared)
        connection.buffer += data  # before the first read, which may come as soon as there is a transport
        connection.is_busy = bool(data)
        await asyncio.get_running_loop().connect_accepted_socket(lambda: cast(asyncio.Protocol, connection), sock)
        if data and not connection.is_lost:
            connection.touched = self.shared.now
            connection.pump()

    async def shutdown(self) -> None:
        """Stop listening, give open exchanges up to `drain_seconds` to finish, then abort the rest."""
        shared = self.shared
        shared.is_draining = True
        self.stop_listening()
        for connection in tuple(shared.connections):
            connection.drain()
        if not await shared.emptied(self.drain_seconds):
            for connection in tuple(shared.connections):
                connection.transport.abort()
            await shared.emptied(1.0)
        if self.timer is not None:
            self.timer.cancel()

    def sweep(self) -> None:
        self.shared.tick(asyncio.get_running_loop().time(), time.time())
        self._sweep(iter(tuple(self.shared.connections)))

    def _sweep(self, connections: Iterator[OpenConnection]) -> None:
        """Check some connections per turn of the event loop. There may be tens of thousands."""
        loop = asyncio.get_running_loop()
        some = list(islice(connections, SWEEP_STEP))
        for connection in some:
            if connection in self.shared.connections:
                connection.sweep(self.shared.now)
        if len(some) == SWEEP_STEP:
            self.timer = loop.call_soon(self._sweep, connections)
        else:
            self.timer = loop.call_later(self.period, self.sweep)


def begin_access_log(server: Server, settings: Settings, undo: AsyncExitStack) -> None:
    """Open the access log, if the settings name one, until `undo`. Raises StartError."""
    server.use_access_log(access_log_of(settings))
    undo.push_async_callback(server.close_access_log)


def start_error(error: OSError, host: str, port: int) -> StartError:
    """Why the port cannot be opened, with a hint."""
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
    """The process that listens on a TCP port, if /proc shows it."""
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
