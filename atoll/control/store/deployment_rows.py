"""Rows of deployments: which versions of a worker get traffic, now and before. Functions of a connection.

The row of a deployment is history. The present is in `workers.active_version` and, while several versions have traffic,
in `traffic`. All of them change in one transaction.
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import NamedTuple

import apsw
import msgspec
from msgspec import Struct

from atoll.api.audit import Mark
from atoll.control.ids import random_id
from atoll.control.store.rollback_rows import (
    PastShare,
    RollbackRule,
    RuleState,
    end_rule,
    mark_failed,
    rule_of,
    rule_text,
)
from atoll.control.store.version_rows import Deployment
from atoll.db.sqlite import rows
from atoll.splits import WHOLE

KEPT_DEPLOYMENTS = 100  # per worker
NEWEST = 2**62  # above every number

IN_TRAFFIC = (
    "SELECT active_version FROM workers WHERE id = ?1 UNION SELECT version_id FROM traffic WHERE worker_id = ?1"
)


class DeployedShare(NamedTuple):
    """A version in a deployment, with its share in hundredths of a percent."""

    deployment: Deployment
    hundredths: int


class DeploymentEntry(Struct):
    """A line of the history."""

    id: str
    number: int
    created_at: int  # ms since 1970
    author: str
    message: str
    source: str  # deploy, secret, rollback, versions
    versions: list[PastShare]
    rule: RollbackRule | None


class DeploymentRow(NamedTuple):
    id: str
    number: int
    created_at: int
    author: str
    message: str
    source: str
    versions: str
    rule: str


class Cause(Struct, frozen=True):
    """Why a deployment is made."""

    source: str
    message: str = ""
    rule: RollbackRule | None = None
    failed: str = ""  # the version that a rollback rule found to fail


def whole(deployment: Deployment) -> tuple[DeployedShare]:
    """All traffic for one version."""
    return (DeployedShare(deployment, WHOLE),)


def activate(connection: apsw.Connection, shares: Sequence[DeployedShare], mark: Mark, cause: Cause) -> None:
    """Give the traffic of a worker to these versions. The first is the primary one: its routes become live."""
    primary = shares[0].deployment
    worker_id = primary.id
    connection.execute(
        "UPDATE workers SET active_version = ?, updated_at = ? WHERE id = ?",
        (primary.version.id, primary.updated_at, worker_id),
    )
    connection.execute("DELETE FROM traffic WHERE worker_id = ?", (worker_id,))
    if len(shares) == 1:
        connection.execute("UPDATE versions SET was_active = 1 WHERE id = ?", (primary.version.id,))
    else:
        connection.executemany(
            "INSERT INTO traffic (worker_id, version_id, hundredths) VALUES (?, ?, ?)",
            [(worker_id, share.deployment.version.id, share.hundredths) for share in shares],
        )
    connection.execute("DELETE FROM routes WHERE worker_id = ?", (worker_id,))
    connection.executemany(
        "INSERT INTO routes (pattern, worker_id) VALUES (?, ?)", [(text, worker_id) for text in primary.routes]
    )
    # Only versions with traffic are loaded repeatedly; a cache of another would be larger than its code.
    connection.execute(
        "DELETE FROM code_caches WHERE version_id IN (SELECT id FROM versions WHERE worker_id = ?1)"
        f" AND version_id NOT IN ({IN_TRAFFIC})",
        (worker_id,),
    )
    end_rule(connection, worker_id, RuleState.ROLLED_BACK if cause.failed else RuleState.REPLACED)
    if cause.failed:
        mark_failed(connection, cause.failed)
    _note(connection, shares, mark, cause)


def _note(connection: apsw.Connection, shares: Sequence[DeployedShare], mark: Mark, cause: Cause) -> None:
    """Add the line of the history, and delete the oldest ones."""
    worker_id = shares[0].deployment.id
    [last] = rows(connection, int, "SELECT ifnull(max(number), 0) FROM deployments WHERE worker_id = ?", worker_id)
    past = [(share.deployment.version.id, share.deployment.number, share.hundredths) for share in shares]
    connection.execute(
        "INSERT INTO deployments (id, worker_id, number, created_at, author, message, source, versions, rule)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            random_id("deployment"),
            worker_id,
            last + 1,
            mark.at,
            mark.actor,
            mark.note or cause.message,
            cause.source,
            msgspec.json.encode(past).decode(),
            rule_text(cause.rule),
        ),
    )
    connection.execute(
        "DELETE FROM deployments WHERE worker_id = ? AND number <= ?", (worker_id, last + 1 - KEPT_DEPLOYMENTS)
    )


def list_deployments(connection: apsw.Connection, worker_id: str, before: int, limit: int) -> list[DeploymentEntry]:
    """The deployments of a worker with a number below `before`, newest first."""
    sql = (
        "SELECT id, number, created_at, author, message, source, versions, rule FROM deployments"
        " WHERE worker_id = ? AND number < ? ORDER BY number DESC LIMIT ?"
    )
    found = rows(connection, DeploymentRow, sql, worker_id, before, limit)
    decode = msgspec.json.Decoder(list[PastShare]).decode
    return [DeploymentEntry(*row[:6], decode(row.versions), rule_of(row.rule)) for row in found]


def earlier_without(connection: apsw.Connection, worker_id: str, watched: Set[str]) -> DeploymentEntry | None:
    """The newest deployment of a worker without these versions that can be restored, for a rollback rule. One that was
    itself rolled back automatically does not count."""
    stored = set(rows(connection, str, "SELECT id FROM versions WHERE worker_id = ?", worker_id))
    for entry in list_deployments(connection, worker_id, NEWEST, KEPT_DEPLOYMENTS):
        ids = {share.version_id for share in entry.versions}
        was_rolled_back = entry.rule is not None and entry.rule.state is RuleState.ROLLED_BACK
        if ids <= stored and not ids & watched and not was_rolled_back:
            return entry
    return None


def last_whole(connection: apsw.Connection, worker_id: str) -> str:
    """The version that last had all traffic, for a rollback out of a split; "" if it is deleted."""
    sql = (
        "SELECT versions.id FROM deployments JOIN versions"
        " ON versions.id = json_extract(deployments.versions, '$[0][0]')"
        " WHERE deployments.worker_id = ? AND json_array_length(deployments.versions) = 1"
        " ORDER BY deployments.number DESC LIMIT 1"
    )
    return next(iter(rows(connection, str, sql, worker_id)), "")


def before(connection: apsw.Connection, worker_id: str, number: int) -> str:
    """The newest version below a number that has had all traffic; "" if there is none."""
    sql = "SELECT id FROM versions WHERE worker_id = ? AND number < ? AND was_active = 1 ORDER BY number DESC LIMIT 1"
    return next(iter(rows(connection, str, sql, worker_id, number)), "")


class AliasRow(NamedTuple):
    worker_id: str
    alias: str
    version_id: str


def list_aliases(connection: apsw.Connection, worker_id: str = "") -> list[AliasRow]:
    """The aliases of a worker, or of all workers."""
    sql = "SELECT worker_id, alias, version_id FROM preview_aliases"
    if worker_id:
        return rows(connection, AliasRow, f"{sql} WHERE worker_id = ? ORDER BY alias", worker_id)
    return rows(connection, AliasRow, f"{sql} ORDER BY created_at")


def put_alias(connection: apsw.Connection, deployment: Deployment, alias: str, at: int) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO preview_aliases (worker_id, alias, version_id, created_at) VALUES (?, ?, ?, ?)",
        (deployment.id, alias, deployment.version.id, at),
    )


def version_id(connection: apsw.Connection, worker_id: str, begin: str) -> str:
    """The newest version of a worker whose id begins like this; "" if there is none."""
    sql = "SELECT id FROM versions WHERE id >= ?1 AND id < ?1 || '~' AND worker_id = ?2 ORDER BY number DESC LIMIT 1"
    return next(iter(rows(connection, str, sql, begin, worker_id)), "")
