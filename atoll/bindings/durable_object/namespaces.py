"""The namespaces of a node: one for each Durable Object class of a worker, with the secret that signs its ids."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib import resources
from pathlib import Path

import apsw
from msgspec import Struct

from atoll.db.shared import SharedDatabase, opened
from atoll.db.sqlite import Database, DatabaseClosed
from atoll.db.touched import Touched
from atoll.errors import InvalidArgument, StorageFailed

ID = re.compile(r"[0-9a-f]{64}")
JURISDICTIONS = ("eu", "fedramp", "fedramp-high", "us")
SECRET_BYTES = 32
MAX_FACETS = 1_000  # of one object,
MAX_ALL_FACETS = 100_000  # and of all objects of a namespace: they are in memory


class ObjectNamespace(Struct):
    id: str
    tenant: str
    worker: str  # its name
    class_name: str
    is_sql: bool
    secret: bytes
    tag: str  # of the migration that created it
    is_deleted: bool = False

    @property
    def storage(self) -> str:
        return "sqlite" if self.is_sql else "kv"

    def key(self, jurisdiction: str = "") -> bytes:
        return key_of(self.secret, jurisdiction)

    def owns(self, id: object) -> bool:
        """Whether an id was made for this namespace: its second half is the signature of the first."""
        if not isinstance(id, str) or not ID.fullmatch(id):
            return False
        raw = bytes.fromhex(id)
        return any(
            hmac.compare_digest(hmac.digest(self.key(each), raw[:16], "sha256")[:16], raw[16:])
            for each in ("", *JURISDICTIONS)
        )


def key_of(secret: bytes, jurisdiction: str = "") -> bytes:
    return hashlib.sha256(secret + (b"\0" + jurisdiction.encode() if jurisdiction else b"")).digest()


def keys_of(secret: bytes) -> dict[str, str]:
    """The keys for the JavaScript half, by jurisdiction. With them a worker can make ids of its own namespace only."""
    return {each: key_of(secret, each).hex() for each in ("", *JURISDICTIONS)}


class FacetRow(Struct, frozen=True):
    namespace: str
    id: str
    root: str
    path: str  # JSON


class Namespaces:
    """All of them in memory, and in a file of their own, or in one that nodes share."""

    def __init__(self, place: Path | Database) -> None:
        self._database = opened(place, resources.files("atoll.bindings.durable_object") / "migrations")
        self._database.listen(self._follow)
        self._planned: dict[tuple[str, str, str, str], tuple[str, bytes]] = {}  # what a deploy will create
        self._tasks: set[asyncio.Task[None]] = set()
        self.on_gone: Callable[[str], None] = lambda id: None  # another node has deleted a namespace
        self._load()

    async def _follow(self, touched: Touched) -> None:
        """Another node has changed something."""
        known = {each.id for each in self._by_id.values() if not each.is_deleted}
        self._load()
        for id in known:
            if self.get(id) is None:
                self.on_gone(id)

    def _post(self, write: Callable[[apsw.Connection], None]) -> None:
        """Write later what is in memory already. What another node changes meanwhile is read without it: read again."""
        self._database.post(write)
        if isinstance(self._database, SharedDatabase):
            task = asyncio.get_running_loop().create_task(self._written())
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _written(self) -> None:
        with suppress(StorageFailed, DatabaseClosed):
            await self._database.write(lambda connection: None, anyway=True)  # after it, in the same queue
            self._load()

    def _load(self) -> None:
        self._by_id: dict[str, ObjectNamespace] = {}
        self._by_class: dict[tuple[str, str, str], ObjectNamespace] = {}
        self._tags: dict[tuple[str, str], list[str]] = {}  # by tenant and worker, in the order they were applied
        self._forwards: dict[tuple[str, str, str], str] = {}  # ids of namespaces by their former tenant, worker, class
        self._declared: dict[tuple[str, str], tuple[int, str]] = {}  # by tenant and worker: when, and the `exports`
        self._facets: dict[tuple[str, str], dict[str, FacetRow]] = {}  # by namespace and root, then by id
        self._facet_counts: dict[str, int] = {}  # by namespace
        sql = "SELECT id, tenant, worker, class, sql, secret, tag, deleted FROM namespaces"
        for row in self._database.read(lambda c: list(c.execute(sql))):
            id, tenant, worker, name, is_sql, secret, tag, deleted = row
            self._add(ObjectNamespace(id, tenant, worker, name, bool(is_sql), secret, tag, bool(deleted)))
        sql = "SELECT tenant, worker, tag FROM applied_tags ORDER BY number"
        for tenant, worker, tag in self._database.read(lambda c: list(c.execute(sql))):
            self._tags.setdefault((str(tenant), str(worker)), []).append(str(tag))

        sql = "SELECT tenant, worker, class, namespace FROM forwards"
        for tenant, worker, name, id in self._database.read(lambda c: list(c.execute(sql))):
            self._forwards[str(tenant), str(worker), str(name)] = str(id)
        sql = "SELECT namespace, id, root, path FROM facets"
        for row in self._database.read(lambda c: list(c.execute(sql))):
            self._add_facet(FacetRow(*map(str, row)))
        sql = "SELECT tenant, worker, made_at, exports FROM declared"
        for tenant, worker, made_at, exports in self._database.read(lambda c: list(c.execute(sql))):
            self._declared[str(tenant), str(worker)] = int(made_at), str(exports)

    def _add(self, namespace: ObjectNamespace) -> None:
        self._by_id[namespace.id] = namespace
        if not namespace.is_deleted:
            self._by_class[namespace.tenant, namespace.worker, namespace.class_name] = namespace

    def get(self, id: str) -> ObjectNamespace | None:
        found = self._by_id.get(id)
        return found if found is not None and not found.is_deleted else None

    def find(self, tenant: str, worker: str, class_name: str) -> ObjectNamespace | None:
        return self._by_class.get((tenant, worker, class_name))

    def resolve(self, tenant: str, worker: str, class_name: str) -> ObjectNamespace | None:
        """The same for a binding: one to a class that was renamed or moved leads to where its objects are."""
        found = self.find(tenant, worker, class_name)
        if found is None:
            found = self.get(self._forwards.get((tenant, worker, class_name), ""))
        return found if found is not None and found.tenant == tenant else None

    def is_forwarded(self, tenant: str, worker: str, class_name: str) -> bool:
        return self.find(tenant, worker, class_name) is None and self.resolve(tenant, worker, class_name) is not None

    def of_worker(self, tenant: str, worker: str) -> list[ObjectNamespace]:
        return [each for each in self._by_class.values() if (each.tenant, each.worker) == (tenant, worker)]

    def of_tenant(self, tenant: str) -> list[ObjectNamespace]:
        found = [each for each in self._by_class.values() if each.tenant == tenant]
        return sorted(found, key=lambda each: (each.worker, each.class_name))

    def deleted(self) -> Iterator[ObjectNamespace]:
        return (each for each in list(self._by_id.values()) if each.is_deleted)

    def tags(self, tenant: str, worker: str) -> list[str]:
        return self._tags.get((tenant, worker), [])

    def planned(self, tenant: str, worker: str, class_name: str, tag: str) -> tuple[str, bytes]:
        """The id and secret of a namespace that a migration is about to create: its code is loaded before."""
        key = (tenant, worker, class_name, tag)
        found = self._planned.get(key)
        if found is None:
            while len(self._planned) >= 10_000:  # of deploys that failed
                self._planned.pop(next(iter(self._planned)))
            found = self._planned[key] = secrets.token_hex(16), secrets.token_bytes(SECRET_BYTES)
        return found

    async def create(self, tenant: str, worker: str, class_name: str, is_sql: bool, tag: str) -> None:
        id, secret = self.planned(tenant, worker, class_name, tag)
        made = ObjectNamespace(id, tenant, worker, class_name, is_sql, secret, tag)
        values = (made.id, tenant, worker, class_name, int(is_sql), secret, tag)
        sql = "INSERT INTO namespaces (id, tenant, worker, class, sql, secret, tag) VALUES (?, ?, ?, ?, ?, ?, ?)"
        await self._database.write(lambda c: _execute(c, sql, values))
        self._planned.pop((tenant, worker, class_name, tag), None)
        self._add(made)

    def move(self, namespace: ObjectNamespace, worker: str, to: str) -> None:
        """Give a namespace another class, perhaps of another worker of the tenant. Bindings to the old one lead to it.

        At once in memory. On disk a moment later: after a crash in between, the start applies it again.
        """
        tenant = namespace.tenant
        old = tenant, namespace.worker, namespace.class_name
        del self._by_class[old]
        namespace.worker, namespace.class_name = worker, to
        self._add(namespace)
        self._forwards[old] = namespace.id
        self._forwards.pop((tenant, worker, to), None)

        def write(c: apsw.Connection) -> None:
            _execute(c, "UPDATE namespaces SET worker = ?, class = ? WHERE id = ?", (worker, to, namespace.id))
            _execute(c, "INSERT OR REPLACE INTO forwards VALUES (?, ?, ?, ?)", (*old, namespace.id))
            _execute(c, "DELETE FROM forwards WHERE tenant = ? AND worker = ? AND class = ?", (tenant, worker, to))

        self._post(write)

    # --- facets ---

    def _add_facet(self, row: FacetRow) -> None:
        self._facets.setdefault((row.namespace, row.root), {})[row.id] = row
        self._facet_counts[row.namespace] = self._facet_counts.get(row.namespace, 0) + 1

    def know_facet(self, row: FacetRow) -> None:
        """Remember a facet that is used: it is deleted with its object. InvalidArgument if there are too many."""
        known = self._facets.get((row.namespace, row.root), {})
        if row.id in known:
            return
        if len(known) >= MAX_FACETS or self._facet_counts.get(row.namespace, 0) >= MAX_ALL_FACETS:
            raise InvalidArgument("Maximum number of facets exceeded.")
        self._add_facet(row)
        values = (row.namespace, row.id, row.root, row.path)
        self._post(lambda c: _execute(c, "INSERT OR IGNORE INTO facets VALUES (?, ?, ?, ?)", values))

    def facets_in(self, namespace: str, root: str, path: tuple[str, ...] = ()) -> list[FacetRow]:
        """The facets of an object; those at `path` and within it."""
        found = self._facets.get((namespace, root), {}).values()
        return [row for row in found if tuple(json.loads(row.path))[: len(path)] == path]

    def facet_ids(self, namespace: str) -> set[str]:
        return {id for (within, _), rows in self._facets.items() if within == namespace for id in rows}

    async def forget_facet(self, row: FacetRow) -> None:
        rows = self._facets.get((row.namespace, row.root), {})
        if rows.pop(row.id, None) is not None:
            self._facet_counts[row.namespace] -= 1
        if not rows:
            self._facets.pop((row.namespace, row.root), None)
        sql = "DELETE FROM facets WHERE namespace = ? AND id = ?"
        await self._database.write(lambda c: _execute(c, sql, (row.namespace, row.id)))

    # --- exports ---

    def declared(self, tenant: str, worker: str) -> tuple[int, str] | None:
        """When the version was made whose `exports` were applied last, and the `exports`."""
        return self._declared.get((tenant, worker))

    def declare(self, tenant: str, worker: str, made_at: int, exports: str) -> None:
        if self._declared.get((tenant, worker)) == (made_at, exports):
            return
        self._declared[tenant, worker] = made_at, exports
        values = (tenant, worker, made_at, exports)
        self._post(lambda c: _execute(c, "INSERT OR REPLACE INTO declared VALUES (?, ?, ?, ?)", values))

    def mark_deleted(self, namespace: ObjectNamespace) -> None:
        del self._by_class[namespace.tenant, namespace.worker, namespace.class_name]
        namespace.is_deleted = True
        self._post(lambda c: _execute(c, "UPDATE namespaces SET deleted = 1 WHERE id = ?", (namespace.id,)))

    async def forget(self, namespace: ObjectNamespace) -> None:
        """Its objects are deleted."""

        def write(c: apsw.Connection) -> None:
            _execute(c, "DELETE FROM namespaces WHERE id = ?", (namespace.id,))
            _execute(c, "DELETE FROM forwards WHERE namespace = ?", (namespace.id,))
            _execute(c, "DELETE FROM facets WHERE namespace = ?", (namespace.id,))

        await self._database.write(write)
        self._forwards = {old: id for old, id in self._forwards.items() if id != namespace.id}
        self._facets = {where: rows for where, rows in self._facets.items() if where[0] != namespace.id}
        self._facet_counts.pop(namespace.id, None)
        self._by_id.pop(namespace.id, None)

    def applied(self, tenant: str, worker: str, tag: str) -> None:
        self._tags.setdefault((tenant, worker), []).append(tag)
        sql = "INSERT OR IGNORE INTO applied_tags (tenant, worker, tag) VALUES (?, ?, ?)"
        self._post(lambda c: _execute(c, sql, (tenant, worker, tag)))

    async def forget_tags(self, tenant: str, worker: str) -> None:
        self._tags.pop((tenant, worker), None)
        self._declared.pop((tenant, worker), None)
        self._forwards = {old: id for old, id in self._forwards.items() if old[:2] != (tenant, worker)}

        def write(c: apsw.Connection) -> None:
            for table in ("applied_tags", "declared", "forwards"):
                _execute(c, f"DELETE FROM {table} WHERE tenant = ? AND worker = ?", (tenant, worker))

        await self._database.write(write)

    async def close(self) -> None:
        await self._database.close()


def _execute(connection: apsw.Connection, sql: str, values: tuple[apsw.SQLiteValue, ...]) -> None:
    connection.execute(sql, values)
