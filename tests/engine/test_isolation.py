"""What the calls of one worker share in each isolation mode."""

from __future__ import annotations

import asyncio
import json

import pytest
from engine_room import HELLO, EngineRoom, script

from atoll.errors import LoadFailed
from atoll.workers import Isolation, Limits, Version

SHARES = {
    "a global": "globalThis.count = (globalThis.count ?? 0) + 1",
    "a variable of a module": "++inModule",
    "a prototype": "(Array.prototype.seen ??= { count: 0 }).count++ + 1",
    "a class of the platform": "(Response.seen ??= { count: 0 }).count++ + 1",
    "the object of handlers": "(this.seen ??= { count: 0 }).count++ + 1",
    "an object in env": "env.SHARED.count = (env.SHARED.count ?? 0) + 1",
    "a patched built-in": """(() => {
      const n = (JSON.parse.n ?? 0) + 1;
      JSON.parse = () => {};
      return JSON.parse.n = n;
    })()""",
    "the cache of a regular expression": "(() => { sticky.test('aaaaaa'); return sticky.lastIndex; })()",
    "listeners": """(() => {
      addEventListener("x", (event) => event.heard.count++);
      const event = Object.assign(new Event("x"), { heard: { count: 0 } });
      dispatchEvent(event);
      return event.heard.count;
    })()""",
}
SOURCE = """
let inModule = 0; const sticky = /a/y;
export default { fetch(request, env) {
  const results = {};
  %s
  return Response.json(results);
} };
"""
COUNTING = SOURCE % "\n".join(f"results[{json.dumps(name)}] = {code};" for name, code in SHARES.items())

# Leaves behind a timer, a pending promise, a finalizer and a waitUntil that ends after the response.
LEAVES = """
let answered = 0; let left = 0;
export default { async fetch(request, env, ctx) {
  answered++;
  if (request.url.endsWith("look")) {
    await new Promise(r => setTimeout(r, 60));
    return Response.json({ answered, left });
  }
  setTimeout(() => { left++; }, 20);
  new FinalizationRegistry(() => { left++; console.log("from another call"); }).register({});
  new Promise(() => {}).then(() => left++);
  ctx.waitUntil(new Promise(r => setTimeout(r, 5)));
  return new Response("ok");
} };
"""


def version(source: str, isolation: Isolation, **fields: object) -> Version:
    return script(source, isolation.value, isolation=isolation, env={"SHARED": {}}, **fields)


async def counts(room: EngineRoom, of: Version) -> dict[str, int]:
    ear = await room.get(of)
    assert not ear.code, ear.failure
    found: dict[str, int] = json.loads(ear.body)
    return found


async def test_calls_of_a_pooled_worker_share_everything(room: EngineRoom) -> None:
    pooled = version(COUNTING, Isolation.POOL)
    await room.get(pooled)
    assert await counts(room, pooled) == dict.fromkeys(SHARES, 2)


@pytest.mark.parametrize("isolation", [Isolation.CONTEXT, Isolation.ISOLATE])
async def test_calls_in_their_own_contexts_share_nothing(room: EngineRoom, isolation: Isolation) -> None:
    alone = version(COUNTING, isolation)
    for _ in range(5):
        assert await counts(room, alone) == dict.fromkeys(SHARES, 1)
    both = await asyncio.gather(*(counts(room, alone) for _ in range(8)))
    assert both == [dict.fromkeys(SHARES, 1)] * 8


@pytest.mark.parametrize("isolation", [Isolation.CONTEXT, Isolation.ISOLATE])
async def test_leftovers_of_a_call_never_run_in_another_call(room: EngineRoom, isolation: Isolation) -> None:
    alone = version(LEAVES, isolation)
    for _ in range(3):
        assert (await room.get(alone)).body == b"ok"
    [session] = room.supervisor._running
    session.link.ping(low_memory=True)  # collects garbage, so that finalizers are due
    assert json.loads((await room.get(alone, "http://test/look")).body) == {"answered": 1, "left": 0}
    assert not [line for record in room.records for line in record.logs]


async def test_calls_in_contexts_use_one_isolate_in_turn(room: EngineRoom) -> None:
    alone = version(HELLO, Isolation.CONTEXT)
    for _ in range(10):
        assert (await room.get(alone)).body == b"hello"
    assert room.pool.stats().loads == 1
    await asyncio.gather(*(room.get(alone) for _ in range(3)))
    assert 1 < room.pool.stats().loads <= 3


async def test_with_an_isolate_per_call_the_next_isolate_is_prepared(room: EngineRoom) -> None:
    alone = version(HELLO, Isolation.ISOLATE)
    await room.pool.loader.check(alone)
    for number in range(1, 6):
        assert (await room.get(alone)).body == b"hello"
        assert room.pool.stats().loads == number + 1
    await room.until(lambda: room.pool.stats().loaded == 1, "the used ones to go")
    room.pool.loader.retire(alone)
    await room.until(lambda: not room.pool.stats().loaded, "the last one to go")


@pytest.mark.parametrize("isolation", [Isolation.CONTEXT, Isolation.ISOLATE])
async def test_concurrent_calls_each_have_an_isolate(room: EngineRoom, isolation: Isolation) -> None:
    source = "export default { fetch: () => new Promise(r => setTimeout(() => r(new Response('slept')), 300)) };"
    ears = [room.call(version(source, isolation, limits=Limits(cpu_ms=500)))]
    alone = ears[0].call.version  # type: ignore[union-attr]
    ears += [room.call(alone) for _ in range(19)]
    assert {(await ear.over()).body for ear in ears} == {b"slept"}
    assert room.pool.stats().loads >= 20


@pytest.mark.parametrize("isolation", list(Isolation))
async def test_ending_a_call_does_not_end_others(room: EngineRoom, isolation: Isolation) -> None:
    source = """export default { async fetch(request) {
      if (request.url.endsWith("loop")) for (;;);
      await new Promise(r => setTimeout(r, 300));
      return new Response("fine");
    } };"""
    alone = version(source, isolation, limits=Limits(cpu_ms=50))
    await room.pool.loader.check(alone)
    calm = room.call(alone)
    loop = room.call(alone, "http://test/loop")
    assert (await loop.over()).code == "CPU"
    expected = "CPU" if isolation in (Isolation.POOL, Isolation.PROCESS) else ""
    assert (await calm.over()).code == expected
    assert (await room.get(alone)).body == b"fine"


async def test_top_level_code_runs_for_every_call_of_a_context_and_may_be_slow(room: EngineRoom) -> None:
    source = """await new Promise(r => setTimeout(r, 20));
    const began = performance.now();
    export default { fetch: () => new Response(String(began >= 0)) };"""
    alone = version(source, Isolation.CONTEXT)
    for _ in range(4):
        assert (await room.get(alone)).body == b"true"


async def test_service_worker_scripts_and_streams_in_contexts(room: EngineRoom) -> None:
    source = """let count = 0;
    addEventListener("fetch", (event) => {
      count++;
      const body = new ReadableStream({ async pull(controller) {
        await new Promise(r => setTimeout(r, 2));
        controller.enqueue(new TextEncoder().encode(`${count} `));
        if (++this.sent === 3) controller.close();
      }, sent: 0 });
      event.respondWith(new Response(body));
    });"""
    alone = version(source, Isolation.CONTEXT)
    assert [(await room.get(alone)).body for _ in range(3)] == [b"1 1 1 "] * 3


async def test_errors_in_contexts_are_reported_as_usual(room: EngineRoom) -> None:
    source = "export default { fetch: () => { throw new Error('broken'); } };"
    alone = version(source, Isolation.CONTEXT)
    assert [(await room.get(alone)).code for _ in range(3)] == ["EXCEPTION"] * 3
    with pytest.raises(LoadFailed):
        await room.pool.loader.check(version("throw new Error('never');", Isolation.CONTEXT))
