"""One fetch under way: its request body, its response and the place it holds among the connections of its call.

What answers is another server (egress/exchange.py) or a worker of this node (engine/inner.py): to both it says read,
write and close.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol, TypeAlias

from atoll.bindings.fetch.decode import Decoding
from atoll.errors import AtollError, CalleeFailed, InvalidArgument, NetworkError


class Answerer(Protocol):
    """What both kinds of exchange do."""

    async def read(self) -> bytes: ...

    def read_nowait(self) -> bytes: ...

    @property
    def at_end(self) -> bool: ...

    async def write(self, chunk: bytes, ended: bool) -> bool: ...

    def close(self) -> None: ...


Keep: TypeAlias = Callable[[Answerer, int, bytes], Answerer]


class Fetching:
    """Made before its request is sent, so that it can be written to and aborted from the first moment on."""

    __slots__ = (
        "_begun", "_is_sent", "_left", "_undecodable", "answerer", "decoding", "error", "has_head", "is_reading",
        "is_socket", "keep", "task", "where",
    )  # fmt: skip

    def __init__(self, where: str, length: int | None) -> None:
        self.where = where
        # the request
        self._left = length  # bytes of a body of known length that are still to come
        self._is_sent = False
        self._begun: asyncio.Future[None] | None = None  # who wants to write to it before it has begun waits for this
        # the response
        self.answerer: Answerer | None = None
        self.keep: Keep | None = None  # what wants to see the response go by: the cache
        self.decoding: Decoding | None = None
        self.has_head = False
        self._undecodable: NetworkError | None = None  # the body is not in the coding it claims to be in
        self.is_reading = False
        self.is_socket = False  # it has become a WebSocket: read and write carry messages
        # both
        self.task: asyncio.Task[object] | None = None  # what waits for the response
        self.error: AtollError | None = None

    def begin(self, answerer: Answerer) -> None:
        if self.error is not None:
            answerer.close()
            raise self.error
        self.answerer = answerer
        self._wake()

    def _wake(self) -> None:
        if self._begun is not None and not self._begun.done():
            self._begun.set_result(None)

    def hand_over(self, status: int, lines: bytes) -> None:
        """The head of the response is here, and nothing of its body was read."""
        self.has_head = True
        if self.keep is not None and self.answerer is not None:
            self.answerer = self.keep(self.answerer, status, lines)

    async def write(self, chunk: bytes, ended: bool) -> bool:
        """More of the request body. False: nobody wants more of it."""
        if self._is_sent:
            raise InvalidArgument("fetch: the request body has ended already")
        if self._left is not None:
            self._left -= len(chunk)
            if self._left < 0 or (ended and self._left):
                self.close(InvalidArgument("fetch: the body is not as long as its Content-Length says"))
                return False
        self._is_sent = ended
        if self.answerer is None and self.error is None:
            self._begun = asyncio.get_running_loop().create_future()
            await self._begun
        return self.answerer is not None and await self.answerer.write(chunk, ended)

    def first(self) -> bytes:
        """What of the body is here with the head, decoded if it is to be."""
        assert self.answerer is not None
        data = self.answerer.read_nowait()
        decoding = self.decoding
        if decoding is None or not data:
            return data
        decoding.feed(data)
        try:
            content = decoding.take()
        except NetworkError as error:
            self._undecodable = error  # for whoever reads the body; the response itself is one
            return b""
        if self.answerer.at_end and decoding.is_hungry and decoding.has_ended:
            self.decoding = None  # it was all there
        return content

    async def read(self, raw: bool) -> bytes:
        """More of the response body, decoded unless `raw`; b"" at its end."""
        if self.is_reading:
            raise InvalidArgument("fetch: the body is being read already")
        if self.error is not None:
            raise self.error
        self.is_reading = True
        try:
            decoding = None if raw else self.decoding
            if decoding is not None and self._undecodable is not None:
                raise self._undecodable
            while True:
                if decoding is None:
                    return await self._piece()
                if decoding.is_hungry:
                    data = await self._piece()
                    if not data:
                        decoding.finish()
                        return b""
                    decoding.feed(data)
                if content := decoding.take():
                    return content
        except CalleeFailed as failed:
            raise NetworkError(f"Network connection lost: the body of {self.where} broke off: {failed}") from None
        finally:
            self.is_reading = False

    async def _piece(self) -> bytes:
        assert self.answerer is not None
        try:
            piece = await self.answerer.read()
        except Exception as error:
            raise self.error or error from None
        if self.error is not None:  # it was closed meanwhile
            raise self.error
        return piece

    @property
    def at_end(self) -> bool:
        """Whether nothing is left to be read."""
        return self.is_read(False)

    def is_read(self, raw: bool) -> bool:
        return self.answerer is not None and self.answerer.at_end and (raw or self.decoding is None)

    def close(self, error: AtollError | None = None) -> None:
        """Nothing of it is wanted any more; who still waits for it gets `error`."""
        if self.error is not None:
            return
        self.error = error or NetworkError("the fetch was aborted")
        self._wake()
        if self.answerer is not None:
            self.answerer.close()
        if self.task is not None:
            self.task.cancel()
