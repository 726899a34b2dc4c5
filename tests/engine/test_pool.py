"""Which version is loaded where, with real engines: load, check, evict, retire, condemn, code cache, overload."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from engine_room import HELLO, EngineRoom, script

from atoll.engine.pool import PoolLimits
from atoll.errors import LoadFailed
from atoll.wire.generated import Outcome
from atoll.workers import Limits

COUNTER = "let n = 0; export default { fetch() { return new Response(String(++n)); } };"
SLEEPER = "export default { fetch() { return new Promise(r => setTimeout(() => r(new Response('slept')), 300)); } };"


async def test_globals_persist_between_calls_of_one_isolate(room: EngineRoom) -> None:
    version = script(COUNTER)
    assert [(await room.get(version)).body for _ in range(3)] == [b"1", b"2", b"3"]
    assert room.pool.stats().loads == 1


async def test_calls_that_come_with_the_load_wait_in_the_engine(room: EngineRoom) -> None:
    version = script(COUNTER)
    ears = [room.call(version) for _ in range(50)]
    assert {(await ear.over()).body for ear in ears} == {str(n).encode() for n in range(1, 51)}
    stats = room.pool.stats()
    assert (stats.loads, stats.calls, stats.hits) == (1, 50, 0)
    await room.get(version)
    assert room.pool.stats().hits == 1


async def test_check_reports_the_handlers_and_leaves_the_version_loaded(room: EngineRoom) -> None:
    version = script("console.log('starting'); " + COUNTER)
    report = await room.pool.loader.check(version)
    assert report.handlers == ("fetch",)
    assert report.format == "module"
    assert 0 < report.startup_ms < 5000
    assert [line.text for line in report.logs] == ["starting"]
    assert (await room.get(version)).body == b"1"
    assert room.pool.stats().loads == 1


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ("export default { fetch() { return new Response( } };", "COMPILE"),
        ('import x from "./missing.js"; export default { fetch() {} };', "COMPILE"),
        ("throw new Error('boom'); export default { fetch() {} };", "STARTUP"),
        ("export const x = 1;", "NO_DEFAULT"),
        ("export default {};", "NO_FETCH"),
        ("export default { fetch: 5 };", "FETCH_NOT_FUNCTION"),
    ],
)
async def test_a_failed_load_names_its_reason(room: EngineRoom, source: str, code: str) -> None:
    version = script(source)
    with pytest.raises(LoadFailed) as refused:
        await room.pool.loader.check(version)
    assert refused.value.failure.code.name == code
    ears = [room.call(version) for _ in range(3)]
    assert [(await ear.over()).code for ear in ears] == [code] * 3
    assert room.pool.stats().engines_lost == 0
    assert room.pool.stats().loaded == 0


async def test_a_version_that_cannot_be_sent_is_a_failed_load(room: EngineRoom) -> None:
    too_large = script("//" + "x" * (65 << 20))
    assert (await room.get(too_large)).code == "COMPILE"
    strange = dataclasses.replace(script(HELLO), env={"x": float("nan")})
    assert (await room.get(strange)).code == "INVALID_ARGUMENT"
    assert room.pool.stats().loads == 0


async def test_the_least_recently_used_idle_version_makes_room(open_room: Callable[..., Any]) -> None:
    room = await open_room(limits=PoolLimits(max_loaded=3))
    versions = [script(COUNTER, f"w{n}") for n in range(5)]
    for version in versions[:3]:
        await room.get(version)
    await room.get(versions[0])  # now the second is the least recently used
    await room.get(versions[3])
    assert (await room.get(versions[0])).body == b"3", "the first is still loaded"
    assert (await room.get(versions[1])).body == b"1", "the second was unloaded and starts afresh"
    assert room.pool.stats().loaded == 3
    assert room.pool.stats().evictions == 2


async def test_a_busy_version_is_never_evicted_and_others_wait_for_its_room(open_room: Callable[..., Any]) -> None:
    room = await open_room(limits=PoolLimits(max_loaded=1, worker_queue=3))
    busy = room.call(script(SLEEPER, "busy"))
    other = script(HELLO, "other")
    waiting = [room.call(other) for _ in range(4)]
    assert [ear.code for ear in waiting] == ["", "", "", "OVERLOADED"]
    assert room.pool.stats().queued == 3
    waiting[0].call.cancel()
    for ear in waiting[1:3]:
        assert (await ear.over()).body == b"hello"
    assert busy.body == b"slept"
    assert room.pool.stats().queued == 0


async def test_an_idle_version_is_unloaded(open_room: Callable[..., Any]) -> None:
    room = await open_room(limits=PoolLimits(idle_seconds=0.3))
    version = script(COUNTER)
    await room.get(version)
    await room.until(lambda: room.pool.stats().loaded == 0, "the unload")
    assert (await room.get(version)).body == b"1"


async def test_many_more_versions_than_may_be_loaded_all_answer_correctly(open_room: Callable[..., Any]) -> None:
    room = await open_room(engines=2, limits=PoolLimits(max_loaded=10))
    versions = [
        script(f"export default {{ fetch() {{ return new Response('worker {n}'); }} }};", f"w{n}") for n in range(60)
    ]
    for _ in range(2):
        for n, version in enumerate(versions):
            assert (await room.get(version)).body == f"worker {n}".encode()
    assert room.pool.stats().loaded <= 10
    await room.until(
        lambda: sum(int(str(report.get("workers", 99))) for report in room.supervisor.engine_reports()) <= 10,
        "the engines' own count to come down",
    )


async def test_a_retired_version_is_unloaded_after_its_last_call(room: EngineRoom) -> None:
    version = script(SLEEPER)
    ear = room.call(version)
    room.pool.loader.retire(version)
    assert (await ear.over()).body == b"slept"
    await room.until(lambda: room.pool.stats().loaded == 0, "the unload")
    await room.get(script(HELLO))
    idle = script(HELLO, "idle")
    await room.get(idle)
    room.pool.loader.retire(idle)
    assert room.pool.stats().loaded == 1


async def test_an_isolate_that_broke_its_cpu_limit_is_condemned_and_the_next_call_gets_a_new_one(
    room: EngineRoom,
) -> None:
    source = """let n = 0; export default { fetch(request) {
      n++; if (request.url.endsWith("loop")) for (;;) {} return new Response(String(n)); } };"""
    version = script(source, limits=Limits(cpu_ms=100))
    assert (await room.get(version)).body == b"1"
    ear = await room.get(version, "http://test/loop")
    assert ear.code == "CPU"
    assert (await room.get(version)).body == b"1"
    assert room.pool.stats().condemned == 1
    assert room.pool.stats().engines_lost == 0
    assert [record.outcome for record in room.records] == [Outcome.OK, Outcome.EXCEEDED_CPU, Outcome.OK]


async def test_calls_that_cross_a_condemned_isolate_start_in_a_new_one(room: EngineRoom) -> None:
    source = """export default { fetch(request) {
      if (request.url.endsWith("loop")) for (;;) {} return new Response("fine"); } };"""
    version = script(source, limits=Limits(cpu_ms=100))
    await room.get(version)
    loop = room.call(version, "http://test/loop")
    others = [room.call(version) for _ in range(20)]
    assert (await loop.over()).code == "CPU"
    for other in others:
        assert (await other.over()).body == b"fine"
    assert room.pool.stats().engines_lost == 0


async def test_more_calls_in_flight_than_allowed_are_refused(open_room: Callable[..., Any]) -> None:
    room = await open_room(limits=PoolLimits(max_in_flight=10))
    version = script(SLEEPER)
    await room.pool.loader.check(version)
    ears = [room.call(version) for _ in range(15)]
    codes = [(await ear.over()).code for ear in ears]
    assert codes == [""] * 10 + ["OVERLOADED"] * 5


async def test_the_code_cache_is_kept_after_check_and_after_the_first_response(room: EngineRoom) -> None:
    version = script(COUNTER)
    await room.pool.loader.check(version)
    await room.until(lambda: room.saved == 1, "the first code cache")
    await room.get(version)
    await room.until(lambda: room.saved == 2, "the second code cache")
    await room.get(version)
    room.pool.loader.retire(version)
    assert (await room.get(version)).body == b"1", "loaded again, with the cache"
    isolate = room.isolate(version)
    assert isolate.report is not None and not isolate.report.cache_rejected
    assert room.saved == 2, "a version loaded with a cache needs no new one"


async def test_a_damaged_code_cache_is_rejected_by_v8_and_rebuilt(room: EngineRoom) -> None:
    version = script(COUNTER)
    await room.pool.loader.check(version)
    await room.until(lambda: room.saved == 1, "the code cache")
    (key,) = room.caches
    room.caches[key] = (b"spoilt" * 100,)
    room.pool.loader.retire(version)
    assert (await room.get(version)).body == b"1"
    await room.until(lambda: room.saved == 2 and room.caches[key] != (b"spoilt" * 100,), "a new code cache")


async def test_ops_answer_through_a_real_worker(room: EngineRoom) -> None:
    source = """export default { async fetch(request, env) {
      const said = await env.ECHO.say("h\\u00e9 \\ud83d\\ude00");
      const waited = await env.ECHO.wait(5);
      const bytes = await env.ECHO.sayBytes(new Uint8Array([1, 2, 255]));
      let refused = "";
      try { await env.ECHO.wait(-1); } catch (error) { refused = `${error.name}: ${error.message}`; }
      return Response.json({ said, waited, bytes: [...bytes], refused });
    } };"""
    ear = await room.get(script(source))
    assert ear.body.decode() == (
        '{"said":"hé 😀","waited":5,"bytes":[1,2,255],"refused":"TypeError: ms must be a number from 0 to 10000"}'
    )


async def test_ops_beyond_the_limit_of_a_call_wait_for_their_turn(open_room: Callable[..., Any]) -> None:
    room = await open_room(limits=PoolLimits(ops_per_call=4))
    source = """export default { async fetch(request, env) {
      const order = [];
      const all = await Promise.allSettled(Array.from({ length: 30 }, async (_, i) => {
        if (i % 3) await env.ECHO.wait(5);
        else await env.ECHO.say("at once");
        order.push(i);
      }));
      return new Response(all.map(one => one.status[0]).join("") + new Set(order).size);
    } };"""
    assert (await room.get(script(source))).body == b"f" * 30 + b"30"


async def test_queued_ops_end_with_their_call(open_room: Callable[..., Any]) -> None:
    room = await open_room(limits=PoolLimits(ops_per_call=2))
    source = """export default { fetch(request, env) {
      const body = new Uint8Array(100_000);
      return Promise.all([1, 2].map(() => env.ECHO.wait(9000)).concat([1, 2, 3].map(() => env.ECHO.sayBytes(body))));
    } };"""
    ear = room.call(script(source))
    await room.until(lambda: ear.call.scope and len(ear.call.scope.line) == 3, "three ops in line")
    scope = ear.call.scope
    ear.call.cancel()
    await room.until(lambda: not room.pool.busy and not scope.line, "DONE")
    [session] = room.pool.loader.groups.sessions()
    assert session.ops._pending_bytes == 0


async def test_more_ops_than_an_engine_may_send_are_refused(room: EngineRoom) -> None:
    source = """export default { async fetch(request, env) {
      const all = await Promise.allSettled(Array.from({ length: 1001 }, () => env.ECHO.wait(1)));
      return new Response(`${all.filter((one) => one.status === "rejected").length} ${all.at(-1).reason}`);
    } };"""
    limits = Limits(cpu_ms=2000, internal_subrequests=2000)
    body = (await room.get(script(source, limits=limits))).body
    assert body == b"1 Error: Too many binding calls are under way in this request: wait for some of them first."


async def test_no_forged_meta_can_break_the_wire(room: EngineRoom) -> None:
    source = """export default { async fetch(request, env) {
      Object.prototype.toJSON = () => 5;
      try { await env.ECHO.say("x"); return new Response("answered"); }
      catch (error) { return new Response(error.name); }
    } };"""
    assert (await room.get(script(source))).body == b"TypeError"
    assert room.pool.stats().engines_lost == 0


async def test_an_op_ends_with_its_call(room: EngineRoom) -> None:
    ear = room.call(script("export default { fetch(request, env) { return env.ECHO.wait(9000); } };"))
    assert ear.call is not None
    await room.until(lambda: ear.call.scope and ear.call.scope.pending, "the op")
    (task,) = ear.call.scope.pending.values()
    ear.call.cancel()
    await room.until(lambda: not room.pool.busy, "DONE")
    assert task is not None
    await asyncio.wait((task,))
    assert task.cancelled() or task.done()
