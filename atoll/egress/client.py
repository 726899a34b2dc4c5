"""An HTTP/1.1 client with keep-alive and a limit on connections per tenant.

A connection is reused only for the same tenant, the same egress rules and the same server. So no tenant sends on a
connection of another, and no request bypasses a rule on a connection that was opened under other rules.

It is written on httptools because that costs a tenth of a client library, sends exactly the bytes we made, and lets us
limit the pool. Redirects, cookies and content encodings are handled elsewhere.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from atoll.config import Settings
from atoll.egress.connection import ConnectionPool, ServerConnection, TenantConnections
from atoll.egress.exchange import SWITCHING, ServerExchange
from atoll.egress.gate import EgressGate
from atoll.errors import NetworkError, QuotaExceeded
from atoll.holdings import Holdings
from atoll.pacer import Pacer
from atoll.workers import Version

if TYPE_CHECKING:
    from atoll.egress.websocket import Handshake, ServerSocket
    from atoll.wire.sockets import Codec

IDLE_SECONDS = 15.0  # after this an idle connection is closed
IDLE_PER_TENANT = 64  # idle connections of one tenant
SWEEP_SECONDS = 1.0  # longest time between two checks of the timeouts
REPEATABLE = frozenset({"GET", "HEAD", "OPTIONS", "PUT", "DELETE"})


class ClientIdentity:
    """A client certificate, as a TLS context. Connections that present it are used for nothing else."""

    __slots__ = ("context",)

    def __init__(self, context: ssl.SSLContext) -> None:
        self.context = context


class Origin(NamedTuple):
    """Where a server listens."""

    tls: bool
    host: str
    port: int
    identity: ClientIdentity | None = None  # which the server may ask for

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


@dataclass(slots=True)
class ClientStats:
    """Counters for metrics."""

    requests: int = 0
    connects: int = 0
    reused: int = 0
    failures: int = 0
    open: int = 0  # connections, idle ones too


class HttpClient:
    def __init__(self, settings: Settings, gate: EgressGate, pacer: Pacer, holdings: Holdings) -> None:
        self._gate = gate
        self._pacer = pacer
        self._holdings = holdings
        self._per_tenant = settings.tenant_connections
        self._silence = settings.fetch_timeout
        self._period = min(SWEEP_SECONDS, settings.fetch_timeout / 4)
        self._wait_seconds = settings.connect_timeout
        self._max_bytes = settings.fetch_bytes
        self._tenants: dict[str, TenantConnections] = {}
        self._pools: dict[tuple[Any, ...], ConnectionPool] = {}
        self._busy: set[ServerConnection] = set()
        self._sockets: set[ServerSocket] = set()
        self._socket_silence = settings.socket_timeout
        self._timer: asyncio.TimerHandle | None = None
        self._out: list[tuple[ServerExchange, bytes]] = []  # requests to write at the end of this turn
        self.stats = ClientStats()

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for connection in [*self._busy, *(idle for tenant in self._tenants.values() for idle in tenant.idle)]:
            connection.transport.abort()
        for socket in list(self._sockets):
            socket.abort()

    async def request(
        self, version: Version, target: Origin, data: bytes, *, method: str, is_whole: bool, chunked: bool
    ) -> ServerExchange:
        """Send a request or, unless `is_whole`, its first part. The caller awaits `head()` of the exchange.
        Raises HostRefused, AddressRefused, NetworkError or QuotaExceeded if it cannot be sent."""
        self._gate.check_host(version, target.host, target.port)
        pool = self.pool(version, target)
        exchange = self.send_kept(pool, data, method=method, is_whole=is_whole, chunked=chunked)
        if exchange is None:
            connection = await self._open(version, target, pool)
            exchange = ServerExchange(connection.where, method == "HEAD", is_whole, chunked, self._max_bytes)
            self._begin(connection, exchange, data)
        return exchange

    def send_kept(
        self, pool: ConnectionPool, data: bytes, *, method: str, is_whole: bool = True, chunked: bool = False
    ) -> ServerExchange | None:
        """Send a request on an idle connection; None if there is none. The caller has checked the host."""
        connection = self._kept(pool)
        if connection is None:
            return None
        exchange = ServerExchange(connection.where, method == "HEAD", is_whole, chunked, self._max_bytes)
        exchange.is_reused = True
        self.stats.reused += 1
        self._begin(connection, exchange, data)
        return exchange

    def _begin(self, connection: ServerConnection, exchange: ServerExchange, data: bytes) -> None:
        self.stats.requests += 1
        self._busy.add(connection)
        if self._timer is None:
            self._watch()
        exchange.charge(self._holdings, connection.tenant.name)
        connection.begin(exchange)
        if not exchange.is_sent:  # a body follows
            exchange.is_out = True
            connection.transport.write(data)
            return
        if not self._out:
            asyncio.get_running_loop().call_soon(self._flush)
        self._out.append((exchange, data))

    def _flush(self) -> None:
        """Write the requests of this turn back to back, so that a server that the first one wakes finds the others too.
        If each were written when it is ready, every write would wake a process, which costs more than the write."""
        out, self._out = self._out, []
        for exchange, data in out:
            connection = exchange.connection
            if connection is not None and not connection.is_lost:
                exchange.is_out = True
                connection.transport.write(data)

    async def answered(
        self,
        version: Version,
        target: Origin,
        data: bytes,
        *,
        method: str,
        is_whole: bool = True,
        chunked: bool = False,
    ) -> ServerExchange:
        """Send a request and wait for the head of its response.

        A server may close an idle connection at any time. If it has, and sending the request twice does no harm, the
        request is sent again on a new connection.
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

    def may_repeat(self, exchange: ServerExchange, method: str) -> bool:
        """Whether a failed request can be sent again: the server has not seen it, or acting on it twice is harmless."""
        return exchange.is_reused and exchange.is_new and (method in REPEATABLE or not exchange.is_out)

    async def repeated(self, version: Version, target: Origin, data: bytes, *, method: str) -> ServerExchange:
        """Send a whole request again on a new connection, and wait for the head of its response."""
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
        self, version: Version, target: Origin, data: bytes, handshake: Handshake
    ) -> ServerExchange | ServerSocket:
        """Ask for a WebSocket, on a new connection. Returns a ServerExchange if the server declines."""
        self._gate.check_host(version, target.host, target.port)
        exchange = ServerExchange(str(target), False, True, False, self._max_bytes)
        exchange.is_upgrade = True
        connection = await self._open(version, target, self.pool(version, target))
        self._begin(connection, exchange, data)
        try:
            async with asyncio.timeout(self._silence):  # for the whole handshake: a socket has no other timeout
                await exchange.head()
            if exchange.status != SWITCHING:
                return exchange
            codec = handshake.check(str(target), exchange.lines)
            if exchange.connection is None:
                raise NetworkError(f"{target} closed the connection at once")
        except TimeoutError:
            self.stats.failures += 1
            exchange.close()
            raise NetworkError(f"the WebSocket handshake with {target} took longer than {self._silence:g} s") from None
        except BaseException:
            self.stats.failures += 1
            exchange.close()
            raise
        return self._switch(connection, exchange, codec)

    def _switch(self, connection: ServerConnection, exchange: ServerExchange, codec: Codec) -> ServerSocket:
        """Turn a connection into a WebSocket. It still counts as a connection of the tenant."""
        from atoll.egress.websocket import ServerSocket, SocketContext  # late: many nodes never have one

        def release() -> None:
            self._sockets.discard(socket)
            self._released(connection, False)

        context = SocketContext(connection.tenant.name, self._pacer, self._holdings)
        socket = ServerSocket(connection.where, connection.transport, exchange.lines, codec, context, release)
        self._busy.discard(connection)
        self._sockets.add(socket)
        connection.hand_over(socket)
        connection.hold(False)
        socket.data_received(exchange.early)
        return socket

    # --- connections ---

    def pool(self, version: Version, target: Origin) -> ConnectionPool:
        """The connections that a version may use to a server, under the present rules."""
        key = (version.tenant, self._gate.rules_of(version), target)
        pool = self._pools.get(key)
        if pool is None:
            pool = self._pools[key] = ConnectionPool()
        return pool

    def _kept(self, pool: ConnectionPool) -> ServerConnection | None:
        """Take an idle connection. One with input is closed by the server, or holds an answer to no request."""
        while pool.idle:
            connection = pool.idle.pop()
            connection.tenant.idle.pop(connection, None)
            if connection.is_lost or connection.transport.is_closing():
                continue
            if not connection.is_stale:
                return connection
            connection.leave(False)
        return None

    async def _open(self, version: Version, target: Origin, pool: ConnectionPool) -> ServerConnection:
        tenant = await self._enter(version.tenant)
        pool.open += 1
        try:
            _, connection = await self._gate.connect(
                version,
                target.host,
                target.port,
                tls=target.tls,
                context=None if target.identity is None else target.identity.context,
                protocol=lambda: ServerConnection(str(target), self._released, self._pacer),
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

    async def _enter(self, name: str) -> TenantConnections:
        """Count one more connection of a tenant, once it may have one more."""
        tenant = self._tenants.get(name)
        if tenant is None:
            tenant = self._tenants[name] = TenantConnections(name)
        if tenant.open >= self._per_tenant or tenant.waiters:
            await self._turn(tenant)
        else:
            tenant.open += 1
        self.stats.open += 1
        return tenant

    async def take_place(self, name: str) -> Callable[[], None]:
        """Count a connection of a tenant that is not the client's own. Call the result once it is closed."""
        tenant = await self._enter(name)

        def release() -> None:
            self.stats.open -= 1
            self._gone(tenant)

        return release

    async def _turn(self, tenant: TenantConnections) -> None:
        """Wait until the tenant may open one more connection, and count it. First come, first served."""
        if tenant.idle:
            next(iter(tenant.idle)).transport.abort()
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        tenant.waiters.append(waiter)
        try:
            async with asyncio.timeout(self._wait_seconds):
                await waiter
        except BaseException as error:
            if waiter.done() and not waiter.cancelled():  # it has its place already: pass it on
                self._gone(tenant)
            elif waiter in tenant.waiters:
                tenant.waiters.remove(waiter)
            if isinstance(error, TimeoutError):
                message = f"{self._per_tenant} connections to other servers are in use (`tenant_connections`)"
                raise QuotaExceeded(message) from None
            raise

    def _released(self, connection: ServerConnection, keeps: bool) -> None:
        """The exchange of a connection is over: keep the connection, or count it as closed."""
        self._busy.discard(connection)
        tenant, pool = connection.tenant, connection.pool
        if pool is None:  # not counted yet, or counted as closed already
            return
        if keeps and tenant.waiters:  # they may need other servers: give them its place
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

    def _closed(self, tenant: TenantConnections, pool: ConnectionPool) -> None:
        pool.open -= 1
        self.stats.open -= 1
        self._gone(tenant)

    def _gone(self, tenant: TenantConnections) -> None:
        """Give the place of a closed connection to the request that has waited longest."""
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
        """Close idle connections, and fail requests to silent servers."""
        now = asyncio.get_running_loop().time()
        for connection in list(self._busy):
            exchange = connection.exchange
            if exchange is None:
                continue
            is_ours = connection.is_held or not (exchange.is_sent or connection.is_write_paused)
            if not exchange.heard or is_ours:  # we wait for the worker, not for the server
                exchange.heard = now
            elif now - exchange.heard > self._silence:
                exchange.fail(NetworkError(f"{connection.where} was silent for {self._silence:g} s"))
        for socket in list(self._sockets):
            socket.sweep(now, self._socket_silence)
        for tenant in self._tenants.values():
            for connection in tenant.idle:
                if now - connection.idle_since <= IDLE_SECONDS:
                    break  # the others became idle later
                connection.transport.abort()
        for key in [key for key, pool in self._pools.items() if not pool.open]:
            del self._pools[key]
        self._timer = None
        if self._tenants:
            self._watch()
