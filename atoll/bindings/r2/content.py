"""Content on its way to and from the disk, in pieces. Neither side holds more than one piece in memory."""

from __future__ import annotations

import asyncio
import hashlib
import os
import secrets
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, Protocol

import msgspec

from atoll.bindings.r2.conditions import ALWAYS, OnlyIf
from atoll.bindings.r2.files import ContentFiles, write_all
from atoll.bindings.r2.limits import bad_digest
from atoll.bindings.r2.rows import IN_FILE, ContentPlace, ContentSegment
from atoll.bindings.r2.store import Checksum, ObjectMeta, OpenFile, PartFacts, StoredObject
from atoll.errors import InvalidArgument, StorageFailed

INLINE = 64 << 10  # bytes: smaller content is in the index, larger content in a file

FindSegment = Callable[[int, int], ContentSegment]  # (content, number of the segment)


class ContentIndex(Protocol):
    """Where an upload is entered when it is complete."""

    async def save(self, stored: StoredObject, place: ContentPlace, only_if: OnlyIf) -> bool: ...
    async def save_part(self, upload_id: str, key: bytes, part: PartFacts, file: int) -> None: ...


class DiskUpload:
    """Content that is received: in memory while it is small, else in a file."""

    def __init__(
        self,
        files: ContentFiles,
        index: ContentIndex,
        size: int,
        checksum: Checksum | None,
        new_number: Callable[[], int],
        release: Callable[[], None],
    ) -> None:
        self._files = files
        self._index = index
        self._size = size
        self._checksum = checksum
        self._new_number = new_number
        self._release = release  # gives back the reserved bytes
        self._md5 = hashlib.md5(usedforsecurity=False)
        other = checksum is not None and checksum.name != "md5"
        self._hash = hashlib.new(checksum.name, usedforsecurity=False) if checksum is not None and other else None
        self._received = 0
        self._body = bytearray()
        self._number = 0
        self._descriptor = -1
        self._is_busy = False  # a thread uses the descriptor
        self._is_closed = False

    async def write(self, piece: bytes) -> None:
        if self._is_busy or self._is_closed:
            raise InvalidArgument("the upload is busy or closed: write one piece after the other")
        self._received += len(piece)
        if self._received > self._size:
            raise InvalidArgument(f"the content is longer than the {self._size:,} bytes that were announced")
        if not piece:
            return
        if self._size <= INLINE:
            self._body += piece
            self._update(piece)
        else:
            await self._receive(piece)

    async def put(self, key: bytes, meta: ObjectMeta, only_if: OnlyIf = ALWAYS) -> StoredObject | None:
        md5 = self._finished()
        checksums = {"md5": md5}
        if self._hash is not None and self._checksum is not None:
            checksums[self._checksum.name] = self._hash.hexdigest()
        self._check(checksums)
        stored = StoredObject(
            key, secrets.token_hex(16), self._size, md5, now_ms(), meta.storage_class,
            msgspec.json.encode(checksums).decode(), meta.http, meta.custom,
        )  # fmt: skip
        if self._size <= INLINE:
            place = ContentPlace(self._new_number(), 0, bytes(self._body))
            is_saved = await self._index.save(stored, place, only_if)
        else:
            await self._complete()
            place = ContentPlace(self._number, self._size)
            is_saved = await self._entered(self._index.save(stored, place, only_if))
        return stored if is_saved else None

    async def put_part(self, upload_id: str, key: bytes, number: int) -> PartFacts:
        part = PartFacts(number, self._finished(), self._size, now_ms())
        self._check({"md5": part.etag})
        if self._descriptor < 0:  # a part is always a file: completing an upload moves no bytes
            await self._in_thread(self._append, bytes(self._body), False)
        await self._complete()
        file = self._number

        async def save() -> bool:
            await self._index.save_part(upload_id, key, part, file)
            return True

        await self._entered(save())
        return part

    def close(self) -> None:
        """Drop what was not stored. A running thread ends first."""
        self._is_closed = True
        if not self._is_busy:
            self._let_go()

    async def _receive(self, piece: bytes) -> None:
        await self._in_thread(self._append, piece)

    async def _complete(self) -> None:
        """Make the received content durable, under its final name."""
        await self._in_thread(self._finish_file)

    def _finished(self) -> str:
        if self._received != self._size:
            raise InvalidArgument(f"{self._size:,} bytes were announced, and {self._received:,} were received")
        return self._md5.hexdigest()

    def _check(self, actual: dict[str, str]) -> None:
        given = self._checksum
        if given is not None and actual.get(given.name) != given.hex:
            raise bad_digest(given.name, given.hex, actual.get(given.name, ""))

    async def _entered(self, saving: Awaitable[bool]) -> bool:
        """Wait for the index. A caller that is cancelled meanwhile does not stop it, and the file must stay."""
        number, self._number = self._number, 0  # until it is known, the file belongs to the index
        task = asyncio.ensure_future(saving)

        def settle(done: asyncio.Future[bool]) -> None:
            if number:
                is_kept = not done.cancelled() and done.exception() is None and done.result()
                if is_kept:
                    self._files.post(self._files.settle, number)
                else:
                    self._discard(number)

        task.add_done_callback(settle)
        return await asyncio.shield(task)

    async def _in_thread(self, act: Callable[..., None], *args: object) -> None:
        await self._busily(self._files.run(act, *args))

    async def _busily(self, acting: Coroutine[Any, Any, None]) -> None:
        self._is_busy = True
        try:
            await acting
        finally:
            self._is_busy = False
            if self._is_closed:
                self._let_go()

    def _let_go(self) -> None:
        self._body = bytearray()
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        if self._number:
            self._discard(self._number)
            self._number = 0
        self._release()
        self._release = _nothing

    def _discard(self, number: int) -> None:
        self._files.post(self._files.discard, number)

    # In a thread

    def _append(self, piece: bytes, hashed: bool = True) -> None:
        if self._descriptor < 0:
            number = self._new_number()
            self._descriptor = self._files.create(number)
            self._number = number
        if hashed:
            self._update(piece)
        write_all(self._descriptor, piece)

    def _update(self, piece: bytes) -> None:
        self._md5.update(piece)
        if self._hash is not None:
            self._hash.update(piece)

    def _finish_file(self) -> None:
        self._files.finish(self._number, self._descriptor)


class DiskContent:
    """The content of an object that was looked up, kept on disk until it is closed."""

    def __init__(
        self,
        files: ContentFiles,
        place: ContentPlace,
        find: FindSegment,
        release: Callable[[], None],
        make: Callable[..., DiskReader],
    ) -> None:
        self._files = files
        self._place = place
        self._find = find
        self._release = release
        self._make = make  # a reader

    def reader(self, offset: int, length: int) -> DiskReader | MemoryReader:
        body = self._place.body
        if body is not None:
            self.close()
            return MemoryReader(body if length == len(body) else body[offset : offset + length])
        release, self._release = self._release, _nothing
        return self._make(self._files, self._place, self._find, (offset, offset + length), release)

    def close(self) -> None:
        self._release()
        self._release = _nothing


class MemoryReader:
    """Small content, which was read with its object."""

    left_in_file = 0

    def __init__(self, body: bytes) -> None:
        self._body = body
        self.left = len(body)

    async def read(self, most: int) -> bytes:
        piece, self._body = self._body[:most], self._body[most:]
        self.left = len(self._body)
        return piece

    async def open_file(self) -> OpenFile:
        raise AssertionError("small content is not in a file")

    def rewind(self) -> None:
        raise AssertionError("small content is not in a file")

    def close(self) -> None:
        self._body = b""


class DiskReader:
    """A part of a content in files, read piece by piece."""

    def __init__(
        self,
        files: ContentFiles,
        place: ContentPlace,
        find: FindSegment,
        span: tuple[int, int],
        release: Callable[[], None],
    ) -> None:
        self._files = files
        self._place = place
        self._find = find
        self._release = release
        self._start, self._end = span
        self._at = self._start
        self._segment: tuple[int, ContentSegment] | None = None  # the current segment and its number

    @property
    def left(self) -> int:
        return self._end - self._at

    @property
    def left_in_file(self) -> int:
        return self.left_in_segment

    @property
    def left_in_segment(self) -> int:
        return max(min(self._end - self._at, self._place.part_size - self._at % self._place.part_size), 0)

    async def read(self, most: int) -> bytes:
        length = min(most, self.left_in_segment)
        if length <= 0:
            return b""
        segment, offset = self._current()
        piece = await self._files.read(_file(segment), offset, length)
        self._at += len(piece)
        return piece

    async def open_file(self) -> OpenFile:
        length = self.left_in_segment
        segment, offset = self._current()
        opened = await self._files.open(_file(segment), offset, offset + length)
        self._at += length
        return opened

    def rewind(self) -> None:
        self._at = self._start

    def _current(self) -> tuple[ContentSegment, int]:
        """The segment of the next byte, and where it is in it."""
        number, offset = self._at // self._place.part_size + 1, self._at % self._place.part_size
        if self._segment is None or self._segment[0] != number:
            self._segment = (number, self._find(self._place.content, number))
        return self._segment[1], offset

    def close(self) -> None:
        self._at = self._end
        self._release()
        self._release = _nothing


def _file(segment: ContentSegment) -> int:
    if segment.place != IN_FILE:
        raise StorageFailed("this content is in an S3 service, and this node has no settings for one (r2_service)")
    return segment.file


def _nothing() -> None:
    pass


def now_ms() -> int:
    return time.time_ns() // 1_000_000
