"""pipe: a stream in the arguments or the result of a method call, from one worker to another of the same tenant.

    pipe.open    make a pipe to write to, or with `reads` to read from; only the two workers learn its name
    pipe.write   a piece, or the end; the reply is the back-pressure
    pipe.read    the next piece
    pipe.cancel  the reader needs no more

A pipe holds a bounded part of the stream and belongs to both calls. If the writing call ends first, the reader gets an
error; if the reading call ends first, the writer learns that no more is needed.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections import Counter, deque
from typing import Any

from atoll.bindings.base import Binding, OpCall, Reply, op
from atoll.bindings.scope import CallScope
from atoll.errors import InvalidArgument, NetworkError

ROOM = 256 << 10  # bytes that wait to be read; beyond that the writer waits
TENANT_ROOM = 64 << 20  # bytes of all pipes of a tenant; beyond that each writer waits until its piece was read
READ_BYTES = 256 << 10  # the most bytes that one read returns
SMALL = 1 << 10  # bytes: a smaller piece is joined to the one before it,
JOINED = 32 << 10  # up to this size
MAX_WRITE = 1 << 20
MAX_THROWN = 128 << 10  # bytes of the error that broke a stream


class Pipe:
    """One stream between two calls."""

    def __init__(self, tenant: str, held: Counter[str]) -> None:
        self.tenant = tenant
        self._held = held  # bytes of all pipes, by tenant
        self.has_reader = False
        self.is_open = True  # false once the reader needs no more
        self._chunks: deque[bytes | bytearray] = deque()
        self.size = 0
        self._has_ended = False
        self._thrown: dict[str, Any] | None = None  # the error that broke the stream, for the reader
        self._is_cut = False  # the writing call ended before its stream
        self._waiter: asyncio.Future[None] | None = None  # of the reader or the writer, never of both

    async def write(self, chunk: bytes, ended: bool, thrown: dict[str, Any] | None) -> bool:
        """Write a piece; returns when there is room for the next. False: the reader needs no more."""
        if self._has_ended:
            raise InvalidArgument("the stream has ended already")
        if not self.is_open:
            return False
        if chunk:
            self._keep(chunk)
        self._has_ended, self._thrown = ended, thrown
        self._wake()
        while self._is_full and self.is_open:
            await self._news()
        return self.is_open

    def _keep(self, chunk: bytes) -> None:
        """Add a piece. Small pieces are joined: each on its own would take fifty times its bytes."""
        self._count(len(chunk))
        chunks = self._chunks
        if len(chunk) >= SMALL or not chunks or len(chunks[-1]) >= JOINED:
            chunks.append(chunk)
            return
        last = chunks[-1]
        if not isinstance(last, bytearray):
            last = chunks[-1] = bytearray(last)
        last += chunk

    def _count(self, size: int) -> None:
        self.size += size
        self._held[self.tenant] += size
        if not self._held[self.tenant]:
            del self._held[self.tenant]

    @property
    def _is_full(self) -> bool:
        return self.size > ROOM or (self.size > 0 and self._held[self.tenant] > TENANT_ROOM)

    async def read(self) -> Reply:
        while not self._chunks:
            if self._is_cut:
                raise NetworkError("Network connection lost: the worker that sent the stream ended before it")
            if self._has_ended:
                return Reply({"ended": True, "thrown": self._thrown} if self._thrown else {"ended": True})
            await self._news()
        taken: list[bytes | bytearray] = []
        size = 0
        while self._chunks and size + len(self._chunks[0]) <= max(READ_BYTES, len(self._chunks[0])):
            taken.append(self._chunks.popleft())
            size += len(taken[-1])
        self._count(-size)
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
        """The writing call is over."""
        if not self._has_ended:
            self._is_cut = True
            self._wake()

    def drop(self) -> None:
        """The reader needs no more."""
        self.is_open = False
        self._chunks.clear()
        self._count(-self.size)
        self._wake()


class Ends:
    """The pipes of one call: those it writes to and those it reads from, by name."""

    def __init__(self, scope: CallScope) -> None:
        self.written: dict[str, Pipe] = {}
        self.read: dict[str, Pipe] = {}
        self.known: dict[str, Pipe] | None = None  # all pipes of the node without a reader,
        self.unwritten: dict[str, Pipe] | None = None  # and those without a writer

    def close(self) -> None:
        for name, pipe in self.written.items():
            pipe.cut()
            if self.known is not None and not pipe.has_reader:
                self.known.pop(name, None)
                pipe.drop()
        for name, pipe in self.read.items():
            pipe.drop()
            if self.unwritten is not None:
                self.unwritten.pop(name, None)


MAX_PIPES = 1_000  # of one call
MAX_SENT = 1_000  # ended but unread pipes of one tenant,
SENT_BYTES = 32 << 20  # and the bytes in them
NAME = re.compile(r"[0-9a-f]{32}")


class PipeBinding(Binding):
    kind = "pipe"
    keeps_data = False
    ambient = True

    def __init__(self) -> None:
        self._waiting: dict[str, Pipe] = {}  # pipes without a reader, by name
        self._unwritten: dict[str, Pipe] = {}  # pipes without a writer, by name
        self._held: Counter[str] = Counter()  # bytes in pipes, by tenant
        self._sent: dict[str, dict[str, Pipe]] = {}  # ended pipes without a reader, by tenant, oldest first

    @op("pipe.open", free=True)
    def open(self, call: OpCall) -> Reply:
        ends = self._ends(call.scope)
        if len(ends.written) + len(ends.read) >= 2 * MAX_PIPES or len(ends.written) >= MAX_PIPES:
            raise InvalidArgument(f"more than {MAX_PIPES} streams are sent by one call")
        # The name is the permission to use the other end: it goes only to the other worker.
        name = _name(call) or secrets.token_hex(16)
        if not NAME.fullmatch(name) or name in self._waiting or name in self._unwritten:
            raise InvalidArgument("the name of a stream is malformed, or is used already")
        if name in ends.written or name in ends.read:
            raise InvalidArgument("the name of a stream is malformed, or is used already")
        pipe = Pipe(call.scope.version.tenant, self._held)
        if call.meta.get("reads") is True:
            pipe.has_reader = True
            self._unwritten[name] = ends.read[name] = pipe
        else:
            self._waiting[name] = ends.written[name] = pipe
        return Reply({"pipe": name})

    @op("pipe.write", free=True)
    async def write(self, call: OpCall) -> Reply:
        pipe = self._writer(call)
        thrown = call.meta.get("thrown")
        if len(call.body) > MAX_WRITE or not (thrown is None or isinstance(thrown, dict)):
            raise InvalidArgument("a piece of a stream is too long, or malformed")
        if thrown is not None and sum(len(value) for value in thrown.values() if isinstance(value, str)) > MAX_THROWN:
            thrown = {"name": "Error", "message": "the stream was broken with an error that is too large to send"}
        ended = call.meta.get("ended") is True or thrown is not None
        more = await pipe.write(call.body, ended, thrown)
        if ended or not more:
            self._ends(call.scope).written.pop(_name(call), None)
            if not pipe.has_reader and pipe.is_open:
                self._leave(_name(call), pipe)
        return Reply({"more": more})

    def _leave(self, name: str, pipe: Pipe) -> None:
        """Keep a pipe whose stream was sent to its end and has no reader yet. Only the latest pipes are kept."""
        sent = self._sent.setdefault(pipe.tenant, {})
        sent[name] = pipe
        while len(sent) > MAX_SENT or sum(each.size for each in sent.values()) > SENT_BYTES:
            oldest = next(iter(sent))
            self._waiting.pop(oldest, None)
            sent.pop(oldest).drop()

    @op("pipe.read", free=True)
    async def read(self, call: OpCall) -> Reply:
        return await self._reader(call).read()

    @op("pipe.cancel", free=True)
    def cancel(self, call: OpCall) -> Reply:
        self._reader(call).drop()
        return Reply()

    def _reader(self, call: OpCall) -> Pipe:
        """The pipe that this call reads from; the first call that reads a pipe becomes its reader."""
        ends, name = self._ends(call.scope), _name(call)
        pipe = ends.read.get(name)
        if pipe is None:
            pipe = self._waiting.get(name)
            if pipe is None or pipe.tenant != call.scope.version.tenant or len(ends.read) >= MAX_PIPES:
                raise InvalidArgument("the stream is over, or it belongs to another request")
            del self._waiting[name]
            self._forget_sent(name, pipe)
            pipe.has_reader = True
            ends.read[name] = pipe
        return pipe

    def _writer(self, call: OpCall) -> Pipe:
        """The pipe that this call writes to; the first call that writes to a pipe of a reader becomes its writer."""
        ends, name = self._ends(call.scope), _name(call)
        pipe = ends.written.get(name)
        if pipe is None:
            pipe = self._unwritten.get(name)
            if pipe is None or pipe.tenant != call.scope.version.tenant or len(ends.written) >= MAX_PIPES:
                raise InvalidArgument("the stream is over, or it belongs to another request")
            del self._unwritten[name]
            ends.written[name] = pipe
        return pipe

    def _ends(self, scope: CallScope) -> Ends:
        ends = scope.local(Ends)
        ends.known, ends.unwritten = self._waiting, self._unwritten
        return ends

    def drop_unread(self, names: object) -> None:
        """Drop the streams in the arguments of a method that is over which it has neither read nor written to."""
        for name in names if isinstance(names, list) else ():
            unwritten = self._unwritten.pop(name, None) if isinstance(name, str) else None
            if unwritten is not None:
                unwritten.cut()
            pipe = self._waiting.pop(name, None) if isinstance(name, str) else None
            if pipe is not None:
                self._forget_sent(str(name), pipe)
                pipe.drop()

    def _forget_sent(self, name: str, pipe: Pipe) -> None:
        sent = self._sent.get(pipe.tenant)
        if sent is not None and sent.pop(name, None) is not None and not sent:
            del self._sent[pipe.tenant]


def _name(call: OpCall) -> str:
    name = call.meta.get("pipe")
    return name if isinstance(name, str) else ""
