"""Migrates a database to the schema this code expects: runs each migrations/NNNN_name.sql once, in order.

The number of the last one applied is SQLite's own `user_version`, which changes in the same transaction as the tables:
after a crash a migration is either complete or has not happened. A published migration never changes; add a new one.
"""

from __future__ import annotations

from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

import apsw

from atoll.errors import StartError


def migrations(folder: Traversable | None = None) -> list[tuple[int, str]]:
    """(number, SQL) of every migration, in order."""
    folder = folder or resources.files("atoll.db") / "migrations"
    files = sorted((file for file in folder.iterdir() if file.name.endswith(".sql")), key=lambda file: file.name)
    found = [(int(file.name.split("_")[0]), file.read_text("utf-8")) for file in files]
    assert [number for number, _ in found] == list(range(1, len(found) + 1)), "migrations are numbered without gaps"
    return found


def migrate(connection: apsw.Connection, path: Path, folder: Traversable | None = None) -> int:
    """Apply the missing migrations and return the number of the last one. `path` is for errors only."""
    steps = migrations(folder)
    have = user_version(connection)
    if have > len(steps):
        raise StartError(
            f"{path} was made by a newer Atoll (its tables are at {have}, this Atoll knows {len(steps)})",
            "run the newer Atoll, or give this one another folder with --data",
        )
    for number, sql in steps[have:]:
        with connection:  # one transaction for a step and its number
            connection.execute(sql)
            connection.execute(f"PRAGMA user_version = {number}")
    return len(steps)


def user_version(connection: apsw.Connection) -> int:
    version = connection.pragma("user_version")
    assert isinstance(version, int)
    return version
