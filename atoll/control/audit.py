"""Every change that anybody made: who, when, what. Written in the transaction of the change itself, so none is missing.

The newest KEPT lines stay. What is secret never gets here: a line names things and tells no values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import apsw

from atoll.control.callers import Caller
from atoll.db.sqlite import Database, rows

KEPT = 100_000


@dataclass(frozen=True, slots=True)
class Mark:
    """Who makes a change and when, as the line about it will tell."""

    actor: str
    tenant: str
    at: int  # ms since 1970
    note: str = ""  # what the one who makes the change has to say about it

    @classmethod
    def of(cls, caller: Caller, seconds: float, note: str = "") -> Mark:
        return cls(caller.name, caller.tenant, int(seconds * 1000), note)

    def write(self, connection: apsw.Connection, action: str, target: str, detail: str = "") -> None:
        """Add the line, in the transaction that is open."""
        connection.execute(
            "INSERT INTO audit (at, tenant, actor, action, target, detail) VALUES (?, ?, ?, ?, ?, ?)",
            (self.at, self.tenant, self.actor, action, target, ": ".join(filter(None, (detail, self.note)))),
        )
        connection.execute("DELETE FROM audit WHERE id <= ?", (connection.last_insert_rowid() - KEPT,))


class Line(NamedTuple):
    id: int
    at: int
    tenant: str
    actor: str
    action: str
    target: str
    detail: str


class AuditLog:
    def __init__(self, database: Database) -> None:
        self._database = database

    def page(self, tenant: str | None, before: int, limit: int) -> list[Line]:
        """Lines older than the one numbered `before`, newest first; of one tenant, or of all."""
        sql = "SELECT id, at, tenant, actor, action, target, detail FROM audit WHERE id < ?"
        values: tuple[str | int, ...] = (before,)
        if tenant is not None:
            sql, values = sql + " AND tenant = ?", (before, tenant)
        sql += f" ORDER BY id DESC LIMIT {limit:d}"
        return self._database.read(lambda connection: rows(connection, Line, sql, *values))
