"""Stubs over RPC: RpcTarget, functions, stubs of stubs, pipelining, in the shape of workerd's own tests."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio

from atoll.workers import Isolation, Limits
from tests.bindings.service.rpc_workers import API, ask
from tests.engine.conftest import open_room, snapshots
from tests.engine.engine_room import EngineRoom, script

__all__ = ["open_room", "snapshots"]

NO = 'The RPC receiver does not implement the method "%s".'
DISPOSED = ["Error", "RPC stub used after being disposed."]
NOT_SERIALIZABLE = 'Could not serialize object of type "%s". This type does not support serialization.'

CASES: list[tuple[str, object]] = [
    # results by reference
    ("const c = await env.API.counter(17); return [await c.add(2), await c.add(-10), await c.value];", [19, 9, 9]),
    ("const c = await env.API.counter(0); return Promise.all([c.add(6), c.add(4), c.add(3)]);", [6, 10, 13]),
    ("const o = await env.API.object(5); return [o.foo, await o.counter.add(7), await o.list[0].add(1), await o.list[1](), await o.map.get('f')()];",
     [128, 12, 2, "in a list", "in a map"]),
    ("const f = await env.API.func(); return [await f(3, 6), await f.extra, await f.sub.deep(1)];", [18, 123, 2]),
    ("return await env.API.functionProperty(19, 6);", 13),
    ("return [await env.API.objectProperty.func(6, 4), await env.API.objectProperty.deeper.deep(6, 3), await env.API.objectProperty.counter5.add(3), await env.API.objectProperty.text];",
     [24, 2, 8, "hello"]),
    ("const f = await env.API.objectProperty.func; return f(3, 7);", 21),
    ("const c = await env.API.objectProperty.counter5; return [await c.add(3), await c.add(7)];", [8, 15]),
    ("return [await env.API.promiseProperty, await env.API.promiseProperty.finally(() => {})];", [123, 123]),
    ("return [await fails(env.API.rejectingProperty), await env.API.rejectingProperty.catch((e) => e.message)];", [["Error", "REJECTED"], "REJECTED"]),
    ("return [await env.API.get(12), await env.API.put(5, 7), await env.API.delete(3)];", [13, 12, 2]),
    ("const c = await env.API.counter(1); return [await (await c.self()).add(1), await c.value, await c.fetch('x')];", [2, 2, "fetched x"]),
    # pipelining
    ("return [await env.API.counter(12).add(3), await env.API.later(12).add(3)];", [15, 15]),
    ("return [await env.API.object(5).foo, await env.API.object(5).counter.add(7), await env.API.later(1).child(2).child(3).value];", [128, 12, 6]),
    ("const f = env.API.func(); return [await f(3, 6), await f.extra, await f.sub.deep(4)];", [18, 123, 5]),
    ("const p = env.API.counter(1); const q = p.add(1); p[Symbol.dispose](); return [await q, await fails(() => p.add(1))];",
     [2, ["Error", "RPC promise used after being disposed."]]),
    ("const p = env.API.later(1); const got = await Promise.all([p.add(1), p.add(1), p.add(1)]); const c = await p; return [...got, await c.add(1), await p.add(1)];", [2, 3, 4, 5, 6]),
    ("env.API.counter(0).add(77); return until(async () => (await env.API.log()).includes(77));", True),
    ("return [await fails(env.API.put(1, 2).foo), await fails(env.API.put(1, 2).foo())];", [["TypeError", "Can't pipeline on RPC that did not return an object."]] * 2),
    ("let c = env.API.counter(0); for (let i = 0; i < 70; i++) c = c.child(1); return (await fails(c.value))[1];", "RPC calls and properties can be pipelined 64 levels deep at most."),
    ("let c = env.API.counter(0); for (let i = 0; i < 60; i++) c = c.child(1); return c.value;", 60),
    ("const o = { n: 1 }; const f = env.API.roundTrip(o); o.n = 2; return (await f).n;", 1),
    ("const o = { n: 1 }; const p = env.API.later(1).add(1); const f = env.API.callIt((x) => x.n, o); o.n = 2; await p; return f;", 1),
    # arguments by reference
    ("return [await env.API.add(new Mine(4), 5), await env.API.callIt((a, b) => a + b, 1, 2), await env.API.callTwice(async (x) => x * 10)];", [9, 3, [10, 20]]),
    ("return env.API.apply({ f: (x) => x + 1, deep: { g: async (x) => x * 2 }, plain: 'p' });", [3, 6, "p"]),
    ("const stub = new RpcStub(new Mine(4)); return [await env.API.add(stub, 5), await stub.add(7)];", [9, 16]),
    ("const c = await env.API.counter(10); return [await env.API.add(c, 5), await c.add(1)];", [15, 16]),
    ("const f = (x) => x + 1; const back = await env.API.passBack(f); return [typeof back, back === f, await back(1)];", ["function", False, 2]),
    ("return env.API.callIt((f) => f(5), (x) => x * 3);", 15),
    ("const stub = new RpcStub((f) => f(2)); return stub((x) => x + 40);", 42),
    ("const o = { f() { return this === undefined || this === globalThis ? 'none' : Object.keys(this); } }; return (await env.API.passBack(o)).f();", "none"),
    ("const f = () => ({ x: 123 }); f.foo = { x: 456 }; return [await env.API.rpcPromise(f), await env.API.rpcPromise(f).x, await env.API.property(f), await env.API.property(f).x, await env.API.remoteNested(f).value];",
     [{"x": 123}, 123, {"x": 456}, 456, {"x": 123}]),
    ("const f = () => ({ x: 1 }); f.foo = 1; return [await fails(env.API.nestedPromise(f)), await fails(env.API.nestedPromise(f).value.x), await fails(env.API.nestedProperty(f)), await fails(env.API.remoteNested(f).value.x)];",
     [["DataCloneError", NOT_SERIALIZABLE % "RpcPromise"]] * 2 + [["DataCloneError", NOT_SERIALIZABLE % "RpcProperty"], ["TypeError", NO % "value"]]),
    ("class P extends RpcTarget { hi() { return 'hi'; } } const p = new Proxy(new P(), {}); return env.API.callIt(async (x) => x.hi(), p);", "hi"),
    ("return [await env.API.useService(env.NAMED), await env.API.useService(env.NAMED)];", [['{"p":1}', [{"p": 1}, "named"]]] * 2),
    # the callback's exception is that of the caller
    ("return fails(env.API.throws(() => { throw new SyntaxError('mine'); }));", ["SyntaxError", "mine"]),
    ("return fails((await env.API.counter(1)).fails());", ["RangeError", "count failed"]),
    ("return fails(env.API.counter(1).fails().x.y());", ["RangeError", "count failed"]),
    # what is not there
    ("return [await fails(env.API.instanceMethod()), await fails(env.API.instanceObject.func(3)), await fails(env.API.instanceObject)];",
     [["TypeError", NO % "instanceMethod"], ["TypeError", NO % "instanceObject"], ["TypeError", NO % "instanceObject"]]),
    ("return [await fails(env.API.objectProperty.notRpc.foo()), await fails(env.API.objectProperty.notRpc.bar.baz()), await fails(env.API.objectProperty.bare.foo), await fails(env.API.objectProperty.env.API.get(1)), await fails(env.API.env), await fails(env.API.ctx())];",
     [["TypeError", NO % name] for name in ("notRpc", "notRpc", "bare", "env", "env", "ctx")]),
    ("return [await fails(env.API.objectProperty()), await fails(env.API.objectProperty.deeper()), await fails(env.API.objectProperty.deeper.none())];",
     [["TypeError", '"objectProperty" is not a function.'], ["TypeError", '"objectProperty.deeper" is not a function.'], ["TypeError", NO % "none"]]),
    ("const c = await env.API.counter(1); return [await fails(c.own), await fails(c.name), await fails(c.nothing()), await fails(c.value()), await fails(env.API.counter(1).own)];",
     [["TypeError", NO % "own"], ["TypeError", NO % "name"], ["TypeError", NO % "nothing"], ["TypeError", '"value" is not a function.'], ["TypeError", NO % "own"]]),
    ("return [await fails(env.API.connect()), await fails(env.API.alarm()), await fails(env.API.objectProperty.counter5.dup())];",
     [["TypeError", f"'{name}' is a reserved method and cannot be called over RPC."] for name in ("connect", "alarm", "dup")]),
    ("return [await fails(env.API.notRpc()), await fails(env.API.bare()), await fails(env.API.put(new (class Local {})())), await fails(env.API.put(Object.create(null)))];",
     [["DataCloneError", NOT_SERIALIZABLE % name] for name in ("NotRpc", "Object", "Local", "Object")]),
    # plain objects as entry points
    ("return [await env.HANDLERS.one(3), await env.HANDLERS.alone(4), await env.HANDLERS.nested.f(), await env.HANDLERS.text];", [["object", "function", 6], 4, "nested", "hello"]),
    ("return [(await fails(env.HANDLERS.two(1, 2)))[1].slice(0, 88), (await fails(env.HANDLERS.one()))[1].slice(0, 75), (await fails(env.HANDLERS.one(1, 2)))[1].slice(0, 75), await fails(env.HANDLERS.none(1))];",
     ['Cannot call handler function "two" over RPC because it has the wrong number of arguments', 'Attempted to call RPC function "one" with the wrong number of arguments. Wh',
      'Attempted to call RPC function "one" with the wrong number of arguments. Wh', ["TypeError", NO % "none"]]),
    # own exports
    ("return env.API.loop();", [[{}, "named"], [{"a": 1}, "named"], "{}", '{"b":2}', ["object", "function", 8], ["Named", "default", "handlers"]]),
    # the objects themselves
    ("const c = await env.API.counter(1); return [typeof c, c instanceof RpcStub, env.API.counter(1) instanceof RpcPromise, env.API.x instanceof RpcProperty, `${c}`, typeof c.then, Object.keys(c), JSON.stringify({ c })];",
     ["function", True, True, True, "[object RpcStub]", "undefined", [], "{}"]),
    ("return [await fails(() => new RpcStub(1)), await fails(() => new RpcStub(new Date())), await new RpcStub({ a: 1 }).a];",
     [["TypeError", "RpcStubs can only wrap plain objects, functions, and RpcTarget derivatives."]] * 2 + [1]),
    ("const c = await env.API.counter(1); return [await fails(() => structuredClone(c)), await fails(() => structuredClone({ a: [c] })), await fails(() => structuredClone(new Mine()))];",
     [["DataCloneError", "Remote RPC references can only be serialized for RPC."]] * 3),
    ("const r = await env.API.roundTrip({ a: 1 }); const has = typeof r[Symbol.dispose]; r[Symbol.dispose](); return [has, Object.keys(r), { ...r }];", ["function", ["a"], {"a": 1}]),
    ("return (await fails(env.API.big(33 << 20)))[1];", "Serialized RPC arguments or return values are limited to 32MiB, but the size of this value was: 34603023 bytes."),
]  # fmt: skip


@pytest_asyncio.fixture(params=["over Python", "inside the engine"])
async def room(open_room: Callable[..., Any], request: pytest.FixtureRequest) -> AsyncIterator[EngineRoom]:
    room = await open_room()
    room.stays_inside = request.param == "inside the engine"
    room.workers["api"] = script(API, name="api", limits=Limits(cpu_ms=5000))
    yield room


async def test_stubs_and_pipelining(room: EngineRoom) -> None:
    found = [(code, await ask(room, code)) for code, _ in CASES]
    assert [case for case, wanted in zip(found, CASES, strict=True) if case != wanted] == []


@pytest.mark.parametrize("isolation", [Isolation.PROCESS, Isolation.CONTEXT, Isolation.ISOLATE])
async def test_stubs_work_in_every_isolation(room: EngineRoom, isolation: Isolation) -> None:
    room.workers["api"] = script(API, name="api", limits=Limits(cpu_ms=5000), isolation=isolation)
    code = """const o = await env.API.object(5), counter = new Mine(3);
      return [await o.counter.add(1), await env.API.counter(1).child(2).value, await env.API.add(counter, 4),
        await env.API.read(await env.API.stream()), await env.API.callTwice((x) => x + 1)];"""
    assert await ask(room, code) == [6, 3, 7, "foo, bar, baz!", [2, 3]]


async def test_stubs_work_between_two_engines(open_room: Callable[..., Any]) -> None:
    room = await open_room(engines=2)
    room.workers["api"] = script(API, name="api", limits=Limits(cpu_ms=5000), isolation=Isolation.PROCESS)
    code = """const o = await env.API.object(5), f = async (x) => (await o.counter.add(x)) * 2;
      return [await env.API.callTwice(f), await o.counter.value];"""
    assert await ask(room, code) == [[12, 16], 8]
