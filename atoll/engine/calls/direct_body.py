"""Bodies that pass between a binding and the client without passing through the engine.

A response body: a worker returns a body that it got from a binding and never read. The engine sends RESPONSE, then an
op names the body that follows. While that body is sent, credit from the client comes here.

A request body: a worker passes it to a binding and never reads it. An op asks for it. From then on what the client
sends comes here; what the engine has by then goes to the binding in ops. Credit for the client comes from here.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, cast

from atoll.engine.calls.call import CANCELLED, ENDED, RESPONDED, SENT, Call, HandedSocket
from atoll.errors import NetworkError
from atoll.wire.generated import WINDOW


class FileSend(Protocol):
    """A file that is being sent (front/kernel_send.py)."""

    def cancel(self) -> None: ...


class FileTaker(Protocol):
    """A caller to whom the kernel can send files: ClientExchange."""

    def takes_file(self, size: int) -> bool: ...

    def send_file(
        self,
        file: int,
        span: tuple[int, int],
        threads: ThreadPoolExecutor,
        ended: Callable[[BaseException | None], None],
    ) -> FileSend: ...


class DirectBody:
    __slots__ = ("_call", "_credit", "_file", "_waiter")

    def __init__(self, call: Call) -> None:
        self._call = call
        self._credit = WINDOW
        self._waiter: asyncio.Future[None] | None = None  # for credit
        self._file: asyncio.Future[None] | None = None  # the end of a file

    async def send(self, chunk: bytes) -> bool:
        """Send a chunk as soon as there is credit. False if the response has not begun, is over or was cancelled."""
        call = self._call
        call.direct = self
        while self._credit <= 0 and call.state == RESPONDED:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        if call.state != RESPONDED:
            return False
        self._credit -= len(chunk)
        call.caller.on_body(chunk, False)
        return True

    def hand_over(self, socket: object) -> bool:
        """The response of the call is this WebSocket, which outlives it. False if the call is over."""
        handed = cast(HandedSocket, socket)
        if self._call.state != SENT or self._call.handed is not None:
            handed.cancel()
            return False
        self._call.handed, handed.via = handed, self._call
        return True

    def takes_file(self, size: int) -> bool:
        takes = getattr(self._call.caller, "takes_file", None)
        return takes is not None and self._call.state == RESPONDED and takes(size)

    async def send_file(self, file: int, span: tuple[int, int], threads: ThreadPoolExecutor) -> bool:
        """Have the kernel send a part of a file, if `takes_file`. The descriptor is closed at the end in any case.

        False if the response was cancelled meanwhile; an error if the file cannot be read.
        """
        call = self._call
        if not self.takes_file(span[1] - span[0]):  # the client left while the file was opened
            os.close(file)
            return False
        call.direct = self
        waiter = self._file = asyncio.get_running_loop().create_future()

        def ended(error: BaseException | None) -> None:
            if waiter.done():
                return
            if error is None:
                waiter.set_result(None)
            else:
                waiter.set_exception(error)

        sending = cast(FileTaker, call.caller).send_file(file, span, threads, ended)
        try:
            await waiter
        finally:
            sending.cancel()
        return call.state == RESPONDED

    def on_grant(self, amount: int) -> None:
        """The client has taken `amount` bytes."""
        self._credit = min(self._credit + amount, WINDOW)
        _settle(self._waiter)

    def wake(self) -> None:
        """The call was cancelled."""
        _settle(self._waiter)
        _settle(self._file)


class DirectUpload:
    """The part of a request body that does not go to the engine."""

    __slots__ = ("_call", "_chunks", "_has_ended", "_waiter")

    def __init__(self, call: Call) -> None:
        self._call = call
        self._chunks: list[bytes] = []
        self._has_ended = False
        self._waiter: asyncio.Future[None] | None = None

    def divert(self) -> int | None:
        """Take what the client sends from now on. Returns how many bytes of the body the engine has or will get.

        None if the engine gets all of it: it is sent already, or diverted before, or the call is over.
        """
        call = self._call
        if call.ended or call.has_sent_all or call.diverted is not None or not SENT <= call.state <= ENDED:
            return None
        call.diverted = self
        call.streamed = True  # a part of its body is here: it cannot be sent to another engine
        return len(call.body) + call.sent_up

    def take(self, chunk: bytes, ended: bool) -> None:
        """From the call: the next part of the body."""
        if self._has_ended:
            return
        self._chunks.append(chunk)
        self._call.unsent += len(chunk)
        self._has_ended = ended
        _settle(self._waiter)

    async def read(self) -> bytes:
        """The next bytes, at most a window of them; b"" at the end. The client may then send as many more."""
        call = self._call
        while not self._chunks and not self._has_ended:
            if call.state == CANCELLED:
                raise NetworkError("The client disconnected before the whole request body was received.")
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        data = self._taken()
        if data and not self._has_ended:
            call.caller.on_upload_credit(len(data))
        return data

    def wake(self) -> None:
        """The call was cancelled."""
        _settle(self._waiter)

    def stop(self) -> None:
        """The rest is not wanted."""
        self._has_ended = True
        self._taken()
        self._call.caller.on_upload_stop()

    def _taken(self) -> bytes:
        data = b"".join(self._chunks)
        self._chunks.clear()
        self._call.unsent -= len(data)
        return data


def _settle(waiter: asyncio.Future[None] | None) -> None:
    if waiter is not None and not waiter.done():
        waiter.set_result(None)
