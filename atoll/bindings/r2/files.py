"""The files that hold the content of objects. Every operation runs in a thread of its own pool.

    r2/objects/<xx>/<number>   a file, named by its number; complete from the moment it has this name
    r2/r2-unfinished/<number>  the same file while it is written, and until the index has it

A file gets its final name by a hard link, is synced, and loses its first name only after the index has committed. So a
node that was killed finds every file that the index may not know in `r2-unfinished`, without a look at all others.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from atoll.bindings.r2.store import OpenFile
from atoll.errors import StorageFailed
from atoll.warm_files import is_warm, open_warm

T = TypeVar("T")

log = logging.getLogger("atoll.bindings")

THREADS = 8  # an fsync may take long: the threads of others must not wait for it
TOLD_AGAIN = 60.0  # seconds after which the same fault is logged again
CHECKED = "r2-checked"  # marks a folder that has no files without an object; backups leave it out
UNFINISHED = "r2-unfinished"
OBJECTS = "objects"

FAULTS = {
    errno.ENOSPC: "the disk of this node is full",
    errno.EDQUOT: "the disk of this node is full",
    errno.EROFS: "the storage of this node cannot be written to",
    errno.ENOENT: "the storage of this node is damaged",
}
OTHER_FAULT = "the storage of this node cannot be read or written"


class ContentFiles:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made = time.time()
        self._told: dict[str, float] = {}  # faults that were logged, and when
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="r2")
        for name in (UNFINISHED, OBJECTS):
            (folder / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        self._objects = os.fsencode(folder.absolute() / OBJECTS) + b"/"

    async def run(self, act: Callable[..., T], *args: object) -> T:
        """Run `act` in a thread to its end, even if the caller is cancelled: it uses a descriptor of the caller."""
        future = asyncio.get_running_loop().run_in_executor(self._threads, act, *args)
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            while not future.done():
                with suppress(asyncio.CancelledError):
                    await asyncio.wait([future])
            raise
        except OSError as error:
            raise self._failure(error) from None

    async def open(self, number: int, start: int, end: int) -> OpenFile:
        """A part of a file, open for reading. If the caller is cancelled, it is closed."""
        descriptor = open_warm(self._objects + _name(number))
        if descriptor >= 0:
            return OpenFile(descriptor, start, end, self._threads)
        future = asyncio.get_running_loop().run_in_executor(self._threads, self._open, number)
        try:
            return OpenFile(await asyncio.shield(future), start, end, self._threads)
        except asyncio.CancelledError:
            future.add_done_callback(_close_opened)
            raise
        except OSError as error:
            raise self._failure(error) from None

    async def read(self, number: int, offset: int, length: int) -> bytes:
        """Part of a file. It is opened for each piece, so a slow reader holds no descriptor."""
        descriptor = open_warm(self._objects + _name(number))
        if descriptor >= 0:
            try:
                if is_warm(descriptor, offset, length) and (piece := os.pread(descriptor, length, offset)):
                    return piece
            except OSError as error:
                raise self._failure(error) from None
            finally:
                os.close(descriptor)
        return await self.run(self._read, number, offset, length)

    def post(self, act: Callable[..., object], *args: object) -> None:
        """Run `act` in a thread without waiting for it."""
        with suppress(RuntimeError):  # the node has stopped: the next start cleans up
            self._threads.submit(act, *args)

    def _failure(self, error: OSError) -> StorageFailed:
        words = FAULTS.get(error.errno or 0, OTHER_FAULT)
        now = time.monotonic()
        if now - self._told.get(words, -TOLD_AGAIN) >= TOLD_AGAIN:
            self._told[words] = now
            log.error("R2: %s (%s)", words, error)
        return StorageFailed(words, str(self._folder))

    def close(self) -> None:
        self._threads.shutdown()

    # In a thread

    def path(self, number: int) -> Path:
        name = f"{number:016x}"
        return self._folder / OBJECTS / name[-2:] / name

    def _first_path(self, number: int) -> Path:
        return self._folder / UNFINISHED / f"{number:016x}"

    def create(self, number: int) -> int:
        """A new file, open for reading and writing."""
        return os.open(self._first_path(number), os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)

    def finish(self, number: int, descriptor: int) -> None:
        """Give a complete file its final name, durably."""
        path = self.path(number)
        if not path.parent.exists():
            path.parent.mkdir(mode=0o700, exist_ok=True)
            _sync_folder(path.parent.parent)
        os.link(self._first_path(number), path)
        os.fsync(descriptor)
        _sync_folder(path.parent)

    def sync_unfinished(self) -> None:
        """Make the first name of a new file durable, before a service is told to store its content."""
        _sync_folder(self._folder / UNFINISHED)

    def settle(self, number: int) -> None:
        """The index has the file: it needs its first name no more."""
        with suppress(OSError):
            self._first_path(number).unlink(missing_ok=True)

    def empty(self, number: int) -> None:
        """Free the disk of an unfinished file that still marks its upload."""
        with suppress(OSError):
            os.truncate(self._first_path(number), 0)

    def discard(self, number: int) -> None:
        """Remove a file that the index does not have."""
        for path in (self.path(number), self._first_path(number)):  # the first name last: it says that there is one
            try:
                path.unlink(missing_ok=True)
            except OSError as error:  # the disk became read-only: the next start cleans up
                log.warning("a file of R2 cannot be removed: %s", error)

    def _read(self, number: int, offset: int, length: int) -> bytes:
        descriptor = self._open(number)
        try:
            piece = os.pread(descriptor, length, offset)
        finally:
            os.close(descriptor)
        if not piece:
            raise FileNotFoundError(errno.ENOENT, "a file of R2 is shorter than it was", str(self.path(number)))
        return piece

    def _open(self, number: int) -> int:
        return os.open(self.path(number), os.O_RDONLY | os.O_CLOEXEC)

    def remove(self, numbers: Iterable[int]) -> None:
        for number in numbers:
            self.path(number).unlink(missing_ok=True)

    # At a start

    def unfinished(self) -> list[int]:
        """Files that the index may not have."""
        return list(_numbers(self._folder / UNFINISHED))

    def old_unfinished(self) -> list[int]:
        """Those of them that an earlier process left."""
        return [number for number in self.unfinished() if self._first_path(number).stat().st_mtime < self._made]

    @property
    def is_checked(self) -> bool:
        return (self._folder / CHECKED).exists()

    def mark_checked(self) -> None:
        (self._folder / CHECKED).touch(mode=0o600)

    def shards(self) -> list[Path]:
        return sorted((self._folder / OBJECTS).iterdir())

    def numbers_in(self, shard: Path, older_than: float) -> list[int]:
        return [number for number in _numbers(shard) if self.path(number).stat().st_mtime < older_than]


def _close_opened(future: asyncio.Future[int]) -> None:
    if not future.cancelled() and future.exception() is None:
        os.close(future.result())


def _name(number: int) -> bytes:
    """The path of a file below the folder of all objects."""
    return b"%02x/%016x" % (number & 0xFF, number)


def _numbers(folder: Path) -> Iterator[int]:
    for entry in folder.iterdir():
        with suppress(ValueError):
            yield int(entry.name, 16)


def _sync_folder(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_all(descriptor: int, data: bytes) -> None:
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]
