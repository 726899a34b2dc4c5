"""Durable Objects on the disk of this node: the journal, the files, the index and what is known in memory, joined.

objects/index.db    what is in the files
objects/files/      a file for each object (files.py)
objects/journal/    commits that are not in the files yet (journal.py)
objects/history.db  how to undo commits (history.py)
objects/trash/      files of deleted namespaces, until they are removed
"""

from __future__ import annotations

import asyncio
import heapq
import logging
import shutil
import time
from collections.abc import Callable
from pathlib import Path

from atoll.errors import StorageFailed
from atoll.objects.checks import CROWDED, MAX_HELD, MAX_PAGES, check_commit
from atoll.objects.copying import Copier
from atoll.objects.durable import CLEAR_ALARM, COMMIT, DELETE, DELETE_NAMESPACE, Record
from atoll.objects.faults import storage_failed
from atoll.objects.files import ObjectFiles
from atoll.objects.history import History, HistoryBounds
from atoll.objects.index import ObjectIndex
from atoll.objects.journal import MAX_JOURNAL, SEGMENT, Journal, sync_folder
from atoll.objects.merger import Merger
from atoll.objects.point_in_time import PointInTime
from atoll.objects.recovery import Recovery, recover
from atoll.objects.replay import replay
from atoll.objects.store import (
    DELETE_ALARM,
    NO_ALARM,
    PAGE,
    Alarm,
    Commit,
    Damaged,
    Done,
    InvalidCommit,
    ListedObject,
    NamespaceSize,
    ObjectDamaged,
    ObjectKey,
    Opened,
    check_key,
)
from atoll.objects.table import ObjectState

log = logging.getLogger("atoll.objects")

FOLDER = "objects"
TOO_MUCH = "too many commits of objects wait for the disk of this node"
NOBODY = ObjectKey("", "")
BOUNDS = HistoryBounds()


class LocalObjects:
    """Implements ObjectStorage. `start` makes it."""

    def __init__(
        self,
        data: Path,
        recovery: Recovery,
        index: ObjectIndex,
        files: ObjectFiles,
        journal: Journal,
        history: History,
        most_pages: int,
    ) -> None:
        self._history = history
        self._index = index
        self._files = files
        self._table = recovery.table
        self._alarms = recovery.alarms
        self._trash = data / FOLDER / "trash"
        self._most_pages = most_pages
        self.lost = recovery.lost  # not empty: why no object can be opened
        self._journal = journal
        self._merger = Merger(data, self._table, index, files, journal, history)
        self.past = PointInTime(self._table, self._merger, history, files, self._trash, self._store)
        self.copy = Copier(self._table, self._merger, history, files, self._trash, self._store).copy
        journal.on_full = self._merger.hurry
        self.on_merged: Callable[[ObjectKey, int], None] = lambda key, sequence: None
        self.on_alarms: Callable[[], None] = lambda: None
        self._merger.on_merged = lambda key, sequence: self.on_merged(key, sequence)

    @classmethod
    async def start(
        cls,
        data: Path,
        *,
        segment: int = SEGMENT,
        most: int = MAX_JOURNAL,
        most_pages: int = MAX_PAGES,
        bounds: HistoryBounds = BOUNDS,
    ) -> LocalObjects:
        """Open what is stored in the data folder and replay the journal."""
        folder = data / FOLDER
        files = ObjectFiles(folder / "files", folder / "journal")
        await asyncio.to_thread(_make_folders, folder)
        replayed = await asyncio.to_thread(replay, folder / "journal")
        index = ObjectIndex(folder / "index.db")
        try:
            recovery = await recover(index, replayed)
            history = History(folder / "history.db", bounds)
        except BaseException:
            await index.close()
            raise
        store: LocalObjects
        replayed = replayed._replace(next_group=recovery.next_group)
        journal = Journal(folder / "journal", replayed, lambda batch: store._settle(batch), segment=segment, most=most)
        store = cls(data, recovery, index, files, journal, history, most_pages)
        if not store.lost:
            await store._finish_deletions(recovery)
            store._merger.hurry()
        return store

    async def stop(self) -> None:
        """Finish what is under way and merge everything, if the disk works."""
        await self._journal.close()
        await self._merger.close(merge=not self.lost)
        await self._index.close()
        await self._history.close()

    # Objects in use

    async def open(self, key: ObjectKey) -> Opened:
        check_key(key)
        self._refuse_if_lost()
        async with self._table.alone_with(key) as state:
            if state.damage is not None:
                raise ObjectDamaged(state.damage, str(self._files.path(key)))
            if state.is_deleted:
                await self._remove_file(state)
            if state.restore is not None:
                await self.past.restore(state)
            try:
                fd = await self._open_file(state)
            except OSError as error:
                raise storage_failed(error, self._files.path(key)) from None
            except ObjectDamaged as error:
                await self._mark_damaged(state, error)
                raise
            state.restart()
            state.is_open = True
            state.merged = state.sequence
            alarm = self._alarms.get(key)
            return Opened(fd, state.pages, state.sequence, alarm.at_ms if alarm is not None else NO_ALARM)

    async def _open_file(self, state: ObjectState) -> int:
        while True:
            row = state.row
            try:
                return await self._merger.open(state)
            except (OSError, ObjectDamaged):
                if state.row is row:
                    raise
                # Its records were merged while the job waited, and their segments may be gone: look again

    def close(self, key: ObjectKey) -> None:
        state = self._table.get(key)
        if state is not None:
            state.is_open = False
            if state.is_idle and not state.pages:
                self._merger.post(self._files.discard_empty, key)
            self._table.forget_if_idle(state)

    def commit(self, key: ObjectKey, commit: Commit, done: Done) -> None:
        state = self._table.get(key)
        if state is None or not state.is_open:
            raise InvalidCommit("a commit of an object that is not open")
        check_commit(commit, state.queued, self._most_pages)
        record = Record(COMMIT, key, commit.sequence, commit.pages, bytes(commit.numbers), commit.contents)
        record.alarm, record.alarm_ms = commit.alarm, commit.alarm_ms
        record.chain, record.done = state.chain, done
        record.at_ms = state.queued_ms = max(int(time.time() * 1000), state.queued_ms)
        if self.held + record.size > MAX_HELD:
            record.refuse(StorageFailed(TOO_MUCH))
        elif state.damage is not None:
            record.refuse(ObjectDamaged(state.damage))
        state.queued = commit.sequence
        state.began()
        self._journal.add(record)

    def merged(self, key: ObjectKey) -> int:
        state = self._table.get(key)
        return state.merged if state is not None else 0

    async def merge(self, key: ObjectKey) -> None:
        await self._merger.flush(self._table.state(key))

    @property
    def held(self) -> int:
        return self._journal.held

    @property
    def is_crowded(self) -> bool:
        return self._journal.held > CROWDED

    @property
    def is_waiting(self) -> bool:
        """True if the journal is full and commits wait until it is merged."""
        return self._journal.is_full

    def _settle(self, batch: list[Record]) -> None:
        """A group is durable, or could not be stored."""
        alarms_changed = False
        for record in batch:
            state = self._table.get(record.key)
            if record.error is None and state is not None:
                alarms_changed |= self._table.apply(state, record)
            elif record.error is None:
                self._table.hold_segment(record)  # of a namespace
        for record in batch:
            try:
                assert record.done is not None
                record.done(record.error)
            except Exception:
                log.exception("what waited for a commit of an object failed")
            if (state := self._table.get(record.key)) is not None:
                state.ended()
        self._merger.notice()
        if alarms_changed:
            self.on_alarms()

    # Alarms

    def next_alarm(self) -> int | None:
        return self._alarms.next()

    def due_alarms(self, now_ms: int, limit: int) -> list[Alarm]:
        return self._alarms.due(now_ms, limit)

    def retry_alarm(self, alarm: Alarm, at_ms: int) -> None:
        self._alarms.retry(alarm, at_ms)
        self.on_alarms()

    async def clear_alarm(self, alarm: Alarm) -> None:
        if self._alarms.get(alarm.key) == alarm:
            record = Record(CLEAR_ALARM, alarm.key, alarm.sequence, alarm=DELETE_ALARM)
            await self._store(self._table.state(alarm.key), record)

    # Everything else

    async def delete(self, key: ObjectKey) -> None:
        check_key(key)
        self._refuse_if_lost()
        async with self._table.alone_with(key) as state:
            if state.is_open:
                raise ValueError("an object that is open cannot be deleted")
            record = Record(DELETE, key)
            record.chain = state.chain
            await self._store(state, record)
            await self._remove_file(state)
            state.restart()

    async def delete_namespace(self, namespace: str) -> None:
        self._refuse_if_lost()
        if any(state.is_open for state in self._table.of_namespace(namespace)):
            raise ValueError("a namespace with open objects cannot be deleted")
        for state in self._table.of_namespace(namespace):
            await state.quiet()
        record = Record(DELETE_NAMESPACE, ObjectKey(namespace, ""))
        await self._store(None, record)
        await self._remove_namespace(namespace, record.group)
        self._table.release_segment(record)

    async def list_objects(self, namespace: str, cursor: str, limit: int) -> list[ListedObject]:
        new = set(self._table.unlisted.get(namespace, ()))  # before the index is searched: a merge moves them there
        found = {each.id: each for each in await self._index.list_objects(namespace, cursor, limit)}
        for id in await asyncio.to_thread(_smallest, new, cursor, limit):
            if id not in found:
                found[id] = ListedObject(id, self._index.get(ObjectKey(namespace, id)).pages * PAGE)
        ids = sorted(found)[:limit]
        return [self._as_it_is(namespace, found[id]) for id in ids]

    def _as_it_is(self, namespace: str, listed: ListedObject) -> ListedObject:
        state = self._table.get(ObjectKey(namespace, listed.id))
        return ListedObject(listed.id, state.pages * PAGE) if state is not None else listed

    def size(self, namespace: str) -> NamespaceSize:
        return self._table.size(namespace)

    async def damaged(self) -> list[Damaged]:
        found = await self._index.damaged()
        return [Damaged(NOBODY, self.lost), *found] if self.lost else found

    @property
    def is_empty(self) -> bool:
        return self._table.is_empty and self.next_alarm() is None

    @property
    def shared(self) -> None:
        return None

    # Inside

    def _refuse_if_lost(self) -> None:
        if self.lost:
            raise ObjectDamaged(f"no object can be used, since it is not known which ones are affected: {self.lost}")

    async def _store(self, state: ObjectState | None, record: Record) -> None:
        """Make a record durable. Raises if it cannot."""
        stored: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        record.done = lambda error: _resolve(stored, error)
        if state is not None:
            state.began()
        self._journal.add(record)
        await stored

    async def _remove_file(self, state: ObjectState) -> None:
        """The deletion of an object is durable: carry it out."""
        async with self._merger.turn:
            try:
                await self._merger.in_file_thread(self._files.delete, state.key)
            except OSError as error:
                raise storage_failed(error, self._files.path(state.key)) from None
            await self._history.delete(state.key)
            await self._index.delete(state.key)
            self._table.deleted(state)

    async def _remove_namespace(self, namespace: str, group: int) -> None:
        async with self._merger.turn:
            folder = self._files.namespace_folder(namespace)
            try:
                await self._merger.in_file_thread(_move_away, folder, self._trash / f"{group:x}")
            except OSError as error:
                raise storage_failed(error, folder) from None
            await self._history.delete_namespace(namespace)
            await self._index.delete_namespace(namespace, group)
            self._table.namespace_deleted(namespace)
        await asyncio.to_thread(shutil.rmtree, self._trash / f"{group:x}", ignore_errors=True)

    async def _mark_damaged(self, state: ObjectState, error: ObjectDamaged) -> None:
        if state.damage is None:
            state.damage = str(error)
            log.error("object %s of namespace %s is refused: %s (%s)", *reversed(state.key), error, error.path)
            state.row = state.row._replace(damage=state.damage)
            await self._index.put([state.row])

    async def _finish_deletions(self, recovery: Recovery) -> None:
        """Carry out deletions that a crash interrupted."""
        for record in recovery.deleted_namespaces:
            await self._remove_namespace(record.key.namespace, record.group)
            self._table.release_segment(record)
        for state in [state for state in self._table.dirty.values() if state.is_deleted]:
            await self._remove_file(state)
        await asyncio.to_thread(_empty, self._trash)


def _resolve(stored: asyncio.Future[None], error: Exception | None) -> None:
    if stored.done():
        return  # the caller was cancelled
    if error is None:
        stored.set_result(None)
    else:
        stored.set_exception(error)


def _make_folders(folder: Path) -> None:
    for name in ("files", "journal", "trash"):
        (folder / name).mkdir(mode=0o700, parents=True, exist_ok=True)


def _smallest(ids: set[str], cursor: str, limit: int) -> list[str]:
    return heapq.nsmallest(limit, (id for id in ids if id > cursor))


def _move_away(folder: Path, trash: Path) -> None:
    """One step, however much is in it."""
    if folder.exists():
        folder.rename(trash)
        sync_folder(folder.parent)


def _empty(trash: Path) -> None:
    for path in trash.iterdir():
        shutil.rmtree(path, ignore_errors=True)
