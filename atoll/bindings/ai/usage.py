"""Counts the tokens of tenants by day, and remembers them over restarts.

Counts are in memory and written a moment later, many together. A crash loses the last second.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterable
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import apsw

from atoll.db.sqlite import Database, rows
from atoll.errors import StorageFailed

log = logging.getLogger("atoll.bindings")

DAY = 86_400
WRITE_SECONDS = 1.0
ALL = "SELECT tenant, day, requests, prompt_tokens, completion_tokens FROM usage WHERE day = ?"
PUT = "INSERT OR REPLACE INTO usage (tenant, day, requests, prompt_tokens, completion_tokens) VALUES (?, ?, ?, ?, ?)"


class DayUse(NamedTuple):
    tenant: str
    day: int
    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens


class AiUsage:
    def __init__(self, path: Path) -> None:
        self._database = Database(path, migrations=resources.files("atoll.bindings.ai") / "migrations")
        day = today()
        found = self._database.read(lambda connection: rows(connection, DayUse, ALL, day))
        self._days = {each.tenant: each for each in found}
        self._unwritten: set[str] = set()
        self._writing: asyncio.Task[None] | None = None

    def of(self, tenant: str) -> DayUse:
        """A tenant's use today."""
        found, day = self._days.get(tenant), today()
        return found if found is not None and found.day == day else DayUse(tenant, day)

    def all(self) -> Iterable[DayUse]:
        return self._days.values()

    def add(self, tenant: str, requests: int, prompt_tokens: int, completion_tokens: int) -> None:
        old = self.of(tenant)
        self._days[tenant] = DayUse(
            tenant,
            old.day,
            old.requests + requests,
            old.prompt_tokens + prompt_tokens,
            old.completion_tokens + completion_tokens,
        )
        self._unwritten.add(tenant)
        if self._writing is None:
            self._writing = asyncio.ensure_future(self._write_soon())

    async def _write_soon(self) -> None:
        await asyncio.sleep(WRITE_SECONDS)
        self._writing = None
        try:
            await self._write()
        except StorageFailed as error:
            log.error("the use of env.AI cannot be stored: %s", error)

    async def _write(self) -> None:
        changed = [self._days[tenant] for tenant in self._unwritten]
        self._unwritten.clear()

        def act(connection: apsw.Connection) -> None:
            connection.executemany(PUT, changed)
            connection.execute("DELETE FROM usage WHERE day < ?", (today(),))

        await self._database.write(act)

    async def forget(self, tenant: str) -> None:
        self._days.pop(tenant, None)
        self._unwritten.discard(tenant)

        def act(connection: apsw.Connection) -> None:
            connection.execute("DELETE FROM usage WHERE tenant = ?", (tenant,))

        await self._database.write(act)

    async def close(self) -> None:
        if self._writing is not None:
            self._writing.cancel()
            self._writing = None
        if self._unwritten:
            await self._write()
        await self._database.close()


def today() -> int:
    return int(time.time()) // DAY
