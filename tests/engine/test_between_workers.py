"""Calls between workers of a node, through a real engine: bodies under credit, failures, loops, cancel."""

from __future__ import annotations

import asyncio

import pytest
from engine_room import HELLO, EngineRoom, script

from atoll.bindings.services import InnerCall, InnerRequest
from atoll.errors import CalleeFailed, LoopDetected
from atoll.wire.generated import CHUNK, WINDOW, ErrorCode, Outcome

HEAD = b"GET http://test/\nHost: test\r\n"
POST = b"POST http://test/\nHost: test\r\n"
PIPE = "export default { fetch(request) { return new Response(request.body); } };"
ENDLESS = """export default { fetch() {
  const chunk = new Uint8Array(16384);
  return new Response(new ReadableStream({ pull(controller) { controller.enqueue(chunk); } }));
} };"""


async def all_of(call: InnerCall) -> bytes:
    body = bytearray()
    while chunk := await call.read():
        body += chunk
    return bytes(body)


async def test_a_worker_answers_with_status_headers_and_body(room: EngineRoom) -> None:
    source = 'export default { fetch() { return new Response("made", { status: 201, headers: { "x-a": "b" } }); } };'
    call = room.inner.start(InnerRequest(script(source), HEAD))
    response = await call.response()
    assert (response.status, b"x-a: b\r\n" in response.head) == (201, True)
    assert (call.read_nowait(), call.at_end) == (b"made", True)


async def test_a_body_of_any_size_passes_in_both_directions(room: EngineRoom) -> None:
    body = bytes(range(256)) * 8192  # 2 MB: eight windows
    call = room.inner.start(InnerRequest(script(PIPE), POST, body))
    assert await all_of(call) == body


async def test_a_streamed_body_waits_until_the_worker_reads_it(room: EngineRoom) -> None:
    call = room.inner.start(InnerRequest(script(PIPE), POST, b"", ended=False))
    piece = bytes(CHUNK)
    for _ in range(WINDOW // CHUNK):
        assert await asyncio.wait_for(call.write(piece, False), 10)
    writing = asyncio.ensure_future(call.write(bytes(4 * WINDOW), True))
    await call.response()
    await asyncio.sleep(0.1)  # long enough for a call without credit to take all of it
    assert not writing.done()
    assert len(await all_of(call)) == 5 * WINDOW
    assert await writing


async def test_a_response_that_is_not_read_stops_at_its_window(room: EngineRoom) -> None:
    call = room.inner.start(InnerRequest(script(ENDLESS), HEAD))
    await call.response()
    await room.until(lambda: sum(map(len, call._chunks)) == WINDOW, "a full window")
    await asyncio.sleep(0.1)  # long enough for a faulty engine to send more
    assert sum(map(len, call._chunks)) == WINDOW
    assert await call.read()
    call.close()
    await room.until(lambda: not room.pool.busy, "DONE after the cancel")
    assert room.records[0].outcome == Outcome.CANCELED


async def test_a_worker_that_ignores_its_body_stops_the_upload(room: EngineRoom) -> None:
    call = room.inner.start(InnerRequest(script(HELLO), POST, b"", ended=False))
    while await asyncio.wait_for(call.write(bytes(CHUNK), False), 10):
        pass
    assert await all_of(call) == b"hello"


async def test_an_error_of_the_callee_reaches_the_caller(room: EngineRoom) -> None:
    call = room.inner.start(InnerRequest(script('export default { fetch() { throw new Error("no"); } };'), HEAD))
    with pytest.raises(CalleeFailed, match="no") as caught:
        await call.response()
    assert caught.value.failure.code == ErrorCode.EXCEPTION


async def test_a_broken_body_fails_after_the_chunks_that_arrived(room: EngineRoom) -> None:
    source = """export default { fetch() { return new Response(new ReadableStream({ async start(controller) {
      controller.enqueue(new Uint8Array(10));
      await new Promise((resolve) => setTimeout(resolve, 10));
      controller.error(new Error("broken"));
    } })); } };"""
    call = room.inner.start(InnerRequest(script(source), HEAD))
    await call.response()
    assert await call.read() == bytes(10)
    with pytest.raises(CalleeFailed, match="broken"):
        await call.read()


async def test_the_seventeenth_worker_of_a_chain_is_not_called(room: EngineRoom) -> None:
    call = room.inner.start(InnerRequest(script(HELLO), HEAD, hops=15))
    assert await all_of(call) == b"hello"
    with pytest.raises(LoopDetected):
        room.inner.start(InnerRequest(script(HELLO), HEAD, hops=16))


async def test_closing_ends_a_waiting_read(room: EngineRoom) -> None:
    source = "export default { fetch() { return new Promise(() => setTimeout(() => {}, 9000)); } };"
    call = room.inner.start(InnerRequest(script(source), HEAD))
    reading = asyncio.ensure_future(call.read())
    await asyncio.sleep(0)
    call.close()
    assert await reading == b""
    await room.until(lambda: not room.pool.busy, "the end of the call")
