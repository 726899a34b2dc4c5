"""What it takes to undo commits: the pages that they changed, as they were before.

A step leads from the state after its last commit back to the state after the commit before its first one. A merge makes
one step, or a few (`steps_of`): a page that a hundred commits of one second changed is stored once.

    data of a step = entries: page number, checksum of the old page, kind, length, bytes

A page that is still there afterwards is stored as its difference to the new one, which compresses to some dozen bytes
for a change of one row. One that was cut off is stored as it was. The checksum tells whether what comes out is right.
"""

from __future__ import annotations

import os
import struct
import zlib
from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple
from zlib import crc32

from atoll.objects.durable import LAST_PART, NO_PART, PART, Record
from atoll.objects.files import Segments
from atoll.objects.store import PAGE, ObjectDamaged, ObjectKey

ENTRY = struct.Struct("<IIBH")
PLAIN, CHANGED = 0, 1
PART_BYTES = 1 << 20
FEW = 8  # commits of a merge that are a step each; more of them are one step for each second
CACHE = 32 << 20
TICK = 256  # pages between two pauses


class Step(NamedTuple):
    first: int
    last: int
    first_at: int
    last_at: int
    is_point: bool  # whether the object may go back to `first`
    ends_at_point: bool
    undoes: int | None
    commits: Sequence[Record]


class Pages(NamedTuple):
    """A piece of a step. `data` is None if the step is larger than an object's history may be."""

    key: ObjectKey
    step: Step
    part: int
    pages: int  # after `step.first`
    data: bytes | None
    is_last: bool
    most: int  # bytes that the history of the object may have


def steps_of(
    commits: Sequence[Record], first: int, first_at: int, is_point: bool, marks: Collection[int], *, every: bool
) -> list[Step]:
    """The steps of commits that follow the commit `first`. `marks`: commits after which a step must end."""
    every = every or len(commits) <= FEW
    steps: list[Step] = []
    begun = 0
    for at, commit in enumerate(commits):
        after = commits[at + 1] if at + 1 < len(commits) else None
        if after is not None:
            is_torn = commit.part == PART
            is_wanted = every or commit.sequence in marks or commit.at_ms // 1000 != after.at_ms // 1000
            begins_restore = after.part != NO_PART
            if is_torn or not (is_wanted or begins_restore or commit.part == LAST_PART):
                continue
        some = commits[begun : at + 1]
        undoes = some[0].alarm_ms if is_point and some[0].part != NO_PART else None
        ends_at_point = commit.part != PART
        steps.append(Step(first, commit.sequence, first_at, commit.at_ms, is_point, ends_at_point, undoes, some))
        first, first_at, is_point, begun = commit.sequence, commit.at_ms, ends_at_point, at + 1
    return steps


class UndoMaker:
    """The pages of one object before some commits. The file has none of the commits in `steps` yet."""

    def __init__(self, key: ObjectKey, fd: int, pages: int, known: Sequence[Record], segments: Segments) -> None:
        """`pages`: the size of the database before `known`, which are commits that can be undone already."""
        self._key = key
        self._fd = fd  # or -1
        self._pages = pages
        self._low = pages  # what the file has behind it was cut off since
        self._segments = segments
        self._newest: dict[int, tuple[Record, int]] = {}  # page -> where it is in the journal
        self._cache: dict[int, memoryview] = {}
        self._cached = 0
        for commit in known:
            self._pass(commit)

    def _pass(self, commit: Record) -> None:
        if commit.pages < self._pages:
            for number in [number for number in self._newest if number > commit.pages]:
                del self._newest[number]
        self._pages, self._low = commit.pages, min(self._low, commit.pages)
        for place, number in enumerate(memoryview(commit.numbers).cast("I")):
            self._newest[number] = (commit, place)

    def parts(self, step: Step, most: int) -> Iterator[Pages | None]:
        """The pieces of a step. None now and then, while it takes long."""
        before, low = self._pages, self._pages
        written: dict[int, tuple[Record, int]] = {}
        for commit in step.commits:
            low = min(low, commit.pages)
            for place, number in enumerate(memoryview(commit.numbers).cast("I")):
                written[number] = (commit, place)
        part, total, found = 0, 0, bytearray()
        if (before - low) * (ENTRY.size + 16) > most:
            yield Pages(self._key, step, 0, before, None, True, most)
            return
        for count, entry in enumerate(self._entries(written, low, before), 1):
            if count % TICK == 0:
                yield None
            found += entry
            total += len(entry)
            if total > most:
                yield Pages(self._key, step, part, before, None, True, most)
                return
            if len(found) >= PART_BYTES:
                yield Pages(self._key, step, part, before, bytes(found), False, most)
                part, found = part + 1, bytearray()
        yield Pages(self._key, step, part, before, bytes(found), True, most)

    def follow(self, step: Step) -> None:
        for commit in step.commits:
            self._pass(commit)

    def _entries(self, written: dict[int, tuple[Record, int]], low: int, before: int) -> Iterator[bytes]:
        for number in sorted(each for each in written if each <= low):
            old = self._old(number)
            yield _entry(number, old, CHANGED, difference(old, self._content(*written[number])))
        for number in range(low + 1, before + 1):
            old = self._old(number)
            yield _entry(number, old, PLAIN, old)

    def _old(self, number: int) -> bytes | memoryview:
        found = self._newest.get(number)
        if found is not None:
            return self._content(*found)
        if self._fd < 0 or number > self._low:
            return bytes(PAGE)
        return os.pread(self._fd, PAGE, (number - 1) * PAGE).ljust(PAGE, b"\0")

    def _content(self, record: Record, place: int) -> memoryview:
        contents = self._cache.get(record.sequence)
        if contents is None:
            read = self._segments.contents(record)
            if read is None:
                raise ObjectDamaged(f"commit {record.sequence} of this object is damaged in the journal")
            if self._cached > CACHE:
                self._cache.clear()
                self._cached = 0
            contents = self._cache[record.sequence] = read
            self._cached += len(contents)
        return contents[place * PAGE : (place + 1) * PAGE]


def _entry(number: int, old: bytes | memoryview, kind: int, data: bytes | memoryview) -> bytes:
    packed = zlib.compress(data, 1)
    return ENTRY.pack(number, crc32(old), kind, len(packed)) + packed


def difference(one: bytes | memoryview, other: bytes | memoryview) -> bytes:
    """Each bit that differs. The same again leads from one to the other."""
    return (int.from_bytes(one, "little") ^ int.from_bytes(other, "little")).to_bytes(PAGE, "little")


class OldPage(NamedTuple):
    number: int
    crc: int
    kind: int
    data: bytes

    def content(self, new: bytes) -> bytes:
        """The page as it was, from the page as it is."""
        is_page = len(self.data) == PAGE
        old = difference(self.data, new) if is_page and self.kind == CHANGED else self.data
        if not is_page or crc32(old) != self.crc:
            raise ObjectDamaged(f"page {self.number} in the history of this object does not match its checksum")
        return old


def read_entries(data: bytes) -> Iterator[OldPage]:
    at = 0
    while at < len(data):
        number, crc, kind, size = ENTRY.unpack_from(data, at)
        at += ENTRY.size
        try:
            yield OldPage(number, crc, kind, zlib.decompress(data[at : at + size], bufsize=PAGE))
        except zlib.error:
            raise ObjectDamaged(f"page {number} in the history of this object cannot be read") from None
        at += size
