"""Frames to bytes and bytes to frames: pure, no I/O, and the first line against a hostile engine.

Outgoing, one function per frame returns the bytes to send. Incoming, a Decoder cuts whatever chunks the socket gives
into frames and hands each to the handler of its kind as (flags, worker, call, data, start, end): the payload is
`data[start:end]`, not yet cut out, so that a RESPONSE is sliced once and never copied whole. The `read_*` functions
then take one payload apart.

What is checked here: that the kind is one an engine may send, that its flags mean something, that ids are where they
belong, and that the length fits the kind, *before* the rest is waited for, so a lie never makes Python buffer more
than MAX_PAYLOAD. Whether a frame is legal *now* is for those who know the state (engine/link.py, calls.py, loads.py).
Anything else is an EngineError; no other exception leaves this file.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from struct import Struct
from typing import Any, Final, TypeAlias

from atoll.errors import EngineError, Failure
from atoll.wire.fields import int_field, read_json, text_field, to_exact_json, to_json
from atoll.wire.generated import (
    CHUNK,
    HEADER_LAYOUT,
    MAX_HEAD,
    MAX_META,
    MAX_PAYLOAD,
    MAX_REASON,
    WINDOW,
    ErrorCode,
    Flag,
    Frame,
    Level,
    Outcome,
)

log = logging.getLogger("atoll.wire")

# (flags, worker, call, data, start, end)
Handler: TypeAlias = Callable[[int, int, int, bytes, int, int], None]

HEADER_SIZE: Final = 16
MAX_JSON: Final = 1 << 20  # no engine has a reason to send a longer JSON payload
STACK_CHARS: Final = 32 << 10

_HEADER: Final = Struct(HEADER_LAYOUT)
_CALL: Final = Struct(HEADER_LAYOUT + "B3xI")  # header, event, head length
_RESPONSE: Final = Struct("<HHII")  # status, memory MB, cpu us, head length
_LOG: Final = Struct("<B3sd")  # level, zero, ms since epoch
_OP: Final = Struct("<HHII")  # op, zero, call, meta length
_U32: Final = Struct("<I")
_TWO_U32: Final = Struct("<II")

_pack_header: Final = _HEADER.pack
_pack_call: Final = _CALL.pack
_read_header: Final = _HEADER.unpack_from

_CALL_PREFIX: Final = _CALL.size - HEADER_SIZE
_RESPONSE_PREFIX: Final = _RESPONSE.size
_LOG_PREFIX: Final = _LOG.size
_OP_PREFIX: Final = _OP.size

# Plain ints: an IntEnum member costs a lookup each time it is compared or packed.
_CALL_KIND: Final = int(Frame.CALL)
_BODY_KIND: Final = int(Frame.BODY)
_END: Final = int(Flag.END)


# --- Python to engine -------------------------------------------------------------------------------------------------


def frame(kind: int, worker: int = 0, call: int = 0, payload: bytes = b"", flags: int = 0) -> bytes:
    return _pack_header(len(payload), kind, flags, 0, worker, call) + payload


def encode_hello(fields: dict[str, str | int]) -> bytes:
    return frame(Frame.HELLO, payload=to_json(fields))


def load_payload(tenant: str, meta: dict[str, Any], blobs: Sequence[bytes]) -> bytes:
    """The payload of a LOAD, without its header: the same for every engine, so the pool keeps it."""
    name, text = tenant.encode(), to_exact_json(meta)
    return b"".join((_U32.pack(len(name)), name, _U32.pack(len(text)), text, *blobs))


def encode_load(worker: int, memory_mb: int, payload: bytes) -> bytes:
    """The memory limit takes the place of the call id: the engine needs it before it can read the meta."""
    return frame(Frame.LOAD, worker, memory_mb, payload)


def encode_unload(worker: int) -> bytes:
    return frame(Frame.UNLOAD, worker)


def encode_call(worker: int, call: int, event: int, head: bytes, body: bytes, ended: bool) -> bytes:
    size = len(head)
    if not body:  # most requests
        return _pack_call(_CALL_PREFIX + size, _CALL_KIND, 1 if ended else 0, 0, worker, call, event, size) + head
    length = _CALL_PREFIX + size + len(body)
    return b"".join((_pack_call(length, _CALL_KIND, 1 if ended else 0, 0, worker, call, event, size), head, body))


def encode_body(worker: int, call: int, chunk: bytes, ended: bool) -> bytes:
    """Body frames for `chunk`, which may be longer than one frame carries."""
    if len(chunk) <= CHUNK:
        return _pack_header(len(chunk), _BODY_KIND, 1 if ended else 0, 0, worker, call) + chunk
    parts: list[bytes] = []
    for start in range(0, len(chunk), CHUNK):
        piece = chunk[start : start + CHUNK]
        last = ended and start + CHUNK >= len(chunk)
        parts += (_pack_header(len(piece), _BODY_KIND, 1 if last else 0, 0, worker, call), piece)
    return b"".join(parts)


def encode_credit(worker: int, call: int, amount: int) -> bytes:
    return frame(Frame.CREDIT, worker, call, _U32.pack(amount))


def encode_cancel(worker: int, call: int, code: ErrorCode) -> bytes:
    """FAIL on it means that the call ran out of time, not that the client left."""
    flags = Flag.FAIL if code == ErrorCode.WALL else 0
    return frame(Frame.CANCEL, worker, call, b'{"code":%d}' % code, flags)


def encode_reply(worker: int, op: int, meta: object, body: bytes, flags: int = 0) -> bytes:
    text = to_json(meta)
    length = 4 + len(text) + len(body)
    if length > MAX_PAYLOAD:
        raise EngineError(f"a reply of {length} bytes does not fit a frame")
    return b"".join((_pack_header(length, Frame.REPLY, flags, 0, worker, op), _U32.pack(len(text)), text, body))


def encode_ping(*, low_memory: bool = False) -> bytes:
    """`low_memory` has every isolate collect its garbage."""
    return frame(Frame.PING, flags=Flag.LOW) if low_memory else _PING


def encode_code(worker: int) -> bytes:
    return frame(Frame.CODE, worker)


_PING: Final = frame(Frame.PING)


# --- Engine to Python: cutting frames ---------------------------------------------------------------------------------

# kind -> (shortest, longest payload, flags that mean something, worker id needed, call or op id needed). None: either.
_RULES: dict[Frame, tuple[int, int, int, bool | None, bool | None]] = {
    Frame.HELLO: (2, MAX_JSON, 0, False, False),
    Frame.LOADED: (2, MAX_JSON, Flag.FAIL, True, False),
    Frame.UNLOADED: (0, MAX_JSON, 0, True, False),
    Frame.RESPONSE: (_RESPONSE_PREFIX, _RESPONSE_PREFIX + MAX_HEAD + WINDOW, Flag.END | Flag.DONE, True, True),
    Frame.BODY: (0, CHUNK, Flag.END, True, True),
    Frame.CREDIT: (4, 4, 0, True, True),
    Frame.CANCEL: (0, MAX_JSON, 0, True, True),
    Frame.FAIL: (2, MAX_JSON, Flag.END, True, True),
    Frame.DONE: (8, 8, 0, True, True),
    Frame.LOG: (_LOG_PREFIX, _LOG_PREFIX + MAX_JSON, 0, True, None),
    Frame.OP: (_OP_PREFIX, MAX_PAYLOAD, 0, True, None),
    Frame.PONG: (0, MAX_JSON, 0, False, False),
    Frame.CODE: (0, MAX_PAYLOAD, 0, True, False),
    Frame.STUCK: (2, MAX_JSON, 0, True, None),
    Frame.ECHO: (0, 0, 0, True, True),
}


class Decoder:
    """Cuts a stream of bytes into frames and gives each to `handlers[kind]`."""

    def __init__(self, handlers: Mapping[Frame, Handler]) -> None:
        # Longest and shortest payload by kind, -1 where an engine may not send the kind at all.
        self._longest = [-1] * 256
        self._shortest = [0] * 256
        for kind, (shortest, longest, *_) in _RULES.items():
            self._longest[kind] = longest
            self._shortest[kind] = shortest
        self._handlers: list[Handler] = [_refuse] * 256
        self.use(handlers)
        # Allowed (kind, flags, has worker, has call) packed into one number: one set lookup per frame.
        self._shapes = frozenset(_shapes())
        # The beginning of a frame whose end has not come yet.
        self._parts: list[bytes] = []
        self._have = 0
        self._need = HEADER_SIZE
        self._dead = False

    def use(self, handlers: Mapping[Frame, Handler]) -> None:
        """Give frames to other handlers from the next one on."""
        for kind in _RULES:
            self._handlers[kind] = handlers[kind]

    @property
    def waiting(self) -> int:
        """Bytes kept until the rest of their frame comes."""
        return self._have

    def feed(self, data: bytes) -> None:
        """Handle every frame that is complete with `data`. After an EngineError nothing is taken any more."""
        if self._parts:
            self._parts.append(data)
            self._have += len(data)
            if self._have < self._need:
                return
            data = b"".join(self._parts)
            self._parts = []
            self._have = 0
        if self._dead:
            return
        try:
            self._cut(data)
        except EngineError:
            self._dead = True
            self._parts = []
            self._have = 0
            raise

    def _cut(self, data: bytes) -> None:
        offset = 0
        size = len(data)
        longest, shortest, shapes, handlers = self._longest, self._shortest, self._shapes, self._handlers
        need = HEADER_SIZE
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
                break
            offset = end
            try:
                handlers[kind](flags, worker, call, data, start, end)
            except EngineError:
                raise
            except Exception:  # a bug of ours costs this frame, never the frames of other calls
                log.exception("handling %s failed", Frame(kind).name)
        if offset < size:
            rest = data[offset:] if offset else data
            self._parts = [rest]
            self._have = len(rest)
            self._need = need


def _refuse(flags: int, worker: int, call: int, data: bytes, start: int, end: int) -> None:
    raise AssertionError("unreachable: the kind was refused before")


def _shapes() -> list[int]:
    shapes: list[int] = []
    for kind, (_, _, allowed, worker, call) in _RULES.items():
        for flags in range(16):
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
        return f"{name} is not for an engine to send"
    if not rule[0] <= length <= rule[1]:
        return f"{name} of {length} bytes"
    return f"malformed {name}: flags {flags}, spare {spare}, worker {worker}, call {call}"


# --- Engine to Python: taking payloads apart --------------------------------------------------------------------------


def read_response(data: bytes, start: int, end: int) -> tuple[int, int, int, bytes, bytes]:
    """status, memory MB, cpu us, head, body."""
    status, memory_mb, cpu_us, size = _RESPONSE.unpack_from(data, start)
    middle = start + _RESPONSE_PREFIX + size
    if size > MAX_HEAD or middle > end or end - middle > WINDOW or not (200 <= status <= 599 or status == 101):
        raise EngineError(f"malformed RESPONSE: status {status}, head of {size} bytes in {end - start}")
    return status, memory_mb, cpu_us, data[middle - size : middle], data[middle:end]


REASON_LINE = re.compile(rb" ([\t\x20-\x7e\x80-\xff]{1,%d})\r\n" % MAX_REASON)


def read_reason(head: bytes) -> tuple[bytes, bytes]:
    """The reason phrase in the head of a RESPONSE, b"" if there is none, and the header lines."""
    start = head.find(b"\r\n") + 2 if head.startswith(b"content-length: ") else 0
    if not head.startswith(b" ", start):
        return b"", head
    match = REASON_LINE.match(head, start)
    if match is None:
        raise EngineError("malformed RESPONSE: its reason phrase")
    return match[1], head[:start] + head[match.end() :]


def read_done(data: bytes, start: int) -> tuple[int, Outcome]:
    """cpu us, outcome."""
    cpu_us, outcome = _TWO_U32.unpack_from(data, start)
    try:
        return cpu_us, Outcome(outcome)
    except ValueError:
        raise EngineError(f"unknown outcome {outcome}") from None


def read_credit(data: bytes, start: int) -> int:
    amount: int = _U32.unpack_from(data, start)[0]
    return amount


def read_log(data: bytes, start: int, end: int) -> tuple[Level, float, str]:
    """level, ms since the epoch, text."""
    level, zero, timestamp = _LOG.unpack_from(data, start)
    if zero != b"\0\0\0" or not 0 <= timestamp < 1e15:  # also refuses NaN
        raise EngineError("malformed LOG")
    try:
        return Level(level), timestamp, data[start + _LOG_PREFIX : end].decode("utf-8", "replace")
    except ValueError:
        raise EngineError(f"unknown log level {level}") from None


def read_op(data: bytes, start: int, end: int) -> tuple[int, int, bytes, bytes]:
    """op index, call, meta, body."""
    index, zero, call, size = _OP.unpack_from(data, start)
    middle = start + _OP_PREFIX + size
    if zero or size > MAX_META or middle > end:
        raise EngineError(f"malformed OP: meta of {size} bytes in {end - start}")
    return index, call, data[middle - size : middle], data[middle:end]


def read_code(data: bytes, start: int, end: int, modules: int) -> tuple[bytes, ...]:
    """The code cache of each module, b"" for none; an empty payload is none at all."""
    if start == end:
        return (b"",) * modules
    offset = start + 4 * modules
    if offset > end:
        raise EngineError(f"malformed CODE: {end - start} bytes for {modules} modules")
    blobs: list[bytes] = []
    for (size,) in _U32.iter_unpack(data[start:offset]):
        blobs.append(data[offset : offset + size])
        offset += size
    if offset != end:
        raise EngineError("malformed CODE: the sizes do not add up")
    return tuple(blobs)


def read_failure(data: bytes) -> Failure:
    """What FAIL, a failed LOADED and a condemned UNLOADED say."""
    fields = read_json(data)
    try:
        code = ErrorCode(int_field(fields, "code"))
    except ValueError:
        raise EngineError(f"unknown error code {fields.get('code')!r:.40}") from None
    return Failure(
        code,
        text_field(fields, "message"),
        text_field(fields, "name", 256),
        text_field(fields, "stack", STACK_CHARS),
        text_field(fields, "file", 1024),
        int_field(fields, "line"),
        int_field(fields, "column"),
    )
