"""The audit log: who changed what, and when. It is complete: the line of a change is written in the transaction of the
change. For data outside this database (KV, queues, caches) the line is written before the change.

The newest KEPT lines of each tenant stay, so a busy tenant does not push out the lines of another. A line holds names,
never values, so no secret gets here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import apsw
from msgspec import Struct

from atoll.api.callers import Caller
from atoll.db.sqlite import Database, rows

KEPT = 100_000
TRIM_EVERY = 500  # lines
MAX_NAME = 300  # characters of the target


class Mark(Struct, frozen=True):
    """Who makes a change, and when, for its audit line."""

    actor: str
    tenant: str
    at: int  # ms since 1970
    note: str = ""  # the caller's comment on the change

    @classmethod
    def of(cls, caller: Caller, seconds: float, note: str = "") -> Mark:
        return cls(caller.name, caller.tenant, int(seconds * 1000), note)

    def write(self, connection: apsw.Connection, action: str, target: str, detail: str = "") -> None:
        """Add the line in the open transaction."""
        connection.execute(
            "INSERT INTO audit (at, tenant, actor, action, target, detail) VALUES (?, ?, ?, ?, ?, ?)",
            (self.at, self.tenant, self.actor, action, target, ": ".join(filter(None, (detail, self.note)))),
        )
        if connection.last_insert_rowid() % TRIM_EVERY == 0:
            connection.execute(
                "DELETE FROM audit WHERE tenant = ?1 AND id <= "
                "(SELECT id FROM audit WHERE tenant = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)",
                (self.tenant, KEPT),
            )


class AuditEntry(NamedTuple):
    id: int
    at: int
    tenant: str
    actor: str
    action: str
    target: str
    detail: str


class AuditLog:
    def __init__(self, database: Database, clock: Callable[[], float]) -> None:
        self._database = database
        self._clock = clock

    async def note(self, caller: Caller, action: str, target: str, detail: str = "") -> None:
        """Add the line of a change that follows outside this database."""
        mark = Mark.of(caller, self._clock())
        await self._database.write(
            lambda connection: mark.write(connection, action, target[:MAX_NAME], detail[:MAX_NAME]), anyway=True
        )

    def page(self, tenant: str | None, before: int, limit: int, since: int = 0) -> list[AuditEntry]:
        """Lines with an id below `before`, newest first: of one tenant since a time, or of all tenants."""
        sql = "SELECT id, at, tenant, actor, action, target, detail FROM audit WHERE id < ?"
        values: tuple[str | int, ...] = (before,)
        if tenant is not None:
            sql, values = sql + " AND tenant = ? AND at >= ?", (before, tenant, since)
        sql += f" ORDER BY id DESC LIMIT {limit:d}"
        return self._database.read(lambda connection: rows(connection, AuditEntry, sql, *values))
