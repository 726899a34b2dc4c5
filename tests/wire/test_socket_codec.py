"""The WebSocket protocol without a socket: tested with the `websockets` package, and the cost of hostile clients."""

from __future__ import annotations

import random
import struct
import tracemalloc
import zlib

import pytest
from websockets.frames import Opcode

from atoll.wire.incoming import (
    CONTROL_SECONDS,
    FRAGMENT_BYTES,
    FREE_FRAGMENTS,
    MAX_CONTROLS,
    MAX_MESSAGE,
    STEP_BYTES,
    STEP_FRAMES,
)
from atoll.wire.sockets import Codec, pack_close
from tests.raw_websocket import frame
from tests.wire.socket_codecs import Other, dialled, message, receive, served

PING, PONG, PACKED = 9, 10, 0x40


def sizes(chance: random.Random) -> int:
    return chance.choice((0, 1, 3, 125, 126, 127, 5_000, 65_535, 65_536, 65_537, 200_000))


def content(chance: random.Random, size: int) -> bytes:
    """Text that compresses well or badly, or is split within characters."""
    alphabet = chance.choice(("x", "abü€😀 ", "".join(map(chr, range(32, 500)))))
    return "".join(chance.choices(alphabet, k=size // 2)).encode()


def in_pieces(chance: random.Random, data: bytes) -> list[bytes]:
    pieces, at = [], 0
    while at < len(data):
        size = chance.choice((1, 2, 5, 13, 100, 4096, 262_144))
        pieces.append(data[at : at + size])
        at += size
    return pieces


def code_of(codec: Codec) -> int:
    """The code of the close frame that it sent."""
    data = codec.outgoing()
    at = data.rindex(b"\x88")
    code: int = struct.unpack(">H", data[at + 2 : at + 4])[0]
    return code


# --- with the `websockets` package ---


@pytest.mark.parametrize("deflate", [False, True])
@pytest.mark.parametrize("is_client", [False, True])
def test_messages_of_the_package_arrive_in_any_split(deflate: bool, is_client: bool) -> None:
    chance = random.Random(f"{deflate}{is_client}")
    for _ in range(12):
        codec = dialled(deflate=deflate) if is_client else served(deflate=deflate)
        other = Other(is_client=not is_client, deflate=deflate)
        sent, expected = b"", b""
        for _ in range(10):
            payload, text = content(chance, sizes(chance)), chance.random() < 0.7
            sent += other.sends(payload, text=text, pieces=chance.choice((1, 1, 2, 7, 60)))
            expected += message(1 if text else 2, payload)
        assert b"".join(receive(codec, piece) for piece in in_pieces(chance, sent)) == expected
        assert codec.held == 0


@pytest.mark.parametrize("deflate", [False, True])
@pytest.mark.parametrize("is_client", [False, True])
def test_the_package_understands_messages_of_workers_in_any_split(deflate: bool, is_client: bool) -> None:
    chance = random.Random(f"{deflate}{is_client}")
    for _ in range(12):
        codec = dialled(deflate=deflate) if is_client else served(deflate=deflate)
        other = Other(is_client=not is_client, deflate=deflate)
        said, expected = b"", []
        for _ in range(10):
            payload, kind = content(chance, sizes(chance)), chance.choice((1, 2))
            said += message(kind, payload)
            expected.append((Opcode(kind), payload))
        heard = []
        for piece in in_pieces(chance, said):
            codec.speak(piece)
            heard += other.hears(codec.outgoing())
        assert heard == expected


def test_a_long_message_is_sent_as_it_arrives_and_never_buffered() -> None:
    codec = served()
    codec.speak(struct.pack("<BI", 2, MAX_MESSAGE))
    tracemalloc.start()
    try:
        left = 0
        for _ in range(MAX_MESSAGE // 65_536):
            codec.speak(bytes(65_536))
            left += len(codec.outgoing())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert left > MAX_MESSAGE
    assert peak < 1 << 20


def test_a_close_between_the_fragments_of_a_long_message_is_understood() -> None:
    codec, other = served(), Other(is_client=True)
    codec.speak(struct.pack("<BI", 2, 100_000) + bytes(70_000))
    codec.close(1011)
    codec.speak(bytes(30_000))
    heard = codec.outgoing()
    assert heard.endswith(b"\x88\x02" + struct.pack(">H", 1011))
    assert other.protocol.parser_exc is None


def test_a_deflate_stream_may_end_within_a_message_and_nothing_may_follow() -> None:
    """https://www.rfc-editor.org/rfc/rfc7692#section-7.2.3.5"""
    packer = zlib.compressobj(wbits=-15)
    ended = packer.compress(b"Hello") + packer.flush(zlib.Z_FINISH)
    codec = served(deflate=True)
    assert receive(codec, frame(PACKED | 1, ended + b"\0")) == message(1, b"Hello")
    assert receive(codec, frame(PACKED | 1, ended) * 2) == message(1, b"Hello") * 2
    receive(codec, frame(PACKED | 1, ended + ended))
    assert code_of(codec) == 1002


# --- the cost of hostile clients ---


def test_a_step_takes_a_bounded_number_of_frames() -> None:
    codec = served()
    codec.feed(frame(1, b"x") * 10 * STEP_FRAMES)
    taken = []
    while not codec.is_hungry:
        taken.append(codec.step(0.0))
        assert len(codec.take()) == taken[-1]
    assert max(taken) <= STEP_FRAMES and sum(taken) == 10 * STEP_FRAMES


def test_a_step_inflates_a_bounded_number_of_bytes() -> None:
    packer = zlib.compressobj(9, wbits=-15)
    packed = (packer.compress(bytes(MAX_MESSAGE)) + packer.flush(zlib.Z_SYNC_FLUSH))[:-4]
    codec = served(deflate=True)
    codec.feed(frame(PACKED | 2, packed))
    before, steps = codec.held, 0
    while not codec.is_hungry:
        codec.step(0.0)
        assert codec.held - before <= STEP_BYTES + 5
        before, steps = codec.held, steps + 1
    (whole,) = codec.take()
    assert len(whole) == MAX_MESSAGE + 5
    assert steps >= MAX_MESSAGE // STEP_BYTES


def test_a_message_is_measured_while_it_is_inflated() -> None:
    packer = zlib.compressobj(9, wbits=-15)
    packed = packer.compress(bytes(4 * MAX_MESSAGE)) + packer.flush(zlib.Z_SYNC_FLUSH)
    half = len(packed) // 2
    codec = served(deflate=True)
    tracemalloc.start()
    try:
        receive(codec, frame(PACKED | 2, packed[:half], fin=False) + frame(0, packed[half:-4]))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert code_of(codec) == 1009
    assert peak < 1.3 * MAX_MESSAGE
    assert codec.held == 0


def test_only_the_latest_of_many_pings_is_answered() -> None:
    codec = served()
    codec.feed(b"".join(frame(PING, b"%d" % number) for number in range(STEP_FRAMES)))
    codec.step(0.0)
    codec.answer_ping()
    assert codec.outgoing() == b"\x8a\x02%d" % (STEP_FRAMES - 1)
    codec.answer_ping()
    assert codec.outgoing() == b""


@pytest.mark.parametrize("opcode", [PING, PONG])
def test_a_flood_of_pings_or_pongs_is_closed_with_1008(opcode: int) -> None:
    codec = served()
    told = receive(codec, frame(opcode, b"") * (MAX_CONTROLS + 1))
    assert code_of(codec) == 1008
    assert told == pack_close(1006, f"more than {MAX_CONTROLS} pings and pongs in {CONTROL_SECONDS:g} s")
    assert codec.is_over


def test_pings_within_the_rate_are_always_answered() -> None:
    codec = served()
    for round in range(10):
        receive(codec, frame(PING, b"") * MAX_CONTROLS, now=round * (CONTROL_SECONDS + 1))
    assert codec.is_open


def test_empty_fragments_are_bounded_in_number_and_take_no_memory() -> None:
    codec = served()
    receive(codec, frame(1, b"x", fin=False))
    tracemalloc.start()
    try:
        assert receive(codec, frame(0, b"", fin=False) * (FREE_FRAGMENTS - 1)) == b""
        grown, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert grown < 100_000 and codec.is_open
    receive(codec, frame(0, b"", fin=False))
    assert code_of(codec) == 1008


def test_fragments_with_content_are_not_bounded_in_number() -> None:
    codec = served()
    count = 10 * FREE_FRAGMENTS
    receive(codec, frame(2, bytes(FRAGMENT_BYTES), fin=False))
    receive(codec, frame(0, bytes(FRAGMENT_BYTES), fin=False) * count)
    assert receive(codec, frame(0, b"")) == message(2, bytes(FRAGMENT_BYTES) * (count + 1))


def test_bytes_after_a_close_are_dropped() -> None:
    codec = dialled()
    told = receive(codec, b"\x88\x02\x03\xe8" + b"\x81\x01x" * 1000)
    assert told == pack_close(1000)
    codec.feed(b"\x81\x01x")
    assert codec.is_hungry and codec.held == 0
