"""Calls through a real engine: bodies in both directions under credit, cancel, time limits, failures, and records."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from engine_room import HELLO, Ear, EngineRoom, script

from atoll.engine.calls.call import WAIT_UNTIL_SECONDS
from atoll.errors import Failure
from atoll.wire.generated import CHUNK, WINDOW, ErrorCode, Level, Outcome
from atoll.workers import Limits

ECHO_BODY = "export default { async fetch(request) { return new Response(await request.arrayBuffer()); } };"
PIPE = "export default { fetch(request) { return new Response(request.body); } };"
ENDLESS = """export default { fetch() {
  const chunk = new Uint8Array(16384);
  return new Response(new ReadableStream({ pull(controller) { controller.enqueue(chunk); } }));
} };"""


async def test_a_worker_answers(room: EngineRoom) -> None:
    ear = await room.get(script(HELLO))
    assert (ear.status, ear.body, ear.ended, ear.failure) == (200, b"hello", True, None)
    (record,) = room.records
    assert record.outcome == Outcome.OK
    assert record.head.startswith(b"GET http://test/\n")
    assert 0 < record.cpu_us <= record.wall_us < 10_000_000


async def test_many_calls_at_once_each_get_their_own_answer(room: EngineRoom) -> None:
    version = script("export default { fetch(request) { return new Response(request.url); } };")
    urls = [f"http://test/{number}" for number in range(500)]
    await room.get(version)
    ears = [room.call(version, url) for url in urls]
    assert [(await ear.over()).body.decode() for ear in ears] == urls
    assert room.pool.stats().in_flight == 0


async def test_a_small_body_travels_with_the_call(room: EngineRoom) -> None:
    body = bytes(range(256)) * 100
    assert (await room.get(script(ECHO_BODY), body=body)).body == body


async def test_a_body_streams_through_under_credit_both_ways(room: EngineRoom) -> None:
    ear = room.call(script(PIPE), open_body=True)
    assert ear.call is not None
    sent = bytearray()
    for number in range(40):
        await ear.until(lambda: ear.credit + WINDOW - len(sent) >= CHUNK or ear.failure)
        chunk = bytes([number]) * CHUNK
        ear.call.send_body(chunk, False)
        sent.extend(chunk)
    ear.call.send_body(b"", True)
    await ear.over()
    assert ear.failure is None
    assert ear.body == sent


async def test_an_engine_stops_sending_when_the_body_is_not_read(room: EngineRoom) -> None:
    ear = Ear()
    ear.grants = False
    ear.call = room.pool.call(script(ENDLESS), b"GET http://test/\n", b"", True, ear)
    await ear.until(lambda: len(ear.body) >= WINDOW)
    await asyncio.sleep(0.1)  # long enough for a faulty engine to send more
    assert len(ear.body) == WINDOW
    ear.call.grant(CHUNK)
    await ear.until(lambda: len(ear.body) == WINDOW + CHUNK)
    ear.call.cancel()
    await room.until(lambda: not room.pool.busy, "DONE after the cancel")
    assert room.records[0].outcome == Outcome.CANCELED


async def test_a_worker_that_ignores_its_body_stops_the_upload_or_answers_anyway(room: EngineRoom) -> None:
    ear = room.call(script(HELLO), open_body=True)
    assert ear.call is not None
    ear.call.send_body(b"x" * WINDOW, False)
    await ear.over()
    assert ear.body == b"hello"


TELL_PIECES = """export default { async fetch(request) {
  const bytes = new Uint8Array(await request.arrayBuffer());
  const firsts = [];
  for (let at = 0; at < bytes.length; at += 65536) firsts.push(bytes[at]);
  return new Response(firsts.join() + " " + bytes.length);
} };"""


async def test_bodies_that_wait_for_room_in_the_socket_arrive_in_order_and_calls_overtake_them(
    room: EngineRoom,
) -> None:
    version, quick = script(TELL_PIECES, limits=Limits(cpu_ms=10_000)), script(HELLO)
    for each in (version, quick):
        await room.get(each)
    ears = [room.call(version, open_body=True) for _ in range(80)]
    for piece in range(WINDOW // CHUNK):  # 20 MB in one turn of the loop
        for number, ear in enumerate(ears):
            assert ear.call is not None
            ear.call.send_body(bytes([number + piece]) * CHUNK, piece == WINDOW // CHUNK - 1)
    gone = ears[1::2]
    for ear in gone:
        assert ear.call is not None
        ear.call.cancel()  # the rest of its body must not reach the next call with the same id
    assert (await room.get(quick)).body == b"hello"
    assert not any(ear.ended for ear in ears[-20:])
    later = [room.call(version, open_body=True) for _ in range(80)]
    for ear in later:
        assert ear.call is not None
        ear.call.send_body(b"later", True)
    assert {(await ear.over()).body for ear in later} == {b"108 5"}
    for number, ear in list(enumerate(ears))[::2]:
        firsts = ",".join(str(number + piece) for piece in range(WINDOW // CHUNK))
        assert (await ear.over()).body.decode() == f"{firsts} {WINDOW}"


async def test_a_cancelled_call_ends_and_its_id_is_reused(room: EngineRoom) -> None:
    version = script("export default { fetch() { return new Promise(r => setTimeout(r, 20_000)); } };")
    ear = room.call(version)
    assert ear.call is not None
    await room.until(lambda: room.isolate(version).ready, "LOADED")
    number = ear.call.id
    ear.call.cancel()
    await room.until(lambda: not room.pool.busy, "DONE")
    assert room.records[0].outcome == Outcome.CANCELED
    assert ear.failure is None
    again = room.call(version)
    assert again.call is not None and again.call.id == number
    again.call.cancel()


async def test_a_call_beyond_its_wall_limit_fails_and_the_worker_goes_on(room: EngineRoom) -> None:
    source = """export default { async fetch(request) {
      if (request.url.endsWith("slow")) await new Promise(r => setTimeout(r, 20_000));
      return new Response("fast");
    } };"""
    version = script(source, limits=Limits(cpu_ms=2000, wall_ms=300))
    assert (await room.get(version, "http://test/slow")).code == "WALL"
    assert (await room.get(version)).body == b"fast"
    await room.until(lambda: not room.pool.busy, "DONE of the slow call")
    outcomes = {record.outcome for record in room.records}
    assert outcomes == {Outcome.OK, Outcome.EXCEEDED_WALL_TIME}
    assert room.pool.stats().engines_lost == 0


async def test_an_error_of_a_handler_is_reported_with_its_position(room: EngineRoom) -> None:
    ear = await room.get(script('export default {\n  fetch() {\n    throw new RangeError("too much");\n  }\n};'))
    assert ear.failure is not None
    assert (ear.code, ear.failure.name, ear.failure.message) == ("EXCEPTION", "RangeError", "too much")
    assert (ear.failure.file, ear.failure.line) == ("worker.js", 3)
    await room.until(lambda: room.records, "the record")
    assert room.records[0].outcome == Outcome.EXCEPTION
    assert room.records[0].failure == ear.failure


async def test_no_thrown_value_can_break_the_wire(room: EngineRoom) -> None:
    for thrown in (
        '"\\ud800"', "null", "undefined", "Symbol()", "{}", "new Proxy({}, { get() { throw 1; } })",
        "Object.create(null)",
        '({ name: 5, message: { toString() { throw 1; } } })', 'new Error("\\ud800\\0" + "x".repeat(1e6))',
    ):  # fmt: skip
        ear = await room.get(script(f"export default {{ fetch() {{ throw {thrown}; }} }};"))
        assert ear.code == "EXCEPTION", thrown
    assert room.pool.stats().engines_lost == 0


async def test_no_response_can_break_the_wire(room: EngineRoom) -> None:
    for made in (
        'new Response("x", { headers: { long: "h".repeat(200_000) } })',
        'new Response("x".repeat(300_000))',
        'new Response(null, { status: 204 })',
        "Response.error()",
        "({ status: 200 })",
        'new Response("x", { status: 101 })',
    ):  # fmt: skip
        ear = await room.get(script(f"export default {{ fetch() {{ return {made}; }} }};"))
        assert ear.status or ear.failure, made
    assert room.pool.stats().engines_lost == 0


async def test_console_lines_reach_the_record_of_their_call(room: EngineRoom) -> None:
    source = """console.log("top");
    export default { async fetch(request) {
      console.log("begin", request.url);
      await new Promise(r => setTimeout(r, 5));
      console.error("end", request.url);
      return new Response("ok");
    } };"""
    version = script(source)
    ears = [room.call(version, f"http://test/{number}") for number in range(2)]
    for ear in ears:
        await ear.over()
    await room.until(lambda: len(room.records) == 2, "the records")
    lines = [[line.text for line in record.logs if line.text != "top"] for record in room.records]
    assert sorted(lines) == [[f"begin http://test/{n}", f"end http://test/{n}"] for n in range(2)]
    assert room.records[0].logs[0].text == "top"
    assert room.records[0].logs[-1].level == Level.ERROR


async def test_a_flood_of_console_lines_is_cut_off(room: EngineRoom) -> None:
    loop = 'for (let i = 0; i < 5000; i++) console.log("x".repeat(100));'
    source = f"export default {{ fetch() {{ {loop} return new Response(); }} }};"
    await room.get(script(source))
    await room.until(lambda: room.records, "the record")
    assert sum(len(line.text) for line in room.records[0].logs) <= 128 << 10
    assert room.records[0].truncated


async def test_endless_wait_until_costs_only_the_isolate_of_its_worker(
    room: EngineRoom, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("atoll.engine.calls.call_table.WAIT_UNTIL_SECONDS", 0.2)
    monkeypatch.setattr("atoll.engine.calls.call_table.CANCEL_SECONDS", 0.2)
    source = """export default { async fetch(request, env, ctx) {
      if (request.url.endsWith("hold")) ctx.waitUntil(new Promise(r => setInterval(r => 0, 10)));
      else await new Promise(r => setTimeout(r, 1500));
      return new Response("now");
    } };"""
    version = script(source)
    await room.pool.loader.check(version)
    slow = room.call(version)
    assert (await room.get(version, "http://test/hold")).body == b"now"
    assert (await slow.over()).body == b"now", "a concurrent call may finish"
    await room.until(lambda: not room.pool.busy, "the end of both")
    assert (await room.get(version)).body == b"now"
    assert room.pool.stats().engines_lost == 0
    assert len(room.records) == 3


def test_wait_until_may_run_as_long_as_documented() -> None:
    page = Path(__file__).resolve().parents[2] / "docs/concepts/workers-and-versions.md"
    assert f"| a promise given to `ctx.waitUntil` | {WAIT_UNTIL_SECONDS:g} s beyond the response" in page.read_text()


async def test_wait_until_goes_on_after_the_response_and_ends_the_record(room: EngineRoom) -> None:
    source = """export default { fetch(request, env, ctx) {
      ctx.waitUntil(new Promise(r => setTimeout(r, 200)).then(() => console.log("later")));
      return new Response("now");
    } };"""
    ear = await room.get(script(source))
    assert ear.body == b"now"
    assert not room.records
    assert ear.call is not None
    ear.call.cancel()  # the client disconnects: the promises of waitUntil go on
    await room.until(lambda: room.records, "the record")
    assert [line.text for line in room.records[0].logs] == ["later"]
    assert room.records[0].outcome == Outcome.OK


@pytest.mark.parametrize("way", ["/at-once", "/later", "/streamed"])
async def test_a_response_that_cannot_be_sent_is_recorded_as_an_exception(room: EngineRoom, way: str) -> None:
    source = """export default { fetch(request, env, ctx) {
      if (request.url.endsWith("later")) ctx.waitUntil(new Promise((resolve) => setTimeout(resolve, 5)));
      if (!request.url.endsWith("streamed")) return new Response("x");
      return new Response(new ReadableStream({ async pull(controller) {
        await new Promise((resolve) => setTimeout(resolve, 1));
        controller.enqueue(new Uint8Array(1));
      } }));
    } };"""
    known = len(room.records)
    ear = room.call(script(source), f"http://test{way}")
    failure = Failure(ErrorCode.NOT_A_RESPONSE, "the response was refused: why")
    ear.on_response = lambda *_: ear.call.refuse(failure)  # type: ignore[method-assign, union-attr]
    await room.until(lambda: len(room.records) > known, "a record")
    record = room.records[-1]
    assert (record.outcome, record.status, record.failure) == (Outcome.EXCEPTION, 500, failure)
