"""The secrets stores of a node, by tenant and name. Values are sealed on disk."""

from __future__ import annotations

import time
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import apsw

from atoll.bindings.services import Seals
from atoll.db.sqlite import Database, rows
from atoll.errors import QuotaExceeded

PLACE = "secrets store "  # and the store: takes the place of a worker's id in what a secret is bound to
# All of them are in memory. Cloudflare has one store with 100 secrets; a value has 1,024 bytes there.
MAX_STORES = 20  # of one tenant
MAX_SECRETS = 200  # of one store
ALL_STORES = "SELECT tenant, name, created_at FROM stores"
ALL = "SELECT tenant, store, name, sealed, comment, created_at, changed_at FROM secrets"
PUT = (
    "INSERT OR REPLACE INTO secrets (tenant, store, name, sealed, comment, created_at, changed_at)"
    " VALUES (?, ?, ?, ?, ?, ?, ?)"
)


class SecretsStore(NamedTuple):
    tenant: str
    name: str
    created_at: int


class StoredSecret(NamedTuple):
    tenant: str
    store: str
    name: str
    sealed: bytes
    comment: str
    created_at: int
    changed_at: int


class SecretsStores:
    def __init__(self, path: Path, seals: Seals) -> None:
        migrations = resources.files("atoll.bindings.secrets_store_secret") / "migrations"
        self._database = Database(path, migrations=migrations)
        self._seals = seals
        stores = self._database.read(lambda connection: rows(connection, SecretsStore, ALL_STORES))
        found = self._database.read(lambda connection: rows(connection, StoredSecret, ALL))
        self._stores = {(each.tenant, each.name): each for each in stores}
        self._secrets: dict[tuple[str, str], dict[str, StoredSecret]] = {key: {} for key in self._stores}
        for each in found:
            self._secrets[each.tenant, each.store][each.name] = each

    # --- stores ---

    def has_store(self, tenant: str, store: str) -> bool:
        return (tenant, store) in self._stores

    def store(self, tenant: str, store: str) -> SecretsStore | None:
        return self._stores.get((tenant, store))

    def stores_of(self, tenant: str) -> list[SecretsStore]:
        return sorted(each for each in self._stores.values() if each.tenant == tenant)

    async def make_store(self, tenant: str, name: str) -> SecretsStore:
        if len(self.stores_of(tenant)) >= MAX_STORES:
            raise QuotaExceeded(f"the tenant has {MAX_STORES} secrets stores")
        made = SecretsStore(tenant, name, _now())
        self._stores[tenant, name] = made
        self._secrets[tenant, name] = {}
        await self._write("INSERT INTO stores (tenant, name, created_at) VALUES (?, ?, ?)", made)
        return made

    async def delete_store(self, tenant: str, name: str) -> None:
        """With its secrets."""
        del self._stores[tenant, name]
        del self._secrets[tenant, name]
        await self._write("DELETE FROM stores WHERE tenant = ? AND name = ?", (tenant, name))
        await self._write("DELETE FROM secrets WHERE tenant = ? AND store = ?", (tenant, name))

    # --- secrets ---

    def find(self, tenant: str, store: str, name: str) -> StoredSecret | None:
        return self._secrets.get((tenant, store), {}).get(name)

    def secrets_of(self, tenant: str, store: str) -> list[StoredSecret]:
        return sorted(self._secrets.get((tenant, store), {}).values())

    def value(self, each: StoredSecret) -> str:
        """Raises CannotOpen if the root key of the node is not the one it was sealed with."""
        return self._seals.open(each.sealed, each.tenant, PLACE + each.store, each.name)

    async def put(self, tenant: str, store: str, name: str, value: str, comment: str) -> StoredSecret:
        """The store exists."""
        known = self._secrets[tenant, store]
        old = known.get(name)
        if old is None and len(known) >= MAX_SECRETS:
            raise QuotaExceeded(f"the store has {MAX_SECRETS} secrets")
        sealed, now = self._seals.seal(value, tenant, PLACE + store, name), _now()
        made = StoredSecret(tenant, store, name, sealed, comment, now if old is None else old.created_at, now)
        known[name] = made
        await self._write(PUT, made)
        return made

    async def delete(self, tenant: str, store: str, name: str) -> None:
        del self._secrets[tenant, store][name]
        sql = "DELETE FROM secrets WHERE tenant = ? AND store = ? AND name = ?"
        await self._write(sql, (tenant, store, name))

    # --- all of it ---

    async def forget(self, tenant: str) -> None:
        for each in self.stores_of(tenant):
            await self.delete_store(tenant, each.name)

    async def seal_anew(self) -> None:
        """Seal every value with the newest root key."""
        for secrets in self._secrets.values():
            for each in list(secrets.values()):
                sealed = self._seals.seal(self.value(each), each.tenant, PLACE + each.store, each.name)
                secrets[each.name] = fresh = each._replace(sealed=sealed)
                await self._write(PUT, fresh)

    async def _write(self, sql: str, values: tuple[object, ...]) -> None:
        def act(connection: apsw.Connection) -> None:
            connection.execute(sql, values)

        await self._database.write(act)

    async def close(self) -> None:
        await self._database.close()


def _now() -> int:
    return time.time_ns() // 1_000_000
