"""The frames of calls between isolates of one engine: ROUTE and SHUT to the engine, INNER from it."""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

from atoll.errors import EngineError
from atoll.wire.codec import frame
from atoll.wire.decoder import INNER_PREFIX
from atoll.wire.generated import INNER_HEAD, Frame, Outcome

_ROUTE: Final = Struct("<IIIIII")  # route, callee, slot, room, budget, named
_INNER: Final = Struct("<IIIIHHIIHBBI")
_U32: Final = Struct("<I")
_kind: Final = int(Frame.ROUTE)
_shut_kind: Final = int(Frame.SHUT)
OUTCOMES: Final = tuple(Outcome)


class InnerParts(NamedTuple):
    """The payload of an INNER. Whether its numbers mean anything depends on the state of the engine's calls."""

    route: int
    caller: int  # the load id of the caller,
    callers_call: int  # and its call
    op_id: int
    op: int
    status: int
    cpu_us: int
    wall_us: int
    memory_mb: int
    outcome: Outcome
    event: int
    meta: bytes
    head: bytes


def encode_route(
    worker: int,
    numbers: tuple[int, int, int, int, int],
    name: bytes,
    named: bool,
    entry: bytes,
    address: bytes,
    zone: bytes,
) -> bytes:
    """`numbers` are route, callee, slot, room and budget."""
    parts = [_ROUTE.pack(*numbers, named)]
    for text in (name, entry, address):
        parts += [_U32.pack(len(text)), text]
    return frame(_kind, worker, 0, b"".join((*parts, zone)))


def encode_no_route(worker: int, name: bytes) -> bytes:
    return encode_route(worker, (0, 0, 0, 0, 0), name, False, b"", b"", b"")


def encode_shut(worker: int, slot: int) -> bytes:
    return frame(_shut_kind, worker, slot)


def read_inner(data: bytes, start: int, end: int) -> InnerParts:
    route, caller, call, op_id, op, status, cpu_us, wall_us, memory, outcome, event, size = _INNER.unpack_from(
        data, start
    )
    at = start + INNER_PREFIX
    if size > end - at or end - at - size > INNER_HEAD or outcome >= len(OUTCOMES):
        raise EngineError("malformed INNER")
    meta, head = data[at : at + size], data[at + size : end]
    return InnerParts(
        route, caller, call, op_id, op, status, cpu_us, wall_us, memory, OUTCOMES[outcome], event, meta, head
    )
