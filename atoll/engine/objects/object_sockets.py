"""The hibernatable WebSockets of one object. They outlive it when it is evicted, and end with it when it is reset.

While the object lives, its engine says what to do with them in SOCKET frames. The engine is not trusted: what names a
socket that never was, or breaks a limit that the platform checks, ends it. A frame about a socket that is gone is
dropped: it crossed the end of the connection.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from struct import Struct
from typing import Final

from atoll.bindings.services import ObjectTarget
from atoll.engine.calls.call import OVER, Call
from atoll.engine.loaded.engine_session import Isolate
from atoll.engine.objects.held_socket import TOO_MUCH, HeldSocket, Home
from atoll.engine.objects.socket_event import SocketEvent
from atoll.errors import EngineError
from atoll.holdings import Holdings
from atoll.objects.store import ObjectKey
from atoll.wire.generated import CHUNK
from atoll.wire.objects import encode_socket_credit, encode_socket_stamp, encode_sockets
from atoll.wire.sockets import TRY_LATER
from atoll.workers import Version

MAX_SOCKETS: Final = 32_768
CROSSING: Final = 1_024  # more that an honest engine may accept while ends of others are on their way to Python
MAX_EVENTS: Final = 200  # of one object at the same time
EVENT_BYTES: Final = 16 << 20  # of the messages of these, before the last one
MAX_TAGS: Final = 10 * (2 + 256)  # bytes of all tags of a socket
MAX_ATTACHMENT: Final = 16_384
MAX_AUTO: Final = 2_048
MAX_EVENT_MS: Final = 604_800_000
OBJECT_GRANT: Final = 1 << 20  # bytes of all sockets that are credited to an object at once
PART: Final = 1 << 20  # bytes of the table in one frame

# What a SOCKET frame is about
ACCEPTED: Final = 1
JOINED: Final = 2
DATA: Final = 3
ATTACHMENT: Final = 4
AUTO_RESPONSE: Final = 5
EVENT_TIMEOUT: Final = 6

AUTO_REPLIES: Final = 1  # a flag of ACCEPTED
NONE: Final = 0xFFFFFFFF
_U32: Final = Struct("<I")
_TABLE: Final = Struct("<IIII")  # last number, event timeout, length of the automatic request and response


class ObjectSockets(Home):
    def __init__(
        self,
        key: ObjectKey,
        target: ObjectTarget,
        version: Version,
        holdings: Holdings,
        start: Callable[[ObjectSockets, SocketEvent, bytes], None],
        watch: Callable[[ObjectSockets], None],
    ) -> None:
        self.key = key
        self.target = target
        self.version = version  # whose code has accepted them: another version closes them
        self._holdings = holdings
        self._start = start
        self._watch = watch  # have `sweep` called
        self.held: dict[int, HeldSocket] = {}  # the oldest first
        self.auto_response: tuple[bytes, bytes] | None = None
        self.event_timeout_ms = 0
        self._last = 0

        # Its object, while it lives
        self._isolate: Isolate | None = None
        self._slot = 0
        self._unread = 0  # bytes that it sent and that were not credited to it
        self.unsent = 0  # bytes that it sent and that no client's end has taken
        self._granted: dict[HeldSocket, int] = {}  # credit of sockets, too little to tell

        # Events
        self._ready: deque[HeldSocket] = deque()
        self.events: dict[SocketEvent, float] = {}  # under way, with their start
        self._started = 0  # bytes of their messages
        self._is_delivering = False
        self.unjoined: set[HeldSocket] = set()  # no client has them yet

    def __len__(self) -> int:
        return len(self.held)

    # --- its object ---

    def wake(self, isolate: Isolate, slot: int) -> None:
        """The object is open there: tell it its sockets before its first call."""
        self._isolate, self._slot, self._unread = isolate, slot, 0
        self._granted.clear()
        if not self.held and self.auto_response is None and not self.event_timeout_ms:
            return
        for part in self._table():
            isolate.session.link.send(encode_sockets(isolate.load_id, slot, part))

    def _table(self) -> Iterator[bytes]:
        request, response = self.auto_response or (b"", b"")
        lengths = (len(request), len(response)) if self.auto_response is not None else (NONE, NONE)
        rows = [_TABLE.pack(self._last, self.event_timeout_ms, *lengths), request, response]
        size = 0
        for socket in self.held.values():
            row = socket.row()
            size += len(row)
            rows.append(row)
            if size > PART:
                yield b"".join(rows)
                rows, size = [], 0
        yield b"".join(rows)

    def sleep(self) -> None:
        """The object is gone. So are the other ends of sockets that it has not returned in a response."""
        self._isolate = None
        for socket in [each for each in self.unjoined if each.caller is None and each.via is None]:
            self.unjoined.discard(socket)
            socket.cancel()

    def on_frame(self, call_of: Callable[[int], Call | None], what: int, number: int, payload: bytes) -> None:
        """A SOCKET frame of the engine where the object lives."""
        if what == AUTO_RESPONSE:
            self._set_auto_response(payload)
        elif what == EVENT_TIMEOUT:
            (self.event_timeout_ms,) = _U32.unpack(_exactly(payload, 4))
            if self.event_timeout_ms > MAX_EVENT_MS:
                raise EngineError("SOCKET with a time limit that cannot be")
        elif what == ACCEPTED:
            self._accept(number, payload)
        elif number > self._last or not number:
            raise EngineError(f"SOCKET for socket {number}, which its object never accepted")
        else:
            self._on_socket(call_of, what, self.held.get(number), payload)

    def _on_socket(
        self, call_of: Callable[[int], Call | None], what: int, socket: HeldSocket | None, payload: bytes
    ) -> None:
        if what == DATA:
            self._credit_object(len(payload))
            if socket is not None:
                self.unsent += len(payload)
                socket.speak(payload)
        elif what == ATTACHMENT:
            if len(payload) > MAX_ATTACHMENT:
                raise EngineError("SOCKET with too long an attachment")
            if socket is not None and not socket.attach(payload):
                socket.fail(TRY_LATER, TOO_MUCH)
        elif what == JOINED:
            call = call_of(_U32.unpack(_exactly(payload, 4))[0])
            if socket is not None and call is not None:
                self._join(socket, call)
        else:
            raise EngineError(f"SOCKET about {what}")

    def _accept(self, number: int, payload: bytes) -> None:
        if number <= self._last or len(self.held) >= MAX_SOCKETS + CROSSING or not 0 < len(payload) <= 1 + MAX_TAGS:
            raise EngineError(f"socket {number} cannot be accepted: the object has {len(self.held)}")
        self._last = number
        socket = self.held[number] = HeldSocket(self, number, not payload[0] & AUTO_REPLIES, payload[1:])
        self.loosen(socket)
        if not self.hold(0):
            socket.fail(TRY_LATER, TOO_MUCH)

    def _join(self, socket: HeldSocket, call: Call) -> None:
        if socket not in self.unjoined or socket.via is not None or call.handed is not None:
            raise EngineError(f"socket {socket.number} is the response of two calls")
        socket.via = call
        call.handed = socket

    def _set_auto_response(self, payload: bytes) -> None:
        if not payload:
            self.auto_response = None
            return
        length = _U32.unpack_from(payload)[0] if len(payload) >= _U32.size else MAX_AUTO + 1
        request, response = payload[4 : 4 + length], payload[4 + length :]
        if length > MAX_AUTO or len(request) < length or len(response) > MAX_AUTO:
            raise EngineError("SOCKET with an automatic response that cannot be")
        self.auto_response = request, response

    # --- credit ---

    def _credit_object(self, size: int) -> None:
        self._unread += size
        if self._unread >= OBJECT_GRANT and self._isolate is not None:
            self._send(encode_socket_credit, 0, self._unread)
            self._unread = 0

    def pass_on(self, socket: HeldSocket, size: int) -> None:
        self.unsent -= size
        if self._isolate is None:
            return  # it is told with the table
        granted = self._granted.pop(socket, 0) + size
        if granted >= CHUNK:
            self._send(encode_socket_credit, socket.number, granted)
        else:
            self._granted[socket] = granted

    def stamp(self, socket: HeldSocket) -> None:
        socket.responded_ms = time.time() * 1000 // 1
        if self._isolate is not None:
            self._send(encode_socket_stamp, socket.number, socket.responded_ms)

    def _send(self, encode: Callable[[int, int, int, float], bytes], number: int, value: float) -> None:
        assert self._isolate is not None
        self._isolate.session.link.send(encode(self._isolate.load_id, self._slot, number, value))

    def hold(self, change: int) -> bool:
        self._holdings.count(self.version.tenant, change)
        return change < 0 or not self._holdings.is_full(self.version.tenant)

    # --- events ---

    def enqueue(self, socket: HeldSocket) -> None:
        self._ready.append(socket)
        self._deliver()

    def _deliver(self) -> None:
        if self._is_delivering:
            return  # an event was refused at once: the loop below goes on
        self._is_delivering = True
        try:
            self._deliver_ready()
        finally:
            self._is_delivering = False

    def _deliver_ready(self) -> None:
        while self._ready and len(self.events) < MAX_EVENTS and (self._started < EVENT_BYTES or not self.events):
            socket = self._ready.popleft()
            if socket.is_gone:
                continue
            heard = socket.take()
            self._started += len(heard.payload)
            event = SocketEvent(socket, heard, self._on_event_over)
            self.events[event] = time.monotonic()
            self._start(self, event, heard.payload)

    def _on_event_over(self, event: SocketEvent) -> None:
        if self.events.pop(event, None) is None:
            return
        self._started -= len(event.heard.payload)
        if event.was_refused:
            event.socket.shut(TRY_LATER, event.reason)
        event.socket.done(event.heard)
        self._deliver()

    def is_late(self, now: float) -> bool:
        """Whether an event takes longer than the object allows."""
        limit = self.event_timeout_ms / 1000
        return bool(limit) and any(begun + limit < now for begun in self.events.values())

    # --- ends ---

    def sweep(self) -> None:
        """Drop sockets whose call is over and that no client has."""
        for socket in [each for each in self.unjoined if each.caller is not None or _is_left(each)]:
            self.unjoined.discard(socket)
            if socket.caller is None:
                socket.cancel()

    def loosen(self, socket: HeldSocket) -> None:
        self.unjoined.add(socket)
        self._watch(self)

    def remove(self, socket: HeldSocket) -> None:
        self.held.pop(socket.number, None)
        self.unjoined.discard(socket)
        self._granted.pop(socket, None)
        self.unsent -= socket.used
        socket.used = 0

    def close_all(self, code: int, reason: str) -> None:
        """The object was reset or deleted, or its code was updated."""
        self.events.clear()
        self._started = 0
        self._ready.clear()
        for socket in list(self.held.values()):
            socket.shut(code, reason)


def _is_left(socket: HeldSocket) -> bool:
    """The call whose response it was is over, and no client took it. Without such a call: it waits for one."""
    return socket.via is not None and socket.via.state == OVER


def _exactly(payload: bytes, size: int) -> bytes:
    if len(payload) != size:
        raise EngineError(f"SOCKET with {len(payload)} bytes, not {size}")
    return payload
