"""Keeps the cached files of objects up to date with their durable commits, and stores their chunks from time to time.

A commit is written to the file soon after it is durable: until then the engine holds its pages in memory. When enough
commits have gathered in the database, the chunks that they touched are read from the file and stored there, and the
commits are deleted. The file may be some commits ahead of the number that the chunks are stored under: those commits
stay in the log, and whoever restores the object writes their pages over it again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

from atoll.errors import StorageFailed
from atoll.objects.faults import storage_failed
from atoll.objects.shared.bodies import CHUNK_BYTES, CHUNK_PAGES
from atoll.objects.shared.cached_files import CachedFiles, Laid
from atoll.objects.shared.owned import OwnedObject
from atoll.objects.shared.rows import NotOwner, ObjectRows, Taken
from atoll.objects.store import ObjectDamaged, ObjectKey

T = TypeVar("T")

log = logging.getLogger("atoll.objects")

WRITE_SECONDS: Final = 0.5  # after which commits are written
WRITE_BYTES: Final = 8 << 20  # that are written at once
RETRY_SECONDS: Final = 1.0
FOLD_BYTES: Final = 4 << 20  # of pages in the log,
FOLD_COMMITS: Final = 4_096  # or commits, before chunks are stored,
FOLD_COST: Final = 8  # and chunks are at most so many times the pages
SOME_CHUNKS: Final = 64
SOME_COMMITS: Final = 64
SOME_BYTES: Final = 8 << 20
LOST: Final = "the database does not have all commits of this object"


class CacheWriter:
    def __init__(self, rows: ObjectRows, files: CachedFiles) -> None:
        self._rows = rows
        self.files = files
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="files of objects")
        self._dirty: dict[ObjectKey, OwnedObject] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._folding: set[ObjectKey] = set()
        self._bytes = 0
        self.on_written: Callable[[ObjectKey, int], None] = lambda key, sequence: None
        self.folds = 0

    async def run(self, act: Callable[..., T], *args: object) -> T:
        """In the thread of files. It ends even if the caller is cancelled."""
        return await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._thread, act, *args))

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.to_thread(self._thread.shutdown)

    # Writing

    @property
    def held(self) -> int:
        return self._bytes

    def add(self, each: OwnedObject, size: int) -> None:
        """It has one more pending commit."""
        self._dirty[each.key] = each
        self._bytes += size
        if self._timer is None:
            seconds = WRITE_SECONDS if self._bytes < WRITE_BYTES else 0
            self._timer = asyncio.get_running_loop().call_later(seconds, self._begin)

    def _begin(self) -> None:
        self._timer = None
        self._start(self._write_all())

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _write_all(self) -> None:
        for each in list(self._dirty.values()):
            try:
                await self.write(each)
            except StorageFailed as error:
                log.error("the cache of an object cannot be written: %s", error)
                if self._timer is None:
                    self._timer = asyncio.get_running_loop().call_later(RETRY_SECONDS, self._begin)
                return

    async def write(self, each: OwnedObject) -> None:
        """Write what is pending of one object. Raises StorageFailed if the disk does not work."""
        while each.writing is not None:
            await asyncio.shield(each.writing)
        records = list(each.pending)
        if not records:
            return
        each.writing = asyncio.get_running_loop().create_future()
        born = each.chain.born
        try:
            touched = await self.run(self.files.lay_records, born, records)
        except OSError as error:
            raise storage_failed(error, self.files.folder) from None
        finally:
            writing, each.writing = each.writing, None
            writing.set_result(None)
        if each.file_born == born:
            each.touched |= touched
            each.file_seq = records[-1].sequence
            self._written(each, len(records))
            self.on_written(each.key, each.file_seq)
            self._fold_if_much(each)

    def _written(self, each: OwnedObject, count: int) -> None:
        size = sum(record.size for record in each.pending[:count])
        self._bytes -= size
        each.pending_bytes -= size
        del each.pending[:count]
        if not each.pending:
            self._dirty.pop(each.key, None)

    def drop(self, each: OwnedObject) -> None:
        """Its file is of no use any more."""
        self._written(each, len(each.pending))
        each.forget_file()

    # Restoring

    async def bring(self, each: OwnedObject, taken: Taken) -> None:
        """Make the file what the database says: nobody has opened the object. Raises StorageFailed."""
        try:
            if each.file_born == taken.born and each.file_seq == taken.seq:
                return
            if each.file_born == taken.born and each.file_seq > taken.seq:
                each.damage = LOST  # until the node is started again: whoever builds on it loses them for good
                raise ObjectDamaged(LOST)
            async with self._rows.reading(taken.born) as contents:
                facts = await contents.facts()
                if facts is None or facts.seq != taken.seq:
                    raise StorageFailed("another node has taken this object")
                if each.file_born != taken.born or each.file_seq < facts.folded:
                    self.drop(each)
                    await self.run(self.files.make, taken.born)
                    await self._bring_chunks(taken.born, contents.chunks())
                    each.file_born, each.file_seq = taken.born, facts.folded
                    if taken.seq == facts.folded:
                        await self.run(self.files.finish, taken.born, taken.pages)
                each.logged = taken.seq - facts.folded
                await self._bring_commits(each, contents.commits(each.file_seq))
            if each.file_seq != taken.seq:
                raise ObjectDamaged(LOST)
        except OSError as error:
            each.forget_file()
            raise storage_failed(error, self.files.folder) from None
        except BaseException:
            each.forget_file()
            raise

    async def _bring_chunks(self, born: int, chunks: AsyncIterator[tuple[int, bytes]]) -> None:
        some: list[tuple[int, bytes]] = []
        async for chunk in chunks:
            some.append(chunk)
            if len(some) >= SOME_CHUNKS:
                await self.run(self.files.lay_chunks, born, some)
                some = []
        if some:
            await self.run(self.files.lay_chunks, born, some)

    async def _bring_commits(self, each: OwnedObject, commits: AsyncIterator[tuple[int, int, bytes]]) -> None:
        some: list[Laid] = []
        size = 0
        async for commit in commits:
            some.append(Laid(*commit))
            size += len(some[-1].body)
            if len(some) >= SOME_COMMITS or size >= SOME_BYTES:
                await self._lay(each, some)
                some, size = [], 0
        if some:
            await self._lay(each, some)

    async def _lay(self, each: OwnedObject, some: list[Laid]) -> None:
        each.touched |= await self.run(self.files.lay_commits, each.file_born, each.file_seq, some)
        each.file_seq = some[-1].seq
        each.logged_bytes += sum(len(commit.body) for commit in some)

    # Folding

    def _fold_if_much(self, each: OwnedObject) -> None:
        is_much = each.logged >= FOLD_COMMITS or (
            each.logged_bytes >= FOLD_BYTES and each.logged_bytes * FOLD_COST >= len(each.touched) * CHUNK_BYTES
        )
        if is_much and each.key not in self._folding and not each.chain.is_broken:
            self._folding.add(each.key)
            self._start(self._fold(each))

    async def _fold(self, each: OwnedObject) -> None:
        chain, seq, pages = each.chain, each.file_seq, each.pages
        touched, logged, logged_bytes = each.touched, each.logged, each.logged_bytes
        each.touched, each.logged, each.logged_bytes = set(), each.seq - seq, 0
        numbers = sorted(touched)
        try:
            async with self._rows.folding(chain.born, chain.epoch, seq, -(-pages // CHUNK_PAGES)) as fold:
                for start in range(0, len(numbers), SOME_CHUNKS):
                    some = await self.run(self.files.packed, chain.born, numbers[start : start + SOME_CHUNKS])
                    await fold.store(some)
            self.folds += 1
        except (StorageFailed, NotOwner, OSError) as error:
            log.debug("the chunks of an object cannot be stored: %s", error)
            if each.file_born == chain.born:  # else it was restored meanwhile, and counts anew
                each.touched |= touched
                each.logged, each.logged_bytes = each.logged + logged, each.logged_bytes + logged_bytes
        finally:
            self._folding.discard(each.key)
