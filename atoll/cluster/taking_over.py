"""What a node had alone becomes what all nodes have.

A node with `only_node` of an older release kept some small databases in files of its own. When such a database is
shared, its rows are moved once, in one change.
"""

from __future__ import annotations

import asyncio
import logging
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import apsw

from atoll.db.migrate import migrate
from atoll.db.shared import SharedDatabase
from atoll.errors import StartError, StorageFailed

log = logging.getLogger("atoll.cluster")

ENDING = ".moved"
TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' AND name <> 'shared_state'"


class _IsNotEmpty(Exception): ...


async def take_over(database: SharedDatabase, old: Path, migrations: Traversable) -> None:
    """Move the rows of a file into an empty shared database, and rename the file. Raises StartError."""
    found = await asyncio.to_thread(_rows_of, old, migrations)
    if found is None:
        return
    count = sum(len(each) for each in found.values())
    try:
        if count:
            await database.write(lambda connection: _insert(connection, found), anyway=True)
    except _IsNotEmpty:
        raise StartError(
            f"{old} has data of this node alone, and the nodes share other data of that kind already",
            f"move the file away to use what the nodes share; it has {count} rows, which are not in PostgreSQL",
        ) from None
    except StorageFailed as error:
        raise StartError(f"{old} cannot be moved into PostgreSQL: {error}", "start this node again later") from None
    await asyncio.to_thread(old.rename, old.with_name(old.name + ENDING))
    log.warning("%d rows of %s are shared by all nodes now; the file has become %s", count, old, old.name + ENDING)


def _rows_of(path: Path, migrations: Traversable) -> dict[str, list[tuple[Any, ...]]] | None:
    """All rows by table; None if there is no file. It is closed with nothing in its write-ahead log."""
    if not path.exists():
        return None
    try:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            migrate(connection, path, migrations)
            names = [str(name) for (name,) in connection.execute(TABLES).fetchall()]
            return {name: connection.execute(f"SELECT * FROM {name}").fetchall() for name in names}
        finally:
            connection.close()
    except apsw.Error as error:
        raise StartError(f"{path} cannot be read: {error}", "restore it from a backup, or move it away") from None


def _insert(connection: apsw.Connection, found: dict[str, list[tuple[Any, ...]]]) -> None:
    for name, rows in found.items():
        present = set(connection.execute(f"SELECT * FROM {name}").fetchall())
        if present.issuperset(rows):  # such as after a crash before the file was renamed
            continue
        if present:
            raise _IsNotEmpty
        for row in rows:
            connection.execute(f"INSERT INTO {name} VALUES ({', '.join('?' * len(row))})", row)
