"""Connections to PostgreSQL, shared by everything on a node.

A statement that only reads, or that may run twice without harm, is repeated once if its connection turns out to be
dead: after a restart of the server each idle connection fails once. A transaction is never repeated here: if its
connection is lost during COMMIT, nobody knows whether it was committed. Its caller finds out, or makes the
transaction such that repeating it is safe.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, TypeAlias, TypeVar

import asyncpg

from atoll.errors import StartError
from atoll.postgres.address import check_address, shown_address
from atoll.postgres.faults import GONE, start_error, through_pooler, told

T = TypeVar("T")
Connection: TypeAlias = "asyncpg.pool.PoolConnectionProxy[asyncpg.Record]"

CONNECTIONS = 8
CONNECT_SECONDS = 5.0
STATEMENT_SECONDS = 30.0
OLDEST = 130_000  # server_version_num
# A pooler refuses an unknown parameter, or drops it: either way we notice that we do not talk to PostgreSQL itself.
DIRECT = {"application_name": "atoll", "atoll.direct": "yes", "search_path": "atoll"}


# An idle connection had ended. If the server had the time to say why, that is the answer to the next statement.
DEAD = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    ConnectionError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.InternalClientError,  # the driver read that farewell while nothing was asked, and is confused
)


class Postgres:
    def __init__(self, address: str) -> None:
        check_address(address)
        self._address = address
        self.place = shown_address(address)
        self._pool: asyncpg.Pool[asyncpg.Record] | None = None

    async def open(self) -> None:
        """Connect and check that the server is one that Atoll can use. Raises StartError."""
        try:
            self._pool = await asyncpg.create_pool(
                self._address,
                min_size=1,
                max_size=CONNECTIONS,
                timeout=CONNECT_SECONDS,
                command_timeout=STATEMENT_SECONDS,
                server_settings=DIRECT,
            )
            async with self._pool.acquire(timeout=CONNECT_SECONDS) as connection:
                await self._check(connection)
        except BaseException as error:
            await self.close()
            if isinstance(error, (*GONE, asyncpg.PostgresError, ValueError)):
                raise start_error(error, self.place) from None
            raise

    async def _check(self, connection: Connection) -> None:
        sql = (
            "SELECT current_setting('atoll.direct', true) AS direct, pg_is_in_recovery() AS standby,"
            " current_setting('transaction_read_only') AS read_only, current_setting('server_encoding') AS encoding,"
            " current_setting('server_version_num')::int AS version, current_setting('server_version') AS shown,"
            " current_setting('fsync') AS fsync"
        )
        found = await connection.fetchrow(sql)
        assert found is not None
        if found["direct"] != "yes":
            raise through_pooler(self.place)
        if found["standby"] or found["read_only"] == "on":
            raise start_error(asyncpg.ReadOnlySQLTransactionError("read-only"), self.place)
        if found["version"] < OLDEST:
            raise StartError(f"PostgreSQL at {self.place} is {found['shown']}", "Atoll needs PostgreSQL 13 or newer")
        if found["encoding"] != "UTF8":
            hint = "create one with: createdb -E UTF8 -T template0 …"
            raise StartError(f"the database at {self.place} has the encoding {found['encoding']}, not UTF8", hint)

    async def close(self) -> None:
        if self._pool is not None:
            pool, self._pool = self._pool, None
            pool.terminate()  # nothing runs any more, and a dead server must not delay the stop of the node

    async def fetch(self, sql: str, *values: Any) -> list[asyncpg.Record]:
        """The rows of a statement that may run twice."""
        return await self._twice(lambda connection: connection.fetch(sql, *values))

    async def row(self, sql: str, *values: Any) -> asyncpg.Record | None:
        return await self._twice(lambda connection: connection.fetchrow(sql, *values))

    async def value(self, sql: str, *values: Any) -> Any:
        return await self._twice(lambda connection: connection.fetchval(sql, *values))

    async def run(self, sql: str, *values: Any) -> int:
        """A statement that may run twice; returns how many rows it changed."""
        done = await self._twice(lambda connection: connection.execute(sql, *values))
        last = done.rsplit(" ", 1)[-1]
        return int(last) if last.isdigit() else 0

    async def _twice(self, act: Callable[[Connection], Awaitable[T]]) -> T:
        try:
            async with self._acquired() as connection:
                return await act(connection)
        except DEAD:
            if self._pool is not None:
                await self._pool.expire_connections()  # the other idle ones are probably dead too: make new ones
        except (*GONE, asyncpg.PostgresError) as error:
            raise told(error) from None
        try:
            async with self._acquired() as connection:
                return await act(connection)
        except (*GONE, asyncpg.PostgresError) as error:
            raise told(error) from None

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """One transaction. StorageAway may mean that it was committed nevertheless."""
        try:
            async with self._acquired() as connection, connection.transaction():
                yield connection
        except (*GONE, asyncpg.PostgresError) as error:
            raise told(error) from None

    async def many(self, sql: str, values: Sequence[Sequence[Any]]) -> list[asyncpg.Record]:
        """The same statement for several values, in one transaction and one message; a row for each."""
        async with self.transaction() as connection:
            return list(await connection.fetchmany(sql, values))

    async def listen(self, channel: str, hear: Callable[[], None]) -> None:
        """Call `hear` with each NOTIFY of a channel, until the connection ends. Needs a connection of its own."""
        try:
            connection = await asyncpg.connect(
                self._address, timeout=CONNECT_SECONDS, server_settings=DIRECT, command_timeout=STATEMENT_SECONDS
            )
        except (*GONE, asyncpg.PostgresError):
            return
        ended = asyncio.Event()
        connection.add_termination_listener(lambda _: ended.set())
        try:
            await connection.add_listener(channel, lambda *_: hear())
            await ended.wait()
        except (*GONE, asyncpg.PostgresError):
            pass
        finally:
            connection.terminate()

    @asynccontextmanager
    async def _acquired(self) -> AsyncIterator[Connection]:
        if self._pool is None:
            raise told(ConnectionError())
        if asyncio.current_task() is None:
            await asyncio.sleep(0)  # an op runs outside of any task until its first wait (bindings/base.py)
        async with self._pool.acquire(timeout=CONNECT_SECONDS) as connection:
            try:
                yield connection
            except DEAD:
                connection.terminate()  # else the pool asks it to clean up, and could wait for that
                raise
