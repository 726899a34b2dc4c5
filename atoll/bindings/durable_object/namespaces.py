"""The namespaces of a node: one for each Durable Object class of a worker, with the secret that signs its ids."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import apsw
from msgspec import Struct

from atoll.db.sqlite import Database

ID = re.compile(r"[0-9a-f]{64}")
JURISDICTIONS = ("eu", "fedramp", "fedramp-high", "us")
SECRET_BYTES = 32


class ObjectNamespace(Struct):
    id: str
    tenant: str
    worker: str  # its name
    class_name: str
    is_sql: bool
    secret: bytes
    tag: str  # of the migration that created it
    is_deleted: bool = False

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


class Namespaces:
    """All of them in memory, and on disk in a file of their own."""

    def __init__(self, path: Path) -> None:
        folder = resources.files("atoll.bindings.durable_object") / "migrations"
        self._database = Database(path, migrations=folder)
        self._by_id: dict[str, ObjectNamespace] = {}
        self._by_class: dict[tuple[str, str, str], ObjectNamespace] = {}
        self._tags: dict[tuple[str, str], list[str]] = {}  # by tenant and worker, in the order they were applied
        self._planned: dict[tuple[str, str, str, str], tuple[str, bytes]] = {}  # what a deploy will create
        sql = "SELECT id, tenant, worker, class, sql, secret, tag, deleted FROM namespaces"
        for row in self._database.read(lambda c: list(c.execute(sql))):
            id, tenant, worker, name, is_sql, secret, tag, deleted = row
            self._add(ObjectNamespace(id, tenant, worker, name, bool(is_sql), secret, tag, bool(deleted)))
        sql = "SELECT tenant, worker, tag FROM applied_tags ORDER BY number"
        for tenant, worker, tag in self._database.read(lambda c: list(c.execute(sql))):
            self._tags.setdefault((str(tenant), str(worker)), []).append(str(tag))

    def _add(self, namespace: ObjectNamespace) -> None:
        self._by_id[namespace.id] = namespace
        if not namespace.is_deleted:
            self._by_class[namespace.tenant, namespace.worker, namespace.class_name] = namespace

    def get(self, id: str) -> ObjectNamespace | None:
        found = self._by_id.get(id)
        return found if found is not None and not found.is_deleted else None

    def find(self, tenant: str, worker: str, class_name: str) -> ObjectNamespace | None:
        return self._by_class.get((tenant, worker, class_name))

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

    def rename(self, namespace: ObjectNamespace, to: str) -> None:
        """At once in memory. On disk a moment later: after a crash in between, the start applies it again."""
        del self._by_class[namespace.tenant, namespace.worker, namespace.class_name]
        namespace.class_name = to
        self._add(namespace)
        self._database.post(lambda c: _execute(c, "UPDATE namespaces SET class = ? WHERE id = ?", (to, namespace.id)))

    def mark_deleted(self, namespace: ObjectNamespace) -> None:
        del self._by_class[namespace.tenant, namespace.worker, namespace.class_name]
        namespace.is_deleted = True
        self._database.post(lambda c: _execute(c, "UPDATE namespaces SET deleted = 1 WHERE id = ?", (namespace.id,)))

    async def forget(self, namespace: ObjectNamespace) -> None:
        """Its objects are deleted."""
        await self._database.write(lambda c: _execute(c, "DELETE FROM namespaces WHERE id = ?", (namespace.id,)))
        self._by_id.pop(namespace.id, None)

    def applied(self, tenant: str, worker: str, tag: str) -> None:
        self._tags.setdefault((tenant, worker), []).append(tag)
        sql = "INSERT OR IGNORE INTO applied_tags (tenant, worker, tag) VALUES (?, ?, ?)"
        self._database.post(lambda c: _execute(c, sql, (tenant, worker, tag)))

    async def forget_tags(self, tenant: str, worker: str) -> None:
        self._tags.pop((tenant, worker), None)
        sql = "DELETE FROM applied_tags WHERE tenant = ? AND worker = ?"
        await self._database.write(lambda c: _execute(c, sql, (tenant, worker)))

    async def close(self) -> None:
        await self._database.close()


def _execute(connection: apsw.Connection, sql: str, values: tuple[apsw.SQLiteValue, ...]) -> None:
    connection.execute(sql, values)
