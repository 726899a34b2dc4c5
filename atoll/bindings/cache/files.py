"""Reads and writes bodies of cached responses on threads: the event loop never waits for a file."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable

from atoll.bindings.cache.store import CachePlace, Stored

INLINE = 64 * 1024  # a larger body is a file

NewFile = Callable[[], tuple[str, int]]  # its name and descriptor
Save = Callable[[CachePlace, Stored], Awaitable[None]]
Unlink = Callable[[list[str]], None]


class FileReader:
    """A body in a file, or part of it."""

    def __init__(self, descriptor: int, start: int, end: int) -> None:
        self._descriptor = descriptor
        self._at, self._end = start, end
        self._reads = 0
        self._is_closed = False

    async def read(self, most: int) -> bytes:
        length = min(most, self._end - self._at)
        if length <= 0 or self._is_closed:
            return b""
        self._reads += (
            1  # the descriptor must stay open while a thread reads: its number could be reused for another file
        )
        try:
            piece = await asyncio.to_thread(os.pread, self._descriptor, length, self._at)
        finally:
            self._reads -= 1
            self._let_go()
        if not piece:
            raise OSError("the file of a cached body is shorter than it was")
        self._at += len(piece)
        return piece

    def close(self) -> None:
        self._is_closed = True
        self._let_go()

    def _let_go(self) -> None:
        if self._is_closed and self._reads == 0 and self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class FileWriter:
    """A body that is in memory while it is small, and then in a file."""

    def __init__(self, new_file: NewFile, save: Save, unlink: Unlink) -> None:
        self._new_file = new_file
        self._save = save
        self._unlink = unlink
        self._pieces: list[bytes] = []  # not written yet
        self._size = 0
        self._file = ""
        self._descriptor = -1
        self._is_writing = False
        self._is_closed = False

    async def write(self, piece: bytes) -> None:
        self._size += len(piece)
        self._pieces.append(piece)
        if self._size <= INLINE:
            return
        self._is_writing = True
        try:
            await asyncio.to_thread(self._spill)
        finally:
            self._is_writing = False
            if self._is_closed:
                self._let_go()

    async def save(self, place: CachePlace, stored: Stored) -> None:
        body = None if self._file else b"".join(self._pieces)
        await self._save(place, stored._replace(size=self._size, body=body, file=self._file))
        self._file = ""  # the index owns the file now

    def close(self) -> None:
        self._is_closed = True
        self._let_go()

    def _spill(self) -> None:
        if self._descriptor < 0:
            self._file, self._descriptor = self._new_file()
        left = memoryview(b"".join(self._pieces))
        self._pieces.clear()
        while left:
            left = left[os.write(self._descriptor, left) :]

    def _let_go(self) -> None:
        if self._is_writing:
            return
        self._pieces.clear()
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        if self._file:
            self._unlink([self._file])
            self._file = ""
