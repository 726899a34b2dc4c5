"""One hibernatable WebSocket of an object. It is here as long as the client is connected, also while the object is not.

To its client's end (front/sockets.py, or a worker that opened it) it looks like the call that the socket was before:
messages come as `send_body` and go as `on_body`, both under credit. Messages of the client become events of the object,
one at a time: the next follows when the handler of the last is done. Until then they wait here, and their credit is
held back, so the client is not read any further.
"""

from __future__ import annotations

import asyncio
from collections import deque
from io import BytesIO
from struct import Struct
from typing import Final, NamedTuple, Protocol

from atoll.engine.calls.call import Call, CallListener
from atoll.errors import EngineError, Failure
from atoll.wire.generated import CHUNK, WINDOW, ErrorCode
from atoll.wire.incoming import TEXT
from atoll.wire.outgoing import CLOSE_KIND, BadMessage, read_head
from atoll.wire.sockets import ABNORMAL, INTERNAL_ERROR, TRY_LATER, FrameCheck, pack_close, pack_message, read_close

SMALL_WINDOW: Final = 16 << 10  # bytes that a client may send before its object has handled them; a long message: more
HEAD: Final = 5  # bytes before each message
ERROR: Final = 4  # after the kinds of messages: what an event is about
LOST_TEXT: Final = "WebSocket disconnected without sending Close frame."
TOO_MUCH: Final = "the WebSockets of this tenant hold too many bytes"
NO_ATTACHMENT: Final = 0xFFFFFFFF
SERVER_CLOSED: Final = 1  # a flag in the table
NEVER: Final = -1.0

# In the table: number, bytes in use, time of the last automatic response, flags, length of tags and of the attachment.
RECORD: Final = Struct("<IIdBxHI")

UNANSWERED: Final = Failure(ErrorCode.CANCELED, "the object did not answer the close")


class Heard(NamedTuple):
    """A message of the client, or its end."""

    what: int
    payload: bytes
    code: int = 0
    reason: str = ""
    is_clean: bool = True


class Home(Protocol):
    """The sockets of its object (object_sockets.py)."""

    auto_response: tuple[bytes, bytes] | None

    def hold(self, change: int) -> bool: ...  # count bytes to the tenant; False if it holds too many

    def pass_on(self, socket: HeldSocket, size: int) -> None: ...  # bytes of the object have left

    def stamp(self, socket: HeldSocket) -> None: ...  # there was an automatic response

    def enqueue(self, socket: HeldSocket) -> None: ...  # it has an event

    def loosen(self, socket: HeldSocket) -> None: ...  # no client has it for now

    def remove(self, socket: HeldSocket) -> None: ...


class HeldSocket:
    window: Final = SMALL_WINDOW  # the credit that its client begins with
    __slots__ = (
        "_again", "_buffer", "_check", "_has_heard_all", "_held", "_inbox", "_is_moving", "_is_returning", "_long",
        "_out", "_owed", "_room", "caller", "has_closed", "home", "is_busy", "is_gone", "is_manual", "number",
        "record", "responded_ms", "used", "via",
    )  # fmt: skip

    def __init__(self, home: Home, number: int, is_manual: bool, tags: bytes) -> None:
        self.home = home
        self.number = number
        self.is_manual = is_manual  # the object answers a close of the client itself
        self.record = RECORD.pack(number, 0, NEVER, 0, len(tags), NO_ATTACHMENT) + tags
        self.responded_ms = NEVER
        self.is_gone = False

        # Its client
        self.via: Call | None = None  # the call whose response it is, until its client has it
        self.caller: CallListener | None = None

        # From the object to the client
        self.used = 0  # bytes of the object that have not left
        self.has_closed = False
        self._out: deque[bytes] | None = None
        self._again = b""  # what a worker that passes the socket on has not read
        self._room = WINDOW  # bytes that the client's end takes
        self._check: FrameCheck | None = None

        # From the client to the object
        self.is_busy = False  # an event is under way or in line
        self._inbox: deque[Heard] | None = None
        self._buffer = b""  # the beginning of a message
        self._long: tuple[int, int, BytesIO] | None = None  # a long one: kind, length, content so far
        self._has_heard_all = False
        self._owed = 0  # bytes of credit to give back
        self._held = 0  # bytes that are counted to the tenant
        self._is_returning = False
        self._is_moving = False
        self._hold(len(self.record))

    # --- what the object keeps with it ---

    @property
    def tags(self) -> bytes:
        size = RECORD.unpack_from(self.record)[4]
        return self.record[RECORD.size : RECORD.size + size]

    def attach(self, attachment: bytes) -> bool:
        """False if its tenant holds too many bytes: then nothing is attached."""
        tags = self.tags
        change = RECORD.size + len(tags) + len(attachment) - len(self.record)
        if not self._hold(change):
            self._hold(-change)
            return False
        self.record = RECORD.pack(self.number, 0, NEVER, 0, len(tags), len(attachment)) + tags + attachment
        return True

    def row(self) -> bytes:
        """Its row in the table for an object that wakes up."""
        if not self.used and not self.has_closed and self.responded_ms < 0:
            return self.record
        *_, tags, attachment = RECORD.unpack_from(self.record)
        flags = SERVER_CLOSED if self.has_closed else 0
        head = RECORD.pack(self.number, self.used, self.responded_ms, flags, tags, attachment)
        return head + self.record[RECORD.size :]

    # --- its client's end: what a call is for its caller ---

    def adopt(self, caller: CallListener) -> None:
        """The client has the response: `caller` is its end."""
        self.via = None
        self.caller = caller
        self.advance()

    def release(self, unread: bytes) -> None:
        """A worker passes the socket on: until the next `adopt` nobody reads. What it has not read comes again."""
        self.caller = None
        self.home.loosen(self)
        self._room = min(self._room + len(unread), WINDOW)
        self._again = unread

    def send_body(self, chunk: bytes, ended: bool) -> None:
        """Messages of the client."""
        if self.is_gone or self._has_heard_all:
            return
        self._owed += len(chunk)
        if not self._hold(len(chunk)):
            self.fail(TRY_LATER, TOO_MUCH)
            return
        try:
            self._read(chunk)
        except BadMessage:  # only a worker's engine can send this
            self._hear(Heard(ERROR, b"", ABNORMAL, "the client sent something that is not a message", False))
        if ended:
            self._lose()
        self.advance()

    def hear(self, messages: int) -> None: ...  # each message is a call of its own

    def grant(self, amount: int) -> None:
        """The client has read this much."""
        self._room = min(self._room + amount, WINDOW)
        self.advance()

    def cancel(self) -> None:
        """The client is gone."""
        self.caller = None
        if self.is_gone:
            return
        self._out = None
        self._lose()
        self.advance()

    # --- messages of the client ---

    def _read(self, chunk: bytes) -> None:
        if self._long is not None:
            kind, length, content = self._long
            taken = min(length - content.tell(), len(chunk))
            content.write(chunk[:taken])
            if content.tell() < length:
                return
            self._long = None
            self._hear(Heard(kind, content.getvalue()))
            chunk = chunk[taken:]
        data = self._buffer + chunk if self._buffer else chunk
        self._buffer = b""
        at, size = 0, len(data)
        while at < size and not self._has_heard_all:
            if size - at < HEAD:
                self._buffer = data[at:]
                return
            kind, length = read_head(data, at)
            start, end = at + HEAD, at + HEAD + length
            if end <= size:
                self._on_message(kind, data[start:end])
                at = end
            elif length > CHUNK:
                content = BytesIO()
                content.write(data[start:])
                self._long = kind, length, content
                return
            else:
                self._buffer = data[at:]
                return

    def _on_message(self, kind: int, payload: bytes) -> None:
        if kind != CLOSE_KIND:
            self._hear(Heard(kind, payload))
            return
        code, reason = read_close(payload)
        if code == ABNORMAL and reason:
            self._hear(Heard(ERROR, b"", code, reason, False))
        elif code == ABNORMAL:
            self._lose()
        else:
            self._hear(Heard(CLOSE_KIND, b"", code, reason))

    def _lose(self) -> None:
        """The client ended without a close."""
        if not self._has_heard_all:
            self._hear(Heard(CLOSE_KIND, b"", ABNORMAL, LOST_TEXT, False))

    def _hear(self, heard: Heard) -> None:
        if self._inbox is None:
            self._inbox = deque()
        self._inbox.append(heard)
        if heard.what >= CLOSE_KIND:
            self._has_heard_all = True
            self._buffer, self._long = b"", None

    def advance(self) -> None:
        """Go on with what has come: answer what is answered here, and have the next event delivered."""
        if self._is_moving:
            return  # the client's end grants credit while it is given something: `_move` below goes on with it
        self._is_moving = True
        try:
            self._move()
        finally:
            self._is_moving = False
        if not self._inbox:
            self._inbox = None
            self._return_credit()

    def _move(self) -> None:
        self._flush()
        inbox = self._inbox
        while inbox and not self.is_busy and not self.is_gone:
            pair = self.home.auto_response
            if pair is not None and inbox[0].what == TEXT and inbox[0].payload == pair[0]:
                if not self._may_speak:
                    return  # `grant` goes on
                self._forget(inbox.popleft())
                self._respond(pair[1])
            else:
                self.is_busy = True
                self.home.enqueue(self)

    @property
    def _may_speak(self) -> bool:
        """Whether something may be sent between two messages of the object, and the client reads."""
        return not self._out and self._room > 0 and (self._check is None or self._check.is_between)

    def _respond(self, text: bytes) -> None:
        if self.caller is None or self.has_closed:
            return
        data = pack_message(TEXT, text)
        self._room -= len(data)
        self.home.stamp(self)
        self.caller.on_body(data, False)

    def take(self) -> Heard:
        """The next event. Its client's close is answered now, unless the object does that."""
        assert self._inbox
        heard = self._inbox.popleft()
        if heard.what == CLOSE_KIND and heard.is_clean and not self.is_manual and not self.has_closed:
            self.has_closed = True
            if self.caller is not None:
                self.caller.on_body(pack_close(heard.code, heard.reason), False)
        return heard

    def done(self, heard: Heard) -> None:
        """The object has handled an event."""
        self.is_busy = False
        self._forget(heard)
        if self.is_gone:
            return
        if heard.what < CLOSE_KIND:
            self.advance()
            return
        caller = self.caller
        self._leave()
        if caller is not None:
            if self.has_closed:
                caller.on_body(b"", True)
            else:
                caller.on_failure(UNANSWERED)

    def _forget(self, heard: Heard) -> None:
        if heard.payload:
            self._hold(-min(len(heard.payload), self._held))

    def _return_credit(self) -> None:
        """Let the client send more, in a later turn: it may have much to send at once."""
        if self._owed and not self._is_returning and self.caller is not None:
            self._is_returning = True
            asyncio.get_running_loop().call_soon(self._returned)

    def _returned(self) -> None:
        self._is_returning = False
        if self._inbox or self.is_gone or self.caller is None:
            return
        owed, self._owed = self._owed, 0
        if self._long is None:  # heads of messages are nobody's
            self._hold(len(self.record) + len(self._buffer) - self._held)
        self.caller.on_upload_credit(owed)

    # --- messages of the object ---

    def speak(self, chunk: bytes) -> None:
        """From the engine. EngineError if it sends what no object could."""
        self.used += len(chunk)
        if self.used > WINDOW:
            raise EngineError("a WebSocket of an object sent more than it was granted")
        if self._check is None:
            self._check = FrameCheck()
        try:
            self._check.look(chunk)
        except BadMessage as error:
            raise EngineError(str(error)) from None
        self.has_closed = self.has_closed or self._check.has_closed
        if self._out is None:
            self._out = deque()
        self._out.append(chunk)
        self.advance()

    def _flush(self) -> None:
        out, caller = self._out, self.caller
        if caller is None:
            if self._has_heard_all and out:  # nobody will read it
                self._out = None
                self._passed(sum(map(len, out)))
            return
        passed = 0
        if self._again:
            again, self._again = self._again, b""
            self._room -= len(again)
            caller.on_body(again, False)
        while out and self._room > 0:
            chunk = out.popleft()
            self._room -= len(chunk)
            passed += len(chunk)
            caller.on_body(chunk, False)
        if not out:
            self._out = None
        if passed:
            self._passed(passed)

    def _passed(self, size: int) -> None:
        if not self.is_gone:
            self.used -= size
            self.home.pass_on(self, size)

    # --- ends ---

    def _hold(self, change: int) -> bool:
        self._held += change
        return self.home.hold(change)

    def fail(self, code: int, reason: str) -> None:
        """Close it for the client, and tell the object."""
        caller, self.caller = self.caller, None
        if caller is not None:
            caller.on_body(b"" if self.has_closed else pack_close(code, reason), True)
        self._out = None
        if not self._has_heard_all:
            self._hear(Heard(ERROR, b"", code, reason, False))
        self.advance()

    def shut(self, code: int = INTERNAL_ERROR, reason: str = "") -> None:
        """Close it for the client. The object hears nothing of it."""
        caller = self.caller
        if not self.is_gone:
            self._leave()
            if caller is not None:
                caller.on_body(b"" if self.has_closed else pack_close(code, reason), True)

    def _leave(self) -> None:
        self.is_gone = True
        self.home.remove(self)
        self._hold(-self._held)
        self._inbox = self._out = self._long = self.caller = self.via = None
        self._buffer = b""
