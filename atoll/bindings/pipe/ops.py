"""pipe: a stream in the arguments or the result of a method call, from one worker to another of the same tenant.

    pipe.open    make one; answers with its name, which only the two workers learn
    pipe.write   a piece, or the end; the answer is the back-pressure
    pipe.read    the next piece
    pipe.cancel  nobody wants the rest

A pipe holds a bounded piece of the stream and belongs to both calls: when the one that writes is over the reader hears
that it broke off, when the one that reads is over the writer hears that nobody wants more.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import deque
from typing import Any

from atoll.bindings.base import Binding, OpCall, Reply, op
from atoll.bindings.scope import Scope
from atoll.errors import InvalidArgument, NetworkError

ROOM = 256 << 10  # bytes that wait to be read; beyond that the writer waits
READ_BYTES = 256 << 10  # the most that one read gives
MAX_WRITE = 1 << 20
MAX_THROWN = 128 << 10  # of what a stream was broken with


class Pipe:
    """One stream between two calls."""

    def __init__(self, tenant: str) -> None:
        self.tenant = tenant
        self.has_reader = False
        self.is_open = True  # somebody may still want what is written
        self._chunks: deque[bytes] = deque()
        self._size = 0
        self._has_ended = False
        self._thrown: dict[str, Any] | None = None  # what the stream was broken with, for the reader
        self._is_cut = False  # the writer's call was over before its stream
        self._waiter: asyncio.Future[None] | None = None  # of the reader or the writer: never of both

    async def write(self, chunk: bytes, ended: bool, thrown: dict[str, Any] | None) -> bool:
        """A piece; returns when there is room for the next. False: nobody wants more."""
        if self._has_ended:
            raise InvalidArgument("the stream has ended already")
        if not self.is_open:
            return False
        if chunk:
            self._chunks.append(chunk)
            self._size += len(chunk)
        self._has_ended, self._thrown = ended, thrown
        self._wake()
        while self._size > ROOM and self.is_open:
            await self._news()
        return self.is_open

    async def read(self) -> Reply:
        while not self._chunks:
            if self._is_cut:
                raise NetworkError("Network connection lost: the worker that sent the stream ended before it")
            if self._has_ended:
                return Reply({"ended": True, "thrown": self._thrown} if self._thrown else {"ended": True})
            await self._news()
        taken: list[bytes] = []
        size = 0
        while self._chunks and size + len(self._chunks[0]) <= max(READ_BYTES, len(self._chunks[0])):
            taken.append(self._chunks.popleft())
            size += len(taken[-1])
        self._size -= size
        self._wake()
        ended = self._has_ended and not self._chunks and self._thrown is None
        return Reply({"ended": ended}, b"".join(taken))

    async def _news(self) -> None:
        self._wake()
        self._waiter = asyncio.get_running_loop().create_future()
        await self._waiter

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    def cut(self) -> None:
        """The call that writes is over."""
        if not self._has_ended:
            self._is_cut = True
            self._wake()

    def drop(self) -> None:
        """Nobody reads any more."""
        self.is_open = False
        self._chunks.clear()
        self._size = 0
        self._wake()


class Ends:
    """The pipes of one call: those it writes to and those it reads from, by name."""

    def __init__(self, scope: Scope) -> None:
        self.written: dict[str, Pipe] = {}
        self.read: dict[str, Pipe] = {}
        self.known: dict[str, Pipe] | None = None  # all pipes of the node

    def close(self) -> None:
        for name, pipe in self.written.items():
            pipe.cut()
            if self.known is not None and not pipe.has_reader:
                self.known.pop(name, None)
        for pipe in self.read.values():
            pipe.drop()


MAX_PIPES = 1_000  # of one call


class PipeBinding(Binding):
    kind = "pipe"
    ambient = True

    def __init__(self) -> None:
        self._waiting: dict[str, Pipe] = {}  # pipes that nobody reads yet, by name

    @op("pipe.open", free=True)
    def open(self, call: OpCall) -> Reply:
        ends = self._ends(call.scope)
        if len(ends.written) >= MAX_PIPES:
            raise InvalidArgument(f"more than {MAX_PIPES} streams are sent by one call")
        name = secrets.token_hex(16)  # whoever knows it may read: it goes to the other worker and to nobody else
        self._waiting[name] = ends.written[name] = Pipe(call.scope.version.tenant)
        return Reply({"pipe": name})

    @op("pipe.write", free=True)
    async def write(self, call: OpCall) -> Reply:
        pipe = self._ends(call.scope).written.get(_name(call))
        if pipe is None:
            raise InvalidArgument("the stream is over, or it belongs to another request")
        thrown = call.meta.get("thrown")
        if len(call.body) > MAX_WRITE or not (thrown is None or isinstance(thrown, dict)):
            raise InvalidArgument("a piece of a stream is too long, or malformed")
        if thrown is not None and sum(len(value) for value in thrown.values() if isinstance(value, str)) > MAX_THROWN:
            thrown = {"name": "Error", "message": "the stream was broken with an error that is too large to be told"}
        ended = call.meta.get("ended") is True or thrown is not None
        more = await pipe.write(call.body, ended, thrown)
        if ended or not more:
            self._ends(call.scope).written.pop(_name(call), None)
        return Reply({"more": more})

    @op("pipe.read", free=True)
    async def read(self, call: OpCall) -> Reply:
        return await self._reader(call).read()

    @op("pipe.cancel", free=True)
    def cancel(self, call: OpCall) -> Reply:
        self._reader(call).drop()
        return Reply()

    def _reader(self, call: OpCall) -> Pipe:
        """The pipe that this call reads from; the first to ask for one is its reader."""
        ends, name = self._ends(call.scope), _name(call)
        pipe = ends.read.get(name)
        if pipe is None:
            pipe = self._waiting.get(name)
            if pipe is None or pipe.tenant != call.scope.version.tenant or len(ends.read) >= MAX_PIPES:
                raise InvalidArgument("the stream is over, or it belongs to another request")
            del self._waiting[name]
            pipe.has_reader = True
            ends.read[name] = pipe
        return pipe

    def _ends(self, scope: Scope) -> Ends:
        ends = scope.local(Ends)
        ends.known = self._waiting
        return ends

    def drop_unread(self, names: object) -> None:
        """A method has returned: of the streams in its arguments nobody will read those that nobody has begun to."""
        for name in names if isinstance(names, list) else ():
            pipe = self._waiting.pop(name, None) if isinstance(name, str) else None
            if pipe is not None:
                pipe.drop()


def _name(call: OpCall) -> str:
    name = call.meta.get("pipe")
    return name if isinstance(name, str) else ""
