"""A request body that is the response body too: order, credit and the hand-over from the engine to Python."""

from __future__ import annotations

from engine_room import EngineRoom, script

from atoll.engine.calls import OVER
from atoll.front.flow import Upload
from atoll.wire.generated import CHUNK, WINDOW

PIPE = "export default { fetch(request) { return new Response(request.body); } };"
PIPE_AND_GO_ON = """export default { fetch(request, env, ctx) {
  ctx.waitUntil(new Promise((resolve) => setTimeout(resolve, 50)).then(() => console.log("later")));
  return new Response(request.body);
} };"""


async def test_the_call_is_over_before_its_body(room: EngineRoom) -> None:
    ear = room.call(script(PIPE_AND_GO_ON), open_body=True)
    assert ear.call is not None
    ear.call.send_body(b"first", False)
    await room.until(lambda: room.records, "the call is over")
    (record,) = room.records
    assert [line.text for line in record.logs] == ["later"]
    assert (ear.body, ear.ended, ear.call.state) == (b"first", False, OVER)
    ear.call.send_body(b", second", False)
    ear.call.send_body(b", last", True)
    assert (ear.body, ear.ended) == (b"first, second, last", True)


async def test_what_the_client_takes_is_credit_for_what_it_may_send(room: EngineRoom) -> None:
    ear = room.call(script(PIPE), open_body=True)
    assert ear.call is not None
    ear.grants = False
    ear.call.send_body(b"x" * CHUNK, False)
    await room.until(lambda: room.records, "the call is over")
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
