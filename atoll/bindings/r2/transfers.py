"""Downloads and uploads that stay open between two ops of a call. The scope of the call closes them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

from atoll.bindings.base import Reply
from atoll.bindings.r2.store import ContentReader, ContentUpload, OpenFile
from atoll.bindings.scope import RequestBody, ResponseBody
from atoll.errors import InvalidArgument, StorageFailed

log = logging.getLogger("atoll.bindings")

PIECE = 256 << 10  # bytes of one piece of a content that is read
WHOLE = 2 << 20  # bytes: a worker that wants all of a content that is not longer gets it in one piece


class Download:
    def __init__(self, reader: ContentReader) -> None:
        self._reader = reader
        self._is_reading = False

    @property
    def left(self) -> int:
        return self._reader.left

    async def read(self, most: int) -> bytes:
        with self._alone():
            return await self._reader.read(most)

    async def read_whole(self) -> bytes:
        """Read it from its start, what the worker has got of it too: joining the two would cost more."""
        with self._alone():
            if not self._reader.left_in_file:
                raise InvalidArgument("the body is read already, or is not in a file")
            self._reader.rewind()
            return await self._reader.read(WHOLE)

    async def send(self, response: ResponseBody) -> None:
        """Send the rest as the body of the worker's response, by the kernel where it can."""
        with self._alone():
            reader = self._reader
            while reader.left:
                size = reader.left_in_file
                if size and response.takes_file(size):
                    is_wanted = await _send_file(response, await reader.open_file())
                else:
                    is_wanted = await response.send(await reader.read(PIECE))
                if not is_wanted:
                    return

    @contextmanager
    def _alone(self) -> Iterator[None]:
        if self._is_reading:
            raise InvalidArgument("the body is being read already")
        self._is_reading = True
        try:
            yield
        finally:
            self._is_reading = False

    def close(self) -> None:
        self._reader.close()


class Upload:
    """Content that a worker sends, and what becomes of it at its end."""

    def __init__(self, content: ContentUpload, finish: Callable[[ContentUpload], Coroutine[Any, Any, Reply]]) -> None:
        self._content = content
        self._finish = finish

    async def write(self, piece: bytes) -> None:
        await self._content.write(piece)

    async def finish_with(self, first: bytes, request: RequestBody) -> Reply:
        """Add `first` and the rest of a request body that was diverted. A fast client waits for the disk."""
        piece = first
        try:
            while True:
                await self._content.write(piece)
                piece = await request.read()
                if not piece:
                    return await self._finish(self._content)
        except BaseException:
            request.stop()
            raise

    async def finish(self, last: bytes) -> Reply:
        await self._content.write(last)
        return await self._finish(self._content)

    def close(self) -> None:
        self._content.close()


async def _send_file(response: ResponseBody, file: OpenFile) -> bool:
    try:
        return await response.send_file(file.descriptor, (file.start, file.end), file.threads)
    except OSError as error:
        log.error("R2: a file cannot be sent: %s", error)
        raise StorageFailed("the storage of this node cannot be read") from None
