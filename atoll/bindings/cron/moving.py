"""The history of crons for `atoll migrate`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from atoll.manifests.moved import MovedPart, MovedTable

FILE = "crons.db"
RUN = "id, worker_id, cron, slot, started_at, ended_at, outcome, message, by_hand"


def put_mark(connection: Any, row: Sequence[Any]) -> None:
    connection.execute("INSERT INTO cron_marks (worker_id, cron, slot) VALUES (?, ?, ?)", row)


def put_run(connection: Any, row: Sequence[Any]) -> None:
    connection.execute(f"INSERT INTO cron_runs ({RUN}) VALUES ({', '.join('?' * 9)})", row)


TABLES = (
    MovedTable(
        "crons",
        FILE,
        "SELECT worker_id, cron, slot FROM cron_marks ORDER BY worker_id, cron",
        'SELECT worker_id, cron, slot FROM cron_marks ORDER BY worker_id COLLATE "C", cron COLLATE "C"',
        "INSERT INTO cron_marks (worker_id, cron, slot) VALUES ($1, $2, $3)",
        put_mark,
    ),
    MovedTable(
        "runs of crons",
        FILE,
        # One run for a slot, unless it was started by hand: PostgreSQL has no second one
        f"SELECT {RUN} FROM cron_runs WHERE by_hand <> 0 OR id IN (SELECT max(id) FROM cron_runs WHERE by_hand = 0"
        " GROUP BY worker_id, cron, slot) ORDER BY id",
        f"SELECT {RUN} FROM cron_runs ORDER BY id",
        f"INSERT INTO cron_runs ({RUN}, session) OVERRIDING SYSTEM VALUE"
        " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, '')",
        put_run,
        "cron_runs.id",
    ),
)
PART = MovedPart(TABLES)
