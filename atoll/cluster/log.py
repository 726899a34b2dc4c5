"""The logs of shared databases, in PostgreSQL. All of them take their numbers from one feed."""

from __future__ import annotations

from typing import Any

from atoll.cluster.nodes import MAIN
from atoll.db.shared import LoggedChange
from atoll.errors import StorageAway, StorageFailed
from atoll.postgres.pool import Connection, Postgres

FETCHED = 50  # changes at once
FETCHED_BYTES = 32 << 20
CHANNEL = "atoll"

APPEND = "UPDATE stores SET last = $1, schema = greatest(schema, $4) WHERE name = $2 AND last = $3 AND schema <= $4"
INSERT = "INSERT INTO changes (seq, store, prev, id, schema, body) VALUES ($1, $2, $3, $4, $5, $6)"
FETCH = (
    "SELECT seq, prev, id::text, schema, body FROM (SELECT *, sum(octet_length(body)) OVER (ORDER BY seq) AS total"
    " FROM changes WHERE store = $1 AND seq > $2 ORDER BY seq LIMIT $3) AS found"
    " WHERE total - octet_length(body) < $4 ORDER BY seq"
)
BEHIND = (  # a release that does not share this database has no schema of it
    "SELECT release FROM nodes WHERE expires > clock_timestamp()"
    f" AND CASE $2 WHEN '{MAIN}' THEN schema ELSE coalesce((schemas ->> $2)::int, 0) END < $1 ORDER BY name LIMIT 1"
)


class _Overtaken(Exception):
    """Another node appended first."""


class PostgresLog:
    """The log of one shared database."""

    def __init__(self, postgres: Postgres, store: str) -> None:
        self._postgres = postgres
        self._store = store

    async def append(self, after: int, change: LoggedChange) -> int | None:
        try:
            async with self._postgres.transaction() as connection:
                return await self._append(connection, after, change)
        except _Overtaken:
            return None

    async def _append(self, connection: Connection, after: int, change: LoggedChange) -> int:
        """The number is taken in the transaction of the change: a change that is rolled back leaves no gap."""
        seq: int = await connection.fetchval("UPDATE feed SET head = head + 1 RETURNING head")
        done: str = await connection.execute(APPEND, seq, self._store, after, change.schema)
        if not done.endswith(" 1"):
            await self._refuse_old(connection, change)
            raise _Overtaken
        if (release := await connection.fetchval(BEHIND, change.schema, self._store)) is not None:
            raise StorageAway(f"a node with Atoll {release} still runs: upgrade it before anything is changed")
        await connection.execute(INSERT, seq, self._store, after, change.id, change.schema, change.body)
        await connection.execute(f"NOTIFY {CHANNEL}")
        return seq

    async def _refuse_old(self, connection: Connection, change: LoggedChange) -> None:
        schema = await connection.fetchval("SELECT schema FROM stores WHERE name = $1", self._store)
        if schema is not None and schema > change.schema:
            raise StorageAway("the other nodes run a newer Atoll: upgrade this one before anything is changed here")

    async def fetch(self, after: int) -> list[LoggedChange]:
        rows = await self._postgres.fetch(FETCH, self._store, after, FETCHED, FETCHED_BYTES)
        if rows and rows[0]["prev"] != after:
            raise StorageFailed("this node was away for too long: start it again")
        return [_change(row) for row in rows]


def _change(row: Any) -> LoggedChange:
    return LoggedChange(row["seq"], row["id"], row["schema"], row["body"])
