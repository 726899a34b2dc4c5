"""tcp: connections that a worker opens to other servers, byte by byte.

    tcp.open    connect; the reply says that it is connected, or why it is not
    tcp.read    what has arrived
    tcp.write   some bytes, or the end; the reply is the back-pressure
    tcp.secure  begin TLS on an open connection
    tcp.close   end it, in any state

The worker numbers its sockets, so it can close one before it is connected. A socket counts as one of the six
connections of its request and as one of its tenant, and is closed with the call that opened it.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from atoll.bindings.base import Binding, OpCall, Reply, op, own_task
from atoll.bindings.scope import CallScope
from atoll.bindings.tcp.sockets import Sockets, TcpSocket
from atoll.bindings.tcp.wanted import WantedSocket, WantedTls, read_socket, read_tls
from atoll.egress.client import HttpClient
from atoll.egress.gate import EgressGate
from atoll.egress.tcp import TcpConnection
from atoll.errors import AddressRefused, HostRefused, InvalidArgument, NetworkError
from atoll.holdings import Holdings
from atoll.workers import Version

SMTP = 25
FAILURES = (HostRefused, AddressRefused, NetworkError)
MakeConnection: TypeAlias = Callable[[], TcpConnection]
# (the worker, the address it asks for, makes the protocol of a connection) -> where it really goes
Opener: TypeAlias = Callable[[Version, WantedSocket, MakeConnection], Awaitable[TcpConnection]]


class Tcp(Binding):
    kind = "tcp"
    keeps_data = False
    ambient = True

    def __init__(self, gate: EgressGate, client: HttpClient, holdings: Holdings) -> None:
        self._gate = gate
        self._client = client
        self._holdings = holdings
        self._openers: dict[str, Opener] = {}  # by the end of the host

    def divert(self, domain: str, opener: Opener) -> None:
        """Connections to hosts below `domain` are opened by another binding."""
        self._openers[domain] = opener

    @op("tcp.open", free=True)
    async def open(self, call: OpCall) -> Reply:
        call.scope.spend(external=True)
        wanted = read_socket(call.meta)
        socket = call.scope.local(Sockets).add(call.meta.get("socket"), wanted)
        await own_task()
        socket.place.task = asyncio.current_task()
        try:
            await self._connect(call.scope, socket)
        except BaseException as error:
            socket.drop()
            if isinstance(error, FAILURES):
                return Reply({"failed": str(error)})
            if isinstance(error, asyncio.CancelledError) and socket.is_closed and not call.scope.is_over:
                task = asyncio.current_task()
                assert task is not None
                task.uncancel()  # the worker closed the socket; the op still gets a reply
                return Reply({"failed": "the socket was closed"})
            raise
        finally:
            socket.place.task = None
        return Reply()

    async def _connect(self, scope: CallScope, socket: TcpSocket) -> None:
        wanted, version = socket.wanted, scope.version
        opener = self._openers.get(wanted.host.partition(".")[2])
        if opener is None and wanted.port == SMTP and not self._gate.opens_port(wanted.host, SMTP):
            raise HostRefused("port 25 may not be reached (an operator may allow a host with it in `egress_allow`)")
        await scope.local(Sockets).places.enter(socket.place)
        release = await self._client.take_place(version.tenant)
        made: list[TcpConnection] = []

        def make() -> TcpConnection:
            made.append(TcpConnection(version.tenant, self._holdings, socket.let_go(release)))
            return made[0]

        try:
            if opener is not None:
                connection = await opener(version, wanted, make)
            else:
                connection = await self._open(version, wanted, make)
        except BaseException:
            if not made or made[0].transport is None:
                release()
            elif not made[0].is_lost:
                made[0].abort()
            raise
        socket.begin(connection)

    async def _open(self, version: Version, wanted: WantedSocket, make: MakeConnection) -> TcpConnection:
        tls = wanted.tls
        context = await self._context(tls) if tls is not None else None
        _, connection = await self._gate.connect(
            version, wanted.host, wanted.port,
            tls=tls is not None, protocol=make, context=context, server_name=tls.name if tls is not None else "",
        )  # fmt: skip
        return connection

    async def _context(self, tls: WantedTls) -> ssl.SSLContext | None:
        if not tls.has_own_rules:
            return None
        from atoll.bindings.tcp.trust import make_context  # late: few workers bring their own certificates

        return await asyncio.get_running_loop().run_in_executor(None, make_context, tls)

    @op("tcp.read", free=True)
    async def read(self, call: OpCall) -> Reply:
        sockets = call.scope.local(Sockets)
        socket = sockets.find(call.meta.get("socket"))
        connection = socket.connection
        data = await connection.read()
        sockets.places.touch(socket.place)
        call.scope.heard(True)
        return Reply({"ended": not data or connection.at_end}, data)

    @op("tcp.write", free=True)
    async def write(self, call: OpCall) -> Reply:
        sockets = call.scope.local(Sockets)
        socket = sockets.find(call.meta.get("socket"))
        sockets.places.touch(socket.place)
        await socket.connection.write(call.body, ended=call.meta.get("ended") is True)
        return Reply()

    @op("tcp.secure", free=True)
    async def secure(self, call: OpCall) -> Reply:
        """Begin TLS. The worker's streams are flushed by then."""
        tls = read_tls(call.meta)
        socket = call.scope.local(Sockets).find(call.meta.get("socket"))
        connection = socket.connection
        if connection.is_tls or socket.is_securing:
            raise InvalidArgument("the socket uses TLS already")
        socket.is_securing = True
        await own_task()
        try:
            context = await self._context(tls)
            connection.prepare_tls()
            host = tls.name or socket.wanted.host
            connection.finish_tls(await self._gate.start_tls(connection.transport, connection, host, context))
        except FAILURES as error:
            socket.drop()
            return Reply({"failed": str(error)})
        except BaseException:
            socket.drop()
            raise
        return Reply()

    @op("tcp.close", free=True)
    def close_socket(self, call: OpCall) -> Reply:
        call.scope.local(Sockets).close_one(call.meta.get("socket"))
        return Reply()
