"""Opens connections to databases: TLS with PostgreSQL, and one spare connection ready for the next request.

A spare is connected, and has its TLS, but is not logged in: the worker's driver does that. So the next request saves
the time of the handshakes. A spare is closed after a while, because servers give clients little time to log in.
"""

from __future__ import annotations

import asyncio
import logging
import struct
from collections.abc import Callable
from contextlib import suppress
from typing import TypeAlias

from atoll.bindings.hyperdrive.connection_string import DatabaseAddress
from atoll.egress.gate import EgressGate
from atoll.egress.tcp import TcpConnection
from atoll.errors import AtollError, NetworkError
from atoll.holdings import Holdings
from atoll.workers import EgressRules, Version

log = logging.getLogger("atoll.bindings")

SSL_REQUEST = struct.pack(">II", 8, 80877103)  # https://www.postgresql.org/docs/current/protocol-message-formats.html
SPARE_SECONDS = {"postgresql": 20.0, "mysql": 5.0}  # servers wait 60 and 10 seconds for a login
MAX_SPARES = 200  # of the node

Make: TypeAlias = Callable[[], TcpConnection]
# A spare is used only by the tenant, under the rules and for the address that it was opened for.
SpareKey: TypeAlias = tuple[str, DatabaseAddress, tuple[EgressRules | None, EgressRules]]


class DatabaseConnections:
    def __init__(self, gate: EgressGate, holdings: Holdings) -> None:
        self._gate = gate
        self._holdings = holdings
        self._spares: dict[SpareKey, TcpConnection] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def open(self, version: Version, address: DatabaseAddress, make: Make, *, is_named: bool) -> TcpConnection:
        key = (version.tenant, address, self._gate.rules_of(version))
        self._gate.check_host(version, address.host, address.port)
        spare = self._spares.pop(key, None)
        if spare is not None and not spare.is_lost and not spare.is_closed:
            connection = make()
            connection.take_over(spare)
        else:
            connection = await self._connect(version, address, make, is_named=is_named)
        if len(self._spares) + len(self._tasks) < MAX_SPARES:
            task = asyncio.get_running_loop().create_task(self._refill(key, version, address, is_named=is_named))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        return connection

    async def _connect(
        self, version: Version, address: DatabaseAddress, make: Make, *, is_named: bool
    ) -> TcpConnection:
        _, connection = await self._gate.connect(
            version, address.host, address.port, tls=False, protocol=make, is_named=is_named
        )
        if address.tls:
            try:
                async with asyncio.timeout(self._gate.connect_seconds):
                    await self._secure(connection, address)
            except TimeoutError:
                connection.abort()
                raise NetworkError(f"no TLS with {address.where} in time") from None
            except BaseException:
                connection.abort()
                raise
        return connection

    async def _secure(self, connection: TcpConnection, address: DatabaseAddress) -> None:
        await connection.write(SSL_REQUEST, ended=False)
        answer = await connection.read()
        if answer != b"S":
            raise NetworkError(f"{address.where} does not offer TLS (write `sslmode=disable` to do without)")
        context = None
        if not address.is_checked:
            from atoll.bindings.tcp.trust import make_context
            from atoll.bindings.tcp.wanted import WantedTls

            context = make_context(WantedTls(is_checked=False))
        connection.prepare_tls()
        connection.finish_tls(await self._gate.start_tls(connection.transport, connection, address.host, context))

    async def _refill(self, key: SpareKey, version: Version, address: DatabaseAddress, *, is_named: bool) -> None:
        def gone() -> None:
            if self._spares.get(key) is spare:
                del self._spares[key]

        spare = TcpConnection(version.tenant, self._holdings, gone)
        if key in self._spares:
            return
        with suppress(AtollError):  # the next request tells why
            await self._connect(version, address, lambda: spare, is_named=is_named)
            if key in self._spares or spare.is_lost:
                spare.close()
                return
            self._spares[key] = spare
            loop = asyncio.get_running_loop()
            loop.call_later(SPARE_SECONDS[address.scheme], self._expire, key, spare)

    def _expire(self, key: SpareKey, spare: TcpConnection) -> None:
        if self._spares.get(key) is spare:
            del self._spares[key]
            spare.close()

    def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        for spare in self._spares.values():
            spare.abort()
        self._spares.clear()
