"""The databases of a node by tenant and name."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable
from importlib import resources
from pathlib import Path

import apsw
from msgspec import Struct

from atoll.api.refusals import ApiCode, Refused
from atoll.bindings.services import Objects
from atoll.db.shared import opened
from atoll.db.sqlite import Database
from atoll.db.touched import Touched
from atoll.objects.store import ObjectKey

OBJECT_ID = "0" * 64  # each database has a namespace to itself


class StoredDatabase(Struct, frozen=True):
    id: str  # a UUID
    tenant: str
    name: str
    created_at: float

    @property
    def key(self) -> ObjectKey:
        return ObjectKey(self.id, OBJECT_ID)


async def _ignore(id: str) -> None: ...


class Databases:
    """All of them in memory, and in a file of their own, or in one that nodes share."""

    def __init__(self, place: Path | Database) -> None:
        self._database = opened(place, resources.files("atoll.bindings.d1") / "migrations")
        self._most: dict[str, int | None] = {}
        self._turn = asyncio.Lock()  # of changes
        self._database.listen(self._follow)
        self.on_gone: Callable[[str], Awaitable[None]] = _ignore  # another node has deleted a database
        self._load()

    async def _follow(self, touched: Touched) -> None:
        """Another node has changed something."""
        known = set(self._by_id)
        self._load()
        for id in known - set(self._by_id):
            await self.on_gone(id)

    def _load(self) -> None:
        self._by_name: dict[str, dict[str, StoredDatabase]] = {}  # by tenant, by name
        self._by_id: dict[str, StoredDatabase] = {}
        sql = "SELECT id, tenant, name, created_at FROM databases"
        for row in self._database.read(lambda c: list(c.execute(sql))):
            found = StoredDatabase(*row)
            self._add(found)

    def _add(self, database: StoredDatabase) -> None:
        self._by_name.setdefault(database.tenant, {})[database.name] = database
        self._by_id[database.id] = database

    def find(self, tenant: str, name: str) -> StoredDatabase | None:
        """By its name or its UUID."""
        found = self.named(tenant, name)
        return found or next((each for each in self._by_name.get(tenant, {}).values() if each.id == name), None)

    def named(self, tenant: str, name: str) -> StoredDatabase | None:
        return self._by_name.get(tenant, {}).get(name)

    def by_id(self, id: str) -> StoredDatabase | None:
        return self._by_id.get(id)

    def of_tenant(self, tenant: str) -> list[StoredDatabase]:
        return sorted(self._by_name.get(tenant, {}).values(), key=lambda each: each.name)

    def count(self, tenant: str) -> int:
        return len(self._by_name.get(tenant, {}))

    def bound(self, tenant: str, most: int | None) -> None:
        self._most[tenant] = most

    async def create(self, tenant: str, name: str) -> StoredDatabase | None:
        """A new, empty database; None if the name is taken. Refused if the tenant may have no more."""
        async with self._turn:
            if self.named(tenant, name) is not None:
                return None
            most = self._most.get(tenant)
            if most is not None and self.count(tenant) >= most:
                raise Refused(
                    ApiCode.QUOTA,
                    f"the quota `d1_databases` is reached ({most} of {most})",
                    "delete a database, or raise the quota",
                )
            made = StoredDatabase(str(uuid.uuid4()), tenant, name, time.time())
            sql = "INSERT INTO databases (id, tenant, name, created_at) VALUES (?, ?, ?, ?)"
            await self._write(sql, made.id, tenant, name, made.created_at)
            self._add(made)
            return made

    async def delete(self, database: StoredDatabase, objects: Objects) -> None:
        """Delete a database and its content. After a crash in between it is there and empty, and can be deleted."""
        async with self._turn:
            if self._by_name.get(database.tenant, {}).pop(database.name, None) is None:
                return  # another request was faster
            self._by_id.pop(database.id, None)
            try:
                await objects.delete_namespace(database.id)
                await self._write("DELETE FROM databases WHERE id = ?", database.id)
            except BaseException:
                self._add(database)
                raise

    async def _write(self, sql: str, *values: str | float) -> None:
        def act(connection: apsw.Connection) -> None:
            connection.execute(sql, values)

        await self._database.write(act)

    async def close(self) -> None:
        await self._database.close()
