"""Downloads and uploads that stay open between two ops of a call. The scope of the call closes them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from atoll.bindings.base import Reply
from atoll.bindings.r2.store import ContentReader, ContentUpload
from atoll.errors import InvalidArgument


class Download:
    def __init__(self, reader: ContentReader) -> None:
        self._reader = reader
        self._is_reading = False

    @property
    def left(self) -> int:
        return self._reader.left

    async def read(self, most: int) -> bytes:
        if self._is_reading:
            raise InvalidArgument("the body is being read already")
        self._is_reading = True
        try:
            return await self._reader.read(most)
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

    async def finish(self, last: bytes) -> Reply:
        await self._content.write(last)
        return await self._finish(self._content)

    def close(self) -> None:
        self._content.close()
