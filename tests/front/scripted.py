"""The two ends of a front under test: a pool that follows a script, and a client that sends raw bytes.

The pool replaces `atoll.engine.calls.call`, so each test decides exactly when a worker answers, takes body, stalls or
fails. The front itself is real: a real server on a real socket.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from atoll.errors import Failure
from atoll.front.server import Server
from atoll.router import Router
from atoll.workers import Version

if TYPE_CHECKING:
    from atoll.front.exchange import ClientExchange

PLAIN = b"content-type: text/plain\r\n"


def version(name: str) -> Version:
    return Version(f"{name}-1", f"worker_{name}", name, "tenant", (), "main.js")


class ScriptedCall:
    """One call as the test sees it: what the front sent, and the caller that gets the answer."""

    def __init__(
        self, pool: ScriptedPool, version: Version, head: bytes, body: bytes, ended: bool, caller: ClientExchange
    ) -> None:
        self.pool = pool
        self.version = version
        self.head = head
        self.body = bytearray(body)
        self.inline = (body, ended)
        self.ended = ended
        self.caller = caller
        self.granted = 0
        self.unsent = 0
        self.pieces: list[int] = []
        self.cancelled = False
        self.refused: Failure | None = None
        self.changed = asyncio.Event()

    def send_body(self, chunk: bytes, ended: bool) -> None:
        self.body += chunk
        self.ended = ended
        self.pieces.append(len(chunk))
        self.changed.set()
        if self.pool.on_chunk is not None:
            self.pool.on_chunk(self, chunk, ended)

    def grant(self, amount: int) -> None:
        self.granted += amount
        self.changed.set()
        if self.pool.on_grant is not None:
            self.pool.on_grant(self)

    def cancel(self) -> None:
        self.cancelled = True
        self.changed.set()

    def refuse(self, failure: Failure) -> None:
        self.refused = failure

    def hear(self, messages: int) -> None: ...

    async def until(self, condition: Callable[[ScriptedCall], bool]) -> None:
        async with asyncio.timeout(5):
            while not condition(self):
                self.changed.clear()
                await self.changed.wait()

    def answer(self, body: bytes = b"Hello", status: int = 200, block: bytes = PLAIN) -> None:
        self.caller.on_response(status, block, body, True)


def hello(call: ScriptedCall) -> None:
    asyncio.get_running_loop().call_soon(call.answer)


def echo(call: ScriptedCall) -> None:
    """Answers with the request line and the body of the call, once it is complete."""
    if call.ended:
        line = call.head.split(b"\n", 1)[0]
        asyncio.get_running_loop().call_soon(call.answer, line + b"|" + bytes(call.body))


class ScriptedPool:
    """Passes every call to `script`; without a script the call waits for the test."""

    def __init__(self) -> None:
        self.script: Callable[[ScriptedCall], None] | None = hello
        self.on_chunk: Callable[[ScriptedCall, bytes, bool], None] | None = None
        self.on_grant: Callable[[ScriptedCall], None] | None = None
        self.calls: list[ScriptedCall] = []
        self.called = asyncio.Event()

    def call(self, version: Version, head: bytes, body: bytes, ended: bool, caller: ClientExchange) -> ScriptedCall:
        call = ScriptedCall(self, version, head, body, ended, caller)
        self.calls.append(call)
        self.called.set()
        if self.script is not None:
            self.script(call)
        return call

    async def next_call(self, count: int = 1) -> ScriptedCall:
        async with asyncio.timeout(5):
            while len(self.calls) < count:
                self.called.clear()
                await self.called.wait()
        return self.calls[count - 1]


class Front:
    """A server on a free port with a scripted pool behind it, and the worker `w` deployed."""

    def __init__(self, server: Server, pool: ScriptedPool, router: Router) -> None:
        self.server = server
        self.pool = pool
        self.router = router
        self.clients: list[Client] = []

    async def connect(self, receive_buffer: int | None = None) -> Client:
        kwargs = {"limit": receive_buffer} if receive_buffer is not None else {}
        reader, writer = await asyncio.open_connection("127.0.0.1", self.server.port, **kwargs)
        client = Client(reader, writer)
        self.clients.append(client)
        return client

    async def exchange(self, data: bytes) -> bytes:
        """Sends, then reads until the server closes."""
        client = await self.connect()
        client.send(data)
        return await client.rest()

    async def close(self) -> None:
        for client in self.clients:
            client.close()
        self.server.drain_seconds = 0.5
        await self.server.shutdown()


class Response:
    def __init__(self, head: bytes, body: bytes) -> None:
        line, *lines = head[:-4].split(b"\r\n")
        self.status = int(line.split(b" ")[1])
        self.headers = {name.lower(): value for name, value in (raw.split(b": ", 1) for raw in lines)}
        self.head = head
        self.body = body


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def read(self, size: int) -> bytes:
        async with asyncio.timeout(10):
            return await self.reader.readexactly(size)

    async def head(self) -> bytes:
        async with asyncio.timeout(5):
            return await self.reader.readuntil(b"\r\n\r\n")

    async def response(self, *, has_body: bool = True) -> Response:
        """One complete response; `has_body` is False for the answer to HEAD."""
        head = await self.head()
        response = Response(head, b"")
        if not has_body or response.status in (204, 304):
            return response
        if response.headers.get(b"transfer-encoding") == b"chunked":
            response.body = b"".join([chunk async for chunk in self.chunks()])
        elif b"content-length" in response.headers:
            response.body = await self.read(int(response.headers[b"content-length"]))
        else:
            response.body = await self.rest()
        return response

    async def chunks(self):  # type: ignore[no-untyped-def]
        while True:
            async with asyncio.timeout(10):
                size = int(await self.reader.readuntil(b"\r\n"), 16)
            data = await self.read(size + 2)
            assert data.endswith(b"\r\n")
            if size == 0:
                return
            yield data[:-2]

    async def rest(self) -> bytes:
        async with asyncio.timeout(5):
            return await self.reader.read(-1)

    def close(self) -> None:
        self.writer.close()

    def abort(self) -> None:
        self.writer.transport.abort()
