"""The store of workers: each with its immutable versions, what routes to it, and the code caches of V8.

Every change is one function that runs in one transaction of the writer, its line in the audit log included, so a worker
is wholly old or wholly new at any moment a crash may choose. Nothing here decides whether a change is wise: deploy.py
has checked it before, and the keys of the tables only make sure that it did.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import NamedTuple

import apsw

from atoll.control.audit import Mark
from atoll.control.bindings import Kinds
from atoll.control.secret_rows import (
    SealedSecret,
    drop_unused_secrets,
    insert_secret,
    is_new_in,
    seal_anew,
    secrets_of,
)
from atoll.control.vault import Vault
from atoll.control.version_rows import (
    Deployment,
    ModuleSummary,
    VersionSummary,
    insert_version,
    list_modules,
    list_versions,
    load_active,
    load_version,
)
from atoll.db.sqlite import Database, rows
from atoll.workers import Version

__all__ = ["KEPT_VERSIONS", "Deployment", "WorkerStore"]

KEPT_VERSIONS = 100  # per worker; older ones are deleted by the deploy that makes a new one


class CodeRow(NamedTuple):
    path: str
    code: bytes


class StoredVersion(NamedTuple):
    id: str
    is_active: int
    bytes: int


class WorkerStore:
    def __init__(self, database: Database, kinds: Kinds, vault: Vault) -> None:
        self._database = database
        self._kinds = kinds
        self.vault = vault

    # What is there

    def load_all(self) -> list[Deployment]:
        """Every worker with its active version, by name. For the start: it reads every module of them."""
        return self._database.read(lambda connection: load_active(connection, self._kinds, self.vault))

    def versions(self, worker_id: str) -> list[VersionSummary]:
        """All versions of a worker, newest first."""
        return self._database.read(lambda connection: list_versions(connection, worker_id))

    def version(self, worker_id: str, reference: str) -> Deployment | None:
        """One version of a worker by its id or number, whole."""
        return self._database.read(
            lambda connection: load_version(connection, worker_id, reference, self._kinds, self.vault)
        )

    def secrets(self, version_id: str) -> list[SealedSecret]:
        """The secrets that a version has, by name."""
        return self._database.read(lambda connection: secrets_of(connection, version_id))

    def modules(self, version_id: str) -> list[ModuleSummary]:
        return self._database.read(lambda connection: list_modules(connection, version_id))

    def source_maps(self, version_id: str) -> dict[str, bytes]:
        """The source maps that came with a version, by path of their module."""
        sql = "SELECT path, source_map FROM modules WHERE version_id = ? AND source_map IS NOT NULL"
        return dict(self._database.read(lambda connection: rows(connection, CodeRow, sql, version_id)))

    # Changes

    async def create(self, deployment: Deployment, mark: Mark) -> Deployment:
        """Store a new worker with its first version."""
        sealed = self._sealed(deployment)

        def act(connection: apsw.Connection) -> Deployment:
            new, at = deployment, deployment.updated_at
            connection.execute(
                "INSERT INTO workers (id, name, tenant, created_at, updated_at) VALUES (?, ?, ?, ?, ?)",
                (new.id, new.name, new.version.tenant, at, at),
            )
            mark.write(connection, "worker.create", new.name, new.version.id)
            for secret in sealed:
                insert_secret(connection, new.id, secret)
                mark.write(connection, "secret.put", new.name, f"{new.version.id}: {secret.name}")
            return _activate(connection, insert_version(connection, new, number=1))

        return await self._database.write(act)

    async def update(self, deployment: Deployment, mark: Mark, action: str = "worker.update") -> Deployment:
        """Store a new version of a worker, with the secrets that are new in it, and make it the active one."""
        sealed = self._sealed(deployment)

        def act(connection: apsw.Connection) -> Deployment:
            for secret in sealed:
                insert_secret(connection, deployment.id, secret)
                if action == "worker.update":
                    mark.write(connection, "secret.put", deployment.name, f"{deployment.version.id}: {secret.name}")
            [last] = rows(connection, int, "SELECT max(number) FROM versions WHERE worker_id = ?", deployment.id)
            stored = _activate(connection, insert_version(connection, deployment, number=last + 1))
            connection.execute(
                "DELETE FROM versions WHERE worker_id = ? AND number <= ?", (stored.id, stored.number - KEPT_VERSIONS)
            )
            drop_unused_secrets(connection, stored.id)
            mark.write(connection, action, stored.name, stored.version.id)
            return stored

        return await self._database.write(act)

    def _sealed(self, deployment: Deployment) -> list[SealedSecret]:
        """The secrets that a version is the first to have."""
        version = deployment.version
        return [
            SealedSecret(
                secret_id,
                name,
                self.vault.seal(version.secrets[name], version.tenant, version.worker_id, name),
                version.created_at,
            )
            for name, secret_id in deployment.secrets.items()
            if is_new_in(version.id, secret_id)
        ]

    async def trim_history(self, tenant: str, max_bytes: int) -> None:
        """Let go of a tenant's oldest versions that do not answer, until all its code is within a bound."""

        def act(connection: apsw.Connection) -> None:
            sql = (
                "SELECT versions.id, versions.id = active_version, sum(length(source) + ifnull(length(source_map), 0))"
                " FROM workers JOIN versions ON worker_id = workers.id JOIN modules ON version_id = versions.id"
                " WHERE tenant = ? GROUP BY versions.id ORDER BY versions.created_at, number"
            )
            stored = rows(connection, StoredVersion, sql, tenant)
            size = sum(version.bytes for version in stored)
            for version in stored:
                if size > max_bytes and not version.is_active:
                    _run(connection, "DELETE FROM versions WHERE id = ?", version.id)
                    size -= version.bytes
            for worker_id in rows(connection, str, "SELECT id FROM workers WHERE tenant = ?", tenant):
                drop_unused_secrets(connection, worker_id)

        await self._database.write(act)

    async def activate(self, deployment: Deployment, mark: Mark) -> Deployment:
        """Let a worker answer with a version that it has already."""

        def act(connection: apsw.Connection) -> Deployment:
            mark.write(connection, "worker.activate", deployment.name, deployment.version.id)
            return _activate(connection, deployment)

        return await self._database.write(act)

    async def delete(self, deployment: Deployment, mark: Mark) -> None:
        """Delete a worker with everything that belongs to it."""

        def act(connection: apsw.Connection) -> None:
            _run(connection, "DELETE FROM workers WHERE id = ?", deployment.id)
            mark.write(connection, "worker.delete", deployment.name, deployment.id)

        await self._database.write(act)

    async def seal_anew(self, mark: Mark) -> int:
        """Seal all secrets with the newest root key."""

        def act(connection: apsw.Connection) -> int:
            mark.write(connection, "secret.rotate-key", "node", f"root key {self.vault.key_id}")
            return seal_anew(connection, self.vault)

        return await self._database.write(act)

    # What V8 made of a version's modules, one blob per module in order: the pool's LoadCodeCache and SaveCodeCache

    def load_code(self, version: Version, v8: str) -> tuple[bytes, ...] | None:
        """The code cache that this very V8 made of a version, if there is one."""
        sql = "SELECT path, code FROM code_caches WHERE version_id = ? AND v8 = ?"
        code = {row.path: row.code for row in self._database.read(lambda c: rows(c, CodeRow, sql, version.id, v8))}
        return tuple(code.get(module.path, b"") for module in version.modules) if code else None

    def save_code(self, version: Version, v8: str, cache: Sequence[bytes]) -> None:
        """Keep a code cache, without waiting. Nothing is kept if the version is gone by then."""
        values = [
            (v8, blob, version.id, module.path) for module, blob in zip(version.modules, cache, strict=True) if blob
        ]

        def act(connection: apsw.Connection) -> None:
            _run(connection, "DELETE FROM code_caches WHERE version_id = ?", version.id)  # another V8's is dead weight
            connection.executemany(
                "INSERT INTO code_caches (version_id, path, v8, code)"
                " SELECT version_id, path, ?, ? FROM modules WHERE version_id = ? AND path = ?",
                values,
            )

        self._database.post(act)


def _run(connection: apsw.Connection, sql: str, value: str) -> None:
    connection.execute(sql, (value,))


def _activate(connection: apsw.Connection, deployment: Deployment) -> Deployment:
    """Make a stored version the one that answers, on its own routes."""
    worker_id = deployment.id
    connection.execute(
        "UPDATE workers SET active_version = ?, updated_at = ? WHERE id = ?",
        (deployment.version.id, deployment.updated_at, worker_id),
    )
    _run(connection, "DELETE FROM routes WHERE worker_id = ?", worker_id)
    connection.executemany(
        "INSERT INTO routes (pattern, worker_id) VALUES (?, ?)", [(text, worker_id) for text in deployment.routes]
    )
    # Only the active version is loaded again and again; a cache of another would be larger than its code.
    connection.execute(
        "DELETE FROM code_caches WHERE version_id IN (SELECT id FROM versions WHERE worker_id = ?) AND version_id != ?",
        (worker_id, deployment.version.id),
    )
    return dataclasses.replace(deployment, source_maps={})
