"""HTTP/1.1 to other servers: connections are kept alive and used again, within the bounds of each tenant.

A connection is used again only for the same tenant, the same egress rules and the same server: nobody sends on what
another tenant opened, and no rule is passed by on a connection that was opened under another one.

Written by hand on httptools because it costs a tenth of a client library (PARTS.md, 2), sends exactly the bytes we
made, and lets the pool be bounded. Redirects, cookies and encodings are no business of this file.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from atoll.config import Settings
from atoll.egress.connection import Connection
from atoll.egress.exchange import SWITCHING, Exchange
from atoll.egress.gate import Gate
from atoll.errors import NetworkError, QuotaExceeded
from atoll.workers import Version

if TYPE_CHECKING:
    from websockets.extensions.base import Extension

    from atoll.egress.websocket import Handshake, ServerSocket

IDLE_SECONDS = 15.0  # a kept connection without a request is closed after so long
IDLE_PER_TENANT = 64  # kept connections of one tenant
SWEEP_SECONDS = 1.0  # how often it is looked for what is idle or silent too long, at least
REPEATABLE = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})


class Target(NamedTuple):
    """A server."""

    tls: bool
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(slots=True)
class ClientStats:
    """What went out, for metrics."""

    requests: int = 0
    connects: int = 0
    reused: int = 0
    failures: int = 0
    open: int = 0  # connections, idle ones too


class Tenant:
    """The connections of one tenant."""

    __slots__ = ("idle", "name", "open", "waiters")

    def __init__(self, name: str) -> None:
        self.name = name
        self.open = 0
        self.idle: dict[Connection, None] = {}  # the one idle longest first
        self.waiters: deque[asyncio.Future[None]] = deque()


class Pool:
    """Connections that are kept and may serve the same requests: of one tenant, under the same rules, to one server."""

    __slots__ = ("idle", "open")

    def __init__(self) -> None:
        self.open = 0
        self.idle: list[Connection] = []  # the one idle longest first


class HttpClient:
    def __init__(self, settings: Settings, gate: Gate) -> None:
        self._gate = gate
        self._per_tenant = settings.tenant_connections
        self._silence = settings.fetch_timeout
        self._period = min(SWEEP_SECONDS, settings.fetch_timeout / 4)
        self._wait_seconds = settings.connect_timeout
        self._max_bytes = settings.fetch_bytes
        self._tenants: dict[str, Tenant] = {}
        self._pools: dict[tuple[Any, ...], Pool] = {}
        self._busy: set[Connection] = set()
        self._sockets: set[ServerSocket] = set()
        self._socket_silence = settings.socket_timeout
        self._timer: asyncio.TimerHandle | None = None
        self._out: list[tuple[Exchange, bytes]] = []  # requests that leave at the end of this turn
        self.stats = ClientStats()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for connection in [*self._busy, *(idle for tenant in self._tenants.values() for idle in tenant.idle)]:
            connection.transport.abort()
        for socket in list(self._sockets):
            socket.abort()

    async def request(
        self, version: Version, target: Target, data: bytes, *, method: str, is_whole: bool, chunked: bool
    ) -> Exchange:
        """Send a request, all of it or (not `is_whole`) its beginning. The head of the response is the caller's to
        await, by `answered`. HostRefused, AddressRefused, NetworkError or QuotaExceeded say why it was not sent."""
        self._gate.check_host(version, target.host, target.port)
        pool = self.pool(version, target)
        exchange = self.send_kept(pool, data, method=method, is_whole=is_whole, chunked=chunked)
        if exchange is None:
            connection = await self._open(version, target, pool)
            exchange = Exchange(connection.where, method == "HEAD", is_whole, chunked, self._max_bytes)
            self._begin(connection, exchange, data)
        return exchange

    def send_kept(
        self, pool: Pool, data: bytes, *, method: str, is_whole: bool = True, chunked: bool = False
    ) -> Exchange | None:
        """Send a request on a connection that is open already; None when there is none. The host was checked."""
        connection = self._kept(pool, is_whole and method in REPEATABLE)
        if connection is None:
            return None
        exchange = Exchange(connection.where, method == "HEAD", is_whole, chunked, self._max_bytes)
        exchange.is_reused = True
        self.stats.reused += 1
        self._begin(connection, exchange, data)
        return exchange

    def _begin(self, connection: Connection, exchange: Exchange, data: bytes) -> None:
        self.stats.requests += 1
        self._busy.add(connection)
        if self._timer is None:
            self._watch()
        connection.begin(exchange)
        if not exchange.is_sent:  # a body follows, maybe at once
            exchange.is_out = True
            connection.transport.write(data)
            return
        if not self._out:
            asyncio.get_running_loop().call_soon(self._flush)
        self._out.append((exchange, data))

    def _flush(self) -> None:
        """Write the requests of this turn back to back: a server that the first one wakes finds the others too. Written
        one by one, between the work for each, every write wakes somebody up, which costs more than the write."""
        out, self._out = self._out, []
        for exchange, data in out:
            connection = exchange.connection
            if connection is not None and not connection.is_lost:
                exchange.is_out = True
                connection.transport.write(data)

    async def answered(
        self,
        version: Version,
        target: Target,
        data: bytes,
        *,
        method: str,
        is_whole: bool = True,
        chunked: bool = False,
    ) -> Exchange:
        """Send a request and wait for the head of its response.

        A server may close a kept connection at any time: when it has and nothing of the request can have been acted
        upon, the request goes out once more on a new one.
        """
        exchange = await self.request(version, target, data, method=method, is_whole=is_whole, chunked=chunked)
        try:
            await exchange.head()
        except NetworkError:
            if not is_whole or not self.may_repeat(exchange, method):
                self.stats.failures += 1
                raise
            exchange = await self.repeated(version, target, data, method=method)
        except BaseException:
            exchange.close()
            raise
        return exchange

    def may_repeat(self, exchange: Exchange, method: str) -> bool:
        """Whether a request that failed was acted upon by nobody, or may be acted upon twice without harm."""
        return exchange.is_reused and exchange.is_new and (method in REPEATABLE or not exchange.is_out)

    async def repeated(self, version: Version, target: Target, data: bytes, *, method: str) -> Exchange:
        """Send a whole request once more, on a new connection, and wait for the head of its response."""
        for connection in list(self.pool(version, target).idle):
            connection.transport.abort()
        exchange = await self.request(version, target, data, method=method, is_whole=True, chunked=False)
        try:
            await exchange.head()
        except BaseException:
            self.stats.failures += 1
            exchange.close()
            raise
        return exchange

    async def upgrade(
        self, version: Version, target: Target, data: bytes, handshake: Handshake
    ) -> Exchange | ServerSocket:
        """Ask for a WebSocket, always on a new connection. An Exchange: the server answered with something else."""
        self._gate.check_host(version, target.host, target.port)
        exchange = Exchange(str(target), False, True, False, self._max_bytes)
        exchange.is_upgrade = True
        connection = await self._open(version, target, self.pool(version, target))
        self._begin(connection, exchange, data)
        try:
            async with asyncio.timeout(self._silence):  # of all of it: a call that is a socket has no other end
                await exchange.head()
            if exchange.status != SWITCHING:
                return exchange
            extensions = handshake.check(str(target), exchange.lines)
            if exchange.connection is None:
                raise NetworkError(f"{target} closed the connection at once")
        except TimeoutError:
            self.stats.failures += 1
            exchange.close()
            raise NetworkError(f"no WebSocket with {target} within {self._silence:g} s") from None
        except BaseException:
            self.stats.failures += 1
            exchange.close()
            raise
        return self._switch(connection, exchange, extensions)

    def _switch(self, connection: Connection, exchange: Exchange, extensions: list[Extension]) -> ServerSocket:
        """Make a socket of a connection. It counts as one of the tenant's as long as it lasts."""
        from atoll.egress.websocket import ServerSocket  # late: many nodes never have one

        def release() -> None:
            self._sockets.discard(socket)
            self._released(connection, False)

        socket = ServerSocket(connection.where, connection.transport, exchange.lines, extensions, release)
        self._busy.discard(connection)
        self._sockets.add(socket)
        connection.hand_over(socket)
        connection.hold(False)
        socket.data_received(exchange.early)
        return socket

    # --- connections ---

    def pool(self, version: Version, target: Target) -> Pool:
        """The connections that a version may use to a server, under the rules of now."""
        key = (version.tenant, self._gate.rules_of(version), target)
        pool = self._pools.get(key)
        if pool is None:
            pool = self._pools[key] = Pool()
        return pool

    def _kept(self, pool: Pool, may_repeat: bool) -> Connection | None:
        """A connection that is idle. One for a request that cannot be sent again is looked at once more."""
        while pool.idle:
            connection = pool.idle.pop()
            connection.tenant.idle.pop(connection, None)
            if connection.is_lost or connection.transport.is_closing():
                continue
            if may_repeat or not connection.is_stale:
                return connection
            connection.leave(False)
        return None

    async def _open(self, version: Version, target: Target, pool: Pool) -> Connection:
        tenant = self._tenants.get(version.tenant)
        if tenant is None:
            tenant = self._tenants[version.tenant] = Tenant(version.tenant)
        if tenant.open >= self._per_tenant or tenant.waiters:
            await self._turn(tenant)
        else:
            tenant.open += 1
        pool.open += 1
        self.stats.open += 1
        try:
            _, connection = await self._gate.connect(
                version,
                target.host,
                target.port,
                tls=target.tls,
                protocol=lambda: Connection(str(target), self._released),
            )
        except BaseException:
            self.stats.failures += 1
            self._closed(tenant, pool)
            raise
        self.stats.connects += 1
        if connection.is_lost:
            self._closed(tenant, pool)
            raise NetworkError(f"{target} closed the connection at once")
        connection.tenant, connection.pool = tenant, pool
        return connection

    async def _turn(self, tenant: Tenant) -> None:
        """Wait until the tenant may open one more, and count it. Who came first is first."""
        if tenant.idle:
            next(iter(tenant.idle)).transport.abort()
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        tenant.waiters.append(waiter)
        try:
            async with asyncio.timeout(self._wait_seconds):
                await waiter
        except BaseException as error:
            if waiter.done() and not waiter.cancelled():  # it has a place, which is for the next
                self._gone(tenant)
            elif waiter in tenant.waiters:
                tenant.waiters.remove(waiter)
            if isinstance(error, TimeoutError):
                message = f"{self._per_tenant} connections to other servers are in use (`tenant_connections`)"
                raise QuotaExceeded(message) from None
            raise

    def _released(self, connection: Connection, keeps: bool) -> None:
        """A connection has lost its exchange: keep it, or count it as gone."""
        self._busy.discard(connection)
        tenant, pool = connection.tenant, connection.pool
        if pool is None:  # it has not begun, or is counted as gone already
            return
        if keeps and tenant.waiters:  # it may be of use to none of them; its place is
            connection.transport.abort()
            keeps = False
        if not keeps:
            connection.pool = None
            if connection in tenant.idle:
                del tenant.idle[connection]
                pool.idle.remove(connection)
            self._closed(tenant, pool)
            return
        connection.idle_since = asyncio.get_running_loop().time()
        pool.idle.append(connection)
        tenant.idle[connection] = None
        if len(tenant.idle) > IDLE_PER_TENANT:
            next(iter(tenant.idle)).transport.abort()

    def _closed(self, tenant: Tenant, pool: Pool) -> None:
        pool.open -= 1
        self.stats.open -= 1
        self._gone(tenant)

    def _gone(self, tenant: Tenant) -> None:
        """There is room for a connection: it is that of the one who has waited longest, before anybody else can ask."""
        while tenant.waiters:
            waiter = tenant.waiters.popleft()
            if not waiter.done():
                waiter.set_result(None)
                return
        tenant.open -= 1
        if not tenant.open and self._tenants.get(tenant.name) is tenant:
            del self._tenants[tenant.name]

    # --- time ---

    def _watch(self) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._period, self._sweep)

    def _sweep(self) -> None:
        """Close what was idle too long, fail what waits for a silent server."""
        now = asyncio.get_running_loop().time()
        for connection in list(self._busy):
            exchange = connection.exchange
            if exchange is None:
                continue
            is_ours = connection.is_held or not (exchange.is_sent or connection.is_write_paused)
            if not exchange.heard or is_ours:  # it waits for the worker, not for the server
                exchange.heard = now
            elif now - exchange.heard > self._silence:
                exchange.fail(NetworkError(f"{connection.where} was silent for {self._silence:g} s"))
        for socket in list(self._sockets):
            socket.sweep(now, self._socket_silence)
        for tenant in self._tenants.values():
            for connection in tenant.idle:
                if now - connection.idle_since <= IDLE_SECONDS:
                    break  # and so are those behind it
                connection.transport.abort()
        for key in [key for key, pool in self._pools.items() if not pool.open]:
            del self._pools[key]
        self._timer = None
        if self._tenants:
            self._watch()
