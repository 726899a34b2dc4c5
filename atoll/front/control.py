"""Requests to the control hosts: they go to an ASGI application instead of an engine.

`Control` has the same interface as the pool, so framing, limits, back-pressure and disconnects work as for workers.
Each call is a task: this is off the hot path, and requests to workers never come here.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, TypeAlias
from urllib.parse import unquote

from atoll.engine.calls.call import CallListener
from atoll.errors import Failure
from atoll.front.http1 import HEADER_BLOCK
from atoll.wire.generated import WINDOW, ErrorCode

log = logging.getLogger("atoll.front")

Message: TypeAlias = MutableMapping[str, Any]  # as in the ASGI specification
Receive: TypeAlias = Callable[[], Awaitable[Message]]
Send: TypeAlias = Callable[[Message], Awaitable[None]]
AsgiApp: TypeAlias = Callable[[Message, Receive, Send], Awaitable[None]]

STARTS = 4  # calls started in one turn of the event loop

# The front frames the response itself.
FRAMING_HEADERS = frozenset(
    (b"content-length", b"transfer-encoding", b"connection", b"keep-alive", b"upgrade", b"trailer")
)


class Control:
    """Makes calls to the ASGI application."""

    def __init__(self, app: AsgiApp) -> None:
        self.app = app
        self.tasks: set[asyncio.Task[None]] = set()
        self.waiting: deque[tuple[ControlCall, Message]] = deque()

    def call(
        self, head: bytes, minor: int, body: bytes, ended: bool, caller: CallListener, address: tuple[str, int]
    ) -> ControlCall:
        call = ControlCall(caller, body, ended)
        self.add(call, scope_of(head, minor, address))
        return call

    def open(self, head: bytes, caller: CallListener, address: tuple[str, int]) -> ControlCall:
        """A call for a request that asks for a WebSocket: see SocketControl."""
        raise NotImplementedError

    def add(self, call: ControlCall, scope: Message) -> None:
        if not self.waiting:
            asyncio.get_running_loop().call_soon(self._start)
        self.waiting.append((call, scope))

    def _start(self) -> None:
        """Start a few of the waiting calls. Their first steps all run in the next turn of the event loop."""
        loop = asyncio.get_running_loop()
        for _ in range(min(len(self.waiting), STARTS)):
            call, scope = self.waiting.popleft()
            task = loop.create_task(call.run(self.app, scope))
            self.tasks.add(task)
            task.add_done_callback(self.tasks.discard)
        if self.waiting:
            loop.call_soon(self._start)


def scope_of(head: bytes, minor: int, address: tuple[str, int]) -> Message:
    request, _, block = head.partition(b"\n")
    method, _, url = request.partition(b" ")
    host, slash, rest = url.removeprefix(b"http://").partition(b"/")
    path, _, query = (slash + rest).partition(b"?")
    headers = []
    for line in block.split(b"\r\n"):
        name, found, value = line.partition(b":")
        if found:
            headers.append((name.lower(), value.strip(b" \t")))
    name, _, port = host.rpartition(b":") if host.rpartition(b":")[2].isdigit() else (host, b"", b"80")
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.4"},
        "http_version": f"1.{minor}",
        "method": method.decode("ascii"),
        "scheme": "http",
        "path": unquote(path.decode("latin-1")),
        "raw_path": path,
        "query_string": query,
        "root_path": "",
        "headers": headers,
        "client": address,
        "server": (name.decode("latin-1"), int(port)),
    }


class ControlCall:
    """One call: a PoolCall for the exchange, and `receive` and `send` for the application."""

    __slots__ = (
        "caller", "changed", "chunks", "is_complete", "is_gone", "is_head", "is_over", "is_started", "length", "start",
        "unsent", "window",
    )  # fmt: skip

    def __init__(self, caller: CallListener, body: bytes, ended: bool) -> None:
        self.caller = caller
        # the request body
        self.chunks: deque[bytes] = deque((body,) if body or ended else ())
        self.unsent = len(body)
        self.is_complete = ended
        self.is_gone = False  # the client has disconnected
        # the response
        self.window = WINDOW
        self.start: tuple[int, bytes] | None = None  # status and headers, held until the first piece of the body
        self.length = b""  # the Content-Length line of the application
        self.is_head = False
        self.is_started = False
        self.is_over = False
        self.changed = asyncio.Event()  # any of the fields above

    # The Call side

    def send_body(self, chunk: bytes, ended: bool) -> None:
        self.chunks.append(chunk)
        self.unsent += len(chunk)
        self.is_complete = ended
        self.changed.set()

    def grant(self, amount: int) -> None:
        self.window += amount
        self.changed.set()

    def cancel(self) -> None:
        self.is_gone = True
        self.changed.set()

    def refuse(self, failure: Failure) -> None:
        self.cancel()

    def hear(self, messages: int) -> None: ...  # of a WebSocket: what clients say is dropped

    # The application side

    async def run(self, app: AsgiApp, scope: Message) -> None:
        self.is_head = scope["method"] == "HEAD"
        try:
            await app(scope, self.receive, self.send)
            if not self.is_over and not self.is_gone:
                raise RuntimeError("the application returned without a complete response")
        except Exception as error:
            if self.is_gone:
                return
            log.exception("the control API failed on %s %s", scope["method"], scope["path"])
            if not self.is_over:
                self.is_over = True
                code = ErrorCode.STREAM if self.is_started else ErrorCode.INTERNAL
                self.caller.on_failure(Failure(code, repr(error)))

    async def receive(self) -> Message:
        while not self.chunks and not self.is_gone and not self.is_over:
            await self.wait()
        if self.is_gone or self.is_over:
            return {"type": "http.disconnect"}
        chunk = self.chunks.popleft()
        self.unsent -= len(chunk)
        more = bool(self.chunks) or not self.is_complete
        if chunk and not self.is_complete:
            self.caller.on_upload_credit(len(chunk))
        return {"type": "http.request", "body": chunk, "more_body": more}

    async def wait(self) -> None:
        self.changed.clear()
        await self.changed.wait()

    async def send(self, message: Message) -> None:
        if self.is_gone:
            raise OSError("the client is gone")
        if message["type"] == "http.response.start":
            if self.start is not None:
                raise RuntimeError("http.response.start was sent twice")
            self.start = (message["status"], block_of(message.get("headers", ())))
            self.length = length_line(message.get("headers", ()))
        elif message["type"] == "http.response.body":
            await self.send_response_body(bytes(message.get("body", b"")), not message.get("more_body", False))

    async def send_response_body(self, body: bytes, ended: bool) -> None:
        if self.start is None or self.is_over:
            raise RuntimeError("http.response.body was sent before http.response.start or after the end")
        if not self.is_started:
            fits = ended or len(body) <= WINDOW
            self.is_started, self.is_over = True, ended
            self.changed.set()
            status, block = self.start
            if not ended or (self.is_head and not body):  # otherwise the front counts the body itself
                block = self.length + block
            self.caller.on_response(status, block, body if fits else b"", ended)  # needs no credit, as with engines
            if fits:
                return
        for start in range(0, max(len(body), 1), WINDOW):  # the application may send any amount at once
            if self.is_gone:
                raise OSError("the client is gone")
            await self.send_piece(body[start : start + WINDOW], ended and start + WINDOW >= len(body))

    async def send_piece(self, piece: bytes, ended: bool) -> None:
        """Send at most one window, then wait for credit."""
        self.is_over = ended
        self.changed.set()
        self.caller.on_body(piece, ended)
        self.window -= len(piece)
        while self.window <= 0 and not self.is_gone and not ended:
            await self.wait()


def length_line(headers: object) -> bytes:
    """The Content-Length of the application, as the first line of a block, where the front looks for it."""
    assert isinstance(headers, list | tuple)
    found = [value for name, value in headers if name.lower() == b"content-length"]
    return b"content-length: %b\r\n" % found[0] if found and found[0].isdigit() else b""


def block_of(headers: object) -> bytes:
    """ASGI headers as a header block, without framing headers. Raises ValueError for a character no header may hold."""
    assert isinstance(headers, list | tuple)
    lines = [b"%b: %b\r\n" % (name, value) for name, value in headers if name.lower() not in FRAMING_HEADERS]
    for line in lines:
        if line.count(b"\n") != 1 or HEADER_BLOCK.fullmatch(line) is None:
            raise ValueError(f"the response header {line!r} holds a forbidden character")
    return b"".join(lines)
