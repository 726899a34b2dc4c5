"""SQLite files that nodes share, on their way: a file becomes a snapshot in PostgreSQL, and a copy becomes a file."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import apsw

from atoll.cluster.moving.rows import differs
from atoll.cluster.shared_files import PART
from atoll.db.migrate import migrate, user_version
from atoll.db.shared import OWN_TABLES, STATE
from atoll.errors import StartError
from atoll.postgres.pool import Connection

TABLES = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY name"


def copy_file(source: Path, copy: Path, migrations: Traversable | None, seq: int) -> int:
    """Make a copy as the nodes share it, at change `seq`; returns its number of migrations."""
    own = apsw.Connection(str(source), flags=apsw.SQLITE_OPEN_READWRITE)
    target = apsw.Connection(str(copy))
    try:
        copy.chmod(0o600)
        with target.backup("main", own, "main") as backup:
            backup.step()
        target.execute("PRAGMA journal_mode = DELETE").fetchall()
        migrate(target, copy, migrations)
        if target.table_exists("main", "code_caches"):
            target.execute("DELETE FROM code_caches")
        target.execute(STATE)
        target.execute("INSERT OR REPLACE INTO shared_state VALUES (1, ?, ?)", (seq, str(uuid.uuid4())))
        return user_version(target)
    finally:
        target.close()
        own.close()


async def store(connection: Connection, name: str, copy: Path, seq: int, schema: int) -> None:
    """Make a file the snapshot of a shared database at change `seq`."""
    [(id,)] = _rows(copy, "SELECT id FROM shared_state")
    await connection.execute(
        "INSERT INTO stores (name, last, schema, snapshot) VALUES ($1, $2, $3, $2) ON CONFLICT (name)"
        " DO UPDATE SET last = $2, schema = $3, snapshot = $2",
        name, seq, schema,
    )  # fmt: skip
    add = "INSERT INTO snapshots (store, seq, id, part, body) VALUES ($1, $2, $3, $4, $5)"
    for part, body in enumerate(_parts(copy)):
        await connection.execute(add, name, seq, id, part, body)


async def fetch(connection: Connection, name: str, seq: int, path: Path) -> None:
    """What `store` has stored, as a file again."""
    sql = "SELECT body FROM snapshots WHERE store = $1 AND seq = $2 AND part = $3"
    part = 0
    while (body := await connection.fetchval(sql, name, seq, part)) is not None:
        await asyncio.to_thread(_append, path, body)
        part += 1


def compare_files(name: str, source: Path, other: Path) -> int:
    """Compare all rows of shared tables; returns how many there are. Raises StartError if one differs.

    `other` may have columns that newer migrations have added."""
    own, found = (apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE) for path in (source, other))
    try:
        return sum(
            _compare_table(f"{name}.{table}", own, found, str(table))
            for (table,) in own.execute(TABLES).fetchall()
            if table not in OWN_TABLES
        )
    finally:
        own.close()
        found.close()


def _compare_table(name: str, own: apsw.Connection, other: apsw.Connection, table: str) -> int:
    columns = ", ".join(f'"{column}"' for _, column, *_ in own.execute(f"PRAGMA table_info({table})").fetchall())
    sql = f"SELECT {columns} FROM {table} NOT INDEXED"  # in the order of the table itself
    number = 0
    theirs = other.execute(sql)
    for number, row in enumerate(own.execute(sql), 1):
        if next(theirs, None) != row:
            raise differs(name, number)
    if next(theirs, None) is not None:
        raise differs(name, number + 1)
    return number


def own_file(copy: Path, path: Path) -> None:
    """Make the copy of a node the file of a node by itself."""
    connection = apsw.Connection(str(copy), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        connection.execute("DROP TABLE shared_state")
    finally:
        connection.close()
    copy.rename(path)


def count_rows(path: Path) -> int:
    """The rows of a whole file. Raises StartError if it is damaged."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        [found, *_] = [str(words) for (words,) in connection.execute("PRAGMA quick_check(1)")]
        if found != "ok":
            raise StartError(f"the copy of {path.stem} is damaged: {found}", "look at the log of PostgreSQL")
        names = [str(name) for (name,) in connection.execute(TABLES)]
        counts = [connection.execute(f"SELECT count(*) FROM {name}").fetchall()[0][0] for name in names]
        return sum(int(str(count)) for count in counts)
    finally:
        connection.close()


def _append(path: Path, body: bytes) -> None:
    path.touch(0o600)
    with path.open("ab") as file:
        file.write(body)


def _parts(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while body := file.read(PART):
            yield body


def _rows(path: Path, sql: str) -> list[Any]:
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        return list(connection.execute(sql))
    finally:
        connection.close()
