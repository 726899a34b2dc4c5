"""Rows: workers, their immutable versions, what routes to them, and the code caches of V8.

Every change is one function that runs in one transaction of the writer, so a worker is wholly old or wholly new at
any moment a crash may choose. Nothing here decides whether a change is wise: deploy.py has checked it before, and the
keys of the tables only make sure that it did.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import apsw
import msgspec

from atoll.control.bindings import Kinds, checked_bindings, shown_bindings
from atoll.db.sqlite import Database, rows
from atoll.workers import (
    LOCAL_TENANT,
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

KEPT_VERSIONS = 100  # per worker; older ones are deleted by the deploy that makes a new one


@dataclass(frozen=True, slots=True)
class Deployment:
    """A worker as it stands: its active version, and what is known about both. Times are ms since 1970."""

    version: Version
    number: int
    routes: tuple[str, ...]
    handlers: tuple[str, ...]
    startup_ms: float
    deployed_at: int
    created_at: int
    author: str = ""
    message: str = ""
    # By path of the module. Only in a draft: what is stored stays there until somebody reads a stack.
    source_maps: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def id(self) -> str:
        return self.version.worker_id

    @property
    def name(self) -> str:
        return self.version.worker_name


class ActiveRow(NamedTuple):
    worker_id: str
    name: str
    created_at: int
    version_id: str
    number: int
    main: str
    format: str
    env: str
    limits: str
    compatibility_date: str
    isolation: str
    switches: str
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
    deployed_at: int


class ModuleRow(NamedTuple):
    path: str
    kind: str
    source: bytes


class CodeRow(NamedTuple):
    path: str
    code: bytes


class WorkerStore:
    def __init__(self, database: Database, kinds: Kinds) -> None:
        self._database = database
        self._kinds = kinds

    def load_all(self) -> list[Deployment]:
        """Every worker with its active version, by name. For the start: it reads every module of them."""
        return self._database.read(lambda connection: _load_all(connection, self._kinds))

    async def create(self, deployment: Deployment) -> Deployment:
        """Store a new worker with its first version."""

        def act(connection: apsw.Connection) -> Deployment:
            new, at = deployment, deployment.deployed_at
            connection.execute(
                "INSERT INTO workers (id, name, created_at, updated_at) VALUES (?, ?, ?, ?)", (new.id, new.name, at, at)
            )
            return _insert_version(connection, new, number=1)

        return await self._database.write(act)

    async def update(self, deployment: Deployment) -> Deployment:
        """Store a new version of a worker and make it the active one."""

        def act(connection: apsw.Connection) -> Deployment:
            [last] = rows(connection, int, "SELECT max(number) FROM versions WHERE worker_id = ?", deployment.id)
            connection.execute(
                "DELETE FROM versions WHERE worker_id = ? AND number <= ?", (deployment.id, last + 1 - KEPT_VERSIONS)
            )
            # Only the active version is loaded again and again; a cache of another would be larger than its code.
            sql = "DELETE FROM code_caches WHERE version_id IN (SELECT id FROM versions WHERE worker_id = ?)"
            _run(connection, sql, deployment.id)
            return _insert_version(connection, deployment, number=last + 1)

        return await self._database.write(act)

    async def delete(self, worker_id: str) -> None:
        """Delete a worker with everything that belongs to it."""
        await self._database.write(lambda connection: _run(connection, "DELETE FROM workers WHERE id = ?", worker_id))

    def source_maps(self, version_id: str) -> dict[str, bytes]:
        """The source maps that came with a version, by path of their module."""
        sql = "SELECT path, source_map FROM modules WHERE version_id = ? AND source_map IS NOT NULL"
        return dict(self._database.read(lambda connection: rows(connection, CodeRow, sql, version_id)))

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


def _insert_version(connection: apsw.Connection, deployment: Deployment, *, number: int) -> Deployment:
    version, at = deployment.version, deployment.deployed_at
    connection.execute(
        "INSERT INTO versions (id, worker_id, number, main, format, env, limits, compatibility_date,"
        " isolation, switches, compatibility_flags, crons, queue_consumers, tail_consumers, message, tag, author,"
        " bindings, routes, handlers, startup_ms, created_at) VALUES"
        " (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
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
            at,
        ),
    )
    connection.executemany(
        "INSERT INTO modules (version_id, position, path, kind, source, source_map) VALUES (?, ?, ?, ?, ?, ?)",
        [
            (version.id, i, module.path, module.kind.value, module.source, deployment.source_maps.get(module.path))
            for i, module in enumerate(version.modules)
        ],
    )
    connection.execute(
        "UPDATE workers SET active_version = ?, updated_at = ? WHERE id = ?", (version.id, at, version.worker_id)
    )
    _claim_routes(connection, version, deployment.routes)
    return dataclasses.replace(deployment, number=number, source_maps={})


def _claim_routes(connection: apsw.Connection, version: Version, patterns: Sequence[str]) -> None:
    _run(connection, "DELETE FROM routes WHERE worker_id = ?", version.worker_id)
    connection.executemany(
        "INSERT INTO routes (pattern, worker_id) VALUES (?, ?)", [(text, version.worker_id) for text in patterns]
    )


def _load_all(connection: apsw.Connection, kinds: Kinds) -> list[Deployment]:
    sql = (
        "SELECT workers.id, workers.name, workers.created_at, versions.id, number, main, format, env, limits,"
        " compatibility_date, isolation, switches, compatibility_flags, crons, queue_consumers, tail_consumers,"
        " message, tag, author, bindings, routes, handlers, startup_ms, versions.created_at"
        " FROM workers JOIN versions ON versions.id = active_version ORDER BY workers.name"
    )
    found = rows(connection, ActiveRow, sql)
    return [_deployment(row, _load_modules(connection, row.version_id), kinds) for row in found]


def _load_modules(connection: apsw.Connection, version_id: str) -> tuple[Module, ...]:
    sql = "SELECT path, kind, source FROM modules WHERE version_id = ? ORDER BY position"
    found = rows(connection, ModuleRow, sql, version_id)
    return tuple(Module(row.path, ModuleKind(row.kind), row.source) for row in found)


def _deployment(row: ActiveRow, modules: tuple[Module, ...], kinds: Kinds) -> Deployment:
    version = Version(
        id=row.version_id,
        worker_id=row.worker_id,
        worker_name=row.name,
        tenant=LOCAL_TENANT,
        modules=modules,
        main=row.main,
        format=ScriptFormat(row.format),
        env=msgspec.json.decode(row.env),
        grants=checked_bindings(msgspec.json.decode(row.bindings), kinds, LOCAL_TENANT),
        limits=msgspec.json.decode(row.limits, type=Limits),
        compatibility_date=row.compatibility_date,
        isolation=Isolation(row.isolation),
        switches=msgspec.json.decode(row.switches, type=Switches),
        compatibility_flags=msgspec.json.decode(row.compatibility_flags, type=tuple[str, ...]),
        crons=msgspec.json.decode(row.crons, type=tuple[str, ...]),
        queue_consumers=msgspec.json.decode(row.queue_consumers, type=tuple[QueueConsumer, ...]),
        tail_consumers=msgspec.json.decode(row.tail_consumers, type=tuple[TailConsumer, ...]),
        tag=row.tag,
        created_at=row.deployed_at,
    )
    return Deployment(
        version=version,
        number=row.number,
        routes=msgspec.json.decode(row.routes, type=tuple[str, ...]),
        handlers=msgspec.json.decode(row.handlers, type=tuple[str, ...]),
        startup_ms=row.startup_ms,
        deployed_at=row.deployed_at,
        created_at=row.created_at,
        author=row.author,
        message=row.message,
    )


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
