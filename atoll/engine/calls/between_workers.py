"""Calls from one worker to another on this node: no socket, the same pool, bodies under the same credit.

`WorkerCalls.start` makes one. Bindings use it as `atoll.bindings.services.InnerCall`: read the response, write the
request body, close. At most one window of body is buffered here in either direction, whichever side is slow. A worker
may leave many responses unread, so their bytes also count to its tenant (holdings.py).
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from collections.abc import Callable
from io import BytesIO
from typing import Any

from atoll.bindings.scope import check_hops
from atoll.bindings.services import InnerRequest, InnerResponse
from atoll.engine.calls.call import Call, HandedSocket, SocketCall
from atoll.engine.calls.events import Calls, read_thrown
from atoll.engine.calls.inside_caller import adopted_by, maker_of, near_to, offer_route
from atoll.engine.calls.object_door import ObjectDoor
from atoll.errors import CalleeFailed, Failure
from atoll.holdings import SMALL_WINDOW, Holdings
from atoll.wire.generated import CHUNK, INLINE_BODY, MAX_PAYLOAD, WINDOW, ErrorCode

READ_BYTES = 2 * CHUNK  # the most that one read gives of several chunks
UNREAD = Failure(ErrorCode.QUOTA_EXCEEDED, "too many bytes of responses wait to be read: read them, or cancel them")
CLOSED = Failure(ErrorCode.CANCELED, "the call was closed before its end")


class WorkerCalls:
    """Starts calls between workers. It is made before the pool: `calls` is set once the pool exists."""

    def __init__(self, holdings: Holdings | None = None, objects: ObjectDoor | None = None) -> None:
        self.calls: Calls | None = None
        self.objects = objects
        self._holdings = holdings or Holdings()

    def start(self, request: InnerRequest) -> WorkerCall:
        """Call a worker."""
        call = WorkerCall(self._holdings, request.reader)
        body = request.body
        if not request.ended or len(body) > INLINE_BODY:
            self._begin(request._replace(body=b"", ended=False), call)
            call.begin_upload(body, request.ended)
        else:
            self._begin(request, call)
        return call

    def method(self, request: InnerRequest) -> WorkerMethodCall:
        """Call a method of a worker."""
        self._begin(request, call := WorkerMethodCall(self._holdings, request.reader))
        return call

    def _begin(self, request: InnerRequest, caller: WorkerCall) -> None:
        version, head, body, ended, hops, event, within, target, session, _ = request
        check_hops(hops)
        assert self.calls is not None, "the pool is not there yet"
        made, call = maker_of(request), adopted_by(within)
        if call is not None:
            call.caller = caller if call.object is None or self.objects is None else self.objects.heard(call, caller)
        elif target is None:
            call = self.calls.call(version, head, body, ended, caller, event, hops + 1, near_to(made))
        else:
            assert self.objects is not None, "the runtime of objects is not there yet"
            call = self.objects.call(target, version, head, body, ended, caller, event, hops + 1, near_to(made))
        caller.call = caller._far = call
        call.within = within
        call.session = session
        offer_route(made, request, call)


class WorkerCall:
    """One call between workers: the Caller of the pool on one side, the InnerCall of a binding on the other."""

    __slots__ = (
        "_at", "_chunks", "_credit", "_ended", "_failure", "_far", "_held", "_holdings", "_is_left", "_is_refused",
        "_listener", "_response", "_socket", "_stopped", "_tenant", "_uncounted", "_waiter", "_waiting", "_writer",
        "call", "is_closed",
    )  # fmt: skip

    def __init__(self, holdings: Holdings, tenant: str) -> None:
        self._holdings = holdings
        self._tenant = tenant
        self._held = 0  # unread bytes of the response, counted to the tenant
        self.call: Call | None = None
        self._far: SocketCall | None = None  # the other side: the call, or the socket that it became
        self._socket: HandedSocket | None = None  # what the call became, if it outlives it
        self.is_closed = self._is_left = False  # left: the response is no longer read, but the call may finish

        # The response
        self._response: InnerResponse | None = None
        self._chunks: deque[bytes] = deque()
        self._uncounted = 0  # bytes of the first chunk: what a RESPONSE carries costs no credit
        self._ended = False
        self._failure: Failure | None = None
        self._waiter: asyncio.Future[None] | None = None  # of the reader of the response
        self._listener: Callable[[], None] | None = None

        # The request body
        self._credit = WINDOW
        self._waiting: deque[tuple[bytes, bool]] = deque()
        self._at = 0  # bytes of the first chunk that were sent
        self._stopped = self._is_refused = False  # refused: stopped before all of the body was sent
        self._writer: asyncio.Future[None] | None = None

    # --- for bindings ---

    async def response(self) -> InnerResponse:
        """Status and header lines. CalleeFailed if the call ends without a response."""
        while self._response is None:
            if self._failure is not None or self.is_closed:
                raise CalleeFailed(self._failure or CLOSED)
            await self._news()
        return self._response

    async def _news(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        await self._waiter

    def listen(self, listener: Callable[[], None]) -> None:
        """Call `listener` once, when `answer` is known or the call is closed."""
        self._listener = listener

    def _tell(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            listener()

    @property
    def answer(self) -> InnerResponse | Failure | None:
        """Status and header lines, or the failure of the call; None while neither is known."""
        return self._response or self._failure

    async def read(self) -> bytes:
        """More of the response body; b"" at its end. CalleeFailed if it ends early. One read at a time."""
        while not self._chunks:
            if self._failure is not None:
                raise CalleeFailed(self._failure)
            if self._ended or self.is_closed:
                return b""
            await self._news()
        return self.read_nowait()

    def read_nowait(self) -> bytes:
        """The part of the response body that has arrived."""
        size = 0
        taken: list[bytes] = []
        # One is always taken, however long: b"" would be the end of the body.
        while self._chunks and (not taken or size + len(self._chunks[0]) <= READ_BYTES):
            taken.append(self._chunks.popleft())
            size += len(taken[-1])
        self._hold(-size)
        uncounted = min(size, self._uncounted)
        self._uncounted -= uncounted
        if size > uncounted and (far := self._far) is not None:
            far.grant(size - uncounted)
        return taken[0] if len(taken) == 1 else b"".join(taken)

    @property
    def at_end(self) -> bool:
        """Whether the whole response body was read."""
        return self._ended and not self._chunks and self._failure is None

    async def write(self, chunk: bytes, ended: bool) -> bool:
        """Send more of the request body; returns when there is room for the next chunk. False if no more is wanted."""
        self.begin_upload(chunk, ended)
        while self._waiting and not self._stopped and not self.is_closed:
            self._writer = asyncio.get_running_loop().create_future()
            await self._writer
        return not self._stopped or (ended and not self._is_refused)

    def begin_upload(self, chunk: bytes, ended: bool) -> None:
        if self._stopped or self.is_closed:
            return
        if chunk or ended:
            self._waiting.append((chunk, ended))
        self._send()

    def hear(self, messages: int) -> None:
        """Count the WebSocket messages in the next write."""
        if (far := self._far) is not None:
            far.hear(messages)

    @property
    def is_held(self) -> bool:
        return self._socket is not None and not self.is_closed

    def release(self) -> object | None:
        """The socket that the call became, to be passed on. What was not read of it comes again there."""
        socket, unread = self._socket, b"".join(self._chunks)
        if socket is not None and not self.is_closed:
            self._ended = self._stopped = True
            self.close()
            socket.release(unread)
            return socket
        return None

    def leave(self, last: bytes, seconds: float) -> None:
        """Send the end of the request body and drop the response. The call is closed after `seconds` at the latest."""
        if self.is_closed or self._ended:
            return
        self.begin_upload(last, True)
        self._is_left = True
        self.read_nowait()
        self._wake()
        asyncio.get_running_loop().call_later(seconds, self.close)

    def close(self) -> None:
        """Cancel the call and drop what has arrived."""
        if self.is_closed:
            return
        self.is_closed = True
        self._waiting.clear()
        self._at = 0
        self._drop()
        if not self._ended and (far := self._far) is not None:
            far.cancel()
        self._wake()
        self._tell()

    def _drop(self) -> None:
        self._chunks.clear()
        self._hold(-self._held)

    def __del__(self) -> None:
        if self._held:  # the whole value of a method is taken without a read
            self._hold(-self._held)

    def _hold(self, change: int) -> bool:
        """Count unread bytes to the tenant. False if it holds too many: then this response ends with an error."""
        if not change:
            return True
        self._held += change
        self._holdings.count(self._tenant, change)
        if change < 0 or self._held <= SMALL_WINDOW or not self._holdings.is_full(self._tenant):
            return True
        self._drop()
        if not self._ended and (far := self._far) is not None:
            far.cancel()
        self.on_failure(UNREAD)
        return False

    def _send(self) -> None:
        """Send as much as the credit allows, in chunks, so that a large body is not copied as a whole."""
        far = self._far
        assert far is not None
        while self._waiting:
            chunk, ended = self._waiting[0]
            left = len(chunk) - self._at
            size = min(CHUNK, left)
            size = min(size, self._credit) if self._socket is not None else size
            if size > self._credit or (left and not size):
                break
            piece = chunk if size == len(chunk) else chunk[self._at : self._at + size]
            self._at += size
            if size == left:
                self._waiting.popleft()
                self._at = 0
            self._credit -= size
            far.send_body(piece, ended and size == left)

    def _wake(self) -> None:
        for waiter in (self._waiter, self._writer):
            if waiter is not None and not waiter.done():
                waiter.set_result(None)

    # --- as the Caller of the pool ---

    def on_response(self, status: int, head: bytes, body: bytes, ended: bool) -> None:
        if self.is_closed or self._response is not None:
            return
        if body:
            self._chunks.append(body)
            self._uncounted = len(body)
            if not self._hold(len(body)):
                return
        self._response = InnerResponse(status, head)
        handed = self.call.handed if self.call is not None and status == 101 else None
        if handed is not None:
            self._far, self._socket, self._credit = handed, handed, handed.window
            handed.adopt(self)
        elif ended:
            self._end()
        self._wake()
        self._tell()

    def on_body(self, chunk: bytes, ended: bool) -> None:
        if self.is_closed or self._failure is not None:
            return
        if chunk:
            self._chunks.append(chunk)
            if not self._hold(len(chunk)):
                return
        if self._is_left:
            self.read_nowait()
        if ended:
            self._end()
        self._wake()

    def _end(self) -> None:
        """The response is complete, so the worker wants no more of the request body."""
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
        self._at = 0
        self._wake()


MAX_THROWN = 1 << 20  # bytes of the description of an exception
KEPT = b"value-kept: 1\r\n"
VALUE_LENGTH = re.compile(rb"value-length: (\d{1,9})\r\n")


class WorkerMethodCall(WorkerCall):
    """A call of a method. The response is its value, and stays open while streams in the value are sent."""

    __slots__ = ("_told", "on_end", "thrown")

    def __init__(self, holdings: Holdings, tenant: str) -> None:
        super().__init__(holdings, tenant)
        self.on_end: Callable[[], None] | None = None
        self.thrown: dict[str, Any] = {}
        self._told: bytearray | None = None  # the description of an exception, as far as it has arrived

    @property
    def is_kept(self) -> bool:
        """Whether the value has stubs, for which the callee stays open."""
        return self._response is not None and KEPT in self._response.head

    def value_nowait(self) -> bytes | None:
        """The return value of the method, if all of it has arrived."""
        is_here = self._ended and self._response is not None and not self._response.head and self._failure is None
        return b"".join(self._chunks) if is_here else None

    async def value(self) -> bytes:
        """The return value of the method. CalleeFailed if it threw or failed."""
        found = VALUE_LENGTH.search((await self.response()).head)
        length = min(int(found[1]), MAX_PAYLOAD) if found is not None else MAX_PAYLOAD
        whole = BytesIO()  # joining megabytes at the end would hold the event loop
        size = 0
        while size < length and (chunk := await self.read()):
            whole.write(chunk)
            size += len(chunk)
        if size > length or (found is not None and size < length):
            self.close()
            raise CalleeFailed(Failure(ErrorCode.INTERNAL, "the value of the method has another length than was said"))
        return whole.getvalue()

    def on_response(self, status: int, head: bytes, body: bytes, ended: bool) -> None:
        if status == 200 or self.is_closed:
            super().on_response(status, head, body, ended)
            return
        self._told = bytearray()
        self.on_body(body, ended)

    def on_body(self, chunk: bytes, ended: bool) -> None:
        if self._told is None:
            return super().on_body(chunk, ended)
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
