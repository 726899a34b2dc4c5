"""Rows of versions and their modules: written once, read back as a Deployment. Functions of a connection."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import apsw
import msgspec

from atoll.control.bindings import Kinds, checked_bindings, shown_bindings
from atoll.control.secret_rows import opened, refer_to_secrets, secrets_of
from atoll.control.vault import Vault
from atoll.db.sqlite import rows
from atoll.workers import (
    EgressRules,
    Isolation,
    Limits,
    Module,
    ModuleKind,
    QueueConsumer,
    ScriptFormat,
    Switches,
    TailConsumer,
    Version,
)


@dataclass(frozen=True, slots=True)
class Deployment:
    """A worker with one of its versions: as it stands, or as it once did. Times are ms since 1970."""

    version: Version
    number: int
    routes: tuple[str, ...]
    handlers: tuple[str, ...]
    startup_ms: float
    created_at: int  # of the worker
    updated_at: int  # when another version was last made active
    author: str = ""
    message: str = ""
    secrets: Mapping[str, str] = field(default_factory=dict)  # name -> id of what is stored; values are in `version`
    # By path of the module. Only in a draft: what is stored stays there until somebody reads a stack.
    source_maps: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return self.version.worker_id

    @property
    def name(self) -> str:
        return self.version.worker_name


class VersionRow(NamedTuple):
    worker_id: str
    name: str
    tenant: str
    created_at: int
    updated_at: int
    version_id: str
    number: int
    main: str
    format: str
    env: str
    limits: str
    compatibility_date: str
    isolation: str
    switches: str
    egress: str
    compatibility_flags: str
    crons: str
    queue_consumers: str
    tail_consumers: str
    message: str
    tag: str
    author: str
    bindings: str
    routes: str
    handlers: str
    startup_ms: float
    made_at: int


class ModuleRow(NamedTuple):
    path: str
    kind: str
    source: bytes


class ModuleSummary(NamedTuple):
    """A module without its source."""

    path: str
    kind: str
    size: int
    sha256: str
    has_map: int


class VersionSummary(NamedTuple):
    """A line in the list of versions."""

    id: str
    number: int
    created_at: int
    author: str
    message: str
    tag: str
    startup_ms: float


SELECT_VERSION = (
    "SELECT workers.id, workers.name, tenant, workers.created_at, updated_at, versions.id, number, main, format, env,"
    " limits, compatibility_date, isolation, switches, versions.egress, compatibility_flags, crons, queue_consumers,"
    " tail_consumers, message, tag, author, bindings, routes, handlers, startup_ms, versions.created_at FROM workers"
)
INSERT_VERSION = (
    "INSERT INTO versions (id, worker_id, number, main, format, env, limits, compatibility_date, isolation, switches,"
    " egress, compatibility_flags, crons, queue_consumers, tail_consumers, message, tag, author, bindings, routes,"
    " handlers, startup_ms, created_at) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
INSERT_MODULE = (
    "INSERT INTO modules (version_id, position, path, kind, source, sha256, source_map) VALUES (?, ?, ?, ?, ?, ?, ?)"
)


def insert_version(connection: apsw.Connection, deployment: Deployment, *, number: int) -> Deployment:
    version = deployment.version
    values = (
        version.id,
        version.worker_id,
        number,
        version.main,
        version.format.value,
        _json(dict(version.env)),
        _json(version.limits),
        version.compatibility_date,
        version.isolation.value,
        _json(version.switches),
        _json(version.egress),
        _json(version.compatibility_flags),
        _json(version.crons),
        _json(version.queue_consumers),
        _json(version.tail_consumers),
        deployment.message,
        version.tag,
        deployment.author,
        _json(shown_bindings(version.grants)),
        _json(deployment.routes),
        _json(deployment.handlers),
        deployment.startup_ms,
        version.created_at,
    )
    connection.execute(INSERT_VERSION, values)
    maps = deployment.source_maps
    connection.executemany(
        INSERT_MODULE,
        [
            (version.id, i, module.path, module.kind.value, module.source, sha256(module.source), maps.get(module.path))
            for i, module in enumerate(version.modules)
        ],
    )
    refer_to_secrets(connection, version.id, deployment.secrets)
    return dataclasses.replace(deployment, number=number, source_maps={})


def sha256(source: bytes) -> str:
    return hashlib.sha256(source).hexdigest()


def load_active(connection: apsw.Connection, kinds: Kinds, vault: Vault) -> list[Deployment]:
    """Every worker with its active version, by name."""
    sql = f"{SELECT_VERSION} JOIN versions ON versions.id = active_version ORDER BY workers.name"
    return [_deployment(connection, row, kinds, vault) for row in rows(connection, VersionRow, sql)]


def load_version(
    connection: apsw.Connection, worker_id: str, reference: str, kinds: Kinds, vault: Vault
) -> Deployment | None:
    """A version of a worker by its id or number."""
    sql = f"{SELECT_VERSION} JOIN versions ON worker_id = workers.id WHERE workers.id = ? AND "
    is_number = reference.isascii() and reference.isdigit() and len(reference) < 16
    key: str | int = int(reference) if is_number else reference
    found = rows(connection, VersionRow, sql + ("number = ?" if is_number else "versions.id = ?"), worker_id, key)
    return _deployment(connection, found[0], kinds, vault) if found else None


def list_versions(connection: apsw.Connection, worker_id: str) -> list[VersionSummary]:
    sql = (
        "SELECT id, number, created_at, author, message, tag, startup_ms FROM versions WHERE worker_id = ?"
        " ORDER BY number DESC"
    )
    return rows(connection, VersionSummary, sql, worker_id)


def list_modules(connection: apsw.Connection, version_id: str) -> list[ModuleSummary]:
    sql = (
        "SELECT path, kind, length(source), sha256, source_map IS NOT NULL FROM modules WHERE version_id = ?"
        " ORDER BY position"
    )
    return rows(connection, ModuleSummary, sql, version_id)


def _deployment(connection: apsw.Connection, row: VersionRow, kinds: Kinds, vault: Vault) -> Deployment:
    sql = "SELECT path, kind, source FROM modules WHERE version_id = ? ORDER BY position"
    modules = rows(connection, ModuleRow, sql, row.version_id)
    secrets = secrets_of(connection, row.version_id)
    version = Version(
        id=row.version_id,
        worker_id=row.worker_id,
        worker_name=row.name,
        tenant=row.tenant,
        modules=tuple(Module(module.path, ModuleKind(module.kind), module.source) for module in modules),
        main=row.main,
        format=ScriptFormat(row.format),
        env=msgspec.json.decode(row.env),
        secrets=opened(secrets, vault, row.tenant, row.worker_id),
        grants=checked_bindings(msgspec.json.decode(row.bindings), kinds, row.tenant),
        limits=msgspec.json.decode(row.limits, type=Limits),
        compatibility_date=row.compatibility_date,
        isolation=Isolation(row.isolation),
        switches=msgspec.json.decode(row.switches, type=Switches),
        egress=msgspec.json.decode(row.egress, type=EgressRules),
        compatibility_flags=msgspec.json.decode(row.compatibility_flags, type=tuple[str, ...]),
        crons=msgspec.json.decode(row.crons, type=tuple[str, ...]),
        queue_consumers=msgspec.json.decode(row.queue_consumers, type=tuple[QueueConsumer, ...]),
        tail_consumers=msgspec.json.decode(row.tail_consumers, type=tuple[TailConsumer, ...]),
        tag=row.tag,
        created_at=row.made_at,
    )
    return Deployment(
        version=version,
        number=row.number,
        routes=msgspec.json.decode(row.routes, type=tuple[str, ...]),
        handlers=msgspec.json.decode(row.handlers, type=tuple[str, ...]),
        startup_ms=row.startup_ms,
        created_at=row.created_at,
        updated_at=row.updated_at,
        author=row.author,
        message=row.message,
        secrets={secret.name: secret.id for secret in secrets},
    )


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
