"""Reads the journal after a start: what is whole, what is torn at the end, and what is damaged in between."""

from __future__ import annotations

import logging
import mmap
from pathlib import Path
from typing import NamedTuple

from atoll.objects.durable import Record
from atoll.objects.segments import (
    ALIGN,
    END,
    FIRST,
    HEAD,
    Group,
    SegmentHeader,
    decode_group,
    decode_header,
    is_whole,
)

log = logging.getLogger("atoll.objects")

SUFFIX = ".segment"


class FoundRecord(NamedTuple):
    """A record of the journal. A damaged one was acknowledged and cannot be read."""

    record: Record
    is_damaged: bool


class SegmentFacts(NamedTuple):
    number: int
    size: int


class Replayed(NamedTuple):
    found: list[FoundRecord]
    segments: list[SegmentFacts]
    next_number: int
    next_group: int
    last_end: int  # of the groups in the last segment
    lost: str  # not empty: acknowledged records are lost, and it is not known of which objects


def segment_path(folder: Path, number: int) -> Path:
    return folder / f"{number:016x}{SUFFIX}"


def replay(folder: Path) -> Replayed:
    """Everything the journal has, in order. Slow: call it in a thread."""
    numbers = sorted(int(path.stem, 16) for path in folder.glob(f"*{SUFFIX}"))
    found: list[FoundRecord] = []
    sizes: list[SegmentFacts] = []
    lost = ""
    group, end = 0, 0
    headers = {number: _header(segment_path(folder, number)) for number in numbers}
    for number in numbers:
        path = segment_path(folder, number)
        sizes.append(SegmentFacts(number, path.stat().st_size))
        header, after = headers[number], headers.get(number + 1)
        if header is None:  # a segment gets its name when its header is on disk
            lost = lost or f"{path} has no readable header"
            continue
        reader = SegmentReader(path, header, after.previous_end if after is not None else None)
        reader.read(is_last=number == numbers[-1])
        found += reader.found
        lost = lost or reader.lost
        group = max(group, reader.last_group, header.first_group - 1)
        end = reader.end
    return Replayed(found, sizes, numbers[-1] + 1 if numbers else 1, group + 1, end, lost)


def _header(path: Path) -> SegmentHeader | None:
    with path.open("rb") as file:
        header = decode_header(memoryview(file.read(FIRST)))
    return header if header is not None and f"{header.number:016x}" == path.stem else None


class SegmentReader:
    def __init__(self, path: Path, header: SegmentHeader, known_end: int | None) -> None:
        self._path = path
        self._header = header
        self._known_end = known_end
        self.found: list[FoundRecord] = []
        self.lost = ""
        self.last_group = 0
        self.end = FIRST

    def read(self, *, is_last: bool) -> None:
        with self._path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            view = memoryview(data)
            end = len(view) if self._known_end is None else min(self._known_end, len(view))
            try:
                self._read_groups(data, view[:end], is_last)
            finally:
                view.release()

    def _read_groups(self, data: mmap.mmap, view: memoryview, is_last: bool) -> None:
        at = FIRST
        expected = self._header.first_group
        with view:
            while at < len(view):
                group = decode_group(view, at, self._header.nonce, self._header.number)
                if group is None:
                    group = self._next_group(data, view, at)
                if group is None:
                    break
                if group.number != expected:
                    self._lose(at, f"groups {expected} to {group.number - 1}")
                at, expected = group.offset + group.length, group.number + 1
                self._take(group, view, is_newest=is_last and self._next_group(data, view, at) is None)
            if self._known_end is not None and at < self._known_end:
                self._lose(at, f"what is from there to {self._known_end}")

    def _next_group(self, data: mmap.mmap, view: memoryview, at: int) -> Group | None:
        """The next group that has a HEAD or an END."""
        if group := decode_group(view, at, self._header.nonce, self._header.number):
            return group
        nonce = self._header.nonce
        place = data.find(nonce, at)
        while 0 <= place < len(view):
            start = place - 8
            is_start = start % ALIGN == 0 and start >= at and view[start : start + 4] in (HEAD, END)
            if is_start and (group := decode_group(view, start, nonce, self._header.number)):
                return group
            place = data.find(nonce, place + 1)
        return None

    def _take(self, group: Group, view: memoryview, is_newest: bool) -> None:
        """Nothing of the newest group may have been acknowledged: if it is not whole it is torn, not damaged."""
        found = [FoundRecord(record, not is_whole(view, record)) for record in group.records]
        if is_newest and any(each.is_damaged for each in found):
            log.warning("the journal of objects ends in a torn write: %s, offset %d", self._path, group.offset)
            self.end = group.offset
            return
        self.found += found
        self.last_group = group.number
        self.end = group.offset + group.length

    def _lose(self, at: int, what: str) -> None:
        self.lost = self.lost or f"{self._path} is damaged at {at}: {what} cannot be read"
