"""A call of one worker by another, inside the node: no socket, the same pool, bodies under the same credit.

`InnerCalls.start` makes one. What the bindings hold is `atoll.bindings.services.InnerCall`: read the response, write
the request body, close. At most one window of body waits here in either direction, whoever is slow.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Callable
from typing import Any

from atoll.bindings.scope import check_hops
from atoll.bindings.services import InnerRequest, InnerResponse
from atoll.engine.calls import Call
from atoll.engine.events import Calls, read_thrown
from atoll.errors import CalleeFailed, Failure
from atoll.wire.generated import CHUNK, INLINE_BODY, MAX_PAYLOAD, WINDOW, ErrorCode

READ_BYTES = 2 * CHUNK  # the most that one read gives
CLOSED = Failure(ErrorCode.CANCELED, "nobody waited for the call any more")


class InnerCalls:
    """Starts calls between workers. It is made before the pool, which is given to it once it exists."""

    def __init__(self) -> None:
        self.calls: Calls | None = None

    def start(self, request: InnerRequest) -> WorkerCall:
        """Call a worker."""
        call = WorkerCall()
        body = request.body
        if not request.ended or len(body) > INLINE_BODY:
            self._begin(request._replace(body=b"", ended=False), call)
            call.begin_upload(body, request.ended)
        else:
            self._begin(request, call)
        return call

    def method(self, request: InnerRequest) -> MethodCall:
        """Call a method of a worker."""
        call = MethodCall()
        self._begin(request, call)
        return call

    def _begin(self, request: InnerRequest, caller: WorkerCall) -> None:
        version, head, body, ended, hops, event, within = request
        check_hops(hops)
        assert self.calls is not None, "the pool is not there yet"
        caller.call = call = self.calls.call(version, head, body, ended, caller, event, hops + 1)
        call.within = within


class WorkerCall:
    """The Caller of one inner call, and what a binding holds of it."""

    __slots__ = (
        "_chunks", "_credit", "_ended", "_failure", "_is_left", "_is_refused", "_listener", "_response", "_stopped",
        "_uncounted", "_waiter", "_waiting", "_writer", "call", "is_closed",
    )  # fmt: skip

    def __init__(self) -> None:
        self.call: Call | None = None
        self.is_closed = False
        self._is_left = False  # nobody reads any more, but it may come to its end

        # The response
        self._response: InnerResponse | None = None
        self._chunks: deque[bytes] = deque()
        self._uncounted = 0  # bytes of the first chunk: what a RESPONSE carries costs no credit
        self._ended = False
        self._failure: Failure | None = None
        self._waiter: asyncio.Future[None] | None = None  # of who wants the response, or more of it
        self._listener: Callable[[], None] | None = None

        # The request body
        self._credit = WINDOW
        self._waiting: deque[tuple[bytes, bool]] = deque()
        self._stopped = False
        self._is_refused = False  # and some of it was left
        self._writer: asyncio.Future[None] | None = None

    # --- what a binding does with it ---

    async def response(self) -> InnerResponse:
        """Status and header lines. CalleeFailed when the call ended without them."""
        while self._response is None:
            if self._failure is not None or self.is_closed:
                raise CalleeFailed(self._failure or CLOSED)
            await self._news()
        return self._response

    async def _news(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        await self._waiter

    def listen(self, listener: Callable[[], None]) -> None:
        """Who is told, once, when `answer` is known or the call was closed."""
        self._listener = listener

    def _tell(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            listener()

    @property
    def answer(self) -> InnerResponse | Failure | None:
        """Status and header lines, or how the call ended without them; None: it is not known yet."""
        return self._response or self._failure

    async def read(self) -> bytes:
        """More of the response body; b"" at its end. CalleeFailed when it broke off. One read at a time."""
        while not self._chunks:
            if self._failure is not None:
                raise CalleeFailed(self._failure)
            if self._ended or self.is_closed:
                return b""
            await self._news()
        return self.read_nowait()

    def read_nowait(self) -> bytes:
        """What of the response body is here already."""
        size = 0
        taken: list[bytes] = []
        while self._chunks and size + len(self._chunks[0]) <= max(READ_BYTES, size + 1):
            taken.append(self._chunks.popleft())
            size += len(taken[-1])
        uncounted = min(size, self._uncounted)
        self._uncounted -= uncounted
        if size > uncounted and self.call is not None:
            self.call.grant(size - uncounted)
        return taken[0] if len(taken) == 1 else b"".join(taken)

    @property
    def at_end(self) -> bool:
        """Whether all of the response body has come and was read."""
        return self._ended and not self._chunks and self._failure is None

    async def write(self, chunk: bytes, ended: bool) -> bool:
        """More of the request body; returns when there is room for the next. False: the worker wants no more of it."""
        self.begin_upload(chunk, ended)
        while self._waiting and not self._stopped and not self.is_closed:
            self._writer = asyncio.get_running_loop().create_future()
            await self._writer
        return not self._stopped or (ended and not self._is_refused)

    def begin_upload(self, chunk: bytes, ended: bool) -> None:
        if self._stopped or self.is_closed:
            return
        for at in range(0, len(chunk), CHUNK):
            self._waiting.append((chunk[at : at + CHUNK], ended and at + CHUNK >= len(chunk)))
        if not chunk and ended:
            self._waiting.append((b"", True))
        self._send()

    def hear(self, messages: int) -> None:
        """What is written next holds so many messages of a WebSocket."""
        if self.call is not None:
            self.call.hear(messages)

    def leave(self, last: bytes, seconds: float) -> None:
        """Send the last of the request body and wait for nothing: what comes is dropped, and it ends in time."""
        if self.is_closed or self._ended:
            return
        self.begin_upload(last, True)
        self._is_left = True
        self.read_nowait()
        self._wake()
        asyncio.get_running_loop().call_later(seconds, self.close)

    def close(self) -> None:
        """Nothing of it is wanted any more."""
        if self.is_closed:
            return
        self.is_closed = True
        self._waiting.clear()
        self._chunks.clear()
        if not self._ended and self.call is not None:
            self.call.cancel()
        self._wake()
        self._tell()

    def _send(self) -> None:
        assert self.call is not None
        while self._waiting and len(self._waiting[0][0]) <= self._credit:
            chunk, ended = self._waiting.popleft()
            self._credit -= len(chunk)
            self.call.send_body(chunk, ended)

    def _wake(self) -> None:
        for waiter in (self._waiter, self._writer):
            if waiter is not None and not waiter.done():
                waiter.set_result(None)

    # --- the Caller side ---

    def on_response(self, status: int, head: bytes, body: bytes, ended: bool) -> None:
        if self.is_closed or self._response is not None:
            return
        if body:
            self._chunks.append(body)
            self._uncounted = len(body)
        self._response = InnerResponse(status, head)
        if ended:
            self._end()
        self._wake()
        self._tell()

    def on_body(self, chunk: bytes, ended: bool) -> None:
        if self.is_closed:
            return
        if chunk:
            self._chunks.append(chunk)
        if self._is_left:
            self.read_nowait()
        if ended:
            self._end()
        self._wake()

    def _end(self) -> None:
        """The response is whole. What the worker has not taken of the request body by now it does not want."""
        self._ended = True
        self.on_upload_stop()

    def on_failure(self, failure: Failure) -> None:
        if self.is_closed:
            return
        self._failure = failure
        self._ended = self._stopped = True
        self._wake()
        self._tell()

    def on_upload_credit(self, amount: int) -> None:
        self._credit = min(self._credit + max(amount, 0), WINDOW)
        if not self.is_closed:
            self._send()
            if not self._waiting:
                self._wake()

    def on_upload_stop(self) -> None:
        self._stopped = True
        self._is_refused = self._is_refused or bool(self._waiting)
        self._waiting.clear()
        self._wake()


MAX_THROWN = 1 << 20  # bytes that describe an exception
VALUE_LENGTH = re.compile(rb"value-length: (\d{1,9})\r\n")


class MethodCall(WorkerCall):
    """A call of a method. The response is its value, and stays open while streams in the value are sent."""

    __slots__ = ("_told", "on_end", "thrown")

    def __init__(self) -> None:
        super().__init__()
        self.on_end: Callable[[], None] | None = None
        self.thrown: dict[str, Any] = {}
        self._told: bytearray | None = None  # what has come of the description of an exception

    def value_nowait(self) -> bytes | None:
        """What the method returned, if all of it is here."""
        is_here = self._ended and self._response is not None and not self._response.head and self._failure is None
        return b"".join(self._chunks) if is_here else None

    async def value(self) -> bytes:
        """What the method returned. CalleeFailed if it threw, or ended in another way."""
        found = VALUE_LENGTH.search((await self.response()).head)
        length = min(int(found[1]), MAX_PAYLOAD) if found is not None else MAX_PAYLOAD
        parts: list[bytes] = []
        size = 0
        while size < length and (chunk := await self.read()):
            parts.append(chunk)
            size += len(chunk)
        if size > length or (found is not None and size < length):
            self.close()
            raise CalleeFailed(Failure(ErrorCode.INTERNAL, "the value of the method has another length than was said"))
        return b"".join(parts)

    def on_response(self, status: int, head: bytes, body: bytes, ended: bool) -> None:
        if status == 200 or self.is_closed:
            super().on_response(status, head, body, ended)
            return
        self._told = bytearray()
        self.on_body(body, ended)

    def on_body(self, chunk: bytes, ended: bool) -> None:
        if self._told is None:
            super().on_body(chunk, ended)
            return
        self._told += chunk
        if not ended and len(self._told) <= MAX_THROWN and self.call is not None:
            self.call.grant(len(chunk))
            return
        thrown = read_thrown(bytes(self._told))
        if self.call is not None and self.call.failure is None:
            self.call.failure = thrown.failure  # before DONE, so that the record of the call has it
        self.thrown = {"dom": thrown.dom, "own": thrown.own}
        self.on_failure(thrown.failure)

    def on_failure(self, failure: Failure) -> None:
        super().on_failure(failure)
        self._over()

    def _end(self) -> None:
        super()._end()
        self._over()

    def _over(self) -> None:
        if self.on_end is not None:
            self.on_end()
