"""A call of one worker by another, inside the node: no socket, the same pool, bodies under the same credit.

`InnerCalls.start` makes one. What the bindings hold is `atoll.bindings.services.InnerCall`: read the response, write
the request body, close. At most one window of body waits here in either direction, whoever is slow.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

from atoll.bindings.scope import Scope, check_hops
from atoll.bindings.services import InnerResponse
from atoll.engine.calls import Call
from atoll.engine.events import Calls, read_thrown
from atoll.errors import CalleeFailed, Failure
from atoll.wire.generated import CHUNK, INLINE_BODY, MAX_PAYLOAD, WINDOW, ErrorCode, Event
from atoll.workers import Version

READ_BYTES = 2 * CHUNK  # the most that one read gives


class InnerCalls:
    """Starts calls between workers. It is made before the pool, which is given to it once it exists."""

    def __init__(self) -> None:
        self.calls: Calls | None = None

    def start(
        self,
        version: Version,
        head: bytes,
        body: bytes,
        *,
        ended: bool = True,
        hops: int = 0,
        event: int = 0,
        within: Scope | None = None,
    ) -> WorkerCall:
        """Call a worker. `hops` is that of the scope that asks; unless `ended` more of the body follows by `write`.
        Subrequests of the call count as those of `within` too.

        LoopDetected when too many workers have called each other. All else that goes wrong is raised by `response`.
        """
        calls = self._calls_after(hops)
        call = WorkerCall()
        inline = body if ended and len(body) <= INLINE_BODY else b""
        whole = ended and len(inline) == len(body)
        call.call = calls.call(version, head, inline, whole, call, event, hops + 1)
        call.call.within = within
        if not whole:
            call.begin_upload(body, ended)
        return call

    def method(self, version: Version, label: str, meta: Mapping[str, Any], body: bytes, scope: Scope) -> MethodCall:
        """Call a method of a worker. LoopDetected; all else that goes wrong is raised by `value`."""
        hops = scope.hops
        calls = self._calls_after(hops)
        call = MethodCall()
        head = label.replace("\n", " ").encode("ascii", "replace") + b"\n" + json.dumps(meta).encode("ascii")
        call.call = calls.call(version, head, body, True, call, int(Event.RPC), hops + 1)
        call.call.within = scope
        return call

    def _calls_after(self, hops: int) -> Calls:
        check_hops(hops)
        assert self.calls is not None, "the pool is not there yet"
        return self.calls


class WorkerCall:
    """The Caller of one inner call, and what a binding holds of it."""

    def __init__(self) -> None:
        self.call: Call | None = None
        self.is_closed = False
        self._is_left = False  # nobody reads any more, but it may come to its end

        # The response
        self._response: asyncio.Future[InnerResponse] = asyncio.get_running_loop().create_future()
        self._chunks: deque[bytes] = deque()
        self._uncounted = 0  # bytes of the first chunk: what a RESPONSE carries costs no credit
        self._ended = False
        self._failure: Failure | None = None
        self._reader: asyncio.Future[None] | None = None
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
        return await asyncio.shield(self._response)

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
        if self._response.done() and not self._response.cancelled():
            return self._response.result() if self._response.exception() is None else self._failure
        return None

    async def read(self) -> bytes:
        """More of the response body; b"" at its end. CalleeFailed when it broke off. One read at a time."""
        while not self._chunks:
            if self._failure is not None:
                raise CalleeFailed(self._failure)
            if self._ended or self.is_closed:
                return b""
            self._reader = asyncio.get_running_loop().create_future()
            await self._reader
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
        if not self._response.done():
            self._response.cancel()
        self._wake()
        self._tell()

    def _send(self) -> None:
        assert self.call is not None
        while self._waiting and len(self._waiting[0][0]) <= self._credit:
            chunk, ended = self._waiting.popleft()
            self._credit -= len(chunk)
            self.call.send_body(chunk, ended)

    def _wake(self) -> None:
        for waiter in (self._reader, self._writer):
            if waiter is not None and not waiter.done():
                waiter.set_result(None)

    # --- the Caller side ---

    def on_response(self, status: int, head: bytes, body: bytes, ended: bool) -> None:
        if self.is_closed or self._response.done():
            return
        if body:
            self._chunks.append(body)
            self._uncounted = len(body)
        self._response.set_result(InnerResponse(status, head))
        if ended:
            self._end()
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
        if not self._response.done():
            self._response.set_exception(CalleeFailed(failure))
            self._response.exception()  # whoever asks still gets it; nobody asking is no error
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

    def __init__(self) -> None:
        super().__init__()
        self.on_end: Callable[[], None] | None = None
        self.thrown: dict[str, Any] = {}
        self._told: bytearray | None = None  # what has come of the description of an exception

    async def value(self) -> bytes:
        """What the method returned. CalleeFailed if it threw, or ended in another way."""
        found = VALUE_LENGTH.search((await self._response).head)
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
