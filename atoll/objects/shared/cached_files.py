"""The files of objects on the disk of this node: caches, made from what the database has, and gone with the node.

What an engine may see of a file while it is written: see objects/files.py. Here commits are written one after another,
each when it is durable, so a page that an engine reads is either untouched or in its overlay.

Everything here is slow: call it in a thread.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from atoll.objects.durable import Record
from atoll.objects.shared.bodies import CHUNK_BYTES, CHUNK_PAGES, pack_chunk, read_chunk, read_commit
from atoll.objects.store import PAGE, ObjectDamaged

FLAGS: Final = os.O_RDWR | os.O_CLOEXEC
GAP: Final = "the database has a gap in the commits of this object"


class Laid(NamedTuple):
    """A commit as it is in the database."""

    seq: int
    pages: int
    body: bytes


class CachedFiles:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def empty(self) -> None:
        """A file says nothing of what other nodes did since it was left."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def path(self, born: int) -> Path:
        return self.folder / f"{born % 256:02x}" / f"{born:x}"

    def make(self, born: int) -> None:
        """An empty file in place of what is there: a reader of the old one keeps that."""
        path = self.path(born)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        with suppress(FileNotFoundError):
            path.unlink()
        os.close(os.open(path, FLAGS | os.O_CREAT | os.O_EXCL, 0o600))

    def lay_chunks(self, born: int, chunks: Sequence[tuple[int, bytes]]) -> None:
        fd = os.open(self.path(born), FLAGS)
        try:
            for number, body in chunks:
                _write(fd, memoryview(read_chunk(body)), number * CHUNK_BYTES)
        finally:
            os.close(fd)

    def lay_commits(self, born: int, after: int, commits: Sequence[Laid]) -> set[int]:
        """Add commits that follow the one with the number `after`. Returns the chunks that they touch."""
        fd = os.open(self.path(born), FLAGS)
        touched: set[int] = set()
        try:
            for seq, pages, body in commits:
                if seq != after + 1:
                    raise ObjectDamaged(GAP, str(self.path(born)))
                numbers, contents = read_commit(body)
                touched |= _lay(fd, pages, numbers, memoryview(contents))
                after = seq
        finally:
            os.close(fd)
        return touched

    def lay_records(self, born: int, records: Iterable[Record]) -> set[int]:
        """Add commits of this node that are durable."""
        fd = os.open(self.path(born), FLAGS)
        touched: set[int] = set()
        try:
            for record in records:
                numbers = memoryview(record.numbers).cast("I")
                touched |= _lay(fd, record.pages, numbers, memoryview(record.contents))
        finally:
            os.close(fd)
        return touched

    def finish(self, born: int, pages: int) -> None:
        """Give a file the size of its database, which the chunks do not tell."""
        os.truncate(self.path(born), pages * PAGE)

    def open(self, born: int) -> int:
        return os.open(self.path(born), os.O_RDONLY | os.O_CLOEXEC)

    def packed(self, born: int, numbers: Sequence[int]) -> list[tuple[int, bytes]]:
        """Some chunks as they are now; those behind the end are left out."""
        fd = self.open(born)
        try:
            read = [(number, os.pread(fd, CHUNK_BYTES, number * CHUNK_BYTES)) for number in numbers]
        finally:
            os.close(fd)
        return [(number, pack_chunk(pages)) for number, pages in read if pages]

    def remove(self, *born: int) -> None:
        for each in born:
            with suppress(OSError):
                self.path(each).unlink()


def _lay(fd: int, pages: int, numbers: memoryview, contents: memoryview) -> set[int]:
    if numbers and not (min(numbers) > 0 and max(numbers) <= pages):
        raise ObjectDamaged("a commit of this object has a page that is not in its database")
    if os.fstat(fd).st_size != pages * PAGE:
        os.ftruncate(fd, pages * PAGE)
    for place, number in enumerate(numbers):
        _write(fd, contents[place * PAGE : (place + 1) * PAGE], (number - 1) * PAGE)
    return {(number - 1) // CHUNK_PAGES for number in numbers}


def _write(fd: int, data: memoryview, at: int) -> None:
    while data:
        written = os.pwrite(fd, data, at)
        data, at = data[written:], at + written
