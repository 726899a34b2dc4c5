"""Migrates tables in PostgreSQL to what this code expects. Each part of Atoll has its own folder of migrations.

During a rolling upgrade the old release and the new one use the same tables. So a migration only adds (expand): tables,
columns with defaults, indexes. What the old release needed is dropped by a later release (contract), whose first line
says `-- contract NUMBER`: the migration from which on nobody needs it. Numbers are stored per part, and two nodes that
start at once take turns.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from importlib.resources.abc import Traversable

import asyncpg

from atoll.db.migrate import migrations
from atoll.errors import StartError, StorageFailed
from atoll.postgres.faults import start_error
from atoll.postgres.pool import Connection, Postgres

LOCK = 0x61746F6C6C  # of advisory locks: "atoll"
CONTRACT = re.compile(r"\A-- contract (\d+)\n")
FIRST = (
    "CREATE SCHEMA IF NOT EXISTS atoll",
    "CREATE TABLE IF NOT EXISTS atoll.migrations (part text PRIMARY KEY, number int NOT NULL, oldest int NOT NULL)",
)


async def migrate(postgres: Postgres, parts: Mapping[str, Traversable]) -> None:
    """Apply the missing migrations of every part, all or none. Raises StartError."""
    try:
        async with postgres.transaction() as connection:
            await connection.execute("SELECT pg_advisory_xact_lock($1)", LOCK)
            for sql in FIRST:
                await connection.execute(sql)
            for part, folder in sorted(parts.items()):
                await _migrate(connection, part, migrations(folder), postgres.place)
    except (asyncpg.PostgresError, StorageFailed) as error:
        raise start_error(error, postgres.place) from None


async def _migrate(connection: Connection, part: str, steps: list[tuple[int, str]], place: str) -> None:
    row = await connection.fetchrow("SELECT number, oldest FROM atoll.migrations WHERE part = $1", part)
    have, oldest = (row["number"], row["oldest"]) if row is not None else (0, 0)
    if oldest > len(steps):
        raise StartError(
            f"PostgreSQL at {place} belongs to a newer Atoll (the tables of {part} need {oldest}, this Atoll knows"
            f" {len(steps)})",
            "run the newer Atoll",
        )
    for _, sql in steps[have:]:
        contract = CONTRACT.match(sql)
        oldest = max(oldest, int(contract[1]) if contract else 0)
        await connection.execute(sql)
    if have < len(steps):
        sql = (
            "INSERT INTO atoll.migrations VALUES ($1, $2, $3)"
            " ON CONFLICT (part) DO UPDATE SET number = excluded.number, oldest = excluded.oldest"
        )
        await connection.execute(sql, part, len(steps), oldest)
