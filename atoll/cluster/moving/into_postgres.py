"""Moves what nodes share from a data folder into an empty PostgreSQL: in one transaction, so all of it or nothing.

Everything is read back and compared before the commit. The folder is only read, and stays as it is. No node can start
on either of them meanwhile.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Callable
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import NamedTuple

import apsw

from atoll.cluster.cluster import PROOF, Proves
from atoll.cluster.moving.rows import add_rows, has_rows
from atoll.cluster.moving.snapshots import compare_files, copy_file, fetch, store
from atoll.cluster.moving.staying import what_stays
from atoll.cluster.nodes import LOCK as JOINING
from atoll.cluster.nodes import MAIN
from atoll.db.folder import DataFolder
from atoll.db.migrate import migrations as migration_steps
from atoll.db.migrate import user_version
from atoll.errors import StartError, StorageFailed
from atoll.manifests.every import migrations_of, moved_parts, shared_files, tables
from atoll.postgres.migrate import LOCK as MIGRATING
from atoll.postgres.migrate import migrate
from atoll.postgres.pool import Connection, Postgres

Tell = Callable[[str, int], None]  # what was moved, and how many rows


class MoveReport(NamedTuple):
    rows: int
    stays: list[str]  # what is left in the folder, in words


async def into_postgres(
    store_url: str, data: Path, tell: Tell, vault: Proves | None, *, leave_behind: bool = False
) -> MoveReport:
    """Raises StartError; then nothing was moved. `vault` has the root key of the folder."""
    if not (data / f"{MAIN}.db").exists():
        raise StartError(
            f"{data} is not the data folder of a node without PostgreSQL", "name the folder that --data names"
        )
    folder = DataFolder(data)  # raises if a node uses it
    try:
        stays = await asyncio.to_thread(what_stays, data)
        if stays and not leave_behind:
            raise StartError(
                f"nodes cannot share all of it yet: {', '.join(stays)} would stay in the folder",
                "to move everything else, add --leave-behind; the folder is not changed",
            )
        postgres = Postgres(store_url)
        await postgres.open()
        try:
            await migrate(postgres, {"cluster": resources.files("atoll.cluster") / "migrations", **tables()})
            return MoveReport(await _move(postgres, data, tell, vault), stays)
        except StorageFailed as error:
            raise cut_off(error) from None
        finally:
            await postgres.close()
    finally:
        folder.close()


def cut_off(error: StorageFailed) -> StartError:
    return StartError(
        f"PostgreSQL failed while the rows were moved: {error}",
        "nothing was moved, unless the connection ended at the very last step; start the command again: it refuses a"
        " database that has everything already",
    )


async def lock_out_nodes(connection: Connection) -> None:
    """No node starts until the transaction ends. Raises StartError if one runs."""
    await connection.execute("SELECT pg_advisory_xact_lock($1)", MIGRATING)
    await connection.execute("SELECT pg_advisory_xact_lock($1)", JOINING)
    sql = "SELECT name FROM nodes WHERE expires > clock_timestamp() ORDER BY name LIMIT 1"
    if (name := await connection.fetchval(sql)) is not None:
        raise StartError(f"the node {name} uses this PostgreSQL", "stop all nodes first; a killed one counts for 6 s")


async def _move(postgres: Postgres, data: Path, tell: Tell, vault: Proves | None) -> int:
    work = Path(await asyncio.to_thread(tempfile.mkdtemp, dir=data, prefix="backup-moving-"))  # swept as a backup is
    try:
        async with postgres.transaction() as connection:
            await lock_out_nodes(connection)
            await _refuse_full(connection, postgres.place)
            total = await _move_files(connection, data, work, tell)
            total += await _move_tables(connection, data, tell)
            if vault is not None:
                await connection.execute("UPDATE feed SET proof = $1", vault.seal(PROOF, "", "", "cluster"))
        return total
    finally:
        await asyncio.to_thread(shutil.rmtree, work, ignore_errors=True)


async def _refuse_full(connection: Connection, place: str) -> None:
    full = ["changes of nodes"] if await connection.fetchval("SELECT head FROM feed") else []
    for part in moved_parts().values():
        full += [table.name for table in part.tables if await has_rows(table, connection)]
        full += [each.name for each in part.contents if not await each.is_empty(connection)]
    if full:
        raise StartError(f"PostgreSQL at {place} is not empty: it has {full[0]}", "name an empty database")


async def _move_files(connection: Connection, data: Path, work: Path, tell: Tell) -> int:
    total, seq = 0, 0
    for name, migrations in {**shared_files(), MAIN: None}.items():
        source = data / f"{name}.db"
        if not source.exists():
            continue
        seq += 1
        (await asyncio.to_thread(open_source, source, migrations)).close()
        copy, found = work / f"{name}.copy", work / f"{name}.found"
        schema = await asyncio.to_thread(copy_file, source, copy, migrations, seq)
        await store(connection, name, copy, seq, schema)
        await fetch(connection, name, seq, found)
        count = await asyncio.to_thread(compare_files, name, source, found)
        tell("workers, tenants, tokens and secrets" if name == MAIN else name.replace("_", " "), count)
        total += count
    await connection.execute("UPDATE feed SET head = $1", seq)
    return total


async def _move_tables(connection: Connection, data: Path, tell: Tell) -> int:
    total = 0
    for kind, part in moved_parts().items():
        for file in dict.fromkeys(table.file for table in part.tables):
            if not (data / file).exists():
                continue
            source = await asyncio.to_thread(open_source, data / file, migrations_of(kind))
            try:
                for table in part.tables:
                    if table.file == file:
                        count = await add_rows(table, source, connection)
                        tell(table.name, count)
                        total += count
            finally:
                source.close()
        for contents in part.contents:
            count = await contents.into_postgres(data, connection)
            tell(contents.name, count)
            total += count
    return total


def open_source(path: Path, migrations: Traversable | None) -> apsw.Connection:
    """Open a file of this release. Raises StartError if an older one made it."""
    try:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        connection.execute("PRAGMA query_only = ON")
        have, known = user_version(connection), len(migration_steps(migrations))
    except apsw.Error as error:
        raise StartError(f"{path} cannot be read: {error}", "restore the folder from a backup") from None
    if have != known:
        connection.close()
        hint = "start this Atoll on the folder once, and stop it again" if have < known else "use the newer Atoll"
        raise StartError(f"{path} was made by another Atoll", hint)
    return connection
