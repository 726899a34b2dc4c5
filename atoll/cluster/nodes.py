"""The nodes of a cluster: each has a row with a lease, by the database's clock.

A node renews its lease every 2 s for 6 s. When it has ended, what the node had (leases of queue messages) is free for
others. A node whose lease ended while it could not reach the database takes a new session: its old one is gone.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Any

from msgspec import Struct

from atoll.clock import seconds_up
from atoll.errors import StartError
from atoll.postgres.ownership import Lease
from atoll.postgres.pool import Postgres

LEASE_SECONDS = 6.0
RENEW_SECONDS = 2.0
MAIN = "atoll"  # the shared database with workers, tenants and tokens
LOCK = 0x61746F6C6D  # of advisory locks: one node joins at a time

COLUMNS = "session, name, address, release, alone, state, seen, started, expires > clock_timestamp() AS is_live, wanted"
JOIN = (
    "INSERT INTO nodes (session, name, address, release, schema, schemas, alone, state, seen, expires)"
    " VALUES ($1, $2, $3, $4, $5, $6::jsonb, $7, $8, $9, clock_timestamp() + $10 * interval '1 second')"
)
RENEW = (
    "UPDATE nodes SET state = $2, seen = $3, expires = clock_timestamp() + $4 * interval '1 second'"
    " WHERE session = $1 AND expires > clock_timestamp()"
    " RETURNING wanted, (extract(epoch FROM clock_timestamp()) * 1000)::bigint AS now, (SELECT head FROM feed) AS head"
)


class NodeState(StrEnum):
    STARTING = "starting"
    SERVING = "serving"
    DRAINING = "draining"


class NodeRow(Struct):
    session: str
    name: str
    address: str
    release: str
    alone: bool
    state: str
    seen: int
    started: datetime
    is_live: bool
    wanted: str


class Membership:
    """This node's row, and those of others."""

    def __init__(self, postgres: Postgres, *, name: str, address: str, release: str, alone: bool) -> None:
        self._postgres = postgres
        self.name = name
        self.address = address
        self._release = release
        self._alone = alone
        self.session = ""
        self.schemas: dict[str, int] = {}  # of each shared database, the migrations that this node knows
        self.state = NodeState.STARTING
        self.head = 0  # of the feed, at the last renewal
        self.lease = Lease(LEASE_SECONDS)  # by `seconds_up`
        self.ahead_ms = 0  # how far the database's clock is ahead of this machine's

    async def join(self, session: str, seen: int) -> None:
        """Add the row. Raises StartError if this node and those that run cannot be together."""
        sent = seconds_up()
        async with self._postgres.transaction() as connection:
            await connection.execute("SELECT pg_advisory_xact_lock($1)", LOCK)
            sql = "SELECT name, address, alone FROM nodes WHERE expires > clock_timestamp() ORDER BY started"
            for row in await connection.fetch(sql):
                self._refuse_beside(row)
            known = self.schemas.get(MAIN, 0), json.dumps(self.schemas)
            values = session, self.name, self.address, self._release, *known, self._alone, self.state, seen
            await connection.execute(JOIN, *values, LEASE_SECONDS)
        self.session = session
        self.lease.renew(sent, seconds_up())

    def _refuse_beside(self, row: Any) -> None:
        if row["name"] == self.name:
            raise StartError(
                f"a node named {row['name']} is running, at {row['address']}",
                f"give this one another name with --node-name; if it was killed, wait {LEASE_SECONDS:.0f} s",
                "node_name",
            )
        if self._alone:
            raise StartError(
                f"only_node is on, but the node {row['name']} is running", "stop it, or leave out --only-node on"
            )
        if row["alone"]:
            raise StartError(
                f"the node {row['name']} has only_node on: its Durable Objects and files are on its disk alone",
                "start that one without only_node first; it says what stands in the way",
            )

    async def renew(self, seen: int) -> str | None:
        """Renew the lease; returns what an operator wants of this node. None: the lease had ended."""
        sent = seconds_up()
        row = await self._postgres.row(RENEW, self.session, self.state, seen, LEASE_SECONDS)
        if row is None:
            return None
        self.lease.renew(sent, seconds_up())
        self.head = row["head"]
        self.ahead_ms = row["now"] - int(time.time() * 1000)
        wanted: str = row["wanted"]
        return wanted

    async def leave(self) -> None:
        await self._postgres.run("DELETE FROM nodes WHERE session = $1", self.session)

    async def all(self) -> list[NodeRow]:
        rows = await self._postgres.fetch(f"SELECT {COLUMNS} FROM nodes ORDER BY started")
        return [NodeRow(*row.values()) for row in rows]

    async def live(self) -> list[str]:
        """The sessions whose leases have not ended."""
        rows = await self._postgres.fetch("SELECT session FROM nodes WHERE expires > clock_timestamp()")
        return [row["session"] for row in rows]

    async def behind(self, seq: int) -> list[str]:
        """The names of the live nodes that have not applied a change yet."""
        sql = (
            "SELECT name FROM nodes WHERE expires > clock_timestamp() AND seen < $1 AND state <> 'starting'"
            " ORDER BY name"
        )
        return [row["name"] for row in await self._postgres.fetch(sql, seq)]

    async def want(self, name: str, wanted: str) -> bool:
        """Ask a node for something; False if there is no live node of that name."""
        sql = "UPDATE nodes SET wanted = $2 WHERE name = $1 AND expires > clock_timestamp()"
        return await self._postgres.run(sql, name, wanted) > 0

    async def forget_dead(self) -> Sequence[str]:
        """Delete the rows of nodes that ended long ago; returns their sessions."""
        sql = "DELETE FROM nodes WHERE expires < clock_timestamp() - interval '1 day' RETURNING session"
        return [row["session"] for row in await self._postgres.fetch(sql)]
