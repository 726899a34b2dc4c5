"""RPC sessions: what one method call and its stubs send between the calls of two workers.

A session begins with a method call (`service.call`) and joins two calls: the caller's and the callee's. Each call has
one `RpcEnds`, with one inbox for the messages of all its sessions. The caller numbers its sessions; number 0 is the
callee's end of the session it was called by. A session ends with either call.

Python carries messages and knows neither values nor capability tables: those are in the engines (web/rpc). It bounds
what waits here, checks every number, and counts calls as subrequests of the worker that makes them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import msgspec

from atoll.bindings.base import Later, Reply
from atoll.bindings.rpc.messages import CALL, ENDED, GET, MAX_NUMBER, RELEASE, THROW, RpcMessage
from atoll.bindings.scope import CallScope
from atoll.errors import InvalidArgument, QuotaExceeded

MAX_SESSIONS = 1_000  # open sessions of one call, as caller
ROOM = 256 << 10  # bytes that wait in an inbox; beyond that senders wait
MAX_TAKEN = 1_000  # messages of one reply
LOST = "Network connection lost."


class Inbox:
    """Messages that wait for a worker, in order, and the senders that wait for room."""

    __slots__ = ("_messages", "_parked", "_size", "receiver")

    def __init__(self) -> None:
        self._messages: deque[RpcMessage] = deque()
        self._size = 0
        self._parked: deque[Sending] = deque()
        self.receiver: Later | None = None

    @property
    def is_full(self) -> bool:
        return self._size > ROOM

    def put(self, message: RpcMessage) -> None:
        self._messages.append(message)
        self._size += message.cost

    def park(self, sending: Sending) -> None:
        self._parked.append(sending)

    def wake(self) -> None:
        """Answer the waiting receive, if there is one and something to receive."""
        if self.receiver is not None and self._messages:
            receiver, self.receiver = self.receiver, None
            receiver.settle(self.take())

    def take(self) -> Reply:
        """The next messages. At least one, if any waits."""
        described: list[list[object]] = []
        bodies: list[bytes] = []
        size = 0
        while self._messages and len(described) < MAX_TAKEN and (not described or size <= ROOM):
            message = self._messages.popleft()
            size += message.cost
            described.append([*message[:5], len(message.body)])
            bodies.append(message.body)
        self._size -= size
        self._unpark()
        return Reply({"m": described}, bodies[0] if len(bodies) == 1 else b"".join(bodies))

    def _unpark(self) -> None:
        while self._parked and not self.is_full:
            self._parked.popleft().go()

    @property
    def is_empty(self) -> bool:
        return not self._messages

    def move_to(self, other: Inbox, number: int) -> None:
        for message in self._messages:
            other.put(message._replace(session=number))
        self.drop()
        other.wake()

    def drop(self) -> None:
        """Nobody receives any more: senders need not wait."""
        self._messages.clear()
        self._size = 0
        parked, self._parked = self._parked, deque()
        for sending in parked:
            sending.go()


class RpcSession:
    """One session: the two calls it joins."""

    __slots__ = ("_early", "callee", "caller", "is_over", "is_used", "number")

    def __init__(self, caller: RpcEnds, number: int, is_used: bool) -> None:
        self.caller = caller
        self.number = number  # at the caller
        self.callee: RpcEnds | None = None  # set by its first op of a session
        self.is_over = False
        self.is_used = is_used  # the caller has sent stubs or messages, so it must learn of the end
        self._early: Inbox | None = None  # messages for a callee that has not used the session yet

    def attach(self, callee: RpcEnds) -> None:
        self.callee = callee
        early, self._early = self._early, None
        if early is not None:
            early.move_to(callee.inbox, 0)

    def from_caller(self) -> tuple[Inbox, int]:
        """The inbox of the callee, and the number of the session there."""
        if self.callee is not None:
            return self.callee.inbox, 0
        if self._early is None:
            self._early = Inbox()
        return self._early, 0

    def response_ended(self) -> None:
        """The callee has answered and sent its streams. It may run on, but a callee without an end here cannot send."""
        if self.callee is None:
            self.end()

    def end(self, why: str = LOST) -> None:
        """One of the calls is over."""
        if self.is_over:
            return
        self.is_over = True
        self.caller.sessions.pop(self.number, None)
        if self._early is not None:
            self._early.drop()
        if self.is_used and not self.caller.is_over:
            self.caller.inbox.put(RpcMessage(self.number, ENDED, 0, 0, [], thrown("Error", why)))
            self.caller.inbox.wake()


class RpcEnds:
    """The ends of all sessions of one call."""

    def __init__(self, scope: CallScope) -> None:
        self.scope = scope
        self.inbox = Inbox()
        self.is_over = False
        self.sessions: dict[int, RpcSession] = {}  # those that this call began, by its numbers
        self._inbound = scope.session if isinstance(scope.session, RpcSession) else None
        if self._inbound is not None:
            self._inbound.attach(self)

    def open(self, number: object, *, is_used: bool) -> RpcSession:
        """A new session of a method call that this call makes. The number comes from the worker."""
        if not isinstance(number, int) or not 0 < number <= MAX_NUMBER or number in self.sessions:
            raise InvalidArgument("the number of an RPC session is malformed, or is used already")
        if len(self.sessions) >= MAX_SESSIONS:
            raise QuotaExceeded(f"more than {MAX_SESSIONS} method calls are open in one request: dispose stubs")
        session = self.sessions[number] = RpcSession(self, number, is_used)
        return session

    def find(self, number: int) -> RpcSession | None:
        found = self._inbound if number == 0 else self.sessions.get(number)
        return None if found is None or found.is_over else found

    def send(self, batch: list[RpcMessage]) -> Reply | Later:
        sending = Sending(self, batch)
        sending.go()
        return Reply() if sending.is_done else sending

    def receive(self) -> Reply | Later:
        if not self.inbox.is_empty:
            return self.inbox.take()
        if self.inbox.receiver is not None:
            raise InvalidArgument("only one receive of RPC messages at a time")
        self.inbox.receiver = receiver = Later()
        return receiver

    def close(self) -> None:
        self.is_over = True
        self.inbox.receiver = None
        self.inbox.drop()
        for session in list(self.sessions.values()):
            session.end()
        if self._inbound is not None:
            self._inbound.end()


class Sending(Later):
    """The messages of one rpc.send: delivered one by one, as the inboxes have room."""

    __slots__ = ("_at", "_batch", "_ends", "is_done")

    def __init__(self, ends: RpcEnds, batch: list[RpcMessage]) -> None:
        super().__init__()
        self._ends = ends
        self._batch = batch
        self._at = 0
        self.is_done = False

    def go(self) -> None:
        """Deliver until an inbox is full. The reply is sent when all messages are delivered."""
        woken: dict[int, Callable[[], None]] = {}
        while self._at < len(self._batch) and not self._is_over:
            found = self._place(self._batch[self._at])
            if found is not None:
                inbox, message = found
                if inbox.is_full:
                    inbox.park(self)
                    break
                inbox.put(message)
                woken[id(inbox)] = inbox.wake
            self._at += 1
        for wake in woken.values():
            wake()
        if self._at == len(self._batch):
            self.is_done = True
            self.settle(Reply())

    def _place(self, message: RpcMessage) -> tuple[Inbox, RpcMessage] | None:
        """The inbox for a message, and the message as it is seen there. None: there is nobody to receive it."""
        ends = self._ends
        session = ends.find(message.session)
        asks = message.kind in (CALL, GET)
        if session is None:
            # The caller of a stub learns that the other side is gone; answers and releases are not needed any more.
            lost = message._replace(kind=ENDED, id=0, target=0, path=[], body=thrown("Error", LOST))
            return (ends.inbox, lost) if asks else None
        if asks:
            try:
                ends.scope.spend()
            except QuotaExceeded as error:
                refused = message._replace(kind=THROW, target=0, path=[], body=thrown("Error", str(error)))
                return ends.inbox, refused
        if session.caller is not ends:
            return session.caller.inbox, message._replace(session=session.number)
        if message.kind != RELEASE:
            session.is_used = True
        inbox, number = session.from_caller()
        return inbox, message._replace(session=number)


def thrown(name: str, text: str) -> bytes:
    """An exception as web/worker/thrown.js reads it."""
    return msgspec.json.encode({"name": name, "message": text})
