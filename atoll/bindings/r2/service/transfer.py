"""Contents on their way to and from the service.

An upload is spooled into a file of at most one part, which is sent when it is full: the sender waits meanwhile, a
failed attempt is repeated from the file, and neither memory nor disk holds more than a part. The file is also the mark
of an upload in progress, by which a node that was killed finds what it left in the service.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from atoll.bindings.r2.content import DiskReader, DiskUpload
from atoll.bindings.r2.service.client import FIRST_PAUSE, UNREACHABLE, Payload
from atoll.errors import NetworkError, StorageFailed

PART = 16 << 20  # bytes; larger contents are sent in parts
IDLE_SECONDS = 10.0  # a reader that takes nothing for so long gives its connection back
RESUMES = 3  # times that a broken stream is continued without a byte having arrived


class ContentStream(Protocol):
    """Bytes of a content on their way from where it is."""

    async def read(self) -> bytes:
        """More of it; b"" at the end. NetworkError if it broke off."""

    def close(self) -> None: ...


class HeldContents(Protocol):
    """Where contents are: an S3 service (contents.py), or rows of PostgreSQL (postgres/contents.py)."""

    async def put(self, tenant: str, number: int, payload: Payload) -> None: ...
    async def begin_parts(self, tenant: str, number: int) -> str: ...
    async def put_part(self, tenant: str, number: int, upload: str, part: int, payload: Payload) -> str: ...
    async def finish_parts(self, tenant: str, number: int, upload: str, etags: Sequence[str], size: int) -> None: ...
    async def drop_parts(self, number: int) -> None: ...
    async def stream(self, tenant: str, number: int, start: int, end: int) -> ContentStream: ...
    async def remove(self, numbers: Sequence[int]) -> None: ...
    def close(self) -> None: ...


class Abandoned(Protocol):
    """Hears of contents that were sent, at least in part, and that no object has."""

    def abandon(self, number: int) -> None: ...
    def refuse_if_behind(self) -> None: ...


class ServiceUpload(DiskUpload):
    """Content that is received for the service. Small content is in the index, as always."""

    def __init__(self, service: HeldContents, tenant: str, garbage: Abandoned, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._service = service
        self._tenant = tenant
        self._garbage = garbage
        garbage.refuse_if_behind()
        self._spooled = 0
        self._sha256 = hashlib.sha256()  # of the spooled bytes
        self._is_sent = False  # at least in part: there may be something in the service
        self._upload = ""  # the id of an upload in parts
        self._etags: list[str] = []

    async def _receive(self, piece: bytes) -> None:
        while piece:
            if self._spooled == PART:
                await self._busily(self._send_part())
            room = PART - self._spooled
            await self._in_thread(self._append, piece[:room])
            piece = piece[room:]

    async def _complete(self) -> None:
        await self._busily(self._finish_upload())

    async def _finish_upload(self) -> None:
        self._is_sent = True
        if self._upload:
            await self._send_part()
            await self._service.finish_parts(self._tenant, self._number, self._upload, self._etags, self._size)
        else:
            await self._service.put(self._tenant, self._number, self._payload())

    async def _send_part(self) -> None:
        self._is_sent = True
        if not self._upload:
            self._upload = await self._service.begin_parts(self._tenant, self._number)
        number = len(self._etags) + 1
        self._etags.append(
            await self._service.put_part(self._tenant, self._number, self._upload, number, self._payload())
        )
        await self._files.run(self._empty)
        self._spooled, self._sha256 = 0, hashlib.sha256()

    def _payload(self) -> Payload:
        async def read(offset: int, length: int) -> bytes:
            return await self._files.run(os.pread, self._descriptor, length, offset)

        return Payload(self._spooled, self._sha256.hexdigest(), read)

    def _discard(self, number: int) -> None:
        if self._is_sent:
            self._files.post(self._files.empty, number)
            self._garbage.abandon(number)
        else:
            super()._discard(number)

    # In a thread

    def _append(self, piece: bytes, hashed: bool = True) -> None:
        is_new = self._descriptor < 0
        super()._append(piece, hashed)
        if is_new:
            self._mark_file()
        self._sha256.update(piece)
        self._spooled += len(piece)

    def _mark_file(self) -> None:
        """The file is the mark of this upload: durable before the service is told to store anything."""
        self._files.sync_unfinished()

    def _empty(self) -> None:
        os.ftruncate(self._descriptor, 0)
        os.lseek(self._descriptor, 0, os.SEEK_SET)


class ServiceReader(DiskReader):
    """A part of a content whose segments may be in services, each a stream that is continued where it broke off."""

    def __init__(self, services: Mapping[int, HeldContents], tenant: str, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._services = services  # by place
        self._tenant = tenant
        self._stream: ContentStream | None = None
        self._rest = b""  # received, and longer than what was asked for
        self._idle: asyncio.TimerHandle | None = None

    @property
    def left_in_file(self) -> int:
        return 0 if not self.left or self._current()[0].place in self._services else super().left_in_file

    async def read(self, most: int) -> bytes:
        if not self.left:
            return b""
        segment, offset = self._current()
        service = self._services.get(segment.place)
        if service is None:
            return await super().read(most)
        if self._idle is not None:
            self._idle.cancel()
        piece = self._rest or await self._received(service, segment.file, offset, offset + self.left_in_segment)
        piece, self._rest = piece[:most], piece[most:]
        self._at += len(piece)
        if not self._rest and (not self.left or self._at % self._place.part_size == 0):
            self._end_stream()  # the next byte is in another segment
        elif self._stream is not None:
            self._idle = asyncio.get_running_loop().call_later(IDLE_SECONDS, self._end_stream)
        return piece

    async def _received(self, service: HeldContents, file: int, start: int, end: int) -> bytes:
        for attempt in range(RESUMES + 1):
            try:
                if self._stream is None:
                    self._stream = await service.stream(self._tenant, file, start, end)
                if piece := await self._stream.read():
                    return piece
            except NetworkError:
                pass
            except BaseException:
                self._end_stream()
                raise
            self._end_stream()
            await asyncio.sleep(FIRST_PAUSE * attempt)
        raise StorageFailed(UNREACHABLE)

    def _end_stream(self) -> None:
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def close(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
        self._end_stream()
        self._rest = b""
        super().close()
