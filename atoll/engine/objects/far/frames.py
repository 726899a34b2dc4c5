"""The frames of calls between nodes: u8 kind, u32 number of the call, the rest.

The node that begins a call numbers it. Bodies go under credit both ways, as between a node and its engines.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

import msgspec

from atoll.errors import Failure, ObjectFailure
from atoll.wire.generated import ErrorCode

CALL: Final = 1  # LinkedCall
SEND: Final = 2  # u8 end, a piece of the request body
GRANT: Final = 3  # u32 bytes of the response body that may follow
CANCEL: Final = 4
HEAR: Final = 5  # u32 messages of a WebSocket in the next SEND
RESPONSE: Final = 6  # u16 status, u8 flags, u32 window, u32 length of the head, head, body
BODY: Final = 7  # u8 end, a piece of the response body
FAIL: Final = 8  # LinkedFailure
CREDIT: Final = 9  # u32 bytes of the request body that may follow
STOP: Final = 10  # no more of the request body is wanted
RELEASE: Final = 11  # LinkedKey: let this node have an object
RELEASED: Final = 12  # u8: whether that was done
BEGUN_BY_CALLER: Final = (CALL, SEND, GRANT, CANCEL, HEAR, RELEASE)

END: Final = 1
HELD: Final = 2  # the response is a WebSocket that outlives its call
MANUAL: Final = 4  # whose worker answers a close of the client

HEAD: Final = Struct("<BI")
NUMBER: Final = Struct("<I")
RESPONDED: Final = Struct("<HBII")
MAX_BODY: Final = 4 << 20  # of the arguments of a method


class LinkedCall(msgspec.Struct, array_like=True):
    namespace: str
    id: str
    class_name: str
    name: str | None
    path: list[str]
    event: int
    hops: int
    ended: bool
    head: bytes
    body: bytes


class LinkedKey(msgspec.Struct, array_like=True):
    namespace: str
    id: str


class LinkedFailure(msgspec.Struct, array_like=True):
    code: int
    message: str
    name: str
    stack: str
    is_retryable: bool
    is_overloaded: bool
    is_reset: bool
    is_elsewhere: bool  # it has not begun: the object is not on this node


read_call = msgspec.msgpack.Decoder(LinkedCall).decode
read_key = msgspec.msgpack.Decoder(LinkedKey).decode
_read_failure = msgspec.msgpack.Decoder(LinkedFailure).decode
pack = msgspec.msgpack.Encoder().encode


def frame(kind: int, number: int, rest: bytes = b"") -> bytes:
    return HEAD.pack(kind, number) + rest


def piece(kind: int, number: int, chunk: bytes, ended: bool) -> bytes:
    return b"".join((HEAD.pack(kind, number), b"\1" if ended else b"\0", chunk))


def count(kind: int, number: int, amount: int) -> bytes:
    return HEAD.pack(kind, number) + NUMBER.pack(amount)


def response(number: int, status: int, flags: int, window: int, head: bytes, body: bytes) -> bytes:
    return b"".join((HEAD.pack(RESPONSE, number), RESPONDED.pack(status, flags, window, len(head)), head, body))


def failure(number: int, failed: Failure, *, is_elsewhere: bool = False) -> bytes:
    flags = (False, False, False)
    if isinstance(failed, ObjectFailure):
        flags = (failed.is_retryable, failed.is_overloaded, failed.is_reset)
    told = LinkedFailure(int(failed.code), failed.message, failed.name, failed.stack, *flags, is_elsewhere)
    return HEAD.pack(FAIL, number) + pack(told)


def read_failure(rest: bytes, id: str) -> tuple[ObjectFailure, bool]:
    found = _read_failure(rest)
    failed = ObjectFailure(
        ErrorCode(found.code),
        found.message,
        found.name,
        found.stack,
        is_retryable=found.is_retryable,
        is_overloaded=found.is_overloaded,
        is_reset=found.is_reset,
        object_id=id,
    )
    return failed, found.is_elsewhere
