"""Takes objects back to a point in their history.

A restore is asked for while an object is in use, and carried out before it is opened again. The wish is a record of the
journal. The restore itself is one or more commits with the pages that differ; nobody opens the object before the last
of them is durable, and a crash in between begins again from where it is. So an object is seen before or after a
restore, never between. Since it is made of commits, a restore can be undone like anything else.
"""

from __future__ import annotations

import logging
import os
import struct
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from atoll.errors import InvalidArgument, StorageFailed
from atoll.objects.bookmarks import Bookmark, decode_bookmark, encode_bookmark
from atoll.objects.durable import COMMIT, LAST_PART, NO_RESTORE, PART, RESTORE, Record
from atoll.objects.faults import storage_failed
from atoll.objects.files import ObjectFiles
from atoll.objects.history import History, StepPart
from atoll.objects.merger import Merger
from atoll.objects.store import PAGE, ObjectDamaged, ObjectKey
from atoll.objects.table import ObjectState, ObjectTable, Restore
from atoll.objects.undo import read_entries

log = logging.getLogger("atoll.objects")

COMMIT_PAGES = 1024  # of one commit of a restore

Store = Callable[[ObjectState, Record], Awaitable[None]]


class PointInTime:
    def __init__(
        self, table: ObjectTable, merger: Merger, history: History, files: ObjectFiles, scratch: Path, store: Store
    ) -> None:
        self._table = table
        self._merger = merger
        self._history = history
        self._files = files
        self._scratch = scratch
        self._store = store

    def current(self, key: ObjectKey) -> str:
        """The bookmark of what is durable now. It sorts after those of earlier commits, and before those of later ones.

        Its time is never ahead of the clock: the history tells by it whether a bookmark is of this object's life.
        """
        state = self._table.state(key)
        state.marks.add(state.sequence)
        state.queued_ms = max(int(time.time() * 1000), state.queued_ms)
        text = encode_bookmark(key, Bookmark(state.queued_ms, state.sequence))
        self._table.forget_if_idle(state)
        return text

    async def at(self, key: ObjectKey, at_ms: int) -> str:
        """The bookmark of the last state at a time. InvalidArgument if that is not known any more."""
        state = self._table.state(key)
        state.pins += 1
        try:
            if at_ms >= state.at_ms:
                return self.current(key)
            self._refuse_if_off()
            await self._merger.flush(state)
            found = await self._history.point_at(key, at_ms)
            if found is None:
                oldest = await self._history.oldest(key)
                since = oldest.at_ms if oldest is not None and oldest.at_ms else state.at_ms
                raise InvalidArgument(f"There is no history of this object before {_shown(since)}.")
            return encode_bookmark(key, Bookmark(found.at_ms, found.sequence))
        finally:
            state.pins -= 1
            self._table.forget_if_idle(state)

    async def ask(self, key: ObjectKey, text: str) -> str:
        """Restore an object before it is opened again. Returns the bookmark that undoes it.

        InvalidArgument if it is not a bookmark of this object, or its point is not known any more.
        """
        state = self._table.state(key)
        state.pins += 1
        try:
            target = await self._resolve(state, text)
            record = Record(RESTORE, key, target, alarm_ms=state.sequence)
            now_ms = max(int(time.time() * 1000), state.at_ms)
            undo = encode_bookmark(key, Bookmark(now_ms, state.sequence, is_before_restore=True))
            await self._store(state, record)
            return undo
        finally:
            state.pins -= 1
            self._table.forget_if_idle(state)

    async def _resolve(self, state: ObjectState, text: str) -> int:
        """The commit that a bookmark stands for."""
        self._refuse_if_off()
        key = state.key
        bookmark = decode_bookmark(key, text)
        if bookmark is None:
            raise InvalidArgument("This is not a bookmark of this object.")
        if bookmark.is_before_restore:
            if state.restore is not None and state.restore.asked == bookmark.sequence:
                return NO_RESTORE  # it has not happened yet
            await self._merger.flush(state)
            found = await self._history.before_restore(key, bookmark.sequence)
            if found is not None:
                return found.sequence
        elif bookmark.sequence == state.sequence and bookmark.at_ms >= state.at_ms:
            state.marks.add(state.sequence)
            return state.sequence
        elif bookmark.sequence < state.sequence:
            await self._merger.flush(state)
            found = await self._history.point(key, bookmark.sequence)
            if found is not None and found.at_ms <= bookmark.at_ms <= found.until_ms:
                return found.sequence
        raise InvalidArgument("The history of this object does not have this bookmark, or not any more.")

    def _refuse_if_off(self) -> None:
        if not self._history.is_on:
            raise InvalidArgument("This node keeps no history of objects: its setting `object_history_days` is 0.")

    # Carrying it out

    async def carry_out(self, key: ObjectKey) -> bool:
        """Restore an object now, if it was asked for. False if it is open."""
        async with self._table.alone_with(key) as state:
            if state.restore is not None and not state.is_open:
                await self.restore(state)
            return state.restore is None

    async def restore(self, state: ObjectState) -> None:
        """Carry out the restore that was asked for. Nobody else uses the object."""
        wanted = state.restore
        assert wanted is not None
        await self._merger.flush(state)
        try:
            with Scratch(self._scratch, self._files.path(state.key), state.pages) as scratch:
                pages = await self._build(state, wanted.to, scratch)
                numbers = await self._merger.in_file_thread(scratch.changed, pages)
                await self._commit(state, wanted, scratch, numbers, pages)
        except ObjectDamaged as error:
            # Nothing is changed yet: the object stays what it is, rather than being lost as a whole
            log.error("object %s of namespace %s is not restored: %s", *reversed(state.key), error)
            await self._store(state, Record(RESTORE, state.key, NO_RESTORE))
        except OSError as error:
            raise storage_failed(error, self._scratch) from None

    async def _build(self, state: ObjectState, to: int, scratch: Scratch) -> int:
        """Undo step after step in the scratch file. Returns the number of pages then."""
        number, parts = await self._history.steps(state.key, to)
        expected, pages = state.sequence, state.pages
        for part in parts:
            if part.part == 0:
                if part.last != expected:
                    raise ObjectDamaged(f"the history has no step back from commit {expected}")
                expected, pages = part.first, part.pages
            data = await self._history.data(number, part)
            await self._merger.in_file_thread(_undo, scratch, part, data)
        if expected != to:
            raise ObjectDamaged(f"the history does not reach back to commit {to}")
        return pages

    async def _commit(
        self, state: ObjectState, wanted: Restore, scratch: Scratch, numbers: Sequence[int], pages: int
    ) -> None:
        state.restart()
        size = max(state.pages, pages)
        for start in range(0, max(len(numbers), 1), COMMIT_PAGES):
            some = numbers[start : start + COMMIT_PAGES]
            is_last = start + COMMIT_PAGES >= len(numbers)
            contents = await self._merger.in_file_thread(scratch.contents, some)
            packed = struct.pack(f"<{len(some)}I", *some)
            record = Record(COMMIT, state.key, state.queued + 1, pages if is_last else size, packed, contents)
            record.part, record.alarm_ms = LAST_PART if is_last else PART, wanted.asked
            record.at_ms = state.queued_ms = max(int(time.time() * 1000), state.queued_ms)
            record.chain = state.chain
            state.queued += 1
            await self._store(state, record)


class Scratch:
    """Pages of an object as they were, in a file that has no name. Everything in it is slow."""

    def __init__(self, folder: Path, path: Path, pages: int) -> None:
        self._folder = folder
        self._path = path
        self._pages = pages
        self._touched: set[int] = set()

    def __enter__(self) -> Scratch:
        self._file = tempfile.TemporaryFile(dir=self._folder)
        try:
            self._present = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            self._present = -1
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
        if self._present >= 0:
            os.close(self._present)

    def _now(self, number: int) -> bytes:
        if self._present < 0 or number > self._pages:
            return bytes(PAGE)
        return os.pread(self._present, PAGE, (number - 1) * PAGE).ljust(PAGE, b"\0")

    def get(self, number: int) -> bytes:
        if number in self._touched:
            return os.pread(self._file.fileno(), PAGE, (number - 1) * PAGE)
        return self._now(number)

    def put(self, number: int, content: bytes) -> None:
        self._touched.add(number)
        if os.pwrite(self._file.fileno(), content, (number - 1) * PAGE) != PAGE:
            raise StorageFailed("the disk of this node is full", str(self._folder))

    def changed(self, pages: int) -> list[int]:
        """The pages up to that number that differ from what is there now."""
        wanted = sorted(number for number in self._touched if number <= pages)
        return [number for number in wanted if number > self._pages or self.get(number) != self._now(number)]

    def contents(self, numbers: Sequence[int]) -> bytes:
        return b"".join(self.get(number) for number in numbers)


def _undo(scratch: Scratch, part: StepPart, data: bytes) -> None:
    for entry in read_entries(data):
        scratch.put(entry.number, entry.content(scratch.get(entry.number)))


def _shown(at_ms: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(at_ms / 1000))
