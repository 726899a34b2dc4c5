"""What Cloudflare's tools said about workers and versions, kept to be shown again. Functions of a connection."""

from __future__ import annotations

import apsw

from atoll.db.sqlite import rows

WRITE = (
    "INSERT INTO cloudflare_labels (worker_id, version_id, labels) VALUES (?1, nullif(?2, ''), ?3)"
    " ON CONFLICT (worker_id, coalesce(version_id, '')) DO UPDATE SET labels = excluded.labels"
)
READ = "SELECT labels FROM cloudflare_labels WHERE worker_id = ? AND coalesce(version_id, '') = ?"


def read_labels(connection: apsw.Connection, worker_id: str, version_id: str) -> str:
    """The labels of a version, or of the worker itself if `version_id` is empty. Empty if there are none."""
    return next(iter(rows(connection, str, READ, worker_id, version_id)), "")


def write_labels(connection: apsw.Connection, worker_id: str, version_id: str, labels: str) -> None:
    connection.execute(WRITE, (worker_id, version_id, labels))
