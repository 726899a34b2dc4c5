"""Calls that stay inside the engine. The other tests of service bindings run over both ways; these are about the way."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio

from atoll.bindings.service.target import ServiceTarget
from atoll.engine.limits import TenantCaps
from atoll.logs import Invocation
from atoll.wire.generated import Outcome
from atoll.workers import Grant, Isolation, Limits, Version
from tests.engine.conftest import open_room, snapshots
from tests.engine.engine_room import EngineRoom, script

__all__ = ["open_room", "snapshots"]

API = """
import { WorkerEntrypoint } from "cloudflare:workers";
let released = null;
export default class extends WorkerEntrypoint {
  async fetch(request) {
    return new Response(`${request.method} ${await request.text()}`, { status: 203, statusText: "Odd", headers: { "x-a": "b" } });
  }
  add(a, b) { return a + b; }
  bytes(n) { return new Uint8Array(n); }
  size(bytes) { return bytes.length; }
  spin() { for (;;); }
  fill() { const all = []; for (;;) all.push(new Array(100_000).fill(all.length)); }
  wait() { return new Promise((resolve) => { released = resolve; setTimeout(resolve, 20_000, "timer"); }); }
  release() { released?.("released"); return released !== null; }
  later() { this.ctx.waitUntil(scheduler.wait(20).then(() => console.log("later"))); return "now"; }
  says(text) { console.log(text); return text; }
  async op() { return (await this.env.ECHO.say("x")) !== undefined; }
}
export class Admin extends WorkerEntrypoint { whoami() { return this.ctx.props; } }
"""


def caller(code: str, name: str = "caller", **limits: Any) -> Version:
    targets = {"API": ServiceTarget("api"), "ADMIN": ServiceTarget("api", "Admin", {"role": "boss"})}
    grants = {key: Grant(key, "service", target.encode()) for key, target in targets.items()}
    source = f"""export default {{ async fetch(request, env, ctx) {{
      const fails = async (promise) => {{ try {{ return await promise; }} catch (error) {{ return `${{error.name}}: ${{error.message}}`; }} }};
      const run = async () => {{ {code} }};
      return Response.json((await run()) ?? "undefined");
    }} }};"""
    return script(source, name=name, grants=grants, limits=Limits(**{"cpu_ms": 5000, **limits}))


@pytest_asyncio.fixture
async def room(open_room: Callable[..., Any]) -> AsyncIterator[EngineRoom]:
    room = await open_room()
    room.stays_inside = True
    room.workers["api"] = script(API, name="api", limits=Limits(cpu_ms=300))
    yield room


async def ask(room: EngineRoom, code: str, **limits: Any) -> Any:
    ear = await room.get(caller(code, **limits))
    assert ear.failure is None, ear.failure
    return json.loads(ear.body)


def record_of(room: EngineRoom, name: str) -> Invocation:
    return next(record for record in room.records if record.version.worker_name == name)


async def over_python(room: EngineRoom, code: str) -> int:
    """The number of calls of the API that Python has sent, for this code."""
    before = room.pool.stats().calls
    await ask(room, code)
    return room.pool.stats().calls - before - 1


@pytest.mark.parametrize(
    ("code", "sent"),
    [
        ("for (let i = 0; i < 20; i++) await env.API.add(1, i);", 0),
        (
            "for (let i = 0; i < 20; i++) await (await env.API.fetch('http://x/', { method: 'POST', body: 'y' })).text();",
            0,
        ),
        ("return env.ADMIN.whoami();", 0),
        ("return env.API.size(new Uint8Array(300_000));", 1),  # large arguments
        ("return env.API.add(new ReadableStream({ type: 'bytes' }), 1).catch(() => 1);", 1),  # a stream
    ],
)
async def test_plain_calls_are_not_sent_by_python(room: EngineRoom, code: str, sent: int) -> None:
    assert await over_python(room, code) == sent


async def test_a_route_opens_with_the_first_call(room: EngineRoom) -> None:
    room.stays_inside = False
    await room.pool.loader.check(room.workers["api"])
    assert await over_python(room, "for (let i = 0; i < 20; i++) await env.API.add(1, i);") == 1


@pytest.mark.parametrize("why", ["quota", "caller", "callee"])
async def test_calls_that_python_must_look_at_are_not_inside(room: EngineRoom, why: str) -> None:
    room.stays_inside = False
    version = caller("for (let i = 0; i < 5; i++) await env.API.add(1, i);")
    if why == "quota":
        room.pool.set_caps("default", TenantCaps(calls_per_second=1000))
    elif why == "caller":
        version = replace(version, isolation=Isolation.CONTEXT)
    else:
        room.workers["api"] = replace(room.workers["api"], isolation=Isolation.ISOLATE)
    before = room.pool.stats().calls
    assert (await room.get(version)).failure is None
    assert room.pool.stats().calls - before == 6


async def test_a_quota_that_comes_later_closes_the_routes(room: EngineRoom) -> None:
    assert await over_python(room, "return env.API.add(1, 2);") == 0
    room.stays_inside = False
    room.pool.set_caps("default", TenantCaps(calls_per_second=1000))
    assert await over_python(room, "return env.API.add(1, 2);") == 1


async def test_the_record_of_a_call_is_the_same_over_both_ways(room: EngineRoom) -> None:
    records = []
    for stays_inside in (True, False):
        room.stays_inside = stays_inside
        if not stays_inside:
            room.pool.loader.moved("default", "api")
        room.records.clear()
        code = "await (await env.API.fetch('http://x/p', { method: 'POST', body: 'y', headers: { 'x-q': '1' } })).text(); await env.ADMIN.whoami(); await env.API.says('hi'); return env.API.later();"
        assert await ask(room, code) == "now"
        await room.until(lambda: len(room.records) == 5, "five records")
        told = [record for record in room.records if record.version.worker_name == "api"]
        fields = ("outcome", "status", "head", "event", "entrypoint", "hops")
        records.append(
            sorted(
                [*(str(getattr(each, field)) for field in fields), *(line.text for line in each.logs)] for each in told
            )
        )
        assert record_of(room, "caller").ops == {"fetch.start": 1, "service.call": 3}
    assert records[0] == records[1]


async def test_a_response_keeps_its_status_reason_and_headers(room: EngineRoom) -> None:
    code = "const r = await env.API.fetch('http://x/'); return [r.status, r.statusText, r.headers.get('x-a'), await r.text()];"
    assert await ask(room, code) == [203, "Odd", "b", "GET "]


async def test_a_deploy_in_the_middle_of_a_call_ends_neither_call(room: EngineRoom) -> None:
    old = room.workers["api"]
    waiting = caller("return env.API.wait();", name="waiting")
    await room.connect(waiting)
    ear = room.call(waiting)
    await room.until(lambda: room.isolate(old).inner == 1, "the call inside the engine")
    room.workers["api"] = script(API.replace("a + b", "a * b"), name="api")
    assert await ask(room, "return env.API.add(3, 4);") == 12
    room.pool.loader.unload(room.isolate(old))  # at once, as if Python knew of no call
    assert json.loads((await ear.over()).body) == "timer" or ear.failure is None
    room.records.clear()


async def test_a_call_ends_with_its_caller(room: EngineRoom) -> None:
    version = caller("return env.API.wait();")
    await room.connect(version)
    ear = room.call(version)
    await room.until(lambda: room.isolate(room.workers["api"]).inner == 1, "the call inside the engine")
    assert ear.call is not None
    ear.call.cancel()
    await room.until(lambda: len(room.records) == 2, "the ends of both calls")
    assert record_of(room, "api").outcome == Outcome.CANCELED
    assert room.isolate(room.workers["api"]).in_flight == room.isolate(room.workers["api"]).inner == 0


@pytest.mark.parametrize(("method", "outcome"), [("spin", Outcome.EXCEEDED_CPU), ("fill", Outcome.EXCEEDED_MEMORY)])
async def test_attack_a_callee_that_exceeds_a_limit_ends_alone(room: EngineRoom, method: str, outcome: Outcome) -> None:
    room.workers["api"] = script(API, name="api", limits=Limits(cpu_ms=300 if method == "spin" else 5000, memory_mb=64))
    told = await ask(room, f"return fails(env.API.{method}());")
    assert told.startswith("TypeError: "), told
    assert record_of(room, "api").outcome == outcome
    assert await ask(room, "return env.API.add(1, 2);") == 3


async def test_attack_many_calls_at_once_are_bounded(room: EngineRoom) -> None:
    code = """const all = await Promise.allSettled(Array.from({ length: 10_000 }, (_, i) => env.API.add(1, i)));
      return [all.length, all.filter((each) => each.status === "fulfilled").length > 500];"""
    assert await ask(room, code, internal_subrequests=20_000) == [10_000, True]
    api = room.isolate(room.workers["api"])
    await room.until(lambda: api.in_flight == api.inner == 0, "the end of all calls")


async def test_attack_the_budget_of_subrequests_holds_at_once(room: EngineRoom) -> None:
    code = "const all = await Promise.allSettled(Array.from({ length: 100 }, () => env.API.add(1, 1))); return all.filter((each) => each.status === 'fulfilled').length;"
    assert await ask(room, code, internal_subrequests=40) == 40


async def test_a_callee_moves_to_the_engine_of_its_caller(open_room: Callable[..., Any]) -> None:
    room = await open_room(engines=2)
    api = room.workers["api"] = script(API, name="api")
    calls = caller("for (let i = 0; i < 40; i++) await env.API.add(1, i);")
    await room.pool.loader.check(api)
    first = room.isolate(api).session
    other = next(session for session in room.pool.loader.groups.sessions() if session is not first)
    await room.until(lambda: calls.has_code, "the code")
    room.pool.loader.load(calls, room.pool.loader.group_of(calls), other)
    await room.get(calls)
    await room.until(lambda: len(room.pool.loader.versions[api].isolates) == 2, "a second isolate")
    await room.until(lambda: all(each.ready for each in room.pool.loader.versions[api].isolates), "its start")
    before = room.pool.stats().calls
    await room.get(calls)
    assert room.pool.stats().calls - before <= 3
