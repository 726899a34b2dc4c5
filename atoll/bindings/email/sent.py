"""Counts the recipients of a tenant's email by day, on disk: a restart does not begin anew."""

from __future__ import annotations

import time
from importlib import resources
from pathlib import Path
from typing import Protocol

import apsw

from atoll.bindings.email.faults import EmailFault
from atoll.db.sqlite import Database

DAY = 86_400
GET = "SELECT recipients FROM sent WHERE tenant = ? AND day = ?"
ADD = """INSERT INTO sent (tenant, day, recipients) VALUES (?, ?, ?)
  ON CONFLICT (tenant, day) DO UPDATE SET recipients = recipients + excluded.recipients"""


class SentCounts(Protocol):
    def bound(self, tenant: str, most: int | None) -> None:
        """Set how many recipients a tenant may have in a day (UTC); None: any number."""

    async def today(self, tenant: str) -> int: ...

    async def spend(self, tenant: str, recipients: int) -> None:
        """Count recipients before they are written to. EmailFault if they are too many."""

    async def forget(self, tenant: str) -> None: ...

    async def close(self) -> None: ...


class OwnSentCounts:
    """Those of one node, in a file."""

    def __init__(self, path: Path) -> None:
        self._database = Database(path, migrations=resources.files("atoll.bindings.email") / "migrations")
        self._most: dict[str, int | None] = {}

    def bound(self, tenant: str, most: int | None) -> None:
        self._most[tenant] = most

    async def today(self, tenant: str) -> int:
        return self._database.read(lambda connection: _count(connection, tenant))

    async def spend(self, tenant: str, recipients: int) -> None:
        most = self._most.get(tenant)

        def act(connection: apsw.Connection) -> bool:
            if most is not None and _count(connection, tenant) + recipients > most:
                return False
            connection.execute("DELETE FROM sent WHERE day < ?", (today(),))
            connection.execute(ADD, (tenant, today(), recipients))
            return True

        if not await self._database.write(act):
            raise too_many(most)

    async def forget(self, tenant: str) -> None:
        self._most.pop(tenant, None)

        def act(connection: apsw.Connection) -> None:
            connection.execute("DELETE FROM sent WHERE tenant = ?", (tenant,))

        await self._database.write(act)

    async def close(self) -> None:
        await self._database.close()


def today() -> int:
    """Days since 1970, UTC."""
    return int(time.time()) // DAY


def too_many(most: int | None) -> EmailFault:
    return EmailFault("E_DAILY_LIMIT_EXCEEDED", f"the daily limit of {most:,} recipients is reached")


def _count(connection: apsw.Connection, tenant: str) -> int:
    found = connection.execute(GET, (tenant, today())).fetchone()
    return int(found[0]) if found else 0
