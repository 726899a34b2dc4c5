"""Calls of other nodes to objects that live here. They are never sent on to a third node."""

from __future__ import annotations

import asyncio
import logging
from struct import error as StructError
from typing import Final, Protocol

import msgspec

from atoll.cluster.link.connection import LinkConnection
from atoll.engine.calls.call import Call, HandedSocket
from atoll.engine.objects import failures
from atoll.engine.objects.far import frames
from atoll.errors import Failure, ObjectFailure, StorageFailed
from atoll.objects.store import ObjectKey, check_key
from atoll.wire.generated import ErrorCode, Event

log = logging.getLogger("atoll.objects")

RPC: Final = int(Event.RPC)
MORE_THAN_VALUE: Final = b"value-length:"  # in the head of a value that has streams or stubs
NOT_PLAIN: Final = ObjectFailure(
    ErrorCode.INVALID_ARGUMENT,
    "The result has a function, a stub or a stream, which cannot come from a Durable Object on another node.",
)


class ServedCall:
    """The caller of an object here, for a call that began on another node."""

    def __init__(self, calls: ServedCalls, connection: LinkConnection, number: int, event: int) -> None:
        self._calls = calls
        self._connection = connection
        self._number = number
        self._event = event
        self.call: Call | None = None
        self._socket: HandedSocket | None = None
        self.is_over = False

    # --- as the caller ---

    def on_response(self, status: int, head: bytes, body: bytes, ended: bool) -> None:
        if self.is_over:
            return
        if self._event == RPC and MORE_THAN_VALUE in head:
            self.cancel()
            self._connection.send(frames.failure(self._number, NOT_PLAIN))
            return
        handed = self.call.handed if self.call is not None and status == 101 else None
        flags, window = (frames.END if ended else 0), 0
        if handed is not None:
            flags, window = frames.HELD | (frames.MANUAL if handed.is_manual else 0), handed.window
        self._connection.send(frames.response(self._number, status, flags, window, head, body))
        if handed is not None:
            self._socket = handed
            handed.adopt(self)
        elif ended:
            self._over()

    def on_body(self, chunk: bytes, ended: bool) -> None:
        if not self.is_over:
            self._connection.send(frames.piece(frames.BODY, self._number, chunk, ended))
            if ended:
                self._over()

    def on_failure(self, failure: Failure) -> None:
        if not self.is_over:
            self._over()
            is_elsewhere = failure.message in (failures.ELSEWHERE.message, failures.AWAY.message)
            self._connection.send(frames.failure(self._number, failure, is_elsewhere=is_elsewhere))

    def on_upload_credit(self, amount: int) -> None:
        self._connection.send(frames.count(frames.CREDIT, self._number, amount))

    def on_upload_stop(self) -> None:
        self._connection.send(frames.frame(frames.STOP, self._number))

    def _over(self) -> None:
        self.is_over = True
        self._calls.forget(self._connection, self._number)

    # --- what the other node says ---

    def on_frame(self, kind: int, rest: bytes) -> None:
        far = self._socket or self.call
        if far is None:
            return
        if kind == frames.SEND:
            far.send_body(rest[1:], rest[0] == 1)
        elif kind == frames.GRANT:
            far.grant(frames.NUMBER.unpack(rest)[0])
        elif kind == frames.HEAR:
            far.hear(frames.NUMBER.unpack(rest)[0])
        elif kind == frames.CANCEL:
            self.cancel()

    def cancel(self) -> None:
        far = self._socket or self.call
        if not self.is_over:
            self._over()
            if far is not None:
                far.cancel()


class ObjectsOfNode(Protocol):
    """What is here, for other nodes (engine/objects/among_nodes.py)."""

    def serve(self, said: frames.LinkedCall, served: ServedCall) -> None: ...

    async def let_go(self, key: ObjectKey) -> bool: ...


class ServedCalls:
    """A LinkEnd: the calls of other nodes, by the connection that they came over."""

    def __init__(self) -> None:
        self.among: ObjectsOfNode | None = None  # set before the node listens
        self._calls: dict[LinkConnection, dict[int, ServedCall]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self.count = 0

    def forget(self, connection: LinkConnection, number: int) -> None:
        self._calls.get(connection, {}).pop(number, None)

    def on_frame(self, connection: LinkConnection, data: bytes) -> None:
        try:
            kind, number = frames.HEAD.unpack_from(data)
            rest = data[frames.HEAD.size :]
            if kind == frames.CALL:
                self._begin(connection, number, frames.read_call(rest))
            elif kind == frames.RELEASE:
                found = frames.read_key(rest)
                self._release(connection, number, ObjectKey(found.namespace, found.id))
            elif (served := self._calls.get(connection, {}).get(number)) is not None:
                served.on_frame(kind, rest)
        except (StructError, IndexError, ValueError, msgspec.DecodeError):
            log.exception("another node sent a frame that cannot be read")
            connection.end("a frame cannot be read")

    def on_over(self, connection: LinkConnection) -> None:
        for served in list(self._calls.pop(connection, {}).values()):
            served.cancel()

    def _begin(self, connection: LinkConnection, number: int, said: frames.LinkedCall) -> None:
        assert self.among is not None
        check_key(ObjectKey(said.namespace, said.id))
        self.count += 1
        served = ServedCall(self, connection, number, said.event)
        self._calls.setdefault(connection, {})[number] = served
        self.among.serve(said, served)

    def _release(self, connection: LinkConnection, number: int, key: ObjectKey) -> None:
        check_key(key)
        task = asyncio.get_running_loop().create_task(self._let_go(connection, number, key))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _let_go(self, connection: LinkConnection, number: int, key: ObjectKey) -> None:
        assert self.among is not None
        try:
            is_done = await self.among.let_go(key)
        except StorageFailed:
            is_done = False
        connection.send(frames.frame(frames.RELEASED, number, b"\1" if is_done else b"\0"))
