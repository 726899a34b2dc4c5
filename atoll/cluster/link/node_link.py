"""The links of this node: its listener, and a connection to each node that it needs.

Frames go both ways over a connection that either has opened: calls of both nodes, told apart by who began them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from typing import Final, Protocol

from atoll.cluster.link.connection import LinkConnection
from atoll.errors import StartError, StorageFailed
from atoll.postgres.pool import Postgres

log = logging.getLogger("atoll.cluster")

CONNECT_SECONDS: Final = 2.0
REGISTER: Final = (
    "INSERT INTO node_links (session, address) VALUES ($1, $2)"
    " ON CONFLICT (session) DO UPDATE SET address = excluded.address"
)
TIDY: Final = "DELETE FROM node_links l WHERE NOT EXISTS (SELECT FROM nodes n WHERE n.session = l.session)"


class LinkEnd(Protocol):
    """What a connection is used for."""

    def on_frame(self, connection: LinkConnection, frame: bytes) -> None: ...

    def on_over(self, connection: LinkConnection) -> None: ...


class NodeLink:
    """`calls` serves what other nodes begin; a caller of `to` sets `on_frame` of the connection it gets."""

    def __init__(self, postgres: Postgres, key: bytes, session: str, served: LinkEnd) -> None:
        self._postgres = postgres
        self._key = key
        self._session = session
        self._served = served
        self._server: asyncio.Server | None = None
        self._accepted: set[LinkConnection] = set()
        self._called: dict[str, asyncio.Task[LinkConnection | None]] = {}

    async def open(self, host: str, port: int, shown: str) -> None:
        """Listen, and tell the other nodes where. `shown`: the host by which they reach this one."""
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(self._accept, host or None, port)
        except OSError as error:
            raise StartError(
                f"the link between nodes cannot listen on {host}:{port}: {error}", "", "node_link"
            ) from None
        found: Sequence[tuple[str, int]] = [each.getsockname()[:2] for each in self._server.sockets]
        await self._postgres.run(TIDY)
        address = f"[{shown}]" if ":" in shown else shown
        await self._postgres.run(REGISTER, self._session, f"{address}:{found[0][1]}")

    def _accept(self) -> LinkConnection:
        def over(connection: LinkConnection) -> None:
            self._accepted.discard(connection)
            self._served.on_over(connection)

        connection = LinkConnection(self._key, self._session, "", over)
        connection.on_frame = lambda frame: self._served.on_frame(connection, frame)
        self._accepted.add(connection)
        return connection

    async def to(self, session: str, end: LinkEnd) -> LinkConnection | None:
        """An open connection to a node; None if it cannot be reached."""
        task = self._called.get(session)
        if task is not None and task.done() and (task.cancelled() or (found := task.result()) is None or found.is_over):
            task = None
        if task is None:
            task = self._called[session] = asyncio.get_running_loop().create_task(self._connect(session, end))
        return await asyncio.shield(task)

    async def _connect(self, session: str, end: LinkEnd) -> LinkConnection | None:
        loop = asyncio.get_running_loop()
        opened: asyncio.Future[bool] = loop.create_future()

        def over(connection: LinkConnection) -> None:
            if not opened.done():
                opened.set_result(False)
            end.on_over(connection)

        connection = LinkConnection(self._key, self._session, session, over)
        connection.on_open = lambda: None if opened.done() else opened.set_result(True)
        connection.on_frame = lambda frame: end.on_frame(connection, frame)
        try:
            address = await self._postgres.value("SELECT address FROM node_links WHERE session = $1", session)
            if address is None:
                return None
            host, _, port = address.rpartition(":")
            async with asyncio.timeout(CONNECT_SECONDS):
                await loop.create_connection(lambda: connection, host.strip("[]"), int(port))
                return connection if await opened else None
        except (OSError, TimeoutError, StorageFailed) as error:
            log.warning("the node %s cannot be reached: %s", session, str(error) or type(error).__name__)
            connection.end()
            return None

    async def close(self) -> None:
        for task in self._called.values():
            task.cancel()
        results = await asyncio.gather(*self._called.values(), return_exceptions=True)
        for connection in [*self._accepted, *(each for each in results if isinstance(each, LinkConnection))]:
            connection.end()
        if self._server is not None:
            self._server.close()
        with suppress(StorageFailed):
            await self._postgres.run("DELETE FROM node_links WHERE session = $1", self._session)
