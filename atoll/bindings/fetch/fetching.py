"""One fetch in progress: its request body, its response, and its place among the connections of its call.

The other side is a server (egress/exchange.py) or a worker of this node (engine/calls/between_workers.py). Both offer
read, write and close.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeAlias

from atoll.bindings.fetch.decode import Decoding
from atoll.errors import AtollError, CalleeFailed, InvalidArgument, NetworkError
from atoll.pacer import Pacer


class Answerer(Protocol):
    """The interface of both kinds of exchange."""

    async def read(self) -> bytes: ...

    def read_nowait(self) -> bytes: ...

    @property
    def at_end(self) -> bool: ...

    async def write(self, chunk: bytes, ended: bool) -> bool: ...

    def close(self) -> None: ...


class DecodingSteps:
    """Where bodies are decoded: on the event loop, in turn, or in a thread of its own."""

    def __init__(self, pacer: Pacer) -> None:
        self.pacer = pacer
        self._thread = ThreadPoolExecutor(1, "decode")  # brotli releases the GIL

    async def take(self, tenant: str, decoding: Decoding) -> bytes:
        if decoding.is_heavy:
            return await asyncio.get_running_loop().run_in_executor(self._thread, decoding.take)
        return await self.pacer.do(tenant, decoding.take)

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)


Keep: TypeAlias = Callable[[Answerer, int, bytes], Answerer]


class Fetching:
    """One fetch. Made before its request is sent, so that it can be written to and aborted from the start."""

    __slots__ = (
        "_begun", "_is_sent", "_left", "_undecodable", "answerer", "decoding", "error", "has_head", "is_reading",
        "is_socket", "keep", "steps", "task", "tenant", "where",
    )  # fmt: skip

    def __init__(self, where: str, length: int | None) -> None:
        self.where = where
        self.tenant = ""  # set by its lane
        # the request
        self._left = length  # bytes of a body of known length that are still to come
        self._is_sent = False
        self._begun: asyncio.Future[None] | None = None  # writers wait for this until the request has begun
        # the response
        self.answerer: Answerer | None = None
        self.keep: Keep | None = None  # an observer of the response: the cache
        self.decoding: Decoding | None = None
        self.steps: DecodingSteps | None = None  # where its steps run
        self.has_head = False
        self._undecodable: NetworkError | None = None  # the body is not in its declared coding
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
        """Accept the response: its head has arrived, and nothing of its body was read."""
        self.has_head = True
        if self.keep is not None and self.answerer is not None:
            self.answerer = self.keep(self.answerer, status, lines)

    async def write(self, chunk: bytes, ended: bool) -> bool:
        """Send more of the request body. False: the other side needs no more."""
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
        """The part of the body that arrived with the head, decoded if needed."""
        assert self.answerer is not None
        decoding, steps = self.decoding, self.steps
        if decoding is not None and steps is not None and not steps.pacer.has_time:
            return b""
        data = self.answerer.read_nowait()
        if decoding is None or not data:
            return data
        decoding.feed(data)
        if decoding.is_heavy:
            return b""
        try:
            content = decoding.take()
        except NetworkError as error:
            self._undecodable = error  # for the reader of the body; the head is valid
            return b""
        if self.answerer.at_end and decoding.is_hungry and decoding.has_ended:
            self.decoding = None  # the body was complete
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
                if content := await self._decode(decoding):
                    return content
        except CalleeFailed as failed:
            raise NetworkError(f"Network connection lost: the body of {self.where} broke off: {failed}") from None
        finally:
            self.is_reading = False

    async def _decode(self, decoding: Decoding) -> bytes:
        steps = self.steps
        content = decoding.take() if steps is None else await steps.take(self.tenant, decoding)
        if self.error is not None:  # closed meanwhile
            raise self.error
        return content

    async def _piece(self) -> bytes:
        assert self.answerer is not None
        try:
            piece = await self.answerer.read()
        except Exception as error:
            raise self.error or error from None
        if self.error is not None:  # closed meanwhile
            raise self.error
        return piece

    @property
    def at_end(self) -> bool:
        """Whether nothing is left to read."""
        return self.is_read(False)

    def is_read(self, raw: bool) -> bool:
        return self.answerer is not None and self.answerer.at_end and (raw or self.decoding is None)

    def close(self, error: AtollError | None = None) -> None:
        """End the fetch; pending reads and writes fail with `error`."""
        if self.error is not None:
            return
        self.error = error or NetworkError("the fetch was aborted")
        self._wake()
        if self.answerer is not None:
            self.answerer.close()
        if self.task is not None:
            self.task.cancel()
