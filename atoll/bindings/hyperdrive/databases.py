"""The databases of a node, by tenant and name. Their connection strings are sealed on disk."""

from __future__ import annotations

import time
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import apsw

from atoll.bindings.hyperdrive.connection_string import DatabaseAddress, read_address
from atoll.bindings.services import Seals
from atoll.db.sqlite import Database, rows
from atoll.errors import QuotaExceeded

PLACE = "hyperdrive"  # takes the place of a worker's id in what a secret is bound to
MAX_DATABASES = 100  # of one tenant: all of them are in memory
ALL = "SELECT tenant, name, sealed, by_operator, created_at FROM databases"
PUT = "INSERT OR REPLACE INTO databases (tenant, name, sealed, by_operator, created_at) VALUES (?, ?, ?, ?, ?)"


class NamedDatabase(NamedTuple):
    tenant: str
    name: str
    sealed: bytes
    by_operator: int
    created_at: int


class NamedDatabases:
    def __init__(self, path: Path, seals: Seals) -> None:
        self._database = Database(path, migrations=resources.files("atoll.bindings.hyperdrive") / "migrations")
        self._seals = seals
        found = self._database.read(lambda connection: rows(connection, NamedDatabase, ALL))
        self._known = {(each.tenant, each.name): each for each in found}

    def find(self, tenant: str, name: str) -> NamedDatabase | None:
        return self._known.get((tenant, name))

    def of_tenant(self, tenant: str) -> list[NamedDatabase]:
        return sorted(each for each in self._known.values() if each.tenant == tenant)

    def address(self, each: NamedDatabase) -> DatabaseAddress:
        """Raises CannotOpen if the root key of the node is not the one it was sealed with."""
        return read_address(self._seals.open(each.sealed, each.tenant, PLACE, each.name))

    async def put(self, tenant: str, name: str, text: str, *, by_operator: bool) -> NamedDatabase:
        if (tenant, name) not in self._known and len(self.of_tenant(tenant)) >= MAX_DATABASES:
            raise QuotaExceeded(f"the tenant has {MAX_DATABASES} databases: delete some")
        sealed = self._seals.seal(text, tenant, PLACE, name)
        made = NamedDatabase(tenant, name, sealed, int(by_operator), time.time_ns() // 1_000_000)
        await self._write(PUT, made)
        self._known[tenant, name] = made
        return made

    async def delete(self, tenant: str, name: str) -> bool:
        if self._known.pop((tenant, name), None) is None:
            return False
        await self._write("DELETE FROM databases WHERE tenant = ? AND name = ?", (tenant, name))
        return True

    async def forget(self, tenant: str) -> None:
        for each in self.of_tenant(tenant):
            await self.delete(tenant, each.name)

    async def seal_anew(self) -> None:
        """Seal every connection string with the newest root key."""
        for each in list(self._known.values()):
            text = self._seals.open(each.sealed, each.tenant, PLACE, each.name)
            fresh = each._replace(sealed=self._seals.seal(text, each.tenant, PLACE, each.name))
            await self._write(PUT, fresh)
            self._known[each.tenant, each.name] = fresh

    async def _write(self, sql: str, values: tuple[object, ...]) -> None:
        def act(connection: apsw.Connection) -> None:
            connection.execute(sql, values)

        await self._database.write(act)

    async def close(self) -> None:
        await self._database.close()
