"""The files of objects: a plain SQLite database each, into which pages of durable commits are merged.

    objects/files/<namespace>/<xx>/<id>    <namespace> is a hash of its id, <xx> the first digits of the object's id

An engine reads such a file while pages are merged into it. It never sees a page that is being written:
- Only pages of durable commits are written. Each of them is in the engine's overlay, which it looks into first, until
  it is told that they are merged. A page that is in no commit since the last merge is not touched.
- A page is written once in a merge, in its newest version among the commits merged. If the engine has committed a newer
  one meanwhile, that one is in its overlay.
- The file is made shorter only where a commit made the database shorter. The engine reads nothing behind its end; what
  later commits put there again is in its overlay, and a page that they left out is one that SQLite never reads.
- Merging the same commits again, after a crash or an error, writes the same bytes over themselves.
- A deleted object's file is unlinked, never emptied; an object that comes after it gets a new file.

A crash may leave any part of a merge in the file. The journal has all of its commits until the file is synced and the
index knows it, so the next start merges them again.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from atoll.objects.durable import COMMIT, Record
from atoll.objects.journal import sync_folder
from atoll.objects.replay import segment_path
from atoll.objects.store import PAGE, ObjectDamaged, ObjectKey

FEW = 8  # files synced one by one; more of them share a sync of the file system


class Base(NamedTuple):
    """What the index says about a file, before the commits to merge."""

    pages: int
    first_page: int  # checksum


class ObjectFiles:
    """Everything here is slow: call it in a thread."""

    def __init__(self, folder: Path, journal: Path) -> None:
        self.folder = folder
        self._journal = journal

    def namespace_folder(self, namespace: str) -> Path:
        return self.folder / hashlib.blake2b(namespace.encode(), digest_size=16).hexdigest()

    def path(self, key: ObjectKey) -> Path:
        return self.namespace_folder(key.namespace) / key.id[:2] / key.id

    def open(self, key: ObjectKey, base: Base, records: Sequence[Record]) -> int:
        """A descriptor to read an object from, with all records in the file. They need not be synced for that."""
        if records:
            self.merge(key, base, records)
        path = self.path(key)
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            os.close(self._open_to_write(path, must_exist=base.pages > 0))
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            _check(fd, base, records, path)
            return fd
        except BaseException:
            os.close(fd)
            raise

    def merge(self, key: ObjectKey, base: Base, records: Sequence[Record]) -> int:
        """Write the pages of durable commits to the file of their object, without syncing it.

        Returns the checksum of the first page.
        """
        if not base.pages and not any(record.pages for record in records):
            return crc32(b"")  # only an alarm
        path = self.path(key)
        fd = self._open_to_write(path, must_exist=base.pages > 0)
        try:
            _check(fd, base, records, path)
            with self.segments() as segments:
                _apply(fd, base.pages, [record for record in records if record.kind == COMMIT], segments, path)
            return crc32(os.pread(fd, PAGE, 0))
        finally:
            os.close(fd)

    def copy(self, key: ObjectKey, base: Base, into: int) -> None:
        """Copy the file of an object to an empty one, and close that. Nobody writes to the object's meanwhile."""
        path = self.path(key)
        fd = -1
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            _check(fd, base, (), path)
            at, end = 0, base.pages * PAGE
            while at < end:
                sent = os.sendfile(into, fd, at, end - at)
                if not sent:
                    raise ObjectDamaged(f"the file of this object ends at {at} of {end} bytes", str(path))
                at += sent
        except FileNotFoundError:
            raise ObjectDamaged("the file of this object is missing", str(path)) from None
        finally:
            os.close(into)
            if fd >= 0:
                os.close(fd)

    def _open_to_write(self, path: Path, *, must_exist: bool) -> int:
        flags = os.O_RDWR | os.O_CLOEXEC
        try:
            return os.open(path, flags)
        except FileNotFoundError:
            if not self.folder.is_dir():  # the disk is not mounted: that is no fault of the object
                raise
            if must_exist:
                raise ObjectDamaged("the file of this object is missing", str(path)) from None
        for folder in (path.parent.parent, path.parent):  # never the folder of all: nothing may land in a mount point
            folder.mkdir(mode=0o700, exist_ok=True)
        return os.open(path, flags | os.O_CREAT, 0o600)

    @contextmanager
    def segments(self) -> Iterator[Segments]:
        segments = Segments(self._journal)
        try:
            yield segments
        finally:
            segments.close()

    def sync(self, keys: Iterable[ObjectKey], new: Iterable[ObjectKey]) -> None:
        """Make what was merged durable, and the names of files that the index does not know yet."""
        paths = [self.path(key) for key in keys]
        if len(paths) > FEW and sync_file_system(self.folder):
            return
        for path in paths:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
        folders = {self.path(key).parent for key in new}
        for folder in {self.folder} | {folder.parent for folder in folders} | folders if folders else ():
            sync_folder(folder)

    def delete(self, key: ObjectKey) -> None:
        path = self.path(key)
        with suppress(FileNotFoundError):
            path.unlink()
            sync_folder(path.parent)

    def discard_empty(self, key: ObjectKey) -> None:
        """Remove the file of an object that was open and stored nothing."""
        with suppress(OSError):
            path = self.path(key)
            if path.stat().st_size == 0:
                path.unlink()


class Segments:
    """Open segments of the journal."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: dict[int, int] = {}

    def contents(self, record: Record) -> memoryview | None:
        """The pages of a record as they were committed, or None."""
        fd = self._open.get(record.segment, -1)
        if fd < 0:
            fd = os.open(segment_path(self._folder, record.segment), os.O_RDONLY | os.O_CLOEXEC)
            self._open[record.segment] = fd
        size = len(record.numbers) // 4 * (4 + PAGE)
        data = os.pread(fd, size, record.offset)
        return memoryview(data)[len(record.numbers) :] if crc32(data) == record.crc else None

    def close(self) -> None:
        for fd in self._open.values():
            os.close(fd)


def _check(fd: int, base: Base, records: Sequence[Record], path: Path) -> None:
    """A file has the size that the index says, or one between that and those of commits that were being merged."""
    sizes = [base.pages, *(record.pages for record in records if record.kind == COMMIT)]
    size = os.fstat(fd).st_size
    if not min(sizes) * PAGE <= size <= max(sizes) * PAGE:
        raise ObjectDamaged(
            f"the file of this object has {size} bytes where {base.pages * PAGE} are expected", str(path)
        )
    is_first_known = base.pages > 0 and not any(_touches_first(record) for record in records)
    if is_first_known and crc32(os.pread(fd, PAGE, 0)) != base.first_page:
        raise ObjectDamaged("the first page of this object's file does not match its checksum", str(path))


def _touches_first(record: Record) -> bool:
    return record.kind == COMMIT and (record.pages == 0 or 1 in memoryview(record.numbers).cast("I"))


def _apply(fd: int, pages: int, commits: Sequence[Record], segments: Segments, path: Path) -> None:
    if not commits:
        return
    smallest = min(commit.pages for commit in commits)
    if os.fstat(fd).st_size > smallest * PAGE:
        os.ftruncate(fd, smallest * PAGE)
    limit = commits[-1].pages  # pages behind it are gone by a later commit
    written: set[int] = set()
    for commit in reversed(commits):
        limit = min(limit, commit.pages)
        wanted: dict[int, int] = {}  # page -> its place in the commit; the last one counts
        for place, number in enumerate(memoryview(commit.numbers).cast("I")):
            if number <= limit and number not in written:
                wanted[number] = place
        if wanted:
            contents = segments.contents(commit)
            if contents is None:
                raise ObjectDamaged(f"commit {commit.sequence} of this object is damaged in the journal", str(path))
            _write_pages(fd, wanted, contents)
            written.update(wanted)
    os.ftruncate(fd, commits[-1].pages * PAGE)


def _write_pages(fd: int, wanted: dict[int, int], contents: memoryview) -> None:
    for number, place in wanted.items():
        page = contents[place * PAGE : (place + 1) * PAGE]
        while page:
            page = page[os.pwrite(fd, page, number * PAGE - len(page)) :]


def sync_file_system(path: Path) -> bool:
    """Sync everything on the disk of `path` at once. False if this system cannot."""
    syncfs = getattr(ctypes.CDLL(None, use_errno=True), "syncfs", None)
    if syncfs is None:
        return False
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        if syncfs(fd) != 0:
            raise OSError(ctypes.get_errno() or errno.EIO, "syncfs failed", str(path))
    finally:
        os.close(fd)
    return True
