"""Streams, bodies and errors in method calls between workers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio

from atoll.bindings.base import OpCall
from atoll.bindings.pipe.ops import ROOM, PipeBinding
from atoll.bindings.scope import CallScope
from atoll.bindings.service.target import ServiceTarget
from atoll.errors import InvalidArgument, NetworkError
from atoll.workers import Grant, Limits, Version
from tests.engine.conftest import open_room, snapshots
from tests.engine.engine_room import EngineRoom, script

__all__ = ["open_room", "snapshots"]

API = """
import { WorkerEntrypoint } from "cloudflare:workers";
let isReleased = false, canceled = "no";
const zeros = (count) => new ReadableStream({
  pull(c) { if (count-- > 0) c.enqueue(new Uint8Array(65536)); else c.close(); },
  cancel(reason) { canceled = `${reason}`; },
});
class Odd extends Error { get name() { return "Odd"; } }
export default class extends WorkerEntrypoint {
  async count(stream) { let sum = 0; for await (const chunk of stream) sum += chunk.length; return sum; }
  zeros(count) { return zeros(count); }
  two() { return { first: new Blob(["one"]).stream(), list: [new Response("two")] }; }
  async first(stream) { return (await stream.getReader().read()).value.length; }
  ignore() { return "ignored"; }
  async slow(stream) { await scheduler.wait(300); return "slow"; }
  slowly() {
    return new Response(new ReadableStream({ async start(c) {
      c.enqueue(new TextEncoder().encode("early")); while (!isReleased) await scheduler.wait(5); c.enqueue(new TextEncoder().encode(" late")); c.close();
    } }), { status: 203, headers: { "x-a": "1" } });
  }
  release() { isReleased = true; }
  canceled() { return canceled; }
  breaks() { return new ReadableStream({ pull(c) { c.enqueue(new Uint8Array(3)); c.error(Object.assign(new RangeError("broke"), { at: 7 })); } }); }
  spins() { return new ReadableStream({ async pull(c) { c.enqueue(new Uint8Array(3)); await scheduler.wait(50); for (;;); } }); }
  async echo(request) { return new Response(request.body, { headers: { "x-method": request.method } }); }
  rangeError() { throw Object.assign(new RangeError("far"), { code: 7, details: { list: [1] }, f() {} }); }
  withCause() { throw new TypeError("outer", { cause: new SyntaxError("inner") }); }
  odd() { throw Object.assign(new Odd("strange"), { kind: "x" }); }
  dom() { throw new DOMException("no", "NotFoundError"); }
  value() { throw { not: "an error" }; }
  later() { this.ctx.waitUntil(scheduler.wait(60_000)); return "at once"; }
}
"""


def caller(code: str) -> Version:
    source = f"""const describe = (e) => [e.constructor.name, e.name, e.message, {{ ...e }}, e.cause?.constructor.name, e.cause?.message];
      const left = (stream) => new Response(stream).bytes().then((bytes) => bytes.length);
      async function run(env, ctx) {{ {code} }}
      export default {{ async fetch(request, env, ctx) {{
        try {{ return Response.json(await run(env, ctx)); }} catch (error) {{ return Response.json(describe(error)); }}
      }} }};"""
    grants = {"API": Grant("API", "service", ServiceTarget("api").encode())}
    return script(source, name="caller", grants=grants, limits=Limits(cpu_ms=5000))


@pytest_asyncio.fixture(params=["over Python", "inside the engine"])
async def room(open_room: Callable[..., Any], request: pytest.FixtureRequest) -> AsyncIterator[EngineRoom]:
    room = await open_room()
    room.stays_inside = request.param == "inside the engine"
    room.workers["api"] = script(API, name="api", limits=Limits(cpu_ms=3000))
    yield room


SOURCE = """let pulled = 0, canceled = false;
  const source = new ReadableStream({ pull(c) { pulled++; c.enqueue(new Uint8Array(65536)); }, cancel() { canceled = true; } });"""


CASES = [
    ("return env.API.count(new Blob(['12345']).stream());", b"5"),
    ("return left(await env.API.zeros(3));", b"196608"),
    ("const { first, list } = await env.API.two(); return [await left(first), await list[0].text()];", b'[3,"two"]'),
    ("const r = await env.API.echo(new Request('http://x/', { method: 'PUT', body: 'x'.repeat(200_000) }));"
     "return [r.headers.get('x-method'), (await r.text()).length];", b'["PUT",200000]'),
    ("const r = await env.API.echo(new Request('http://x/')); return [r.body, await r.text()];", b'[null,""]'),
    (f"{SOURCE} const n = await env.API.first(source); await scheduler.wait(50); return [n > 0, canceled];", b"[true,true]"),
    (f"{SOURCE} const n = await env.API.ignore(source); await scheduler.wait(50); return [n, canceled];", b'["ignored",true]'),
    ("const s = await env.API.breaks(); const r = s.getReader(); await r.read(); await r.read();",
     b'["RangeError","RangeError","broke",{"remote":true,"at":7},null,null]'),
    ("return env.API.count(new ReadableStream({ pull(c) { c.error(new URIError('mine')); } }));",
     b'["URIError","URIError","mine",{"remote":true},null,null]'),
    ("const s = new Blob(['x']).stream(); s.getReader(); return env.API.count(s);", b"locked"),
    ("const r = new Response('x'); await r.text(); return env.API.echo(r);", b"whose body was used"),
    ("return env.API.count(new ReadableStream({ pull(c) { c.enqueue(7); } }));", b"This ReadableStream did not return bytes."),
    ("await env.API.rangeError();", b'["RangeError","RangeError","far",{"remote":true,"code":7,"details":{"list":[1]}},null,null]'),
    ("await env.API.withCause();", b'["TypeError","TypeError","outer",{"remote":true},"SyntaxError","inner"]'),
    ("await env.API.odd();", b'["Error","Odd","strange",{"remote":true,"kind":"x"},null,null]'),
    ("await env.API.dom();", b'["DOMException","NotFoundError","no",{"remote":true},null,null]'),
    ("await env.API.value();", b"not: 'an error'"),
]  # fmt: skip


async def test_streams_and_errors_arrive(room: EngineRoom) -> None:
    for code, expected in CASES:
        assert expected in (await room.get(caller(code))).body, code


async def test_data_larger_than_a_parcel_passes_in_both_directions(room: EngineRoom) -> None:
    """40 MB: a parcel holds 32."""
    code = """return [await env.API.count(await env.API.zeros(640)), await left((await env.API.echo(
      new Request("http://x/", { method: "POST", body: await env.API.zeros(200), duplex: "half" }))).body)];"""
    assert (await room.get(caller(code))).body == b"[41943040,13107200]"


async def test_a_body_is_available_before_its_end(room: EngineRoom) -> None:
    code = """const response = await env.API.slowly(); const reader = response.body.getReader();
      const early = new TextDecoder().decode((await reader.read()).value);
      await env.API.release();
      const late = new TextDecoder().decode((await reader.read()).value);
      return [response.status, response.headers.get("x-a"), early, late, (await reader.read()).done];"""
    assert (await room.get(caller(code))).body == b'[203,"1","early"," late",true]'


async def test_the_sender_waits_while_the_stream_is_not_read(room: EngineRoom) -> None:
    answer = await room.get(caller(f"{SOURCE} await env.API.slow(source); return pulled;"))
    assert int(answer.body) * 65536 < 2 * ROOM + 4 * 65536


async def test_an_unused_result_is_canceled(room: EngineRoom) -> None:
    code = """const stream = await env.API.zeros(1e9); const reader = stream.getReader(); await reader.read(); await reader.cancel();
      while ((await env.API.canceled()) === "no") await scheduler.wait(5);
      return env.API.canceled();"""
    assert b"does not read it any more" in (await room.get(caller(code))).body


async def test_a_callee_ends_with_its_caller(room: EngineRoom) -> None:
    await room.get(caller("const stream = await env.API.zeros(1e9); await stream.getReader().read(); return 1;"))
    await room.until(lambda: any(record.event == "rpc" for record in room.records), "the record of the callee")


async def test_a_callee_that_dies_breaks_its_stream(room: EngineRoom) -> None:
    room.workers["api"] = replace(room.workers["api"], limits=Limits(cpu_ms=50))
    code = "const reader = (await env.API.spins()).getReader(); await reader.read(); await reader.read();"
    assert b"Network connection lost" in (await room.get(caller(code))).body


async def test_wait_until_of_the_callee_does_not_delay_the_answer(room: EngineRoom) -> None:
    assert (await room.get(caller("return env.API.later();"))).body == b'"at once"'


# --- the pipe itself, whose users are hostile engines ---


def of_call(tenant: str) -> CallScope:
    return CallScope(replace(script("", name="x"), tenant=tenant))


async def test_only_the_tenant_of_the_writer_may_read() -> None:
    pipes = PipeBinding()
    grant = Grant("", "pipe")
    writer, reader, stranger = of_call("a"), of_call("a"), of_call("b")
    name = pipes.open(OpCall(grant, writer)).meta["pipe"]
    assert len(name) == 32
    await pipes.write(OpCall(grant, writer, {"pipe": name}, b"secret"))
    for scope, asked in ((stranger, name), (reader, "0" * 32), (reader, None), (reader, ["x"])):
        with pytest.raises(InvalidArgument):
            await pipes.read(OpCall(grant, scope, {"pipe": asked}))
    with pytest.raises(InvalidArgument):  # a reader may not write
        await pipes.write(OpCall(grant, reader, {"pipe": name}, b"x"))
    assert (await pipes.read(OpCall(grant, reader, {"pipe": name}))).body == b"secret"
    with pytest.raises(InvalidArgument):  # and each end has one user
        await pipes.read(OpCall(grant, of_call("a"), {"pipe": name}))


async def test_each_end_is_notified_when_the_other_ends() -> None:
    pipes = PipeBinding()
    grant = Grant("", "pipe")
    writer, reader = of_call("a"), of_call("a")
    name = pipes.open(OpCall(grant, writer)).meta["pipe"]
    waiting = asyncio.ensure_future(pipes.read(OpCall(grant, reader, {"pipe": name})))
    await asyncio.sleep(0)
    writer.close()
    with pytest.raises(NetworkError):
        await waiting
    writer = of_call("a")
    name = pipes.open(OpCall(grant, writer)).meta["pipe"]
    await pipes.write(OpCall(grant, writer, {"pipe": name}, b"x"))
    await pipes.read(OpCall(grant, reader, {"pipe": name}))
    full = asyncio.ensure_future(pipes.write(OpCall(grant, writer, {"pipe": name}, bytes(ROOM + 1))))
    await asyncio.sleep(0)
    assert not full.done()
    reader.close()
    assert (await full).meta == {"more": False}
    left = pipes.open(OpCall(grant, of := of_call("a"))).meta["pipe"]
    of.close()
    with pytest.raises(InvalidArgument):  # it is forgotten with the call that created it
        await pipes.read(OpCall(grant, of_call("a"), {"pipe": left}))
