"""The frames of object storage: OPEN, CLOSE, STORED and SOCKETS to the engine, COMMIT and SOCKET from it."""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

from atoll.errors import EngineError
from atoll.wire.codec import frame
from atoll.wire.decoder import COMMIT_PREFIX, SOCKET_PREFIX
from atoll.wire.generated import COMMIT_PAGES, PAGE, Frame

HAS_FILE: Final = 1
NO_ALARM: Final = -1
MOST_ALARM_MS: Final = 8_640_000_000_000_000  # the last moment that a Date has

_OPEN: Final = Struct("<B3xIQQq")  # flags, pages, sequence, most pages, alarm
_COMMIT: Final = Struct("<QIIB7sq")  # sequence, pages, count, alarm, zero, alarm ms
_STORED: Final = Struct("<QQ")  # durable, merged
_WHAT: Final = Struct("<B3x")
_SOCKET_CREDIT: Final = Struct("<B3xII")
_SOCKET_STAMP: Final = Struct("<B3xId")
_SOCKET: Final = Struct("<B3sI")  # what, zero, socket
SOCKET_TABLE, SOCKET_CREDIT, SOCKET_STAMP = 1, 2, 3
ADDRESS: Final = Struct("<II")  # load id and slot: the message that a descriptor is sent with


class CommitParts(NamedTuple):
    """The payload of a COMMIT. Page numbers and the sequence are not checked: that needs the state of the object."""

    sequence: int
    pages: int
    alarm: int  # 0 as before, 1 set, 2 deleted
    alarm_ms: int
    numbers: bytes
    contents: bytes


def encode_open(worker: int, slot: int, pages: int, sequence: int, most_pages: int, alarm_ms: int) -> bytes:
    """The descriptor of the file was sent before."""
    return frame(Frame.OPEN, worker, slot, _OPEN.pack(HAS_FILE, pages, sequence, most_pages, alarm_ms))


def encode_close(worker: int, slot: int) -> bytes:
    return frame(Frame.CLOSE, worker, slot)


def encode_stored(worker: int, slot: int, durable: int, merged: int) -> bytes:
    return frame(Frame.STORED, worker, slot, _STORED.pack(durable, merged))


def encode_sockets(worker: int, slot: int, part: bytes) -> bytes:
    """A part of the table of hibernatable WebSockets."""
    return frame(Frame.SOCKETS, worker, slot, _WHAT.pack(SOCKET_TABLE) + part)


def encode_socket_credit(worker: int, slot: int, socket: int, amount: float) -> bytes:
    """The object may send that many more bytes to the client; socket 0: to all clients together."""
    return frame(Frame.SOCKETS, worker, slot, _SOCKET_CREDIT.pack(SOCKET_CREDIT, socket, int(amount)))


def encode_socket_stamp(worker: int, slot: int, socket: int, ms: float) -> bytes:
    return frame(Frame.SOCKETS, worker, slot, _SOCKET_STAMP.pack(SOCKET_STAMP, socket, ms))


def read_socket(data: bytes, start: int, end: int) -> tuple[int, int, bytes]:
    """What a SOCKET is about, the number of the socket, the rest."""
    what, zero, socket = _SOCKET.unpack_from(data, start)
    if any(zero):
        raise EngineError("SOCKET that is malformed")
    return what, socket, data[start + SOCKET_PREFIX : end]


def read_commit(data: bytes, start: int, end: int) -> CommitParts:
    sequence, pages, count, alarm, zero, alarm_ms = _COMMIT.unpack_from(data, start)
    if count > COMMIT_PAGES or end - start != COMMIT_PREFIX + count * (4 + PAGE):
        raise EngineError(f"COMMIT of {count} pages in {end - start} bytes")
    if alarm > 2 or any(zero) or (alarm == 1 and not 0 <= alarm_ms <= MOST_ALARM_MS):
        raise EngineError("COMMIT with an alarm that cannot be")
    first = start + COMMIT_PREFIX
    split = first + 4 * count
    at = alarm_ms if alarm == 1 else NO_ALARM
    return CommitParts(sequence, pages, alarm, at, data[first:split], data[split:end])
