"""Calls that this node sends to the nodes where their objects live.

To its caller such a call is like any other: the answer comes to it, it sends its request body and grants credit. What
it does goes over the link instead of to an engine. When the link breaks, the call fails: it may have run.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from struct import error as StructError
from typing import Final

import msgspec

from atoll.bindings.services import ObjectTarget
from atoll.cluster.link.connection import LinkConnection
from atoll.engine.calls.call import GRANT_BATCH, NOBODY, OVER, QUEUED, RESPONDED, SENT, Call, CallListener
from atoll.engine.calls.remote_port import RemotePort
from atoll.engine.objects import failures
from atoll.engine.objects.far import frames
from atoll.errors import ObjectFailure
from atoll.objects.store import ObjectKey

log = logging.getLogger("atoll.objects")

MAX_REROUTED: Final = 3
CLAIM_SECONDS: Final = 5.0


class FarCall:
    """The far end of one call: RemoteEnd and DirectSender of the Call, and HandedSocket of its WebSocket."""

    is_manual = False
    window = 0

    def __init__(
        self, calls: FarCalls, connection: LinkConnection, number: int, call: Call, target: ObjectTarget
    ) -> None:
        self._calls = calls
        self._connection = connection
        self._number = number
        self.call = call
        self.target = target
        self.head = call.head
        self._ungranted = 0
        self.via: Call | None = None
        self._caller: CallListener | None = None  # of a WebSocket that has taken the place of the call
        self._early: list[bytes] = []  # of such a socket, while nobody reads
        self._is_held = False

    # --- what the caller does ---

    def send_body(self, chunk: bytes, ended: bool) -> None:
        self._connection.send(frames.piece(frames.SEND, self._number, chunk, ended))

    def on_cancel(self, call: Call) -> None:
        call.state = OVER
        self.cancel()

    def cancel(self) -> None:
        self._calls.forget(self._connection, self._number)
        self._caller = None
        self._connection.send(frames.frame(frames.CANCEL, self._number))

    def on_grant(self, amount: int) -> None:
        self._ungranted += amount
        if self._ungranted >= GRANT_BATCH:
            self._connection.send(frames.count(frames.GRANT, self._number, self._ungranted))
            self._ungranted = 0

    def wake(self) -> None: ...

    # --- as a WebSocket that outlives its call ---

    def grant(self, amount: int) -> None:
        self._connection.send(frames.count(frames.GRANT, self._number, amount))

    def hear(self, messages: int) -> None:
        self._connection.send(frames.count(frames.HEAR, self._number, messages))

    def adopt(self, caller: CallListener) -> None:
        self.via, self._caller = None, caller
        early, self._early = self._early, []
        for chunk in early:
            caller.on_body(chunk, False)

    def release(self, unread: bytes) -> None:
        self._caller = None
        if unread:
            self._early.insert(0, unread)

    # --- what the other node says ---

    def on_frame(self, kind: int, rest: bytes) -> None:
        caller = self._caller if self._is_held else self.call.caller
        if kind == frames.RESPONSE:
            self._on_response(rest)
        elif kind == frames.FAIL:
            self._on_failure(*frames.read_failure(rest, self.target.id))
        elif kind == frames.BODY:
            self._on_body(caller, rest[1:], rest[0] == 1)
        elif kind == frames.CREDIT and caller is not None:
            caller.on_upload_credit(frames.NUMBER.unpack(rest)[0])
        elif kind == frames.STOP and caller is not None:
            caller.on_upload_stop()

    def _on_response(self, rest: bytes) -> None:
        call = self.call
        status, flags, window, length = frames.RESPONDED.unpack_from(rest)
        at = frames.RESPONDED.size
        head, body = rest[at : at + length], rest[at + length :]
        if call.state != SENT:
            return
        call.status = status
        if flags & frames.HELD:
            self._is_held, self.window, self.is_manual = True, window, bool(flags & frames.MANUAL)
            call.handed, self.via = self, call
            call.state = OVER
            call.caller.on_response(status, head, body, True)
        elif flags & frames.END:
            self._end()
            call.caller.on_response(status, head, body, True)
            call.caller = NOBODY
        else:
            call.state = RESPONDED
            call.caller.on_response(status, head, body, False)

    def _on_body(self, caller: CallListener | None, chunk: bytes, ended: bool) -> None:
        if self._is_held:
            if ended:
                self._calls.forget(self._connection, self._number)
            if caller is not None:
                caller.on_body(chunk, ended)
            elif chunk:
                self._early.append(chunk)
        elif self.call.state == RESPONDED:
            if ended:
                self._end()
            self.call.caller.on_body(chunk, ended)

    def _on_failure(self, failure: ObjectFailure, is_elsewhere: bool) -> None:
        call = self.call
        if is_elsewhere and call.state == SENT and not call.streamed and call.moves < MAX_REROUTED:
            self._calls.forget(self._connection, self._number)
            call.moves += 1
            call.state, call.port, call.direct = QUEUED, None, None
            self._calls.reroute(call, self.target, self.head)
            return
        self.fail(failure)

    def _end(self) -> None:
        self._calls.forget(self._connection, self._number)
        self.call.state = OVER

    def fail(self, failure: ObjectFailure) -> None:
        caller = self._caller if self._is_held else self.call.caller
        if not self._is_held and self.call.state == OVER:
            return
        self._end()
        self.call.failure = failure
        if caller is not None:
            caller.on_failure(failure)


class FarCalls:
    """A LinkEnd: the calls of this node, by the connection that they were sent over."""

    def __init__(self, reroute: Callable[[Call, ObjectTarget, bytes], None]) -> None:
        self.reroute = reroute  # the object of a call that has not begun is not there
        self.on_lost: Callable[[LinkConnection], None] = lambda connection: None
        self._calls: dict[LinkConnection, dict[int, FarCall]] = {}
        self._claims: dict[int, tuple[LinkConnection, asyncio.Future[bool]]] = {}
        self._last = 0
        self.sent = 0

    def forget(self, connection: LinkConnection, number: int) -> None:
        self._calls.get(connection, {}).pop(number, None)

    def send(self, connection: LinkConnection, call: Call, target: ObjectTarget, head: bytes) -> None:
        """Send a call that waits. `head`: that of its event, without the address of the object."""
        number = self._next()
        self.sent += 1
        call.head = head
        far = FarCall(self, connection, number, call, target)
        self._calls.setdefault(connection, {})[number] = far
        call.state, call.port, call.direct = SENT, RemotePort(far), far
        named = target.namespace, target.id, target.class_name, target.name, list(target.path)
        said = frames.LinkedCall(*named, call.event, call.hops, call.ended, head, call.body)
        connection.send(frames.frame(frames.CALL, number, frames.pack(said)))
        if call.backlog is not None:
            for chunk, ended in call.take_backlog():
                call.send_body(chunk, ended)

    def _next(self) -> int:
        self._last = self._last % 0xFFFF_FFFF + 1
        return self._last

    async def claim(self, connection: LinkConnection, key: ObjectKey) -> bool:
        """Have another node let an object go. False if it does not."""
        number = self._next()
        done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._claims[number] = connection, done
        try:
            connection.send(frames.frame(frames.RELEASE, number, frames.pack(frames.LinkedKey(*key))))
            async with asyncio.timeout(CLAIM_SECONDS):
                return await done
        except TimeoutError:
            return False
        finally:
            del self._claims[number]

    def on_frame(self, connection: LinkConnection, data: bytes) -> None:
        try:
            kind, number = frames.HEAD.unpack_from(data)
            if kind == frames.RELEASED and number in self._claims:
                self._answer_claim(number, data[frames.HEAD.size] == 1)
                return
            far = self._calls.get(connection, {}).get(number)
            if far is not None:
                far.on_frame(kind, data[frames.HEAD.size :])
        except (StructError, IndexError, ValueError, msgspec.DecodeError, RecursionError):
            log.exception("another node sent a frame that cannot be read")
            connection.end("a frame cannot be read")

    def _answer_claim(self, number: int, is_done: bool) -> None:
        _, done = self._claims[number]
        if not done.done():
            done.set_result(is_done)

    def on_over(self, connection: LinkConnection) -> None:
        self.on_lost(connection)
        for number in [number for number, (each, _) in self._claims.items() if each is connection]:
            self._answer_claim(number, False)
        for far in list(self._calls.pop(connection, {}).values()):
            far.fail(failures.LOST)
