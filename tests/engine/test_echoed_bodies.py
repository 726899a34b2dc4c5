"""A request body that is the response body too: order, credit and the hand-over from the engine to Python."""

from __future__ import annotations

from engine_room import EngineRoom, script

from atoll.engine.calls import RESPONDED
from atoll.front.flow import Upload
from atoll.wire.generated import CHUNK, WINDOW

PIPE = "export default { fetch(request) { return new Response(request.body); } };"


async def test_the_engine_sees_a_beginning_and_the_end(room: EngineRoom) -> None:
    ear = room.call(script(PIPE), open_body=True)
    assert ear.call is not None
    ear.call.send_body(b"first", False)
    await ear.until(lambda: ear.credit and ear.call is not None and ear.call.echo)
    assert ear.body == b"first"
    ear.call.send_body(b", second", False)
    assert ear.body == b"first, second"  # at once: no engine was asked
    assert (ear.call.state, ear.call.uncredited, room.records) == (RESPONDED, 0, [])
    ear.call.send_body(b", last", True)
    await ear.over()
    assert ear.body == b"first, second, last"
    await room.until(lambda: room.records, "the call is over")


async def test_a_body_that_ends_before_the_engine_says_so_is_the_engines(room: EngineRoom) -> None:
    ear = room.call(script(PIPE), open_body=True)
    assert ear.call is not None
    ear.call.send_body(b"all of it", True)
    await ear.over()
    assert (ear.body, ear.failure, ear.call.echo) == (b"all of it", None, None)


async def test_what_the_client_takes_is_credit_for_what_it_may_send(room: EngineRoom) -> None:
    ear = room.call(script(PIPE), open_body=True)
    assert ear.call is not None
    ear.grants = False
    ear.call.send_body(b"x" * CHUNK, False)
    await ear.until(lambda: ear.credit and ear.call is not None and ear.call.echo)
    assert ear.credit == CHUNK  # from the engine, which took it
    ear.call.send_body(b"y" * CHUNK, False)
    ear.call.grant(CHUNK)
    assert ear.credit == CHUNK  # the client took the engine's part, which was paid for
    ear.call.grant(CHUNK)
    assert ear.credit == 2 * CHUNK


class Mirror:
    """A call that gives credit for each piece at once, as an echo does whose client is fast."""

    def __init__(self) -> None:
        self.upload = Upload(self)
        self.pieces: list[bytes] = []

    def send_body(self, chunk: bytes, ended: bool) -> None:
        self.pieces.append(chunk)
        self.upload.add_credit(len(chunk))


def test_credit_that_comes_while_sending_repeats_nothing() -> None:
    mirror = Mirror()
    body = b"".join(bytes([number]) * CHUNK for number in range(3 * WINDOW // CHUNK))
    mirror.upload.take(body, True)
    assert b"".join(mirror.pieces) == body
    assert not mirror.upload.waiting
