"""Merges what the journal has into the files of objects, in the background and in bounded steps.

A step: write pages to the files of some objects, sync them, tell the index, then let go of the journal's segments that
nobody needs any more. The order makes a crash at any point harmless.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import TypeVar

from atoll.db.folder import WORK_PREFIX
from atoll.errors import StorageFailed
from atoll.objects.durable import Record
from atoll.objects.faults import storage_failed
from atoll.objects.files import Base, ObjectFiles
from atoll.objects.history import History
from atoll.objects.index import ObjectIndex, ObjectRow
from atoll.objects.journal import Journal
from atoll.objects.keeping import HistoryKeeper
from atoll.objects.store import ObjectDamaged, ObjectKey
from atoll.objects.table import ObjectState, ObjectTable

T = TypeVar("T")

log = logging.getLogger("atoll.objects")

MERGE_BYTES = 32 << 20  # pending bytes that begin a round; many commits of one page are written once
MERGE_SECONDS = 2.0  # after which a round begins anyway: engines hold pages in memory until they are merged
RETRY_SECONDS = 1.0  # after a fault of the disk
STEP_OBJECTS = 1024
STEP_BYTES = 32 << 20
JOB_OBJECTS = 16  # merged without a pause: who opens an object waits for it

Job = tuple[ObjectKey, Base, Sequence[Record]]


class Merger:
    def __init__(
        self,
        data: Path,
        table: ObjectTable,
        index: ObjectIndex,
        files: ObjectFiles,
        journal: Journal,
        history: History,
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._data = data
        self._table = table
        self._index = index
        self._files = files
        self._journal = journal
        self._history = history
        self._keeper = HistoryKeeper(history, files, self.in_file_thread)
        self._file_thread = ThreadPoolExecutor(1, thread_name_prefix="files of objects")  # one: no two write one file
        self._sync_thread = ThreadPoolExecutor(1, thread_name_prefix="sync of objects")
        self.turn = asyncio.Lock()  # held while files are merged or deleted
        self.on_merged: Callable[[ObjectKey, int], None] = lambda key, sequence: None
        self.error: StorageFailed | None = None  # why nothing can be merged now
        self._wake = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None
        self._removed_before = 0
        self._task = asyncio.ensure_future(self._run())

    def notice(self) -> None:
        """Some records are pending."""
        if self._table.pending_bytes >= MERGE_BYTES:
            self._wake.set()
        elif self._timer is None and self._table.dirty:
            self._timer = self._loop.call_later(MERGE_SECONDS, self.hurry)

    def hurry(self) -> None:
        self._wake.set()

    async def in_file_thread(self, act: Callable[..., T], *args: object) -> T:
        """Run `act` after what other jobs do to files. It ends even if the caller is cancelled."""
        return await asyncio.shield(self._loop.run_in_executor(self._file_thread, act, *args))

    def post(self, act: Callable[..., object], *args: object) -> None:
        """Like in_file_thread, without waiting for it."""
        with suppress(RuntimeError):  # it has stopped
            self._file_thread.submit(act, *args)

    async def close(self, *, merge: bool) -> None:
        """Merge what is left, if the disk works and the journal can be trusted."""
        self._task.cancel()
        await asyncio.wait([self._task])
        if self._timer is not None:
            self._timer.cancel()
        if merge:
            with suppress(StorageFailed):
                await self._finish_all()
        await self._loop.run_in_executor(None, self._end_threads)

    async def _finish_all(self) -> None:
        await self._round()
        if not self._table.dirty:
            self._table.newest_segment += 1  # nobody writes to the last one any more
            await self.release()

    def _end_threads(self) -> None:
        self._file_thread.shutdown()
        self._sync_thread.shutdown()

    async def _run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            try:
                await self._round()
                self._fault(None)
            except StorageFailed as error:
                self._fault(error)
            except Exception as error:  # a bug must not stop all commits without a word
                log.exception("objects cannot be merged")
                self._fault(StorageFailed(f"the storage of this node failed: {type(error).__name__}"))
            if self.error is not None:
                self._timer = self._loop.call_later(RETRY_SECONDS, self.hurry)
            else:
                self.notice()

    def _fault(self, error: StorageFailed | None) -> None:
        self.error = error
        self._journal.merging_failed(error)

    async def _round(self) -> None:
        """Everything that is pending now."""
        waiting = list(self._table.dirty.values())
        waiting.reverse()
        while waiting:
            async with self.turn:
                await self._step(_take(waiting))
            await self.release()
        await self.release()
        if self._history.is_on:
            if not any(state.is_replayed for state in self._table.every()):
                await self._loop.run_in_executor(self._sync_thread, self._history.trust)
            restoring = [state.key for state in self._table.every() if state.restore is not None]
            await self._history.trim([*restoring, *await self._index.restoring()])

    async def flush(self, state: ObjectState) -> None:
        """Merge what is pending of one object. Raises StorageFailed if the disk does not work."""
        async with self.turn:
            if state.pending and not state.is_deleted and not state.is_opening:
                await self._step([state])

    @asynccontextmanager
    async def still(self, state: ObjectState) -> AsyncIterator[None]:
        """While this is held, everything that was pending of an object is in its file, and nobody changes that.

        The object is neither opened nor deleted meanwhile: see ObjectTable.alone_with. Keep it short: nothing else is
        merged either.
        """
        async with self.turn:
            if state.pending and not state.is_deleted:
                await self._step([state])
            yield

    async def open(self, state: ObjectState) -> int:
        """A descriptor to read an object from, with everything pending in its file."""
        while state.merging is not None:
            await asyncio.shield(state.merging)
        state.is_opening = True
        try:
            await self._keeper.keep([state])
            opening = self._loop.run_in_executor(
                self._file_thread, self._files.open, state.key, state.base, list(state.pending)
            )
            try:
                return await asyncio.shield(opening)
            except asyncio.CancelledError:
                opening.add_done_callback(_close_descriptor)
                raise
        finally:
            state.is_opening = False

    async def _step(self, states: Sequence[ObjectState]) -> None:
        for state in states:
            state.merging = self._loop.create_future()
        try:
            await self._merge(states)
        finally:
            for state in states:
                _end_merging(state)

    async def _merge(self, states: Sequence[ObjectState]) -> None:
        jobs: list[Job] = [(state.key, state.base, list(state.pending)) for state in states]
        rows = [self._table.snapshot(state) for state in states]
        results: list[int | ObjectDamaged] = []
        await self._keeper.keep(states)
        try:
            for at in range(0, len(jobs), JOB_OBJECTS):
                results += await self.in_file_thread(self._merge_some, jobs[at : at + JOB_OBJECTS])
                for state in states[at : at + JOB_OBJECTS]:
                    _end_merging(state)  # who opens it from now on finds in the file what this merge has
            changed = [job[0] for job, result in zip(jobs, results, strict=True) if _is_in_file(job, result)]
            new = {state.key for state in states if not state.row.merged_group}
            await self._loop.run_in_executor(self._sync_thread, self._files.sync, changed, new.intersection(changed))
        except OSError as error:
            raise storage_failed(error, self._files.folder) from None
        finished = [_finished(*each) for each in zip(states, rows, results, strict=True)]
        await self._index.put(finished)
        for state, row, (_, _, records) in zip(states, finished, jobs, strict=True):
            self._finish(state, row, len(records))

    def _merge_some(self, jobs: Sequence[Job]) -> list[int | ObjectDamaged]:
        results: list[int | ObjectDamaged] = []
        for key, base, records in jobs:
            try:
                results.append(self._files.merge(key, base, records))
            except ObjectDamaged as error:
                results.append(error)
        return results

    def _finish(self, state: ObjectState, row: ObjectRow, count: int) -> None:
        if row.damage is not None and state.damage is None:
            log.error("object %s of namespace %s is refused: %s", row.id, row.namespace, row.damage)
            state.damage = row.damage
        self._table.merged(state, count, row)
        if state.is_open and state.damage is None:
            self.on_merged(state.key, state.merged)
        self._table.forget_if_idle(state)

    # Segments

    async def release(self) -> None:
        """Let go of segments that are merged. Their files stay during a backup, which copies the journal last."""
        before = self._table.oldest_segment
        self._journal.release(before)
        if before > self._removed_before and await self._loop.run_in_executor(self._sync_thread, self._remove, before):
            self._removed_before = before

    def _remove(self, before: int) -> bool:
        if any(path.is_dir() for path in self._data.glob(f"{WORK_PREFIX}*")):
            return False
        try:
            self._journal.remove(before)
        except OSError as error:
            log.warning("a segment of the journal of objects cannot be removed: %s", error)
            return False
        return True


def _take(waiting: list[ObjectState]) -> list[ObjectState]:
    """Some objects from the end of the list, as many as a step takes."""
    found: list[ObjectState] = []
    size = 0
    while waiting and len(found) < STEP_OBJECTS and size < STEP_BYTES:
        state = waiting.pop()
        if state.pending and not state.is_deleted and not state.is_opening:
            found.append(state)
            size += state.pending_bytes
    return found


def _end_merging(state: ObjectState) -> None:
    if state.merging is not None:
        state.merging.set_result(None)
        state.merging = None


def _close_descriptor(opening: asyncio.Future[int]) -> None:
    if not opening.cancelled() and opening.exception() is None:
        os.close(opening.result())


def _is_in_file(job: Job, result: int | ObjectDamaged) -> bool:
    _, base, records = job
    return isinstance(result, int) and (base.pages > 0 or any(record.pages for record in records))


def _finished(state: ObjectState, row: ObjectRow, result: int | ObjectDamaged) -> ObjectRow:
    if isinstance(result, int):
        return row._replace(first_page=result)
    return state.row._replace(damage=str(result), merged_group=row.merged_group)
