"""The secrets stores of a node, by tenant and name. Values are sealed on disk."""

from __future__ import annotations

import time
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import apsw

from atoll.bindings.services import Seals
from atoll.db.known_rows import KnownRows
from atoll.db.shared import opened
from atoll.db.sqlite import Database
from atoll.errors import BindingRefused, QuotaExceeded

PLACE = "secrets store "  # and the store: takes the place of a worker's id in what a secret is bound to
# All of them are in memory. Cloudflare has one store with 100 secrets; a value has 1,024 bytes there.
MAX_STORES = 20  # of one tenant
MAX_SECRETS = 200  # of one store
HAS_STORE = "SELECT 1 FROM stores WHERE tenant = ? AND name = ?"


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


class StoreGone(BindingRefused):
    """The store was deleted while a secret was put into it."""

    def __init__(self) -> None:
        super().__init__("404 the secrets store was deleted at the same moment")


class SecretsStores:
    """`place`: the file, or the database that several nodes share."""

    def __init__(self, place: Path | Database, seals: Seals) -> None:
        self._database = opened(place, resources.files("atoll.bindings.secrets_store_secret") / "migrations")
        self._seals = seals
        self._stores = KnownRows(self._database, "stores", SecretsStore)
        self._secrets = KnownRows(self._database, "secrets", StoredSecret, keys=3)

    # --- stores ---

    def has_store(self, tenant: str, store: str) -> bool:
        return self.store(tenant, store) is not None

    def store(self, tenant: str, store: str) -> SecretsStore | None:
        return self._stores.find(tenant, store)

    def stores_of(self, tenant: str) -> list[SecretsStore]:
        return self._stores.of(tenant)

    async def make_store(self, tenant: str, name: str) -> SecretsStore:
        refused = QuotaExceeded(f"the tenant has {MAX_STORES} secrets stores")
        return await self._stores.put(
            SecretsStore(tenant, name, _now()), self._stores.most(MAX_STORES, refused, tenant, name)
        )

    async def delete_store(self, tenant: str, name: str) -> None:
        """With its secrets."""

        def secrets(connection: apsw.Connection) -> None:
            connection.execute("DELETE FROM secrets WHERE tenant = ? AND store = ?", (tenant, name))

        await self._stores.delete(tenant, name, also=secrets)
        await self._secrets.delete(tenant, name)  # from memory: the rows are gone

    # --- secrets ---

    def find(self, tenant: str, store: str, name: str) -> StoredSecret | None:
        return self._secrets.find(tenant, store, name) if self.has_store(tenant, store) else None

    def secrets_of(self, tenant: str, store: str) -> list[StoredSecret]:
        return self._secrets.of(tenant, store)

    def value(self, each: StoredSecret) -> str:
        """Raises CannotOpen if the root key of the node is not the one it was sealed with."""
        return self._seals.open(each.sealed, each.tenant, PLACE + each.store, each.name)

    async def put(self, tenant: str, store: str, name: str, value: str, comment: str) -> StoredSecret:
        """Raises StoreGone if the store was deleted meanwhile."""
        old = self.find(tenant, store, name)
        sealed, now = self._seals.seal(value, tenant, PLACE + store, name), _now()
        made = StoredSecret(tenant, store, name, sealed, comment, now if old is None else old.created_at, now)
        refused = QuotaExceeded(f"the store has {MAX_SECRETS} secrets")
        fits = self._secrets.most(MAX_SECRETS, refused, tenant, store, name)

        def check(connection: apsw.Connection) -> None:
            if connection.execute(HAS_STORE, (tenant, store)).fetchone() is None:
                raise StoreGone
            fits(connection)

        return await self._secrets.put(made, check)

    async def delete(self, tenant: str, store: str, name: str) -> None:
        await self._secrets.delete(tenant, store, name)

    # --- all of it ---

    async def forget(self, tenant: str) -> None:
        for each in self.stores_of(tenant):
            await self.delete_store(tenant, each.name)

    async def seal_anew(self) -> None:
        """Seal every value with the newest root key."""
        await self._secrets.change_all(self._sealed_anew)

    def _sealed_anew(self, each: StoredSecret) -> StoredSecret:
        return each._replace(sealed=self._seals.seal(self.value(each), each.tenant, PLACE + each.store, each.name))

    async def close(self) -> None:
        await self._database.close()


def _now() -> int:
    return time.time_ns() // 1_000_000
