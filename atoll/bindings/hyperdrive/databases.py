"""The databases of a node, by tenant and name. Their connection strings are sealed on disk."""

from __future__ import annotations

import time
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from atoll.bindings.hyperdrive.connection_string import DatabaseAddress, read_address
from atoll.bindings.services import Seals
from atoll.db.known_rows import KnownRows
from atoll.db.shared import opened
from atoll.db.sqlite import Database
from atoll.errors import QuotaExceeded

PLACE = "hyperdrive"  # takes the place of a worker's id in what a secret is bound to
MAX_DATABASES = 100  # of one tenant: all of them are in memory


class NamedDatabase(NamedTuple):
    tenant: str
    name: str
    sealed: bytes
    by_operator: int
    created_at: int


class NamedDatabases:
    """`place`: the file, or the database that several nodes share."""

    def __init__(self, place: Path | Database, seals: Seals) -> None:
        self._database = opened(place, resources.files("atoll.bindings.hyperdrive") / "migrations")
        self._seals = seals
        self._known = KnownRows(self._database, "databases", NamedDatabase)

    def find(self, tenant: str, name: str) -> NamedDatabase | None:
        return self._known.find(tenant, name)

    def of_tenant(self, tenant: str) -> list[NamedDatabase]:
        return self._known.of(tenant)

    def address(self, each: NamedDatabase) -> DatabaseAddress:
        """Raises CannotOpen if the root key of the node is not the one it was sealed with."""
        return read_address(self._seals.open(each.sealed, each.tenant, PLACE, each.name))

    async def put(self, tenant: str, name: str, text: str, *, by_operator: bool) -> NamedDatabase:
        sealed = self._seals.seal(text, tenant, PLACE, name)
        made = NamedDatabase(tenant, name, sealed, int(by_operator), time.time_ns() // 1_000_000)
        refused = QuotaExceeded(f"the tenant has {MAX_DATABASES} databases: delete some")
        return await self._known.put(made, self._known.most(MAX_DATABASES, refused, tenant, name))

    async def delete(self, tenant: str, name: str) -> bool:
        if self._known.find(tenant, name) is None:
            return False
        await self._known.delete(tenant, name)
        return True

    async def forget(self, tenant: str) -> None:
        for each in self.of_tenant(tenant):
            await self.delete(tenant, each.name)

    async def seal_anew(self) -> None:
        """Seal every connection string with the newest root key."""
        await self._known.change_all(self._sealed_anew)

    def _sealed_anew(self, each: NamedDatabase) -> NamedDatabase:
        text = self._seals.open(each.sealed, each.tenant, PLACE, each.name)
        return each._replace(sealed=self._seals.seal(text, each.tenant, PLACE, each.name))

    async def close(self) -> None:
        await self._database.close()
