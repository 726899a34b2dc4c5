"""The contents of assets in PostgreSQL, for several nodes. The folder of a node is a cache of them.

A file is fetched when a request first needs it, checked against its hash, and then served from disk as on one node.
Contents are put before their rows say that they are stored (rows.py), and deleted after the rows are gone, so a stored
file always has its content.

Deleting is safe without a lock over all nodes: a content goes only if the database of this node, after it has caught
up, has no stored row for it, and if it was put long ago. An upload puts it again before it writes the row, which
changes `put_at`, so a deletion that was decided before that finds nothing.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from atoll.asset_files.places import COPIES, FilePlaces
from atoll.asset_files.rows import NewFile
from atoll.errors import StorageAway, StorageFailed

if TYPE_CHECKING:
    from atoll.postgres.pool import Connection, Postgres

PIECE: Final = 1 << 20
BATCH_BYTES: Final = 8 << 20  # that one transaction puts, but for a single larger file
BATCH_FILES: Final = 200
LISTED: Final = 1_000
AT_ONCE: Final = 3  # transfers: the node has few connections
LOCK: Final = 0x61737365  # of advisory locks, with a hash of the tenant

HEAD: Final = (
    "INSERT INTO asset_contents (tenant, hash, coding, size, digest) VALUES ($1, $2, $3, $4, $5)"
    " ON CONFLICT (tenant, hash, coding) DO UPDATE SET put_at = clock_timestamp() RETURNING id, xmax = 0 AS is_new"
)
OLDER: Final = (
    "SELECT release FROM nodes WHERE expires > clock_timestamp() AND NOT schemas ? 'tables of assets' LIMIT 1"
)
ADD_PIECE: Final = "INSERT INTO asset_pieces (content, part, body) VALUES ($1, $2, $3)"
SIZES: Final = "SELECT hash, coding, size FROM asset_contents WHERE tenant = $1 AND hash = ANY ($2)"
FIND: Final = "SELECT id, size, digest FROM asset_contents WHERE tenant = $1 AND hash = $2 AND coding = $3"
OLD: Final = (  # a page of what was put some time ago
    "SELECT id, tenant, hash, put_at FROM asset_contents"
    " WHERE id > $1 AND put_at < clock_timestamp() - $2 * interval '1 second' ORDER BY id LIMIT $3"
)
DELETE: Final = (
    "DELETE FROM asset_contents USING unnest($1::bigint[], $2::timestamptz[]) AS old (id, at)"
    " WHERE asset_contents.id = old.id AND put_at = old.at"
)
TURN: Final = "UPDATE asset_sweep SET at = clock_timestamp() WHERE at < clock_timestamp() - $1 * interval '1 second'"


class OldContent(NamedTuple):
    id: int
    tenant: str
    hash: bytes
    put_at: Any  # as it came from the server


class SharedContents:
    def __init__(self, postgres: Postgres, places: FilePlaces) -> None:
        self._postgres = postgres
        self._places = places
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._fetching: dict[str, asyncio.Task[None]] = {}  # by place

    # Uploads

    async def put(self, tenant: str, files: Sequence[NewFile]) -> list[NewFile]:
        """Store files that are in their places, with their copies. Returns them with the copies that PostgreSQL has:
        another node may have put the same file before, and have compressed it otherwise."""
        done: list[NewFile] = []
        for batch in _batches(files):
            async with self._turns, self._postgres.transaction() as connection:
                await connection.execute("SELECT pg_advisory_xact_lock($1, hashtext($2))", LOCK, tenant)
                if (older := await connection.fetchval(OLDER)) is not None:
                    raise StorageAway(f"a node with Atoll {older} still runs, which does not share assets: upgrade it")
                for file in batch:
                    for coding, size in zip(COPIES, (file.size, file.gzip, file.br), strict=True):
                        if size or not coding:
                            await put_content(connection, self._places, tenant, file.hash, coding)
                rows = await connection.fetch(SIZES, tenant, [file.hash for file in batch])
            found = {(row["hash"], row["coding"]): row["size"] for row in rows}
            for file in batch:
                gzip, br = (found.get((file.hash, coding), 0) for coding in COPIES[1:])
                done.append(file._replace(gzip=gzip, br=br))
        return done

    # Requests

    async def bring(self, tenant: str, place: str) -> None:
        """Fetch a file that is not on this node, once for all who wait for it. Raises StorageFailed."""
        task = self._fetching.get(place)
        if task is None:
            task = self._fetching[place] = asyncio.ensure_future(self._fetch(tenant, place))
            task.add_done_callback(lambda _: self._fetched(place))
        await asyncio.shield(task)

    def _fetched(self, place: str) -> None:
        task = self._fetching.pop(place)
        if not task.cancelled():
            task.exception()  # its callers have it, unless all of them went away

    async def _fetch(self, tenant: str, place: str) -> None:
        name = os.path.basename(place)
        digest, coding = bytes.fromhex(name[:64]), name[64:]
        async with self._turns:
            row = await self._postgres.row(FIND, tenant, digest, coding)
            if row is None:
                raise StorageFailed("PostgreSQL does not have a file of assets", place)
            writer = await asyncio.to_thread(_Writer, str(self._places.incoming), place)
            try:
                for part in range(-(-row["size"] // PIECE)):
                    sql = "SELECT body FROM asset_pieces WHERE content = $1 AND part = $2"
                    body = await self._postgres.value(sql, row["id"], part)
                    await asyncio.to_thread(writer.write, body or b"")
                await asyncio.to_thread(writer.finish, row["size"], row["digest"])
            except OSError as error:
                raise StorageFailed(f"the storage of this node cannot be written: {error.strerror}", place) from None
            finally:
                await asyncio.to_thread(writer.close)

    # What nothing needs

    async def has_turn(self, seconds: float) -> bool:
        """Whether this node is the one that looks for what nothing needs."""
        return await self._postgres.run(TURN, seconds) > 0

    async def old(self, seconds: float) -> AsyncIterator[list[OldContent]]:
        """Contents that were put long ago, in pages."""
        after = 0
        while rows := await self._postgres.fetch(OLD, after, seconds, LISTED):
            yield [OldContent(*row.values()) for row in rows]
            after = rows[-1]["id"]

    async def delete(self, contents: Sequence[OldContent]) -> int:
        """Delete those that were not put again meanwhile."""
        ids, times = [each.id for each in contents], [each.put_at for each in contents]
        return await self._postgres.run(DELETE, ids, times) if ids else 0

    async def forget(self, tenant: str) -> None:
        await self._postgres.run("DELETE FROM asset_contents WHERE tenant = $1", tenant)

    async def missing(self, tenant: str, hashes: Sequence[bytes]) -> set[bytes]:
        """Those of some hashes whose content is not in PostgreSQL."""
        sql = "SELECT hash FROM asset_contents WHERE tenant = $1 AND coding = '' AND hash = ANY ($2)"
        return set(hashes) - {row["hash"] for row in await self._postgres.fetch(sql, tenant, list(hashes))}

    async def close(self) -> None:
        for task in list(self._fetching.values()):
            task.cancel()
        await asyncio.gather(*self._fetching.values(), return_exceptions=True)


async def put_content(connection: Connection, places: FilePlaces, tenant: str, digest: bytes, coding: str) -> None:
    """Put one file, or one compressed copy of it, unless it is there already."""
    place = places.of(tenant, digest.hex()) + coding
    size, found = await asyncio.to_thread(_sum_of, place)
    if not coding and found != digest:
        raise StorageFailed("a file of assets is damaged on the disk of this node", place)
    row = await connection.fetchrow(HEAD, tenant, digest, coding, size, found)
    assert row is not None
    if not row["is_new"]:
        return
    pieces = _pieces(place)
    part = 0
    while (body := await asyncio.to_thread(next, pieces, None)) is not None:
        await connection.execute(ADD_PIECE, row["id"], part, body)
        part += 1


class _Writer:
    """A fetched file under a temporary name, until it is complete and what it should be. Runs in threads."""

    def __init__(self, folder: str, place: str) -> None:
        self._place = place
        os.makedirs(folder, mode=0o700, exist_ok=True)
        self._file, self._name = tempfile.mkstemp(dir=folder)
        self._digest = hashlib.sha256()
        self._size = 0

    def write(self, body: bytes) -> None:
        self._digest.update(body)
        self._size += len(body)
        view = memoryview(body)
        while view:
            view = view[os.write(self._file, view) :]

    def finish(self, size: int, digest: bytes) -> None:
        if self._size != size or self._digest.digest() != digest:
            raise StorageFailed("a file of assets is damaged in PostgreSQL", self._place)
        os.fsync(self._file)  # else a power cut could leave a file of zeros under the name
        os.makedirs(os.path.dirname(self._place), mode=0o700, exist_ok=True)
        os.rename(self._name, self._place)

    def close(self) -> None:
        os.close(self._file)
        if os.path.exists(self._name):
            os.unlink(self._name)


def _batches(files: Sequence[NewFile]) -> Iterator[list[NewFile]]:
    batch: list[NewFile] = []
    size = 0
    for file in files:
        batch.append(file)
        size += file.size + file.gzip + file.br
        if size >= BATCH_BYTES or len(batch) >= BATCH_FILES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _pieces(place: str) -> Iterator[bytes]:
    with open(place, "rb", buffering=0) as file:
        while piece := file.read(PIECE):
            yield piece


def _sum_of(place: str) -> tuple[int, bytes]:
    digest, size = hashlib.sha256(), 0
    for piece in _pieces(place):
        digest.update(piece)
        size += len(piece)
    return size, digest.digest()
