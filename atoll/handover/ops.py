"""Ops of the streams and WebSockets that stay with a replaced node: its successor has the data, and answers them.

Between the two is a socket with frames: a number, then three parts: facts as JSON, the meta of an op, its body. The
op runs in the successor as if an engine of its own had sent it, with a scope that lives as long as the call.
What a call opened before the change, such as the file of an R2 object that it reads, stays open here.
Durable Objects are not reached this way: their calls fail as retryable.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import struct
from dataclasses import fields
from typing import Any, cast

import msgspec

from atoll.app import Node
from atoll.bindings.base import Later, Reply
from atoll.bindings.scope import CallScope
from atoll.broker import Broker, Op, OpRefusal, Respond
from atoll.errors import AtollError, Failure, StorageFailed
from atoll.logs import Invocation, LogLine
from atoll.wire.fields import read_json
from atoll.wire.generated import ErrorCode, Outcome
from atoll.workers import Version

log = logging.getLogger("atoll.handover")

HEAD = struct.Struct("<QIII")  # number of the op, sizes of the three parts
MOST = 128 << 20  # bytes of one part
NOT_HERE = ("durable_object", "object_history")
GONE = StorageFailed("the node was replaced, and its successor is not there")


class FarRecord(msgspec.Struct, array_like=True):
    """A log record on its way, without its version and trace."""

    outcome: int
    status: int
    cpu_us: int
    wall_us: int
    started_at: float
    head: bytes
    logs: list[LogLine]
    failure: Failure | None
    truncated: bool
    event: str
    entrypoint: str
    hops: int
    ops: dict[str, int]
    subrequests: int
    fetches: int
    memory_mb: int

    @classmethod
    def of(cls, record: Invocation) -> FarRecord:
        found = {name: getattr(record, name) for name in cls.__struct_fields__}
        failure = record.failure
        plain = Failure(*(getattr(failure, each.name) for each in fields(Failure))) if failure is not None else None
        return cls(**{**found, "outcome": int(record.outcome), "logs": list(record.logs), "failure": plain})

    def record(self, version: Version) -> Invocation:
        found = {name: getattr(self, name) for name in self.__struct_fields__}
        return Invocation(version, **{**found, "outcome": Outcome(self.outcome)})


class FarScope:
    """The part of a call that is in the successor. Closed with the call."""

    def __init__(self, scope: CallScope) -> None:
        self.number = 0
        self.ops: ForwardedOps | None = None

    def close(self) -> None:
        if self.ops is not None:
            self.ops.over(self.number)


class ForwardedOps(asyncio.Protocol):
    """The replaced node's end."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self._transport: asyncio.Transport | None = None
        self._before: list[bytes] = []  # frames until the successor is there
        self._waiting: dict[int, Later] = {}
        self._last = 0
        self._frames = Frames()
        self._connecting: asyncio.Task[Any] | None = None
        self._is_gone = False

    def hold(self) -> None:
        """From now on no op reaches the stores of this node."""
        self._broker.forward = self.take

    def attach(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        loop = asyncio.get_running_loop()
        self._connecting = loop.create_task(loop.create_unix_connection(lambda: self, sock=sock))

    def take(self, op: Op, scope: CallScope, meta: bytes, body: bytes, respond: Respond) -> Later | None:
        if not op.keeps_data or op.kind in NOT_HERE or (op.is_free and scope.holds(meta)):
            return None
        answer = Later()
        answer.listen(lambda known: respond(known if isinstance(known, Reply) else refusal(known)))
        if self._is_gone:
            asyncio.get_running_loop().call_soon(answer.settle, GONE)
            return answer
        far = scope.local(FarScope)
        self._last += 1
        if far.ops is None:
            far.ops, far.number = self, self._last
        version = scope.version
        facts = {
            "op": op.name,
            "scope": far.number,
            "worker": version.worker_id,
            "version": version.id,
            "hops": scope.hops,
            "spent": [scope.external, scope.internal, scope.messages],
        }
        self._waiting[self._last] = answer
        self._send(frame(self._last, facts, meta, body))
        return answer

    def record(self, record: Invocation) -> None:
        """Pass on the log record of a call that has ended here."""
        version = record.version
        facts = {"worker": version.worker_id, "version": version.id, "record": True}
        self._send(frame(0, facts, b"", msgspec.msgpack.encode(FarRecord.of(record))))

    def over(self, scope: int) -> None:
        self._send(frame(0, {"over": scope}))

    def _send(self, data: bytes) -> None:
        if self._transport is not None:
            self._transport.write(data)
        elif not self._is_gone:
            self._before.append(data)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        before, self._before = self._before, []
        for data in before:
            self._transport.write(data)

    def data_received(self, data: bytes) -> None:
        for number, facts, meta, body in self._frames.feed(data):
            answer = self._waiting.pop(number, None)
            if answer is None:
                continue
            if "code" in facts:
                answer.settle(FarRefusal(ErrorCode(facts["code"]), facts["message"]))
            else:
                answer.settle(Reply(read_json(meta), body))

    def connection_lost(self, error: Exception | None) -> None:
        self._is_gone = True
        waiting, self._waiting = self._waiting, {}
        for answer in waiting.values():
            answer.settle(GONE)


class FarRefusal(Exception):
    """The successor refused an op."""

    def __init__(self, code: ErrorCode, message: str) -> None:
        super().__init__(message)
        self.code = code


def refusal(error: Reply | Exception) -> OpRefusal:
    if isinstance(error, AtollError | FarRefusal):
        return OpRefusal(ErrorCode(error.code), str(error))
    return OpRefusal(ErrorCode.INTERNAL, "internal error")


class OpsOfPredecessor(asyncio.Protocol):
    """The successor's end."""

    def __init__(self, node: Node) -> None:
        self._node = node
        self._scopes: dict[int, CallScope] = {}
        self._frames = Frames()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        for number, facts, meta, body in self._frames.feed(data):
            if "over" in facts:
                scope = self._scopes.pop(facts["over"], None)
                if scope is not None:
                    scope.close()
            elif "record" in facts:
                self._record(facts, body)
            else:
                self._answer(number, facts, meta, body)

    def connection_lost(self, error: Exception | None) -> None:
        scopes, self._scopes = self._scopes, {}
        for scope in scopes.values():
            scope.close()

    def _answer(self, number: int, facts: dict[str, Any], meta: bytes, body: bytes) -> None:
        def respond(answer: Reply | OpRefusal) -> None:
            if self._transport.is_closing():
                return
            if isinstance(answer, OpRefusal):
                self._transport.write(frame(number, {"code": int(answer.code), "message": answer.message}))
            else:
                self._transport.write(frame(number, {}, json.dumps(answer.meta).encode(), bytes(answer.body)))

        op = self._node.broker.find(facts["op"])
        scope = self._scopes.get(facts["scope"]) or self._open(facts)
        if op is None or scope is None:
            respond(OpRefusal(ErrorCode.STORAGE, "the node was replaced by one that cannot answer this"))
            return
        task = self._node.broker.answer(op, scope, meta, body, respond)
        if task is not None:
            scope.pending[number] = task
            task.add_done_callback(lambda _: _forget(scope, number))

    def _record(self, facts: dict[str, Any], body: bytes) -> None:
        version = self._version(facts["worker"], facts["version"])
        if version is not None:
            self._node.logs.record(msgspec.msgpack.decode(body, type=FarRecord).record(version))

    def _open(self, facts: dict[str, Any]) -> CallScope | None:
        version = self._version(facts["worker"], facts["version"])
        if version is None:
            return None  # deleted meanwhile
        scope = self._scopes[facts["scope"]] = CallScope(version, facts["hops"])
        scope.external, scope.internal, scope.messages = facts["spent"]
        return scope

    def _version(self, worker: str, version: str) -> Version | None:
        active = self._node.deployer.active(worker)
        if active is not None and active.id == version:
            return active
        stored = self._node.store.without_code(worker, version)
        return stored.version if stored is not None else None


def _forget(scope: CallScope, number: int) -> None:
    scope.pending.pop(number, None)


async def serve_ops(node: Node, sock: socket.socket) -> None:
    """Answer the ops of the node that was replaced, until it ends."""
    sock.setblocking(False)
    await asyncio.get_running_loop().create_unix_connection(lambda: OpsOfPredecessor(node), sock=sock)


def frame(number: int, facts: dict[str, Any], meta: bytes = b"", body: bytes = b"") -> bytes:
    head = json.dumps(facts).encode()
    return HEAD.pack(number, len(head), len(meta), len(body)) + head + meta + body


class Frames:
    """Cuts a stream into frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[tuple[int, dict[str, Any], bytes, bytes]]:
        buffer = self._buffer
        buffer += data
        found = []
        at = 0
        while len(buffer) - at >= HEAD.size:
            number, *sizes = HEAD.unpack_from(buffer, at)
            if max(sizes) > MOST:
                raise ValueError("a frame of the other process is too large")
            end = at + HEAD.size + sum(sizes)
            if len(buffer) < end:
                break
            at += HEAD.size
            parts = []
            for size in sizes:
                parts.append(bytes(buffer[at : at + size]))
                at += size
            found.append((number, json.loads(parts[0]), parts[1], parts[2]))
        del buffer[:at]
        return found
