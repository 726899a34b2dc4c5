"""Splits the stream from an engine into frames, in bounded turns of the event loop.

A Decoder splits the chunks of the socket into frames and passes each to the handler of its kind as (flags, worker,
call, data, start, end). The payload is `data[start:end]`, not yet sliced, so that a RESPONSE is sliced once and never
copied as a whole. A header is checked *before* the rest of its frame is awaited: an engine may send this kind, the
flags are known, ids are present where they are needed, and the length fits the kind. So a malicious engine cannot make
Python buffer more than MAX_PAYLOAD.

The body of a long OP is gathered as it arrives. Joining and slicing it at the end would hold the event loop: twenty
megabytes take 10 to 30 ms each time, most of it for fresh memory. A BODY frame is passed on as it arrives, in pieces
that are BODY frames for their handler, because joining it would copy most of each stream.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from io import BytesIO
from struct import Struct
from time import perf_counter
from typing import Final, TypeAlias

from atoll.errors import EngineError
from atoll.wire.codec import HEADER_SIZE, LOG_PREFIX, MAX_JSON, OP_PREFIX, RESPONSE_PREFIX, Handler, op_head_size
from atoll.wire.generated import (
    CHUNK,
    COMMIT_PAGES,
    HEADER_LAYOUT,
    INNER_HEAD,
    MAX_HEAD,
    MAX_PAYLOAD,
    PAGE,
    WINDOW,
    Flag,
    Frame,
)

log = logging.getLogger("atoll.wire")

TURN_SECONDS: Final = 0.003  # for the frames of one engine in one turn of the event loop
LOOK_EVERY: Final = 8  # small frames between two looks at the clock; fewer with ops and long frames
LARGE: Final = 512 << 10  # bytes of a frame that takes noticeable time to copy

# A long OP: worker, op id, prefix and meta as in the frame, and the body.
LongOpHandler: TypeAlias = Callable[[int, int, bytes, bytes], None]

SOCKET_PREFIX: Final = 8
COMMIT_PREFIX: Final = 32  # as read_commit reads it (objects.py)
INNER_PREFIX: Final = 36  # as read_inner reads it (inner.py)

LEAST_PIECE: Final = 4096  # bytes of a BODY frame that are passed on before the rest has arrived

_OP_KIND: Final = int(Frame.OP)
_BODY_KIND: Final = int(Frame.BODY)
_HEADER: Final = Struct(HEADER_LAYOUT)
_read_header: Final = _HEADER.unpack_from

_RESPONSE_FLAGS: Final = Flag.END | Flag.DONE | Flag.INNER
# kind -> (shortest, longest payload, valid flags, worker id needed, call or op id needed). None: either.
_RULES: dict[Frame, tuple[int, int, int, bool | None, bool | None]] = {
    Frame.HELLO: (2, MAX_JSON, 0, False, False),
    Frame.LOADED: (2, MAX_JSON, Flag.FAIL, True, False),
    Frame.UNLOADED: (0, MAX_JSON, 0, True, False),
    Frame.RESPONSE: (RESPONSE_PREFIX, RESPONSE_PREFIX + MAX_HEAD + WINDOW, _RESPONSE_FLAGS, True, True),
    Frame.BODY: (0, CHUNK, Flag.END, True, True),
    Frame.CREDIT: (4, 4, 0, True, True),
    Frame.CANCEL: (0, MAX_JSON, 0, True, True),
    Frame.FAIL: (2, MAX_JSON, Flag.END, True, True),
    Frame.DONE: (8, 8, Flag.FAIL, True, True),
    Frame.LOG: (LOG_PREFIX, LOG_PREFIX + MAX_JSON, 0, True, None),
    Frame.OP: (OP_PREFIX, MAX_PAYLOAD, 0, True, None),
    Frame.PONG: (0, MAX_JSON, 0, False, False),
    Frame.CODE: (0, MAX_PAYLOAD, 0, True, False),
    Frame.STUCK: (2, MAX_JSON, 0, True, None),
    Frame.COMMIT: (COMMIT_PREFIX, COMMIT_PREFIX + COMMIT_PAGES * (4 + PAGE), 0, True, True),
    Frame.RESET: (2, MAX_JSON, 0, True, True),
    Frame.INNER: (INNER_PREFIX, INNER_PREFIX + 4 * INNER_HEAD, Flag.DONE, True, True),
    Frame.SHUT: (0, 0, 0, True, True),
    Frame.SOCKET: (SOCKET_PREFIX, SOCKET_PREFIX + CHUNK, 0, True, True),
}


class FrameDecoder:
    """Cuts a stream of bytes into frames and gives each to `handlers[kind]`."""

    def __init__(self, handlers: Mapping[Frame, Handler]) -> None:
        # Longest and shortest payload by kind; -1 for kinds that an engine may not send.
        self._longest = [-1] * 256
        self._shortest = [0] * 256
        for kind, (shortest, longest, *_) in _RULES.items():
            self._longest[kind] = longest
            self._shortest[kind] = shortest
        self._handlers: list[Handler] = [_refuse] * 256
        self.use(handlers)
        # Allowed (kind, flags, has worker, has call) packed into one number: one set lookup per frame.
        self._shapes = frozenset(_shapes())
        # The beginning of an incomplete frame.
        self._parts: list[bytes] = []
        self._have = 0
        self._need = HEADER_SIZE
        self._dead = False
        # Frames for which the turn had no time left.
        self._late: bytes | None = None
        self._late_at = 0
        # The body of a long OP, as far as it has arrived.
        self._body: BytesIO | None = None
        self._body_left = 0
        self._body_head = b""
        self._body_of = (0, 0)  # worker and op id
        # A BODY frame of which a piece was passed on.
        self._piece_left = 0
        self._piece_of = (0, 0, 0)  # flags, worker and call

    def use(self, handlers: Mapping[Frame, Handler], on_long_op: LongOpHandler | None = None) -> None:
        """Use other handlers from the next frame on. Without `on_long_op`, long OPs are handled as others are."""
        for kind in _RULES:
            self._handlers[kind] = handlers[kind]
        self._on_long_op: LongOpHandler | None = on_long_op

    @property
    def waiting(self) -> int:
        """Bytes of an incomplete frame."""
        return self._have if self._body is None else len(self._body_head) + self._body.tell()

    def feed(self, data: bytes) -> bool:
        """Handle the frames that `data` completes. True: this turn has no time for all of them, and `go_on` must be
        called in the next turn, before more is fed. After an EngineError no more data is accepted."""
        if self._body is not None:
            data = self._gather(data)
            if not data:
                return False
        elif self._piece_left:
            return self._cut_all(data, self._pass_on(data))
        elif self._late is not None:
            data = self._late[self._late_at :] + data
            self._late = None
        elif self._parts:
            self._parts.append(data)
            self._have += len(data)
            if self._have < self._need:
                return False
            data = b"".join(self._parts)
            self._parts = []
            self._have = 0
            if len(data) > LARGE:  # joining it has used up this turn's time
                self._late, self._late_at = data, 0
                return True
        return self._cut_all(data, 0)

    def go_on(self) -> bool:
        """Handle more of the fed data. True: some is left."""
        data, self._late = self._late, None
        return data is not None and self._cut_all(data, self._late_at)

    def _gather(self, data: bytes) -> bytes:
        """Add to the body of a long OP, and handle the op when it is complete. Returns the bytes after it."""
        body, left = self._body, self._body_left
        assert body is not None
        if len(data) < left:
            body.write(data)
            self._body_left = left - len(data)
            return b""
        body.write(data[:left])
        self._body = None
        on_long_op = self._on_long_op
        assert on_long_op is not None
        worker, op = self._body_of
        try:
            on_long_op(worker, op, self._body_head, body.getvalue())  # BytesIO gives its bytes away without a copy
        except EngineError:
            self._dead = True
            raise
        except Exception:
            log.exception("handling OP failed")
        return data[left:]

    def _pass_on(self, data: bytes) -> int:
        """Pass on more of a BODY frame. Returns where the next frame begins."""
        if self._dead:
            return 0
        flags, worker, call = self._piece_of
        size = min(len(data), self._piece_left)
        self._piece_left -= size
        self._handle_piece(flags if self._piece_left == 0 else 0, worker, call, data, 0, size)
        return size

    def _handle_piece(self, flags: int, worker: int, call: int, data: bytes, start: int, end: int) -> None:
        try:
            self._handlers[_BODY_KIND](flags, worker, call, data, start, end)
        except EngineError:
            self._dead = True
            raise
        except Exception:
            log.exception("handling BODY failed")

    def _cut_all(self, data: bytes, offset: int) -> bool:
        if self._dead:
            return False
        try:
            return self._cut(data, offset)
        except EngineError:
            self._dead = True
            self._parts = []
            self._have = 0
            raise

    def _cut(self, data: bytes, offset: int) -> bool:
        size = len(data)
        longest, shortest, shapes, handlers = self._longest, self._shortest, self._shapes, self._handlers
        need = HEADER_SIZE
        left = LOOK_EVERY
        until = 0.0
        while size - offset >= HEADER_SIZE:
            length, kind, flags, spare, worker, call = _read_header(data, offset)
            if (
                length > longest[kind]
                or length < shortest[kind]
                or spare
                or (kind << 10 | flags << 2 | (2 if worker else 0) | (1 if call else 0)) not in shapes
            ):
                raise EngineError(_why(length, kind, flags, spare, worker, call))
            start = offset + HEADER_SIZE
            end = start + length
            if end > size:
                need = HEADER_SIZE + length
                if kind == _OP_KIND and length > LARGE and self._on_long_op is not None:
                    need = HEADER_SIZE + op_head_size(data, start, size, length)
                    if size - offset >= need:
                        self._body_of = worker, call
                        self._body_head = data[start : offset + need]
                        self._body = BytesIO()
                        self._body.write(data[offset + need :])
                        self._body_left = end - size
                        return False
                elif kind == _BODY_KIND and length > LEAST_PIECE:
                    need = HEADER_SIZE + LEAST_PIECE
                    if size - offset >= need:
                        self._piece_left = end - size
                        self._piece_of = flags, worker, call
                        self._handle_piece(0, worker, call, data, start, size)
                        return False
                break
            left -= LOOK_EVERY if kind == _OP_KIND else 1 + (length >> 12)
            if left <= 0:
                left = LOOK_EVERY
                now = perf_counter()
                if until == 0.0:
                    until = now + TURN_SECONDS
                elif now > until:
                    self._late, self._late_at = data, offset
                    return True
            offset = end
            try:
                handlers[kind](flags, worker, call, data, start, end)
            except EngineError:
                raise
            except Exception:  # a bug in a handler must not affect the frames of other calls
                log.exception("handling %s failed", Frame(kind).name)
        if offset < size:
            rest = data[offset:] if offset else data
            self._parts = [rest]
            self._have = len(rest)
            self._need = need
        return False


def _refuse(flags: int, worker: int, call: int, data: bytes, start: int, end: int) -> None:
    raise AssertionError("unreachable: the kind was rejected before")


def _shapes() -> list[int]:
    shapes: list[int] = []
    for kind, (_, _, allowed, worker, call) in _RULES.items():
        for flags in range(32):
            if flags & ~allowed:
                continue
            for has_worker in (False, True) if worker is None else (worker,):
                for has_call in (False, True) if call is None else (call,):
                    shapes.append(kind << 10 | flags << 2 | has_worker << 1 | has_call)
    return shapes


def _why(length: int, kind: int, flags: int, spare: int, worker: int, call: int) -> str:
    try:
        name = Frame(kind).name
    except ValueError:
        return f"unknown frame kind {kind}"
    rule = _RULES.get(Frame(kind))
    if rule is None:
        return f"an engine may not send {name}"
    if not rule[0] <= length <= rule[1]:
        return f"{name} of {length} bytes"
    return f"malformed {name}: flags {flags}, spare {spare}, worker {worker}, call {call}"
