"""Rows of versions and their modules: written once, read back as a Deployment. Functions of a connection."""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from enum import Enum
from functools import lru_cache, partial
from sys import intern
from typing import Any, NamedTuple

import apsw
import msgspec

from atoll.api.refusals import Refused, bad_body
from atoll.control.checks.bindings import Kinds, checked_bindings, shown_bindings
from atoll.control.store.asset_rows import assets_of, late_assets, stored_rules
from atoll.control.store.secret_rows import opened, refer_to_secrets, secrets_of
from atoll.control.store.vault import Vault
from atoll.db.sqlite import rows
from atoll.errors import StartError
from atoll.manifests.every import triggers
from atoll.workers import EgressRules, Isolation, Limits, Module, ModuleKind, ScriptFormat, Switches, Version


@dataclass(frozen=True, slots=True)
class Deployment:
    """A worker with one of its versions, active or older. Times are ms since 1970."""

    version: Version
    number: int
    routes: tuple[str, ...]
    handlers: tuple[str, ...]
    startup_ms: float
    created_at: int  # of the worker
    updated_at: int  # when the active version last changed
    author: str = ""
    message: str = ""
    secrets: Mapping[str, str] = field(default_factory=dict)  # name -> id of the stored secret; values are in `version`
    # By path of the module. Only in a draft: stored maps are read when a stack trace needs them.
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
    triggers: str
    message: str
    tag: str
    author: str
    bindings: str
    routes: str
    handlers: str
    startup_ms: float
    preview_urls: int
    made_at: int
    assets: str


class Code(Enum):
    """What a Version that is read gets of its code."""

    WHOLE = "whole"
    STORED = "stored"  # its size: it is read when it is loaded
    NONE = "none"


class Known(NamedTuple):
    """What is read of all active versions with two statements, instead of two for each."""

    code_bytes: Mapping[str, int]  # by version
    with_secrets: Set[str]


class SizeRow(NamedTuple):
    version_id: str
    bytes: int


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
    preview_urls: int


class ShareRow(NamedTuple):
    version_id: str
    hundredths: int


SELECT_SHARES = "SELECT version_id, hundredths FROM traffic"
SELECT_VERSION = (
    "SELECT workers.id, workers.name, tenant, workers.created_at, updated_at, versions.id, number, main, format, env,"
    " limits, compatibility_date, isolation, switches, versions.egress, compatibility_flags, triggers, message, tag,"
    " author, bindings, routes, handlers, startup_ms, preview_urls, versions.created_at, versions.assets"
    " FROM workers"
)
INSERT_VERSION = (
    "INSERT INTO versions (id, worker_id, number, main, format, env, limits, compatibility_date, isolation, switches,"
    " egress, compatibility_flags, triggers, message, tag, author, bindings, routes, handlers, startup_ms,"
    " preview_urls, created_at, assets, was_active)"
    " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, 0)"
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
        _json(version.triggers),
        deployment.message,
        version.tag,
        deployment.author,
        _json(shown_bindings(version.grants)),
        _json(deployment.routes),
        _json(deployment.handlers),
        deployment.startup_ms,
        version.preview_urls,
        version.created_at,
        stored_rules(connection, version),
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
    """Every worker with its active version, by name, without its code. StartError if one uses a binding that this node
    does not have."""
    sql = f"{SELECT_VERSION} JOIN versions ON versions.id = active_version ORDER BY workers.name"
    sizes = "SELECT version_id, max(sum(length(source)), 1) FROM workers JOIN modules ON version_id = active_version"
    known = Known(
        dict(rows(connection, SizeRow, f"{sizes} GROUP BY version_id")),
        set(rows(connection, str, "SELECT DISTINCT version_id FROM version_secrets")),
    )
    return [_restored(connection, row, kinds, vault, known) for row in rows(connection, VersionRow, sql)]


def _restored(
    connection: apsw.Connection, row: VersionRow, kinds: Kinds, vault: Vault, known: Known | None = None
) -> Deployment:
    try:
        return _deployment(connection, row, kinds, vault, code=Code.STORED, known=known)
    except Refused as error:
        raise StartError(
            f"the worker `{row.name}` cannot be restored: {error}",
            "start the node with the bindings that it had; nothing was changed",
        ) from None


def load_traffic(connection: apsw.Connection, kinds: Kinds, vault: Vault) -> dict[str, list[tuple[Deployment, int]]]:
    """The versions with traffic and their shares, by worker, of workers with several. StartError as above."""
    sql = f"{SELECT_VERSION} JOIN traffic ON traffic.worker_id = workers.id JOIN versions ON versions.id = version_id"
    hundredths = {each.version_id: each.hundredths for each in rows(connection, ShareRow, SELECT_SHARES)}
    found: dict[str, list[tuple[Deployment, int]]] = {}
    for row in rows(connection, VersionRow, sql):
        share = (_restored(connection, row, kinds, vault), hundredths[row.version_id])
        found.setdefault(row.worker_id, []).append(share)
    return found


def load_worker(
    connection: apsw.Connection, worker_id: str, kinds: Kinds, vault: Vault
) -> tuple[Deployment, list[tuple[Deployment, int]]] | None:
    """A worker with its active version, and its versions with traffic if there are several."""
    sql = f"{SELECT_VERSION} JOIN versions ON versions.id = active_version WHERE workers.id = ?"
    found = rows(connection, VersionRow, sql, worker_id)
    if not found:
        return None
    shares = rows(connection, ShareRow, f"{SELECT_SHARES} WHERE worker_id = ?", worker_id)
    sql = f"{SELECT_VERSION} JOIN versions ON versions.worker_id = workers.id WHERE versions.id = ?"
    loaded = [(rows(connection, VersionRow, sql, share.version_id)[0], share.hundredths) for share in shares]
    read = partial(_deployment, connection, kinds=kinds, vault=vault, code=Code.STORED)
    return read(found[0]), [(read(row), hundredths) for row, hundredths in loaded]


def load_version(
    connection: apsw.Connection,
    worker_id: str,
    reference: str,
    kinds: Kinds,
    vault: Vault,
    *,
    has_code: bool = True,
    has_files: bool = True,
) -> Deployment | None:
    """A version of a worker by its id or number; without code it has no modules, without files its assets are late."""
    sql = f"{SELECT_VERSION} JOIN versions ON worker_id = workers.id WHERE workers.id = ? AND "
    is_number = reference.isascii() and reference.isdigit() and len(reference) < 16
    key: str | int = int(reference) if is_number else reference
    found = rows(connection, VersionRow, sql + ("number = ?" if is_number else "versions.id = ?"), worker_id, key)
    code = Code.WHOLE if has_code else Code.NONE
    return _deployment(connection, found[0], kinds, vault, code=code, has_files=has_files) if found else None


def list_versions(connection: apsw.Connection, worker_id: str, before: int, limit: int) -> list[VersionSummary]:
    sql = (
        "SELECT id, number, created_at, author, message, tag, startup_ms, preview_urls FROM versions"
        " WHERE worker_id = ? AND number < ? ORDER BY number DESC LIMIT ?"
    )
    return rows(connection, VersionSummary, sql, worker_id, before, limit)


def list_modules(connection: apsw.Connection, version_id: str) -> list[ModuleSummary]:
    sql = (
        "SELECT path, kind, length(source), sha256, source_map IS NOT NULL FROM modules WHERE version_id = ?"
        " ORDER BY position"
    )
    found = rows(connection, ModuleSummary, sql, version_id)
    return [each if each.sha256 else each._replace(sha256=_hash_of(connection, version_id, each)) for each in found]


def _hash_of(connection: apsw.Connection, version_id: str, module: ModuleSummary) -> str:
    """The hash of a module that was stored before hashes were."""
    sql = "SELECT source FROM modules WHERE version_id = ? AND path = ?"
    return sha256(rows(connection, bytes, sql, version_id, module.path)[0])


def _deployment(
    connection: apsw.Connection,
    row: VersionRow,
    kinds: Kinds,
    vault: Vault,
    *,
    code: Code = Code.WHOLE,
    has_files: bool = True,
    known: Known | None = None,
) -> Deployment:
    has_secrets = known is None or row.version_id in known.with_secrets
    secrets = secrets_of(connection, row.version_id) if has_secrets else []
    stored_bytes = 0
    if code is Code.STORED:
        sizes = None if known is None else known.code_bytes
        stored_bytes = _code_bytes(connection, row.version_id) if sizes is None else sizes.get(row.version_id, 0)
    version = Version(
        id=row.version_id,
        worker_id=row.worker_id,
        worker_name=row.name,
        tenant=intern(row.tenant),
        modules=modules_of(connection, row.version_id) if code is Code.WHOLE else (),
        has_code=code is not Code.NONE,
        stored_bytes=stored_bytes,
        main=intern(row.main),
        format=ScriptFormat(row.format),
        env=msgspec.json.decode(row.env),
        secrets=opened(secrets, vault, row.tenant, row.worker_id),
        grants=checked_bindings(msgspec.json.decode(row.bindings), kinds, row.tenant),
        limits=_limits(row.limits),
        compatibility_date=intern(row.compatibility_date),
        isolation=Isolation(row.isolation),
        switches=_switches(row.switches),
        egress=_egress(row.egress),
        compatibility_flags=_names(row.compatibility_flags),
        triggers=_triggers(row.triggers),
        tag=row.tag,
        created_at=row.made_at,
        preview_urls=bool(row.preview_urls),
    )
    if row.assets:
        assets = assets_of(connection, version, row.assets) if has_files else late_assets(version, row.assets)
        version = dataclasses.replace(version, assets=assets)
    return Deployment(
        version=version,
        number=row.number,
        routes=_names(row.routes),
        handlers=_names(row.handlers),
        startup_ms=row.startup_ms,
        created_at=row.created_at,
        updated_at=row.updated_at,
        author=intern(row.author),
        message=row.message,
        secrets={secret.name: secret.id for secret in secrets},
    )


# Most versions are alike in these, and cannot be changed: they share one object.


@lru_cache(256)
def _limits(text: str) -> Limits:
    return msgspec.json.decode(text, type=Limits)


@lru_cache(256)
def _switches(text: str) -> Switches:
    return msgspec.json.decode(text, type=Switches)


@lru_cache(256)
def _egress(text: str) -> EgressRules:
    return msgspec.json.decode(text, type=EgressRules)


@lru_cache(256)
def _names(text: str) -> tuple[str, ...]:
    return msgspec.json.decode(text, type=tuple[str, ...])


def modules_of(connection: apsw.Connection, version_id: str) -> tuple[Module, ...]:
    sql = "SELECT path, kind, source FROM modules WHERE version_id = ? ORDER BY position"
    found = rows(connection, ModuleRow, sql, version_id)
    return tuple(Module(module.path, ModuleKind(module.kind), module.source) for module in found)


def _code_bytes(connection: apsw.Connection, version_id: str) -> int:
    """The bytes of all modules; 0 only if there is none."""
    sql = "SELECT ifnull(max(sum(length(source)), 1), 0) FROM modules WHERE version_id = ?"
    return rows(connection, int, sql, version_id)[0]


def _triggers(text: str) -> dict[str, tuple[Any, ...]]:
    stored = msgspec.json.decode(text, type=dict[str, list[Any]])
    for name in stored:
        if name not in triggers():
            raise bad_body(f"this node does not deliver the events of `{name}`")
    return {
        name: tuple(msgspec.convert(entry, triggers()[name].entry) for entry in entries)
        for name, entries in stored.items()
    }


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
