"""The journal: commits of all objects, appended to one file after the other, with one fdatasync for each group.

A thread takes all records that wait, writes them as one group and syncs. Meanwhile the next ones gather, so groups form
by themselves: one commit alone waits for one sync, and ten thousand per second share a few hundred.

A segment's file has its full size before it is used: a sync then writes the group's blocks and nothing else, which is
many times faster than in a file that grows, and a disk that becomes full between two segments fails no commit halfway.
Files of segments that are merged are used again.

If a group cannot be written, none of its records is stored. The segment is given up: it may hold any part of the group.
The header of the next one says where the last good group ended, so nothing behind it is ever read again.

The journal is bounded: the writer waits for segments to be merged before it begins one past the bound. If they cannot
be merged because the disk fails, records fail with that error instead.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue

from atoll.errors import StorageFailed
from atoll.objects.durable import COMMIT, DELETE, Chain, Record
from atoll.objects.faults import storage_failed
from atoll.objects.replay import Replayed, segment_path
from atoll.objects.segments import FIRST, SegmentHeader, encode_group, encode_header, group_size

SEGMENT = 16 << 20
MAX_JOURNAL = 256 << 20
MAX_RECORDS = 256  # of one group: the event loop takes a group as a whole
MAX_GROUP = 8 << 20  # bytes; a single larger record is a group of its own
SPARES = 3  # files kept for later segments
PIECES = 512  # of one system call: the kernel takes 1024
ZEROS = bytes(1 << 20)
AFTER_FAILED = "a commit before this one could not be stored"

Settle = Callable[[list[Record]], None]


class Journal:
    """Made on the event loop that uses it."""

    def __init__(
        self, folder: Path, replayed: Replayed, settle: Settle, *, segment: int = SEGMENT, most: int = MAX_JOURNAL
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._folder = folder
        self._settle = settle
        self._segment_size = segment
        self._most = most
        self._queue: SimpleQueue[Record | None] = SimpleQueue()
        self.held = 0
        self.groups = 0  # synced since the start
        self._closing: asyncio.Future[None] | None = None
        # What the writer's thread is at
        self._fd = -1
        self._nonce = b""
        self._number = replayed.next_number - 1  # of the current segment
        self._next_group = replayed.next_group
        self._at = replayed.last_end  # where the next group goes
        self._size = 0
        # The bound
        self._room = threading.Condition()
        self._sizes = {facts.number: facts.size for facts in replayed.segments}  # segments that are needed
        self._merge_error: StorageFailed | None = None
        self.is_full = False  # the writer waits until segments are merged
        self.on_full: Callable[[], None] = lambda: None
        self._thread = threading.Thread(target=self._work, name="journal of objects", daemon=True)
        self._thread.start()

    def add(self, record: Record) -> None:
        self.held += record.size
        self._queue.put(record)

    async def close(self) -> None:
        if self._closing is None:
            self._queue.put(None)
            self._closing = self._loop.run_in_executor(None, self._thread.join)
        await asyncio.shield(self._closing)
        await asyncio.sleep(0)  # the last group is settled

    # The segments, for the merger

    @property
    def bytes(self) -> int:
        """The size of the segments that are needed."""
        with self._room:
            return sum(self._sizes.values())

    def release(self, before: int) -> None:
        """Segments before this one are merged: they count no more."""
        with self._room:
            for number in [number for number in self._sizes if number < before]:
                del self._sizes[number]
            self._room.notify_all()

    def merging_failed(self, error: StorageFailed | None) -> None:
        """While merging fails, a full journal refuses records instead of waiting."""
        with self._room:
            self._merge_error = error
            self._room.notify_all()

    def remove(self, before: int) -> None:
        """Remove the files of released segments, or keep them for later ones. Slow: call it in a thread."""
        spares = len(list(self._folder.glob("*.spare")))
        for path in sorted(self._folder.glob("*.segment")):
            if int(path.stem, 16) >= before:
                break
            if spares < SPARES and path.stat().st_size == self._segment_size:
                path.rename(path.with_suffix(".spare"))
                spares += 1
            else:
                path.unlink()

    # On the writer's thread

    def _work(self) -> None:
        while self._work_once():
            pass
        self._give_up_segment()

    def _work_once(self) -> bool:
        """One group. A method of its own, so that no record stays referenced while the thread waits."""
        batch, more = self._take()
        if batch:
            self._write(batch)
            with suppress(RuntimeError):  # the loop ended without close(): there are no callers any more
                self._loop.call_soon_threadsafe(self._deliver, batch)
        return more

    def _deliver(self, batch: list[Record]) -> None:
        for record in batch:
            self.held -= record.size
            record.contents = b""
        self._settle(batch)

    def _take(self) -> tuple[list[Record], bool]:
        """All waiting records, at least one, up to the size of a group, and whether more may come."""
        batch: list[Record] = []
        size = 0
        while (record := self._queue.get()) is not None:
            batch.append(record)
            size += record.size
            if len(batch) == MAX_RECORDS or size >= MAX_GROUP or self._queue.empty():
                return batch, True
        return batch, False

    def _write(self, batch: Sequence[Record]) -> None:
        good, before = _in_order(batch)
        if not good:
            return
        try:
            self._append(good)
        except (OSError, StorageFailed) as error:
            self._give_up_segment()
            failed = error if isinstance(error, StorageFailed) else storage_failed(error, self._folder)
            for record in good:
                record.error = failed
            for chain, last in before.items():
                chain.last = last
            return
        for record in good:
            record.group = self._next_group
        self._next_group += 1
        self.groups += 1

    def _append(self, records: Sequence[Record]) -> None:
        size = group_size(records)
        if self._fd < 0 or self._at + size > self._size:
            self._begin_segment(max(self._segment_size, FIRST + size))
        pieces = encode_group(self._nonce, self._next_group, self._number, self._at, records)
        _write_at(self._fd, pieces, self._at)
        os.fdatasync(self._fd)
        self._at += size

    def _begin_segment(self, size: int) -> None:
        self._wait_for_room(size)
        header = SegmentHeader(os.urandom(16), self._number + 1, self._next_group, self._at)
        path = segment_path(self._folder, header.number)
        spare = self._spare(size)
        fd = os.open(spare, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            if os.fstat(fd).st_size != size:
                _fill(fd, size)
            os.pwrite(fd, encode_header(header), 0)
            os.fsync(fd)
            spare.rename(path)
            sync_folder(self._folder)
        except OSError:
            os.close(fd)
            with suppress(OSError):
                path.unlink(missing_ok=True)  # it has a header that may be wrong about where the last one ends
                spare.unlink(missing_ok=True)
            raise
        self._give_up_segment()
        with self._room:
            self._sizes[header.number] = size
        self._fd, self._nonce, self._number, self._at, self._size = fd, header.nonce, header.number, FIRST, size

    def _spare(self, size: int) -> Path:
        if size == self._segment_size and (spares := sorted(self._folder.glob("*.spare"))):
            return spares[0]
        return self._folder / "new.spare"

    def _wait_for_room(self, size: int) -> None:
        with self._room:
            while len(self._sizes) > 1 and sum(self._sizes.values()) + size > self._most:
                if self._merge_error is not None:
                    self.is_full = False
                    raise self._merge_error
                if not self.is_full:
                    self.is_full = True
                    with suppress(RuntimeError):
                        self._loop.call_soon_threadsafe(self.on_full)
                self._room.wait()
            self.is_full = False

    def _give_up_segment(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _in_order(batch: Sequence[Record]) -> tuple[list[Record], dict[Chain, int]]:
    """Records that continue what is durable, and what was durable before. Others get an error."""
    good: list[Record] = []
    before: dict[Chain, int] = {}
    for record in batch:
        chain = record.chain
        if record.error is not None:
            continue
        if chain is not None:
            if record.kind == COMMIT and record.sequence != chain.last + 1:
                record.error = StorageFailed(AFTER_FAILED)
                continue
            before.setdefault(chain, chain.last)
            if record.kind == COMMIT:
                chain.last = record.sequence
            elif record.kind == DELETE:
                chain.last = 0
        good.append(record)
    return good, before


def _fill(fd: int, size: int) -> None:
    """Write zeros: blocks that were only reserved cost a change of the file system at their first sync."""
    os.ftruncate(fd, 0)
    os.posix_fallocate(fd, 0, size)  # fails at once if there is no room
    for start in range(0, size, len(ZEROS)):
        _write_at(fd, [ZEROS[: size - start]], start)


def _write_at(fd: int, pieces: Sequence[bytes], at: int) -> None:
    waiting = [memoryview(piece) for piece in pieces if len(piece)]
    waiting.reverse()
    while waiting:
        some = waiting[: -PIECES - 1 : -1]
        written = os.pwritev(fd, some, at)
        at += written
        while waiting and written >= len(waiting[-1]):
            written -= len(waiting.pop())
        if written:
            waiting[-1] = waiting[-1][written:]


def sync_folder(path: Path) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
