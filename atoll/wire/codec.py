"""Encodes frames to bytes and decodes payloads to values. Pure, no I/O; the first defence against a hostile engine.

Outgoing: one function per frame returns the bytes to send. Incoming: decoder.py splits the stream into frames, and the
`read_*` functions decode one payload. Whether a frame is legal *now* depends on the state, so atoll/engine checks it.
Malformed data raises EngineError; no other exception leaves this file.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from struct import Struct
from typing import Final, TypeAlias

from atoll.errors import EngineError, Failure
from atoll.wire.fields import int_field, read_json, text_field, to_json
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
_CALL: Final = Struct(HEADER_LAYOUT + "BB2xI")  # header, event, hops, head length
_RESPONSE: Final = Struct("<HHII")  # status, memory MB, cpu us, head length
_LOG: Final = Struct("<B3sd")  # level, zero, ms since epoch
_OP: Final = Struct("<HHII")  # op, zero, call, meta length
_U32: Final = Struct("<I")
_TWO_U32: Final = Struct("<II")

_pack_header: Final = _HEADER.pack
_pack_call: Final = _CALL.pack
_read_header: Final = _HEADER.unpack_from

_CALL_PREFIX: Final = _CALL.size - HEADER_SIZE
RESPONSE_PREFIX: Final = _RESPONSE.size
LOG_PREFIX: Final = _LOG.size
OP_PREFIX: Final = _OP.size

# Plain ints: an IntEnum member costs a lookup each time it is compared or packed.
_CALL_KIND: Final = int(Frame.CALL)
_BODY_KIND: Final = int(Frame.BODY)
_END: Final = int(Flag.END)


# --- Python to engine -------------------------------------------------------------------------------------------------


def frame(kind: int, worker: int = 0, call: int = 0, payload: bytes = b"", flags: int = 0) -> bytes:
    return _pack_header(len(payload), kind, flags, 0, worker, call) + payload


def frame_head(size: int, kind: int, worker: int, call: int) -> bytes:
    """The header of a frame whose payload is sent separately."""
    return _pack_header(size, kind, 0, 0, worker, call)


def encode_hello(fields: dict[str, str | int]) -> bytes:
    return frame(Frame.HELLO, payload=to_json(fields))


def encode_unload(worker: int) -> bytes:
    return frame(Frame.UNLOAD, worker)


def encode_call(worker: int, call: int, event: int, head: bytes, body: bytes, ended: bool, hops: int = 0) -> bytes:
    """`hops` is below 256."""
    size = len(head)
    flags = 1 if ended else 0
    if not body:  # most requests
        return _pack_call(_CALL_PREFIX + size, _CALL_KIND, flags, 0, worker, call, event, hops, size) + head
    length = _CALL_PREFIX + size + len(body)
    return b"".join((_pack_call(length, _CALL_KIND, flags, 0, worker, call, event, hops, size), head, body))


def encode_call_head(worker: int, call: int, event: int, head: bytes, size: int, ended: bool, hops: int = 0) -> bytes:
    """A CALL without its body of `size` bytes, which must be sent next."""
    length = _CALL_PREFIX + len(head) + size
    return _pack_call(length, _CALL_KIND, 1 if ended else 0, 0, worker, call, event, hops, len(head)) + head


def encode_body(worker: int, call: int, chunk: bytes, ended: bool) -> bytes:
    """Body frames for `chunk`, which may be too long for one frame."""
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
    """The flag FAIL means that the call ran out of time, not that the client disconnected."""
    flags = Flag.FAIL if code == ErrorCode.WALL else 0
    return frame(Frame.CANCEL, worker, call, b'{"code":%d}' % code, flags)


def encode_reply(worker: int, op: int, meta: object, body: bytes, flags: int = 0) -> bytes:
    return encode_reply_head(worker, op, meta, len(body), flags) + body


def encode_reply_head(worker: int, op: int, meta: object, size: int, flags: int = 0) -> bytes:
    """A reply without its body of `size` bytes, which must be sent next."""
    text = to_json(meta)
    length = 4 + len(text) + size
    if length > MAX_PAYLOAD:
        raise EngineError(f"a reply of {length} bytes does not fit a frame")
    return b"".join((_pack_header(length, Frame.REPLY, flags, 0, worker, op), _U32.pack(len(text)), text))


def encode_ping(*, low_memory: bool = False) -> bytes:
    """`low_memory` makes every isolate collect garbage."""
    return frame(Frame.PING, flags=Flag.LOW) if low_memory else _PING


def encode_code(worker: int) -> bytes:
    return frame(Frame.CODE, worker)


_PING: Final = frame(Frame.PING)


# --- Engine to Python: decoding payloads ------------------------------------------------------------------------------


def read_response(data: bytes, start: int, end: int) -> tuple[int, int, int, bytes, bytes]:
    """status, memory MB, cpu us, head, body."""
    status, memory_mb, cpu_us, size = _RESPONSE.unpack_from(data, start)
    middle = start + RESPONSE_PREFIX + size
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
    if zero != b"\0\0\0" or not 0 <= timestamp < 1e15:  # also rejects NaN
        raise EngineError("malformed LOG")
    try:
        return Level(level), timestamp, data[start + LOG_PREFIX : end].decode("utf-8", "replace")
    except ValueError:
        raise EngineError(f"unknown log level {level}") from None


def read_op(data: bytes, start: int, end: int) -> tuple[int, int, bytes, bytes]:
    """op index, call, meta, body."""
    index, zero, call, size = _OP.unpack_from(data, start)
    middle = start + OP_PREFIX + size
    if zero or size > MAX_META or middle > end:
        raise EngineError(f"malformed OP: meta of {size} bytes in {end - start}")
    return index, call, data[middle - size : middle], data[middle:end]


def op_head_size(data: bytes, start: int, end: int, length: int) -> int:
    """The size of prefix and meta of an OP of `length` bytes, or of its prefix while that has not arrived."""
    if end - start < OP_PREFIX:
        return OP_PREFIX
    _, zero, _, size = _OP.unpack_from(data, start)
    if zero or size > MAX_META or OP_PREFIX + size > length:
        raise EngineError(f"malformed OP: meta of {size} bytes in {length}")
    whole: int = OP_PREFIX + size
    return whole


def read_code(data: bytes, start: int, end: int, modules: int) -> tuple[bytes, ...]:
    """The code cache of each module, b"" for none. An empty payload means no caches at all."""
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
    """The failure in FAIL, in a failed LOADED and in the UNLOADED of a condemned isolate."""
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
