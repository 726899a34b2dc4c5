"""The store of static assets: manifests in the database, files on disk, each once per tenant.

A deploy of assets has three steps: a manifest names all files, uploads bring those that are missing, the deploy names
the manifest. Files belong to one tenant: knowing the hash of another tenant's file is of no use.

Files that no kept version needs are collected after a grace time, in which an upload can still be followed by its
deploy. One lock orders the two things that give and take names of files, so that a collection never removes a file that
has just arrived again.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import shutil
import threading
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias, TypeVar

from apsw import Connection

from atoll.asset_files.incoming import IncomingFiles
from atoll.asset_files.places import FilePlaces
from atoll.asset_files.rows import (
    AssetBound,
    AssetSize,
    NewFile,
    WantedFile,
    add_manifest,
    collect,
    forget_tenant,
    keep_files,
    read_manifest,
    trim_versions,
    usage_of,
    wanted_files,
)
from atoll.asset_files.shared import SharedContents
from atoll.asset_files.sweeping import delete_unneeded, tidy_cache, unlink_all
from atoll.config import Settings
from atoll.db.sqlite import Database, DatabaseClosed
from atoll.errors import AtollError, InvalidArgument, StorageFailed

if TYPE_CHECKING:
    from atoll.postgres.pool import Postgres

T = TypeVar("T")

Bring: TypeAlias = Callable[[str, str], Awaitable[None]]

log = logging.getLogger("atoll.assets")

BATCH: Final = 1 << 20  # bytes that are handed to a thread at once
MAX_UPLOADS: Final = 4  # of one tenant at a time
FIRST_COLLECTION: Final = 60.0  # seconds after the start
COLLECTION: Final = 3_600.0  # seconds between two collections


class TooManyUploads(AtollError):
    """The tenant has too many uploads in progress."""


class SentFileContent(NamedTuple):
    """A file whose content is in memory."""

    hash: bytes
    content: bytes
    packs: bool  # whether it compresses


class AddedManifest(NamedTuple):
    id: str
    missing: list[str]  # hashes


class Uploaded(NamedTuple):
    files: int
    bytes: int


class AssetStore:
    """`postgres`: contents are there, for all nodes, and the folder is a cache of them (shared.py)."""

    def __init__(
        self,
        database: Database,
        data: Path,
        *,
        grace_hours: float = 24.0,
        clock: Callable[[], float] = time.time,
        postgres: Postgres | None = None,
    ) -> None:
        self._database = database
        self.places = FilePlaces(data)
        self._shared = None if postgres is None else SharedContents(postgres, self.places)
        self._grace = int(grace_hours * 3_600_000)
        self._clock = clock
        self._threads = ThreadPoolExecutor(2, "asset-files")
        self._names = asyncio.Lock()  # held while files get or lose their names
        self._bounds: dict[str, AssetBound] = {}
        self._uploads: Counter[str] = Counter()
        self._collecting: asyncio.Task[None] | None = None
        self._preparing = threading.Lock()  # of the threads: the second of two first uploads must not sweep the first
        self._is_ready = False  # the folders are made, and leftovers of a killed node are removed

    @classmethod
    def of(cls, settings: Settings, database: Database, postgres: Postgres | None) -> AssetStore:
        return cls(database, settings.data, grace_hours=settings.asset_grace_hours, postgres=postgres)

    # Deploys

    async def add_manifest(self, tenant: str, text: bytes) -> AddedManifest:
        """Store a checked manifest. Raises QuotaExceeded, InvalidArgument."""
        found = await self._in_thread(read_manifest, text)
        await self._database.follow()  # another node may have received some of its files
        bound, now = self._bounds.get(tenant, AssetBound()), self._now()
        missing = await self._write(partial(add_manifest, tenant=tenant, manifest=found, bound=bound, now=now))
        return AddedManifest(found.id, missing)

    async def take(self, tenant: str, files: Sequence[SentFileContent]) -> None:
        """Store files that no manifest names yet. They are collected if none does later."""

        async def chunks() -> AsyncIterator[bytes]:
            for file in files:
                yield file.hash + len(file.content).to_bytes(8, "big")
                yield file.content

        wanted = {file.hash: WantedFile(file.hash, len(file.content), 0, int(file.packs)) for file in files}
        await self.receive(tenant, chunks(), wanted)

    async def receive(
        self, tenant: str, chunks: AsyncIterator[bytes], wanted: Mapping[bytes, WantedFile] | None = None
    ) -> Uploaded:
        """Store the files of an upload. Those that are complete are kept even if it breaks off or is refused.

        `wanted` are the files that may arrive: those that manifests of the tenant name, unless it is given.
        """
        if self._uploads[tenant] >= MAX_UPLOADS:
            raise TooManyUploads(f"{MAX_UPLOADS} uploads of this tenant are in progress")
        self._uploads[tenant] += 1
        try:
            await self._in_thread(self._make_folders)
            if wanted is None:
                await self._database.follow()  # another node may have taken the manifest
                wanted = await self._database.search(partial(wanted_files, tenant=tenant))
            incoming = await self._in_thread(IncomingFiles, self.places, tenant, wanted)
            try:
                try:
                    await self._feed(incoming, chunks)
                finally:
                    stored = await asyncio.shield(self._keep(tenant, incoming))
            finally:
                await self._in_thread(incoming.close)
            return stored
        except OSError as error:
            raise disk_error(error) from None
        finally:
            self._uploads[tenant] -= 1
            if not self._uploads[tenant]:
                del self._uploads[tenant]

    async def _feed(self, incoming: IncomingFiles, chunks: AsyncIterator[bytes]) -> None:
        batch = bytearray()
        broken: BaseException | None = None
        while True:
            try:
                chunk = await anext(chunks, None)
            except Exception as error:  # the client is gone, or too slow: what has arrived is kept
                broken, chunk = error, None
            if chunk is not None:
                batch += chunk
            if len(batch) >= BATCH or (chunk is None and batch):
                await self._in_thread(incoming.feed, bytes(batch))
                batch.clear()
            if chunk is None:
                break
        if broken is not None:
            raise broken
        if incoming.is_cut:
            raise InvalidArgument("the upload ends inside a file")

    async def _keep(self, tenant: str, incoming: IncomingFiles) -> Uploaded:
        if incoming.arrived:
            async with self._names:
                kept = await self._in_thread(incoming.finish)
                if self._shared is not None:
                    kept = await self._put(self._shared, tenant, kept)
                await self._write(partial(keep_files, tenant=tenant, files=kept, now=self._now()))
        return Uploaded(len(incoming.arrived), sum(each.size for each in incoming.arrived))

    async def deployed(self, tenant: str) -> None:
        """A version with assets became active: old versions may have to go."""
        most = self._bounds.get(tenant, AssetBound()).bytes
        if most is not None:
            dropped = await self._write(partial(trim_versions, tenant=tenant, most=most))
            if dropped:
                log.info("%d old versions of %s were deleted to keep its assets within their quota", dropped, tenant)

    # Tenants

    def bound(self, tenant: str, bound: AssetBound) -> None:
        self._bounds[tenant] = bound

    async def usage(self, tenant: str) -> AssetSize:
        return await self._database.search(partial(usage_of, tenant=tenant))

    async def forget(self, tenant: str) -> None:
        """Delete all files of a deleted tenant."""
        async with self._names:
            await self._write(partial(forget_tenant, tenant=tenant))
            if self._shared is not None:
                await self._shared.forget(tenant)
            await self._in_thread(partial(shutil.rmtree, self.places.tenant(tenant), ignore_errors=True))
        self._bounds.pop(tenant, None)

    # Collection

    def start(self) -> None:
        """Collect files that nothing needs, now and then."""
        self._collecting = asyncio.ensure_future(self._collect_always())

    async def _collect_always(self) -> None:
        if self._shared is None:
            await asyncio.sleep(FIRST_COLLECTION)
        while True:
            try:
                if self._shared is None:
                    await self.collect()
                else:
                    await self.collect_shared(self._shared)
            except (AtollError, OSError, DatabaseClosed) as error:
                log.warning("unused assets could not be removed: %s", error)
            await asyncio.sleep(COLLECTION)

    async def collect(self, grace: int | None = None) -> int:
        """Delete files that no kept version names, after the grace time in ms. Returns their number."""
        await self._in_thread(self._make_folders)
        before = self._now() - (self._grace if grace is None else grace)
        total = 0
        while True:
            async with self._names:
                found = await self._write(partial(collect, before=before))
                await self._in_thread(self._unlink, [(row.tenant, row.hash.hex()) for row in found])
            total += len(found)
            if not found:
                break
        if total:
            log.info("%d files of assets that no version needs were removed", total)
        return total

    async def collect_shared(self, shared: SharedContents, *, seconds: float = COLLECTION) -> None:
        """The same for several nodes: one of them deletes rows and contents, each tidies its folder. `seconds`: what is
        younger is left alone."""
        await self._database.follow()
        await tidy_cache(shared, self._database, self.places, seconds, self._names)
        if await shared.has_turn(seconds * 0.9):
            await self.collect()
            await delete_unneeded(shared, self._database, seconds)

    async def _put(self, shared: SharedContents, tenant: str, files: list[NewFile]) -> list[NewFile]:
        """Put files into PostgreSQL, and drop copies that it has otherwise: they are fetched when they are needed."""
        stored = await shared.put(tenant, files)
        other = [
            self.places.of(tenant, file.hash.hex()) + ending
            for own, file in zip(files, stored, strict=True)
            for ending, is_same in ((".gz", own.gzip == file.gzip), (".br", own.br == file.br))
            if not is_same
        ]
        await self._in_thread(unlink_all, other)
        return stored

    @property
    def bring(self) -> Bring | None:
        """Fetches a file that is not on this node, by tenant and place. None: all files are here."""
        return None if self._shared is None else partial(self._bring, self._shared)

    async def _bring(self, shared: SharedContents, tenant: str, place: str) -> None:
        if not self._is_ready:  # else the first upload would sweep the file that is being fetched
            await self._in_thread(self._make_folders)
        await shared.bring(tenant, place)

    async def bring_all(self, tenant: str, places: Sequence[str]) -> None:
        """Fetch those files that are not on this node."""
        if self._shared is not None:
            for place in await self._in_thread(lambda: [each for each in places if not os.path.exists(each)]):
                await self._bring(self._shared, tenant, place)

    async def _write(self, act: Callable[[Connection], T]) -> T:
        """A write that depends on nothing in memory, so it is right whatever other nodes have changed."""
        return await self._database.write(act, anyway=True)

    def _unlink(self, files: list[tuple[str, str]]) -> None:
        for tenant, digest in files:
            self.places.unlink(tenant, digest)

    def _make_folders(self) -> None:
        with self._preparing:
            if not self._is_ready:
                shutil.rmtree(self.places.incoming, ignore_errors=True)
                os.makedirs(self.places.incoming, mode=0o700, exist_ok=True)
                self._is_ready = True

    async def close(self) -> None:
        if self._collecting is not None:
            self._collecting.cancel()
            await asyncio.wait([self._collecting])
        if self._shared is not None:
            await self._shared.close()
        self._threads.shutdown(wait=True, cancel_futures=True)

    async def _in_thread(self, act: Callable[..., T], *args: object) -> T:
        """Run in a thread to its end, even if the caller is cancelled: it uses files."""
        future = asyncio.get_running_loop().run_in_executor(self._threads, partial(act, *args))
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            await asyncio.wait([future])
            raise

    def _now(self) -> int:
        return int(self._clock() * 1000)


def disk_error(error: OSError) -> StorageFailed:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageFailed("the disk of this node is full")
    return StorageFailed(f"the storage of this node cannot be written: {error.strerror}")
