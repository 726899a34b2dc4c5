"""Moves what nodes share from PostgreSQL into a new data folder, for a node by itself.

The folder is made under another name and renamed when all of it is there and compared: all or nothing. PostgreSQL is
only read. No node can start on it meanwhile.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Callable
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

import apsw

from atoll.cluster.cluster import Proves
from atoll.cluster.moving.into_postgres import Tell, cut_off, lock_out_nodes
from atoll.cluster.moving.rows import compare_rows, put_rows
from atoll.cluster.moving.snapshots import count_rows, own_file
from atoll.cluster.nodes import MAIN
from atoll.cluster.shared_files import PREFIX, SharedFiles
from atoll.db.folder import KEY_FILE
from atoll.db.migrate import migrate as migrate_file
from atoll.errors import StartError, StorageFailed
from atoll.manifests.every import manifests, migrations_of, moved_parts, shared_files, tables
from atoll.manifests.moved import MovedPart
from atoll.postgres.migrate import migrate
from atoll.postgres.pool import Connection, Postgres


async def into_folder(
    store_url: str, data: Path, root_key: Path | None, make_vault: Callable[[Path], Proves], tell: Tell
) -> int:
    """Raises StartError; then there is no folder. `root_key`: the file of a node; None if the environment has it."""
    if await asyncio.to_thread(_is_taken, data):
        raise StartError(f"{data} is not empty", "name a folder that does not exist yet")
    data.parent.mkdir(parents=True, exist_ok=True)
    work = Path(await asyncio.to_thread(tempfile.mkdtemp, dir=data.parent, prefix=f".restore-{data.name}-"))
    postgres = Postgres(store_url)
    try:
        if root_key is not None:
            await asyncio.to_thread(_copy_key, root_key, work)
        await postgres.open()
        await migrate(postgres, {"cluster": resources.files("atoll.cluster") / "migrations", **tables()})
        async with postgres.transaction() as connection:
            await lock_out_nodes(connection)
            await _check_key(connection, make_vault, work)
            total = await _take_files(postgres, work, tell)
            total += await _take_tables(connection, work, tell)
        await asyncio.to_thread(_sync_and_rename, work, data)
        return total
    except StorageFailed as error:
        raise cut_off(error) from None
    finally:
        await postgres.close()
        await asyncio.to_thread(shutil.rmtree, work, ignore_errors=True)


def _is_taken(data: Path) -> bool:
    return data.exists() and (not data.is_dir() or any(data.iterdir()))


def _copy_key(root_key: Path, work: Path) -> None:
    try:
        (work / KEY_FILE).touch(0o600)
        (work / KEY_FILE).write_bytes(root_key.read_bytes())
    except OSError as error:
        raise StartError(f"{root_key} cannot be read: {error.strerror}", "name the root-key of a node") from None


async def _check_key(connection: Connection, make_vault: Callable[[Path], Proves], work: Path) -> None:
    proof = await connection.fetchval("SELECT proof FROM feed")
    if proof is None:
        return
    try:
        (await asyncio.to_thread(make_vault, work)).open(proof, "", "", "cluster")
    except StartError:
        raise
    except Exception as error:
        hint = "name the root-key of a node with --root-key, or set ATOLL_ROOT_KEY"
        raise StartError(f"the root key is not the one of the nodes: {error}", hint) from None


async def _take_files(postgres: Postgres, work: Path, tell: Tell) -> int:
    files, total = SharedFiles(postgres, work), 0
    try:
        for name, migrations in {**shared_files(), MAIN: None}.items():
            await files.open(name, migrations)
    finally:
        await files.close()
    for name in [*shared_files(), MAIN]:
        await asyncio.to_thread(own_file, work / f"{PREFIX}{name}.db", work / f"{name}.db")
        count = await asyncio.to_thread(count_rows, work / f"{name}.db")
        stays = next((each.stays for each in manifests().values() if each.shared_file == name), "")
        if stays and count:
            raise StartError(
                f"{stays} of nodes cannot be moved into a folder yet, and PostgreSQL has some",
                "delete them first, such as by deleting their workers, or keep the nodes",
            )
        tell("workers, tenants, tokens and secrets" if name == MAIN else name.replace("_", " "), count)
        total += count
    return total


async def _take_tables(connection: Connection, work: Path, tell: Tell) -> int:
    total = 0
    for kind, part in moved_parts().items():
        for file in dict.fromkeys(table.file for table in part.tables):
            total += await _take_file(connection, work, file, part, migrations_of(kind), tell)
        for contents in part.contents:
            count = await contents.into_folder(connection, work)
            tell(contents.name, count)
            total += count
    return total


async def _take_file(
    connection: Connection, work: Path, file: str, part: MovedPart, migrations: Traversable, tell: Tell
) -> int:
    target = await asyncio.to_thread(_new_file, work / file, migrations)
    total = 0
    try:
        target.execute("BEGIN")
        for table in part.tables:
            if table.file == file:
                count = await put_rows(table, connection, target)
                tell(table.name, count)
                total += count
        await asyncio.to_thread(target.execute, "COMMIT")
        for table in part.tables:
            if table.file == file and table.put is not None:
                await compare_rows(table, target, connection)
    finally:
        target.close()
    return total


def _new_file(path: Path, migrations: Traversable) -> apsw.Connection:
    path.parent.mkdir(mode=0o700, exist_ok=True)
    path.touch(0o600)
    connection = apsw.Connection(str(path))
    migrate_file(connection, path, migrations)
    return connection


def _sync_and_rename(work: Path, data: Path) -> None:
    os.sync()
    if data.exists():
        data.rmdir()
    work.chmod(0o700)
    work.rename(data)
