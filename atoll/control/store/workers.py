"""The store of workers: their immutable versions, their routes, and V8's code caches.

Every change is one function in one transaction of the writer, its audit line included. So after a crash at any moment a
worker is wholly old or wholly new. Nothing here checks whether a change is allowed: deploy/deployer.py has done that,
and the keys of the tables only guard against mistakes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence, Set
from functools import partial
from typing import NamedTuple

import apsw

from atoll.api.audit import Mark
from atoll.assets.rules import AssetRules
from atoll.assets.table import AssetFile
from atoll.control.checks.bindings import Kinds
from atoll.control.store.asset_rows import ListedFiles, list_files, load_files
from atoll.control.store.bundle_rows import StoredModule, list_bundled, read_piece
from atoll.control.store.deployment_rows import (
    AliasRow,
    Cause,
    DeployedShare,
    DeploymentEntry,
    activate,
    before,
    earlier_without,
    last_whole,
    list_aliases,
    list_deployments,
    put_alias,
    version_id,
    whole,
)
from atoll.control.store.history_rows import KEPT_VERSIONS, trim_history, trim_versions
from atoll.control.store.label_rows import read_labels, write_labels
from atoll.control.store.rollback_rows import RollbackRule, RuleState, end_rule, rules_in_force
from atoll.control.store.secret_rows import (
    SealedSecret,
    insert_secret,
    is_new_in,
    keys_in_use,
    seal_anew,
    secrets_of,
)
from atoll.control.store.vault import Vault
from atoll.control.store.version_rows import (
    Deployment,
    ModuleSummary,
    VersionSummary,
    insert_version,
    list_modules,
    list_versions,
    load_active,
    load_traffic,
    load_version,
    load_worker,
    modules_of,
)
from atoll.db.sqlite import Database, rows
from atoll.splits import WHOLE
from atoll.workers import Module, Version

__all__ = ["KEPT_VERSIONS", "Deployment", "WorkerStore"]

SELECT_MAPS = "SELECT path, source_map FROM modules WHERE version_id = ? AND source_map IS NOT NULL"


class CodeRow(NamedTuple):
    path: str
    code: bytes


class WorkerStore:
    def __init__(self, database: Database, kinds: Kinds, vault: Vault) -> None:
        self._database = database
        self._kinds = kinds
        self.vault = vault

    async def follow(self) -> None:
        """Take over what other nodes have changed."""
        await self._database.follow()

    # Reading

    async def load_one(self, worker_id: str) -> tuple[Deployment, tuple[DeployedShare, ...]] | None:
        """A worker as it is now, and the versions with traffic if there are several. None: it is gone."""
        act = partial(load_worker, worker_id=worker_id, kinds=self._kinds, vault=self.vault)
        found = await self._database.search(act)
        return None if found is None else (found[0], tuple(DeployedShare(*share) for share in found[1]))

    def load_all(self) -> list[Deployment]:
        """Every worker with its active version, by name, without its code. Only for the start."""
        return self._database.read(lambda connection: load_active(connection, self._kinds, self.vault))

    def load_splits(self) -> dict[str, tuple[DeployedShare, ...]]:
        """The versions with traffic, by worker, of workers with several. Only for the start."""
        found = self._database.read(lambda connection: load_traffic(connection, self._kinds, self.vault))
        return {worker_id: tuple(DeployedShare(*share) for share in shares) for worker_id, shares in found.items()}

    def deployments(self, worker_id: str, before: int = 2**62, limit: int = 1) -> list[DeploymentEntry]:
        """The deployments of a worker with a number below `before`, newest first. The newest is the current one."""
        return self._database.read(lambda connection: list_deployments(connection, worker_id, before, limit))

    def earlier_without(self, worker_id: str, watched: Set[str]) -> DeploymentEntry | None:
        """The deployment that a rollback rule for these versions would return to."""
        return self._database.read(lambda connection: earlier_without(connection, worker_id, watched))

    def rules_in_force(self) -> dict[str, RollbackRule]:
        """The rollback rules in force, by worker id. Only for the start."""
        return self._database.read(rules_in_force)

    def last_whole(self, worker_id: str) -> str:
        """The version that last had all traffic; "" if it is deleted."""
        return self._database.read(lambda connection: last_whole(connection, worker_id))

    def before(self, worker_id: str, number: int) -> str:
        """The newest version below a number that has had all traffic; "" if there is none."""
        return self._database.read(lambda connection: before(connection, worker_id, number))

    def aliases(self, worker_id: str) -> dict[str, str]:
        """The preview aliases of a worker, with the ids of their versions."""
        found = self._database.read(lambda connection: list_aliases(connection, worker_id))
        return {row.alias: row.version_id for row in found}

    def all_aliases(self) -> list[AliasRow]:
        return self._database.read(list_aliases)

    def version_id(self, worker_id: str, begin: str) -> str:
        """The newest version of a worker whose id begins like this; "" if there is none."""
        return self._database.read(lambda connection: version_id(connection, worker_id, begin))

    def without_code(self, worker_id: str, version_id: str) -> Deployment | None:
        """A version without its code and the names of its assets: a quick lookup."""
        load = partial(load_version, worker_id=worker_id, reference=version_id, has_code=False, has_files=False)
        return self._database.read(lambda connection: load(connection, kinds=self._kinds, vault=self.vault))

    def versions(self, worker_id: str, before: int = 2**62, limit: int = KEPT_VERSIONS) -> list[VersionSummary]:
        """The versions of a worker with a number below `before`, newest first."""
        return self._database.read(lambda connection: list_versions(connection, worker_id, before, limit))

    async def version(self, worker_id: str, reference: str, *, has_code: bool = True) -> Deployment | None:
        """One version of a worker by its id or number. Read by a thread, because its code may be large."""
        load = partial(load_version, worker_id=worker_id, reference=reference, has_code=has_code)
        return await self._database.search(lambda connection: load(connection, kinds=self._kinds, vault=self.vault))

    def secrets(self, version_id: str) -> list[SealedSecret]:
        """The secrets that a version has, by name."""
        return self._database.read(lambda connection: secrets_of(connection, version_id))

    async def modules(self, version_id: str) -> list[ModuleSummary]:
        return await self._database.search(lambda connection: list_modules(connection, version_id))

    async def bundled(self, version_id: str) -> list[StoredModule]:
        """The modules of a version for a download, read by a thread."""
        return await self._database.search(lambda connection: list_bundled(connection, version_id))

    async def piece(self, row: int, column: str, start: int, size: int) -> bytes:
        """A piece of a module, or of its source map. StorageFailed if it was deleted meanwhile."""
        return await self._database.search(lambda connection: read_piece(connection, row, column, start, size))

    def source_maps(self, version_id: str) -> dict[str, bytes]:
        """The source maps that came with a version, by path of their module."""
        return dict(self._database.read(lambda connection: rows(connection, CodeRow, SELECT_MAPS, version_id)))

    async def load_maps(self, version_id: str) -> dict[str, bytes]:
        """The same, read by a thread."""
        return dict(await self._database.search(lambda connection: rows(connection, CodeRow, SELECT_MAPS, version_id)))

    def mapped_paths(self, version_id: str) -> list[str]:
        """The modules of a version that have a source map."""
        sql = "SELECT path FROM modules WHERE version_id = ? AND source_map IS NOT NULL"
        return self._database.read(lambda connection: rows(connection, str, sql, version_id))

    async def source_map(self, version_id: str, path: str) -> bytes:
        """One source map. Read by a thread, because it may be large. Empty if it is gone."""
        sql = "SELECT source_map FROM modules WHERE version_id = ? AND path = ? AND source_map IS NOT NULL"
        found = await self._database.search(lambda connection: rows(connection, bytes, sql, version_id, path))
        return found[0] if found else b""

    async def asset_files(self, tenant: str, rules: AssetRules) -> dict[str, AssetFile]:
        """The files of a manifest, by path. Read by a thread. Raises Refused if the manifest or a file is missing."""
        return await self._database.search(partial(load_files, tenant=tenant, rules=rules))

    async def listed_files(self, tenant: str, rules: AssetRules) -> ListedFiles:
        """The files of a manifest for a download. Read by a thread. Raises Refused if it is missing."""
        return await self._database.search(partial(list_files, tenant=tenant, manifest=rules.manifest))

    def labels(self, worker_id: str, version_id: str = "") -> str:
        return self._database.read(lambda connection: read_labels(connection, worker_id, version_id))

    # Changes

    async def set_labels(self, worker_id: str, version_id: str, labels: str) -> None:
        await self._database.write(lambda connection: write_labels(connection, worker_id, version_id, labels))

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
            stored = insert_version(connection, new, number=1)
            activate(connection, whole(stored), mark, Cause("deploy", stored.message))
            return stored

        return await self._database.write(act)

    async def update(
        self, deployment: Deployment, mark: Mark, action: str = "worker.update", rule: RollbackRule | None = None
    ) -> Deployment:
        """Store a new version of a worker, with the secrets that it introduces, and make it the active one."""
        sealed = self._sealed(deployment)

        def act(connection: apsw.Connection) -> Deployment:
            stored = _insert_next(connection, deployment, sealed, mark, tells=action == "worker.update")
            cause = Cause("deploy" if action == "worker.update" else "secret", stored.message, rule)
            activate(connection, whole(stored), mark, cause)
            trim_versions(connection, stored)
            mark.write(connection, action, stored.name, stored.version.id)
            return stored

        return await self._database.write(act)

    async def upload(self, deployment: Deployment, mark: Mark, alias: str = "") -> Deployment:
        """Store a new version of a worker without traffic, with the secrets that it introduces. A given alias of the
        worker leads to it from now on."""
        sealed = self._sealed(deployment)

        def act(connection: apsw.Connection) -> Deployment:
            stored = _insert_next(connection, deployment, sealed, mark, tells=True)
            if alias:
                put_alias(connection, stored, alias, mark.at)
            trim_versions(connection, stored)
            mark.write(connection, "version.upload", stored.name, f"{stored.version.id} {alias}".strip())
            return stored

        return await self._database.write(act)

    def _sealed(self, deployment: Deployment) -> list[SealedSecret]:
        """The secrets that a version introduces."""
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
        """Delete a tenant's oldest inactive versions until all its code is within a bound."""

        await self._database.write(lambda connection: trim_history(connection, tenant, max_bytes))

    async def activate(
        self, deployment: Deployment, mark: Mark, cause: Cause, others: Sequence[DeployedShare] = ()
    ) -> Deployment:
        """Give the traffic of a worker to a stored version, or split it: `others` have a part, it has the rest."""
        rest = WHOLE - sum(share.hundredths for share in others)
        shares = (DeployedShare(deployment, rest), *others)
        text = deployment.version.id
        if others:
            text = ", ".join(f"{share.deployment.version.id} {share.hundredths / 100:g}%" for share in shares)
        action = "worker.rollback" if cause.failed else "worker.split" if others else "worker.activate"

        def act(connection: apsw.Connection) -> Deployment:
            mark.write(connection, action, deployment.name, text)
            activate(connection, shares, mark, cause)
            return dataclasses.replace(deployment, source_maps={})

        return await self._database.write(act)

    def end_rule(self, worker_id: str, state: RuleState, rule: RollbackRule) -> None:
        """End a rollback rule, without waiting: if that is lost, it ends after the next start."""
        self._database.post(lambda connection: end_rule(connection, worker_id, state, rule))

    async def drop_alias(self, deployment: Deployment, alias: str, mark: Mark) -> None:
        def act(connection: apsw.Connection) -> None:
            values = (deployment.id, alias)
            connection.execute("DELETE FROM preview_aliases WHERE worker_id = ? AND alias = ?", values)
            mark.write(connection, "alias.delete", deployment.name, alias)

        await self._database.write(act)

    async def delete(self, deployment: Deployment, mark: Mark) -> None:
        """Delete a worker with everything that belongs to it."""

        def act(connection: apsw.Connection) -> None:
            _run(connection, "DELETE FROM workers WHERE id = ?", deployment.id)
            mark.write(connection, "worker.delete", deployment.name, deployment.id)

        await self._database.write(act)

    def sweep_keys(self) -> None:
        """Remove the temporary file of a killed root key rotation, unless a secret may need it."""
        self.vault.sweep(self._database.read(keys_in_use))

    async def seal_anew(self, mark: Mark) -> int:
        """Seal all secrets with the newest root key."""

        def act(connection: apsw.Connection) -> int:
            mark.write(connection, "secret.rotate-key", "node", f"root key {self.vault.key_id}")
            return seal_anew(connection, self.vault)

        return await self._database.write(act)

    async def read_code(self, version: Version) -> tuple[Module, ...]:
        """The modules of a version, read by a thread: the pool's ReadCode."""
        return await self._database.search(lambda connection: modules_of(connection, version.id))

    def read_little_code(self, version: Version) -> tuple[Module, ...]:
        """The same at once: the pool's ReadCodeNow."""
        return self._database.read(lambda connection: modules_of(connection, version.id))

    # What V8 made of a version's modules, one blob per module in order: the pool's LoadCodeCache and SaveCodeCache

    def load_code(self, version: Version, v8: str) -> tuple[bytes, ...] | None:
        """The code cache of a version, if this build of V8 made one."""
        sql = "SELECT path, code FROM code_caches WHERE version_id = ? AND v8 = ?"
        code = {row.path: row.code for row in self._database.read(lambda c: rows(c, CodeRow, sql, version.id, v8))}
        return tuple(code.get(module.path, b"") for module in version.modules) if code else None

    def save_code(self, version: Version, v8: str, cache: Sequence[bytes]) -> None:
        """Store a code cache, without waiting. Nothing is stored if the version is gone by then."""
        values = [
            (v8, blob, version.id, module.path) for module, blob in zip(version.modules, cache, strict=True) if blob
        ]

        def act(connection: apsw.Connection) -> None:
            # Caches of another V8 are useless, so all are replaced.
            _run(connection, "DELETE FROM code_caches WHERE version_id = ?", version.id)
            connection.executemany(
                "INSERT INTO code_caches (version_id, path, v8, code)"
                " SELECT version_id, path, ?, ? FROM modules WHERE version_id = ? AND path = ?",
                values,
            )

        self._database.post(act)


def _run(connection: apsw.Connection, sql: str, value: str) -> None:
    connection.execute(sql, (value,))


def _insert_next(
    connection: apsw.Connection, deployment: Deployment, sealed: Sequence[SealedSecret], mark: Mark, *, tells: bool
) -> Deployment:
    """Insert a version with the next number. `tells`: its new secrets have audit lines of their own."""
    for secret in sealed:
        insert_secret(connection, deployment.id, secret)
        if tells:
            mark.write(connection, "secret.put", deployment.name, f"{deployment.version.id}: {secret.name}")
    [last] = rows(connection, int, "SELECT max(number) FROM versions WHERE worker_id = ?", deployment.id)
    return insert_version(connection, deployment, number=last + 1)
