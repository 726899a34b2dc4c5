"""Opens this node's copies of the shared databases: from a snapshot if the copy is missing or too old, then the log.

A snapshot is the whole file at one change, in parts. Any node makes one when the log has grown (`SNAPSHOT_CHANGES`,
`SNAPSHOT_BYTES`); changes before it are deleted once they are an hour old.
"""

from __future__ import annotations

import asyncio
import logging
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import apsw

from atoll.cluster.log import PostgresLog
from atoll.db.migrate import migrate
from atoll.db.shared import STATE, SharedDatabase, read_state
from atoll.errors import StartError, StorageFailed
from atoll.postgres.pool import Postgres

log = logging.getLogger("atoll.cluster")

PREFIX = "shared-"
PART = 4 << 20
SNAPSHOT_CHANGES = 2_000
SNAPSHOT_BYTES = 64 << 20
GROWN = (
    "SELECT name FROM stores WHERE (SELECT count(*) >= $1 OR coalesce(sum(octet_length(body)), 0) >= $2 FROM changes"
    " WHERE store = name AND seq > snapshot) ORDER BY name"
)
TRIM = (  # the times of two neighbours may be in the other order, so the numbers decide
    "DELETE FROM changes USING stores WHERE store = name AND seq <= snapshot AND seq <="
    " (SELECT max(seq) FROM changes AS old WHERE old.at < now() - interval '1 hour')"
)


class SharedFiles:
    def __init__(self, postgres: Postgres, folder: Path) -> None:
        self._postgres = postgres
        self._folder = folder
        self.databases: dict[str, SharedDatabase] = {}  # by name

    async def open(self, name: str, migrations: Traversable | None) -> SharedDatabase:
        """The node's copy, as new as the log. Raises StartError."""
        path = self._folder / f"{PREFIX}{name}.db"
        await self._postgres.run(
            "INSERT INTO stores (name, last, schema) VALUES ($1, 0, 0) ON CONFLICT DO NOTHING", name
        )
        if not await self._continues(name, path):
            await self._restore(name, path)
        await asyncio.to_thread(_prepare, path, migrations)
        database = SharedDatabase(path, PostgresLog(self._postgres, name), migrations=migrations)
        try:
            await database.follow()
        except BaseException as error:
            await database.close()
            if isinstance(error, StorageFailed):
                raise StartError(
                    f"the changes of other nodes cannot be read: {error}", "see docs/guides/cluster.md"
                ) from None
            raise
        self.databases[name] = database
        return database

    async def close(self) -> None:
        for database in self.databases.values():
            await database.close()

    async def _continues(self, name: str, path: Path) -> bool:
        """Whether the log has everything that follows on this copy. Raises StartError if the log has lost changes."""
        seq, id = await asyncio.to_thread(_state_of, path)
        row = await self._postgres.row("SELECT last, snapshot FROM stores WHERE name = $1", name)
        assert row is not None
        sql = "SELECT id::text FROM changes WHERE seq = $1 AND store = $2"
        known = await self._postgres.value(sql, seq, name) if seq else ""
        if seq > row["last"] or (known is not None and known != id):
            raise StartError(
                f"PostgreSQL does not have change {seq} of {path}, which this node has applied: it has lost commits, or"
                " is another database",
                "find out which one is right; to take over what PostgreSQL has, move that file away and start again",
            )
        if known is None:  # deleted from the log, since it is in a snapshot
            return False
        return seq > 0 or row["snapshot"] == 0

    async def _restore(self, name: str, path: Path) -> None:
        sql = (
            "SELECT body FROM snapshots WHERE store = $1 AND part = $2"
            " AND seq = (SELECT snapshot FROM stores WHERE name = $1)"
        )
        for old in (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm"))):
            old.unlink(missing_ok=True)
        part, new = 0, path.with_suffix(".new")
        with new.open("wb") as file:
            new.chmod(0o600)
            while (body := await self._postgres.value(sql, name, part)) is not None:
                await asyncio.to_thread(file.write, body)
                part += 1
        new.rename(path) if part else new.unlink()

    # Snapshots

    async def tidy(self) -> None:
        """Make snapshots of logs that have grown, and delete what nobody needs any more."""
        for row in await self._postgres.fetch(GROWN, SNAPSHOT_CHANGES, SNAPSHOT_BYTES):
            if row["name"] in self.databases:
                await self.snapshot(row["name"])
        await self._postgres.run(TRIM)

    async def snapshot(self, name: str) -> None:
        database = self.databases[name]
        copy = self._folder / f"{PREFIX}{name}.snapshot"
        try:
            seq, id = await database.search(lambda connection: _copy(connection, copy))
            await self._store(name, seq, id, copy)
        finally:
            copy.unlink(missing_ok=True)
        log.info("the state of %s at change %d is stored", name, seq)

    async def _store(self, name: str, seq: int, id: str, copy: Path) -> None:
        async with self._postgres.transaction() as connection:
            taken = await connection.execute(
                "UPDATE stores SET snapshot = $1 WHERE name = $2 AND snapshot < $1", seq, name
            )
            if taken.endswith(" 0"):
                return  # another node was faster
            await connection.execute("DELETE FROM snapshots WHERE store = $1", name)
            with copy.open("rb") as file:
                part = 0
                while body := await asyncio.to_thread(file.read, PART):
                    await connection.execute(
                        "INSERT INTO snapshots (store, seq, id, part, body) VALUES ($1, $2, $3, $4, $5)",
                        name,
                        seq,
                        id,
                        part,
                        body,
                    )
                    part += 1


def _copy(connection: apsw.Connection, path: Path) -> tuple[int, str]:
    """Copy the file as it is at one moment, without what belongs to this node alone."""
    path.unlink(missing_ok=True)
    target = apsw.Connection(str(path))
    path.chmod(0o600)
    try:
        with target.backup("main", connection, "main") as backup:
            backup.step()
        target.execute("PRAGMA journal_mode = DELETE").fetchall()
        if target.table_exists("main", "code_caches"):
            target.execute("DELETE FROM code_caches")
        state = read_state(target)
    finally:
        target.close()
    return state


def _state_of(path: Path) -> tuple[int, str]:
    if not path.exists():
        return 0, ""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
    try:
        return read_state(connection) if connection.table_exists("main", "shared_state") else (0, "")
    except apsw.Error as error:
        raise StartError(f"{path} cannot be read: {error}", "delete it: it is a copy, and is made again") from None
    finally:
        connection.close()


def _prepare(path: Path, migrations: Any) -> None:
    """Migrate the copy, and make the table that says how far it is."""
    path.touch(0o600)
    connection = apsw.Connection(str(path))
    try:
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
        migrate(connection, path, migrations)
        connection.execute(STATE)
    except apsw.Error as error:
        raise StartError(f"{path} cannot be read: {error}", "delete it: it is a copy, and is made again") from None
    finally:
        connection.close()
