"""Which old versions are deleted: those beyond the number kept for a worker, and those beyond the bytes of a tenant."""

from __future__ import annotations

from typing import NamedTuple

import apsw

from atoll.control.store.deployment_rows import IN_TRAFFIC
from atoll.control.store.rollback_rows import KEPT_FOR_RULES
from atoll.control.store.secret_rows import drop_unused_secrets
from atoll.control.store.version_rows import Deployment
from atoll.db.sqlite import rows

KEPT_VERSIONS = 100  # per worker; older ones are deleted by the deploy that makes a new one

BYTES = "sum(length(source) + ifnull(length(source_map), 0))"
OF_TENANT = (
    "FROM workers JOIN versions ON worker_id = workers.id JOIN modules ON version_id = versions.id WHERE tenant = ?"
)


class StoredVersion(NamedTuple):
    id: str
    worker_id: str
    is_active: int
    bytes: int


def trim_versions(connection: apsw.Connection, newest: Deployment) -> None:
    """Delete the oldest versions of a worker beyond the limit, without those that have traffic."""
    connection.execute(
        f"DELETE FROM versions WHERE worker_id = ?1 AND number <= ?2 AND id NOT IN ({IN_TRAFFIC})"
        f" AND id NOT IN ({KEPT_FOR_RULES.format(worker='?1')})",
        (newest.id, newest.number - KEPT_VERSIONS),
    )
    drop_unused_secrets(connection, newest.id)


def trim_history(connection: apsw.Connection, tenant: str, max_bytes: int) -> None:
    """Delete a tenant's oldest inactive versions until all its code is within a bound."""
    [size] = rows(connection, int, f"SELECT ifnull({BYTES}, 0) {OF_TENANT}", tenant)
    if size <= max_bytes:
        return  # the usual case
    sql = (
        "SELECT versions.id, worker_id, versions.id = active_version OR versions.id IN (SELECT version_id FROM traffic)"
        f" OR versions.id IN ({KEPT_FOR_RULES.format(worker='workers.id')}), {BYTES} {OF_TENANT}"
        " GROUP BY versions.id ORDER BY versions.created_at, number"
    )
    trimmed = set[str]()
    for version in rows(connection, StoredVersion, sql, tenant):
        if size > max_bytes and not version.is_active:
            connection.execute("DELETE FROM versions WHERE id = ?", (version.id,))
            size -= version.bytes
            trimmed.add(version.worker_id)
    for worker_id in trimmed:
        drop_unused_secrets(connection, worker_id)
