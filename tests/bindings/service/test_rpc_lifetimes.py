"""How long stubs live, and what keeps a call open: disposal, dup(), the end of either side."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio

from atoll.workers import Isolation, Limits
from tests.bindings.service.rpc_workers import API, ask, caller
from tests.engine.conftest import open_room, snapshots
from tests.engine.engine_room import EngineRoom, script

__all__ = ["open_room", "snapshots"]

DISPOSED = ["Error", "RPC stub used after being disposed."]
OTHER_REQUEST = "Cannot perform I/O on behalf of a different request."

CASES: list[tuple[str, object]] = [
    # a result that is a stub, and one that has stubs
    ("const c = await env.API.counter(1, 'one'); await c.add(1); c[Symbol.dispose](); return [await fails(c.add(1)), await until(async () => (await env.API.disposed()).includes('one'))];", [DISPOSED, True]),
    ("const o = await env.API.object(5); await o.counter.add(7); o[Symbol.dispose](); return [await fails(o.counter.add(1)), await fails(o.list[1]())];", [DISPOSED, DISPOSED]),
    ("{ using c = await env.API.counter(1, 'used'); await c.add(1); } return until(async () => (await env.API.disposed()).includes('used'));", True),
    ("{ using p = env.API.counter(1, 'promised'); await p.add(1); } return until(async () => (await env.API.disposed()).includes('promised'));", True),
    ("const c = await env.API.counter(1, 'two'); const d = c.dup(); c[Symbol.dispose](); const n = await d.add(1); const early = (await env.API.disposed()).includes('two'); d[Symbol.dispose](); return [n, early, await until(async () => (await env.API.disposed()).includes('two'))];",
     [2, False, True]),
    ("const c = await env.API.counter(1, 'thrice'); c[Symbol.dispose](); c[Symbol.dispose](); await until(async () => (await env.API.disposed()).includes('thrice')); return (await env.API.disposed()).filter((name) => name === 'thrice').length;", 1),
    # parameters are disposed when the call returns, unless dup() keeps them
    ("const mine = new Mine(3); return [await env.API.add(mine, 5), await until(() => disposals.includes(8))];", [8, True]),
    ("const f = () => 1; const o = await env.API.keepWithout(f); return fails(o.call());", DISPOSED),
    ("const mine = new Mine(3); const o = await env.API.dispose(mine); const first = [o.count, await fails(o.original(1)), await o.copied(7), await o.counter.add(4)]; o[Symbol.dispose](); return [...first, await fails(o.copied(1)), await until(() => disposals.length > 0), await until(async () => (await env.API.disposed()).includes('result'))];",
     [8, DISPOSED, 15, 19, DISPOSED, True, True]),
    ("const mine = new Mine(3); const o = await env.API.leak(mine); await o.noop(); await scheduler.wait(10); const early = disposals.length; o[Symbol.dispose](); return [early, await until(() => disposals.length === 1)];", [0, True]),
    # local stubs
    ("const mine = new Mine(4); const stub = new RpcStub(mine); const n = await stub.add(5); stub[Symbol.dispose](); return [n, await fails(stub.add(2)), await until(() => disposals.length === 1)];", [9, DISPOSED, True]),
    ("const stub = new RpcStub(new Mine(1)); using copy = stub.dup(); stub[Symbol.dispose](); return [await copy.add(1), disposals.length];", [2, 0]),
]  # fmt: skip


@pytest_asyncio.fixture(params=["over Python", "inside the engine"])
async def room(open_room: Callable[..., Any], request: pytest.FixtureRequest) -> AsyncIterator[EngineRoom]:
    room = await open_room()
    room.stays_inside = request.param == "inside the engine"
    room.workers["api"] = script(API, name="api", limits=Limits(cpu_ms=5000))
    yield room


async def test_disposal(room: EngineRoom) -> None:
    found = [(code, await ask(room, code)) for code, _ in CASES]
    assert [case for case, wanted in zip(found, CASES, strict=True) if case != wanted] == []


async def test_older_compatibility_dates_move_the_stubs_in_arguments(room: EngineRoom) -> None:
    code = "const stub = new RpcStub(new Mine(4)); return [await env.API.add(stub, 5), await fails(stub.add(1))];"
    assert await ask(room, code, compatibility_date="2026-01-19") == [9, DISPOSED]
    assert await ask(room, code, compatibility_date="2026-01-20") == [9, "no error"]
    flags = {"compatibility_date": "2026-01-20", "compatibility_flags": ("rpc_params_transfer_stubs",)}
    assert await ask(room, code, **flags) == [9, DISPOSED]


async def test_a_stub_belongs_to_the_request_that_got_it(room: EngineRoom) -> None:
    code = """if (saved === null) { saved = [await env.API.counter(1), env.API.counter(1), env.API.object(1).counter]; await saved[1]; return "saved"; }
      return [await fails(saved[0].add(1)), await fails(saved[1].add(1)), await fails(saved[2].add(1)), await fails(env.API.roundTrip(saved[0]))]
        .map(([name, message]) => message.slice(0, 52));"""
    version = caller(code)
    assert (await room.get(version)).body == b'"saved"'
    assert json.loads((await room.get(version)).body) == [OTHER_REQUEST] * 4


async def test_a_callee_stays_open_while_its_stubs_are_held_and_ends_when_they_are_disposed(room: EngineRoom) -> None:
    def ended() -> int:
        return sum(record.head.startswith(b"RPC default.counter") for record in room.records)

    code = """const c = await env.API.counter(1); await c.add(1); const first = await request.text(); c[Symbol.dispose]();
      await until(async () => (await env.API.disposed()).includes('counter')); return first;"""
    ear = room.call(caller(code), open_body=True)
    await room.until(lambda: ear.call is not None and ear.call.isolate is not None, "the start of the caller")
    await room.get(caller("return env.API.log();"))
    assert ear.call is not None and ended() == 0
    ear.call.send_body(b"now", True)
    assert (await ear.over()).body == b'"now"'
    await room.until(lambda: ended() == 1, "the end of the callee")


async def test_a_callee_ends_with_its_callers_request(room: EngineRoom) -> None:
    assert await ask(room, "const c = await env.API.counter(1, 'left'); return c.add(1);") == 2
    await room.until(
        lambda: any(record.head.startswith(b"RPC default.counter") for record in room.records), "the end of the callee"
    )
    assert await ask(room, "return until(async () => (await env.API.disposed()).includes('left'));") is True


async def test_a_callback_that_outlives_the_callers_request_fails(room: EngineRoom) -> None:
    assert await ask(room, "return env.API.keep(() => 'alive');") == "kept"
    found = await ask(room, "return env.API.callKept();")
    assert "different request" in found or "lost" in found


async def test_a_callee_that_dies_breaks_its_stubs_and_frees_those_it_was_given(room: EngineRoom) -> None:
    room.workers["api"] = script(API, name="api", limits=Limits(cpu_ms=100))
    code = """const mine = new Mine(1); const o = await env.API.spinOf(), leaked = await env.API.leak(mine);
      const first = await fails(o.spin());
      return [first, await fails(o.spin()), await fails(leaked.noop()), await until(() => disposals.length === 1)];"""
    lost = ["Error", "Network connection lost."]
    assert await ask(room, code) == [lost, lost, lost, True]


async def test_a_killed_engine_breaks_its_stubs(room: EngineRoom) -> None:
    api = room.workers["api"] = script(API, name="api", isolation=Isolation.PROCESS)
    code = "const c = await env.API.counter(1); await c.add(41); for (;;) { const e = await fails(c.add(0)); if (e !== 'no error') return e; }"
    ear = room.call(caller(code, limits=Limits(cpu_ms=30_000, internal_subrequests=10_000_000)))
    started = "return until(async () => (await env.API.log()).includes(41));"
    assert await ask(room, started) is True
    session = room.session_of(api)
    assert session is not None
    session.link.close()
    assert b"Network connection lost." in (await ear.over()).body
