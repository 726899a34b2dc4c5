"""The decoder against a hostile engine: it returns frames or EngineError, and its buffer is bounded."""

from __future__ import annotations

import json
import struct
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from atoll.errors import EngineError
from atoll.wire import codec, fields
from atoll.wire.codec import HEADER_SIZE, frame
from atoll.wire.decoder import LEAST_PIECE, FrameDecoder
from atoll.wire.generated import CHUNK, HEADER_LAYOUT, MAX_HEAD, MAX_PAYLOAD, WINDOW, ErrorCode, Flag, Frame, Outcome

Taken = tuple[Frame, int, int, int, bytes]

FROM_ENGINE = {
    Frame.HELLO, Frame.LOADED, Frame.UNLOADED, Frame.RESPONSE, Frame.BODY, Frame.CREDIT, Frame.CANCEL, Frame.FAIL,
    Frame.DONE, Frame.LOG, Frame.OP, Frame.PONG, Frame.CODE, Frame.STUCK, Frame.COMMIT, Frame.RESET, Frame.SOCKET,
    Frame.INNER,
}  # fmt: skip


class Recorder:
    """A decoder that records the frames it returns."""

    def __init__(self) -> None:
        self.taken: list[Taken] = []
        self.decoder = FrameDecoder({kind: self._handler(kind) for kind in Frame})

    def _handler(self, kind: Frame) -> codec.Handler:
        def take(flags: int, worker: int, call: int, data: bytes, start: int, end: int) -> None:
            self.taken.append((kind, flags, worker, call, data[start:end]))

        return take

    def feed(self, data: bytes) -> str:
        """Feeds bytes; returns the error or ""."""
        try:
            has_more = self.decoder.feed(data)
            while has_more:  # the time per turn is bounded, so a slow machine needs several turns
                has_more = self.decoder.go_on()
        except EngineError as error:
            return str(error)
        return ""


def response(head: bytes = b"", body: bytes = b"", flags: int = 1, status: int = 200) -> bytes:
    return frame(Frame.RESPONSE, 1, 1, struct.pack("<HHII", status, 0, 7, len(head)) + head + body, flags)


GOOD = [
    frame(Frame.HELLO, payload=b"{}"),
    frame(Frame.LOADED, 1, 0, b"{}"),
    frame(Frame.LOADED, 1, 0, b"{}", Flag.FAIL),
    frame(Frame.UNLOADED, 1, 0, b"{}"),
    response(b"a: b\r\n", b"body"),
    response(flags=Flag.END | Flag.DONE),
    response(flags=Flag.DONE),
    response(flags=0),
    frame(Frame.BODY, 1, 1, b"x" * 100),
    frame(Frame.BODY, 1, 1, b"", Flag.END),
    frame(Frame.CREDIT, 1, 1, b"\1\0\0\0"),
    frame(Frame.CANCEL, 1, 1, b"{}"),
    frame(Frame.FAIL, 1, 1, b'{"code":2}'),
    frame(Frame.DONE, 1, 1, bytes(8)),
    frame(Frame.LOG, 1, 1, bytes(12) + b"text"),
    frame(Frame.LOG, 1, 0, bytes(12)),
    frame(Frame.OP, 1, 1, bytes(12)),
    frame(Frame.PONG),
    frame(Frame.CODE, 1, 0, b"x" * 1000),
    frame(Frame.STUCK, 1, 1, b'{"code":10}'),
    frame(Frame.STUCK, 1, 0, b'{"code":10}'),
]


@pytest.mark.parametrize("data", GOOD, ids=lambda data: Frame(data[4]).name)
def test_a_valid_frame_is_read_completely(data: bytes) -> None:
    recorder = Recorder()
    assert recorder.feed(data) == ""
    ((kind, flags, worker, call, payload),) = recorder.taken
    assert frame(kind, worker, call, payload, flags) == data


def header(length: int, kind: int, flags: int = 0, spare: int = 0, worker: int = 0, call: int = 0) -> bytes:
    return struct.pack(HEADER_LAYOUT, length, kind, flags, spare, worker, call)


BAD = {
    "a kind that does not exist": header(0, 0),
    "a kind that does not exist, high": header(0, 255),
    "a frame only Python sends": header(2, Frame.CALL, worker=1, call=1),
    "spare bits": header(2, Frame.HELLO, spare=1),
    "a flag that means nothing": header(8, Frame.DONE, flags=Flag.LOW, worker=1, call=1),
    "a flag nobody knows": header(0, Frame.BODY, flags=128, worker=1, call=1),
    "no worker": header(8, Frame.DONE, call=1),
    "no call": header(8, Frame.DONE, worker=1),
    "a worker where none belongs": header(2, Frame.HELLO, worker=1),
    "a call where none belongs": header(2, Frame.LOADED, worker=1, call=1),
    "too short": header(7, Frame.DONE, worker=1, call=1),
    "too long": header(9, Frame.DONE, worker=1, call=1),
    "a body beyond a chunk": header(CHUNK + 1, Frame.BODY, worker=1, call=1),
    "longer than any frame": header(MAX_PAYLOAD + 1, Frame.OP, worker=1, call=1),
    "the longest length there is": header(0xFFFFFFFF, Frame.CODE, worker=1),
    "a response beyond head and window": header(12 + MAX_HEAD + WINDOW + 1, Frame.RESPONSE, worker=1, call=1),
}


@pytest.mark.parametrize("what", BAD)
def test_a_malformed_header_is_refused_before_its_payload_arrives(what: str) -> None:
    recorder = Recorder()
    assert recorder.feed(BAD[what])
    assert recorder.taken == []
    assert recorder.decoder.waiting == 0
    assert recorder.feed(GOOD[0]) == ""
    assert recorder.taken == [], "no frame is accepted after an error"


@given(st.lists(st.sampled_from(GOOD), max_size=20), st.data())
def test_frames_are_read_correctly_in_any_split(frames: list[bytes], data: st.DataObject) -> None:
    whole = b"".join(frames)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=30)))
    recorder = Recorder()
    for start, end in zip([0, *cuts], [*cuts, len(whole)], strict=True):
        assert recorder.feed(whole[start:end]) == ""
    assert b"".join(frame(k, w, c, p, f) for k, f, w, c, p in recorder.taken) == whole
    assert recorder.decoder.waiting == 0


headers = st.builds(
    header,
    st.one_of(st.integers(0, 64), st.integers(0, 0xFFFFFFFF)),
    st.one_of(st.sampled_from([int(kind) for kind in Frame]), st.integers(0, 255)),
    st.one_of(st.integers(0, 7), st.integers(0, 255)),
    st.sampled_from([0, 0, 0, 0, 1, 0xFFFF]),
    st.integers(0, 3),
    st.integers(0, 3),
)
chunks = st.lists(st.one_of(st.binary(max_size=64), headers, st.sampled_from(GOOD)), max_size=30)


@given(chunks)
@settings(max_examples=300)
def test_any_bytes_give_frames_or_an_engine_error(pieces: list[bytes]) -> None:
    recorder = Recorder()
    for piece in pieces:
        if recorder.feed(piece):
            break
        assert recorder.decoder.waiting <= MAX_PAYLOAD + HEADER_SIZE
    assert {kind for kind, *_ in recorder.taken} <= FROM_ENGINE


READERS = [
    lambda data: codec.read_response(data, 0, len(data)) if len(data) >= 12 else None,
    lambda data: codec.read_done(data, 0) if len(data) >= 8 else None,
    lambda data: codec.read_log(data, 0, len(data)) if len(data) >= 12 else None,
    lambda data: codec.read_op(data, 0, len(data)) if len(data) >= 12 else None,
    lambda data: codec.read_code(data, 0, len(data), 3),
    fields.read_json,
    codec.read_failure,
]


@given(st.binary(max_size=200), st.sampled_from(READERS))
@settings(max_examples=500)
def test_any_payload_is_read_or_refused(data: bytes, read: object) -> None:
    try:
        read(data)  # type: ignore[operator]
    except EngineError:
        pass


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(["code", "message", "name", "stack", "line", "column", "file"]), json_values))
def test_a_failure_of_any_shape_is_read_or_refused(fields: dict[str, object]) -> None:
    try:
        failure = codec.read_failure(json.dumps(fields).encode())
    except EngineError:
        return
    assert failure.code in ErrorCode
    (failure.message + failure.name + failure.stack + failure.file).encode()  # the text can be stored


@pytest.mark.parametrize(
    "bomb", [b"[" * 100_000, b'{"a":' * 100_000, b'{"code":' + b"9" * 10_000 + b"}", b"\xff\xfe", b"5"]
)
def test_a_json_bomb_is_refused(bomb: bytes) -> None:
    with pytest.raises(EngineError):
        codec.read_failure(bomb)


def test_text_that_utf8_cannot_encode_is_repaired() -> None:
    assert codec.read_failure(b'{"code":2,"message":"a\\ud800b"}').message == "a?b"
    assert codec.read_failure(b'{"code":2,"message":"a\xed\xa0\x80b"}').message.startswith("a\N{REPLACEMENT CHARACTER}")


def test_long_texts_are_truncated() -> None:
    failure = codec.read_failure(json.dumps({"code": 2, "message": "m" * 10**5, "stack": "s" * 10**5}).encode())
    assert len(failure.message) == fields.MESSAGE_CHARS
    assert len(failure.stack) == codec.STACK_CHARS


@pytest.mark.parametrize("status", [0, 99, 100, 102, 199, 600, 65535])
def test_an_invalid_status_is_refused(status: int) -> None:
    data = response(status=status)[HEADER_SIZE:]
    with pytest.raises(EngineError):
        codec.read_response(data, 0, len(data))


def test_a_response_is_split_into_head_and_body() -> None:
    data = response(b"a: b\r\n", b"body")[HEADER_SIZE:]
    assert codec.read_response(data, 0, len(data)) == (200, 0, 7, b"a: b\r\n", b"body")


def test_a_head_or_meta_longer_than_its_frame_is_refused() -> None:
    answer = response(b"a: b\r\n")[HEADER_SIZE:]
    asked = struct.pack("<HHII", 1, 0, 5, 4) + b"meta"
    assert codec.read_op(asked, 0, len(asked)) == (1, 5, b"meta", b"")
    for read, data in ((codec.read_response, answer), (codec.read_op, asked)):
        with pytest.raises(EngineError):
            read(data + b"the next frame", 0, len(data) - 1)


def test_an_unknown_outcome_is_refused() -> None:
    assert codec.read_done(struct.pack("<II", 5, 0), 0) == (5, Outcome.OK)
    with pytest.raises(EngineError):
        codec.read_done(struct.pack("<II", 5, 99), 0)


def test_code_cache_sizes_must_add_up() -> None:
    assert codec.read_code(struct.pack("<II", 3, 0) + b"abc", 0, 11, 2) == (b"abc", b"")
    assert codec.read_code(b"", 0, 0, 2) == (b"", b"")
    for lie in (struct.pack("<II", 4, 0) + b"abc", struct.pack("<II", 2, 0) + b"abc", b"\0\0\0"):
        with pytest.raises(EngineError):
            codec.read_code(lie, 0, len(lie), 2)


def test_an_error_in_one_handler_costs_only_that_frame(caplog: pytest.LogCaptureFixture) -> None:
    recorder = Recorder()

    def broken(*_: object) -> None:
        raise ZeroDivisionError

    recorder.decoder.use({kind: recorder._handler(kind) for kind in Frame} | {Frame.PONG: broken})
    assert recorder.feed(frame(Frame.PONG) + GOOD[0]) == ""
    assert [kind for kind, *_ in recorder.taken] == [Frame.HELLO]
    assert "handling PONG failed" in caplog.text


def test_a_call_is_one_frame_with_head_and_body() -> None:
    data = codec.encode_call(3, 4, 0, b"GET http://a/\n", b"body", True)
    assert data == frame(Frame.CALL, 3, 4, bytes(4) + struct.pack("<I", 14) + b"GET http://a/\nbody", Flag.END)
    data = codec.encode_call(3, 4, 0, b"GET http://a/\n", b"", False)
    assert data == frame(Frame.CALL, 3, 4, bytes(4) + struct.pack("<I", 14) + b"GET http://a/\n")


def test_a_long_body_is_split_into_chunks_and_ends_once() -> None:
    data = codec.encode_body(1, 2, b"x" * (CHUNK + 1), True)
    assert data == frame(Frame.BODY, 1, 2, b"x" * CHUNK) + frame(Frame.BODY, 1, 2, b"x", Flag.END)
    assert codec.encode_body(1, 2, b"", True) == frame(Frame.BODY, 1, 2, b"", Flag.END)


def test_a_reply_larger_than_a_frame_is_refused() -> None:
    with pytest.raises(EngineError):
        codec.encode_reply(1, 1, {}, bytes(MAX_PAYLOAD))


def test_frames_that_take_long_are_left_for_the_next_turn() -> None:
    """Frames of one engine do not block the event loop: the decoder stops in time and continues later."""
    taken: list[int] = []

    def slow(flags: int, worker: int, call: int, data: bytes, start: int, end: int) -> None:
        taken.append(call)
        until = time.perf_counter() + 0.001
        while time.perf_counter() < until:
            pass

    decoder = FrameDecoder(dict.fromkeys(Frame, slow))
    whole = b"".join(frame(Frame.BODY, 1, number, b"x") for number in range(1, 101))
    turns = 1
    has_more = decoder.feed(whole[:-5])
    while has_more:
        longest = len(taken)
        has_more = decoder.go_on()
        turns += 1
        assert len(taken) - longest < 30
    assert taken == list(range(1, 100)) and turns > 3
    assert not decoder.feed(whole[-5:])
    assert taken[-1] == 100


@pytest.mark.parametrize("step", [1, 5_000, 70_000, 150_000])
def test_a_body_is_passed_on_as_it_arrives(step: int) -> None:
    """In pieces that are frames for their handler. Only the last has the flags, and little waits for the rest."""
    recorder = Recorder()
    bodies = [bytes([number]) * CHUNK for number in range(1, 5)]
    last = len(bodies)
    frames = [
        frame(Frame.BODY, 1, number, body, Flag.END if number == last else 0)
        for number, body in enumerate(bodies, start=1)
    ]
    whole = frame(Frame.PONG).join(frames) + frame(Frame.PONG)
    for at in range(0, len(whole), step):
        assert recorder.feed(whole[at : at + step]) == ""
        assert recorder.decoder.waiting < LEAST_PIECE + HEADER_SIZE
    for number, body in enumerate(bodies, start=1):
        pieces = [each for each in recorder.taken if each[3] == number]
        assert b"".join(piece for *_, piece in pieces) == body and all(piece for *_, piece in pieces)
        assert [flags for _, flags, *_ in pieces] == [0] * (len(pieces) - 1) + [Flag.END if number == last else 0]
    assert [kind for kind, *_ in recorder.taken].count(Frame.PONG) == last


def test_nothing_is_taken_after_an_error_in_a_piece_of_a_body() -> None:
    taken: list[int] = []

    def refuse_the_second(flags: int, worker: int, call: int, data: bytes, start: int, end: int) -> None:
        taken.append(end - start)
        if len(taken) == 2:
            raise EngineError("beyond its credit")

    decoder = FrameDecoder(dict.fromkeys(Frame, refuse_the_second))
    body = frame(Frame.BODY, 1, 1, b"x" * CHUNK) * 2
    decoder.feed(body[:20_000])
    with pytest.raises(EngineError):
        decoder.feed(body[20_000:40_000])
    assert not decoder.feed(body[40_000:])
    assert taken == [20_000 - HEADER_SIZE, 20_000]


@pytest.mark.parametrize("step", [1, 7, 65_536, 1 << 20, 10 << 20])
def test_the_body_of_a_long_op_is_gathered_as_it_comes(step: int) -> None:
    """Also if its head comes in pieces. What follows it in the same piece is not lost."""
    recorder, taken = Recorder(), []

    def take(worker: int, op: int, head: bytes, body: bytes) -> None:
        taken.append((worker, op, codec.read_op(head, 0, len(head))[:3], len(body), hash(body)))

    recorder.decoder.use({kind: recorder._handler(kind) for kind in Frame}, take)
    body = bytes(range(256)) * 4096 + b"end"
    meta = b'{"key":"value"}'
    op = frame(Frame.OP, 3, 4, struct.pack("<HHII", 5, 0, 6, len(meta)) + meta + body)
    pong = frame(Frame.PONG)
    whole = pong + op + pong + op + pong
    for at in range(0, 2000, step) if step < 100 else [0]:
        assert recorder.feed(whole[at : at + min(step, 2000)]) == ""
    start = len(range(0, 2000, step)) * step if step < 100 else min(step, 2000)
    for at in range(start, len(whole), max(step, 5000)):
        assert recorder.feed(whole[at : at + max(step, 5000)]) == ""
    long = [kind for kind, *_ in recorder.taken if kind == Frame.OP]
    expected = (3, 4, (5, 6, meta), len(body), hash(body))
    assert taken + [expected] * len(long) == [expected] * 2  # one that came as a whole is handled as others are
    assert [kind for kind, *_ in recorder.taken].count(Frame.PONG) == 3
    assert recorder.decoder.waiting == 0


@pytest.mark.parametrize("prefix", [struct.pack("<HHII", 5, 1, 6, 2), struct.pack("<HHII", 5, 0, 6, 1 << 30)])
def test_a_malformed_head_of_a_long_op_is_refused_before_its_body_comes(prefix: bytes) -> None:
    recorder = Recorder()
    recorder.decoder.use({kind: recorder._handler(kind) for kind in Frame}, lambda *_: None)
    whole = frame(Frame.OP, 3, 4, prefix + bytes(1 << 20))
    assert "malformed OP" in recorder.feed(whole[:1000])
