"""Rows of tables on their way between SQLite and PostgreSQL, in batches of bounded size, and compared one by one."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import apsw

from atoll.errors import StartError
from atoll.manifests.moved import MovedTable
from atoll.postgres.pool import Connection

Row: TypeAlias = tuple[Any, ...]

BATCH_ROWS = 500
BATCH_BYTES = 4 << 20
PREFETCH = 16  # rows of PostgreSQL at once: a value may have 25 MB


async def add_rows(table: MovedTable, source: apsw.Connection, connection: Connection) -> int:
    """Copy a table into PostgreSQL and compare it. Returns how many rows it has."""
    total = 0
    batches = _batches(source, table.read)
    while batch := await asyncio.to_thread(_next, batches):
        await connection.executemany(table.add, batch)
        total += len(batch)
    await compare_rows(table, source, connection)
    if table.identity:
        name, _, column = table.identity.partition(".")
        sequence = f"pg_get_serial_sequence('{name}', '{column}')"
        await connection.fetch(f"SELECT setval({sequence}, max({column})) FROM {name} HAVING count(*) > 0")
    return total


async def put_rows(table: MovedTable, connection: Connection, target: apsw.Connection) -> int:
    """Copy a table into SQLite. Returns how many rows it has. Compare them when all tables of the file are there."""
    total = 0
    if table.put is None:
        return total
    async for batch in _found(connection, table.find):
        await asyncio.to_thread(_put, table, target, batch)
        total += len(batch)
    return total


async def compare_rows(table: MovedTable, own: apsw.Connection, connection: Connection) -> None:
    """Raises StartError if SQLite and PostgreSQL do not have the same rows."""
    batches = _batches(own, table.read)
    waiting: list[Row] = []
    number = 0
    async for found in _found(connection, table.find):
        for row in found:
            if not waiting:
                waiting = list(reversed(await asyncio.to_thread(_next, batches)))
            number += 1
            if not waiting or _plain(waiting.pop()) != row:
                raise differs(table.name, number)
    if waiting or await asyncio.to_thread(_next, batches):
        raise differs(table.name, number + 1)


def differs(name: str, number: int) -> StartError:
    return StartError(
        f"{name}: row {number} is not the same on both sides, so nothing was moved",
        "the source is as it was; report this with the log of the command",
    )


async def has_rows(table: MovedTable, connection: Connection) -> bool:
    return bool(await connection.fetchval(f"SELECT EXISTS ({table.find})"))


async def _found(connection: Connection, sql: str) -> Any:
    batch: list[Row] = []
    async for record in connection.cursor(sql, prefetch=PREFETCH):
        batch.append(_plain(tuple(record.values())))
        if len(batch) == PREFETCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _put(table: MovedTable, target: apsw.Connection, batch: Sequence[Row]) -> None:
    assert table.put is not None
    for row in batch:
        table.put(target, row)


def _batches(connection: apsw.Connection, sql: str) -> Iterator[list[Row]]:
    batch: list[Row] = []
    size = 0
    for row in connection.execute(sql):
        batch.append(row)
        size += sum(len(value) for value in row if isinstance(value, bytes | str))
        if len(batch) >= BATCH_ROWS or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _next(batches: Iterator[list[Row]]) -> list[Row]:
    """The next batch; an empty one at the end."""
    return next(batches, [])


def _plain(row: Row) -> Row:
    return tuple(bytes(value) if isinstance(value, memoryview | bytearray) else value for value in row)
