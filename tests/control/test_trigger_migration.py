"""Versions stored with one column per trigger keep their triggers (migration 11)."""

from __future__ import annotations

import json
from pathlib import Path

import apsw
import pytest

from atoll.bindings.queue.entries import QueueConsumer
from atoll.bindings.tail.entries import TailConsumer
from atoll.control.store.vault import Vault
from atoll.control.store.version_rows import load_active
from atoll.db.migrate import migrations
from atoll.db.sqlite import Database
from atoll.errors import StartError

CONSUMER = {"queue": "jobs", "max_batch_size": 5, "dead_letter_queue": None, "retry_delay": None}


def old_database(path: Path) -> None:
    connection = apsw.Connection(str(path))
    for number, sql in migrations()[:10]:
        with connection:
            connection.execute(sql)
            connection.execute(f"PRAGMA user_version = {number}")
    columns = {name for _, name, *_ in connection.execute("PRAGMA table_info(versions)")}
    assert {"crons", "queue_consumers", "tail_consumers"} <= columns
    stored = {
        "plain": ("[]", "[]", "[]"),
        "busy": (json.dumps(["*/5 * * * *"]), json.dumps([CONSUMER]), json.dumps([{"service": "watcher"}])),
        "timed": (json.dumps(["0 9 * * 2", "0 0 1 1 *"]), "[]", "[]"),
    }
    with connection:
        for name, triggers in stored.items():
            connection.execute(
                "INSERT INTO workers (id, name, tenant, created_at, updated_at, active_version)"
                " VALUES (?, ?, ?, 1, 1, ?)",
                (f"worker_{name}", name, "default", f"version_{name}"),
            )
            connection.execute(
                "INSERT INTO versions (id, worker_id, number, main, format, env, limits, compatibility_date, bindings,"
                " routes, handlers, startup_ms, created_at, crons, queue_consumers, tail_consumers)"
                " VALUES (?, ?, 1, 'worker.js', 'module', '{}', '{}', '2026-01-01', '[]', '[]', '[]', 1.0, 1, ?, ?, ?)",
                (f"version_{name}", f"worker_{name}", *triggers),
            )
    connection.close()


async def test_triggers_of_stored_versions_are_kept(tmp_path: Path) -> None:
    old_database(tmp_path / "atoll.db")
    database = Database(tmp_path / "atoll.db")
    try:
        found = database.read(lambda connection: load_active(connection, {}, Vault(tmp_path)))
    finally:
        await database.close()
    assert {each.name: dict(each.version.triggers) for each in found} == {
        "busy": {
            "crons": ("*/5 * * * *",),
            "queue_consumers": (QueueConsumer("jobs", max_batch_size=5),),
            "tail_consumers": (TailConsumer("watcher"),),
        },
        "plain": {},
        "timed": {"crons": ("0 9 * * 2", "0 0 1 1 *")},
    }


async def test_unknown_triggers_are_not_dropped_silently(tmp_path: Path) -> None:
    old_database(tmp_path / "atoll.db")
    database = Database(tmp_path / "atoll.db")
    try:
        change = "UPDATE versions SET triggers = '{\"alarms\": [1]}' WHERE id = 'version_busy'"
        await database.write(lambda connection: connection.execute(change).fetchall())
        with pytest.raises(StartError, match=r"the worker `busy` cannot be restored: .*`alarms`"):
            database.read(lambda connection: load_active(connection, {}, Vault(tmp_path)))
    finally:
        await database.close()
