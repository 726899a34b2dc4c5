"""The two workers of the RPC tests: an API with stubs, and a caller that runs a piece of code."""

from __future__ import annotations

import json
from typing import Any

from atoll.bindings.service.target import ServiceTarget
from atoll.workers import Grant, Limits, Version
from tests.engine.engine_room import EngineRoom, script

API = """
import { WorkerEntrypoint, RpcTarget, RpcStub } from "cloudflare:workers";
let disposed = [], log = [], kept = null, held = null;
class Counter extends RpcTarget {
  own = "an instance's";
  #count;
  constructor(count = 0, name = "counter") { super(); this.#count = count; this.name = name; }
  async add(by) { log.push(by); return this.#count += by; }
  get value() { return this.#count; }
  child(by) { return new Counter(this.#count + by); }
  self() { return this; }
  dup2() { return 1; }
  fetch(x) { return `fetched ${x}`; }
  fails() { throw new RangeError("count failed"); }
  [Symbol.dispose]() { disposed.push(this.name); }
}
class NotRpc { foo() { return 1; } get bar() { return { baz() { return 2; } }; } }
export default class extends WorkerEntrypoint {
  constructor(ctx, env) { super(ctx, env); this.instanceMethod = () => "no"; this.instanceObject = { func: () => 1 }; }
  counter(count, name) { return new Counter(count, name); }
  async later(count) { await scheduler.wait(5); return new Counter(count); }
  object(i) { return { foo: 123 + i, counter: new Counter(i), list: [new Counter(1), () => "in a list"], map: new Map([["f", () => "in a map"]]) }; }
  func() { const f = (a, b) => a * b; f.extra = 123; f.sub = { deep: (x) => x + 1 }; return f; }
  get functionProperty() { return (a, b) => a - b; }
  get objectProperty() {
    return { func: (a, b) => a * b, deeper: { deep: (a, b) => a / b }, counter5: new Counter(5), notRpc: new NotRpc(),
      bare: Object.assign(Object.create(null), { foo: 1 }), text: "hello" };
  }
  get promiseProperty() { return scheduler.wait(1).then(() => 123); }
  get rejectingProperty() { return Promise.reject(new Error("REJECTED")); }
  notRpc() { return { obj: new NotRpc() }; }
  bare() { return Object.assign(Object.create(null), { foo: 1 }); }
  symbol() { return Symbol("x"); }
  async add(counter, by) { return counter.add(by); }
  async callIt(f, ...args) { return f(...args); }
  async callTwice(f) { return [await f(1), await f(2)]; }
  async apply(object) { return [await object.f(2), await object.deep.g(3), await object.plain]; }
  async passBack(stub) { return stub; }
  roundTrip(value) { return value; }
  keep(stub) { kept = stub.dup(); this.ctx.waitUntil(new Promise((done) => { held = done; })); return "kept"; }
  async keepWithout(stub) { kept = stub; return { call() { return stub(); } }; }
  leak(stub) { stub.dup(); return { noop() {} }; }
  async dispose(counter) {
    const count = await counter.add(5);
    const copy = counter.dup();
    return { count, counter, original: (n) => counter.add(n), copied: (n) => copy.add(n), [Symbol.dispose]() { copy[Symbol.dispose](); disposed.push("result"); } };
  }
  rpcPromise(f) { return f(); }
  nestedPromise(f) { return { value: f() }; }
  property(f) { return f.foo; }
  nestedProperty(f) { return { value: f.foo }; }
  remoteNested(f) { const result = () => {}; result.value = f(); return result; }
  async useService(service) { return [await (await service.fetch("http://x/p")).text(), await service.whoami()]; }
  async write(stream) {
    const writer = stream.getWriter();
    for (const text of ["foo, ", "bar, ", "baz!"]) await writer.write(new TextEncoder().encode(text));
    await writer.close();
    return "written";
  }
  async writeMuch(stream, chunks) {
    const writer = stream.getWriter();
    for (let i = 0; i < chunks; i++) await writer.write(new Uint8Array(65536));
    await writer.close();
  }
  async read(stream) { return new Response(stream).text(); }
  stream() { const { readable, writable } = new IdentityTransformStream(); this.ctx.waitUntil(this.write(writable)); return readable; }
  ofStub() { return { read: () => new Response("x".repeat(200_000)), take: async (stream) => (await new Response(stream).text()).length }; }
  async blob(blob) { return [blob instanceof Blob, blob.type, await blob.text(), blob]; }
  aborts(signal) { return new Promise((resolve) => signal.addEventListener("abort", () => resolve(`${signal.reason.name ?? signal.reason}`))); }
  isAborted(signal) { return [signal.aborted, `${signal.reason}`]; }
  throwOdd() { class Odd extends Error {} throw Object.assign(new Odd("odd"), { name: "Odd", code: 7, cause: new RangeError("inner") }); }
  throws(f) { return f(); }
  spinOf() { return { spin() { for (;;); } }; }
  whoami() { return [this.ctx.props, "default"]; }
  async loop() {
    const { exports } = this.ctx;
    return [await exports.Named.whoami(), await exports.Named({ props: { a: 1 } }).whoami(), await (await exports.Named.fetch("http://x/")).text(),
      await (await exports.Named({ props: { b: 2 } }).fetch("http://x/")).text(), await exports.handlers.one(4), Object.keys(exports)];
  }
  disposed() { return disposed; }
  log() { return log; }
  big(n) { return new Uint8Array(n); }
  async callKept() { try { return await kept(); } catch (e) { return e.message; } }
  get(a) { return a + 1; } put(a, b) { return a + b; } delete(a) { return a - 1; }
}
export class Named extends WorkerEntrypoint {
  whoami() { return [this.ctx.props, "named"]; }
  fetch() { return new Response(JSON.stringify(this.ctx.props)); }
}
export const handlers = {
  one(i, env, ctx) { return [typeof env, typeof ctx.waitUntil, i * 2]; },
  alone(i) { return i; },
  two(i, j, env, ctx) { return i * j; },
  nested: { f: () => "nested" },
  text: "hello",
};
"""
HELPERS = """
import { RpcTarget, RpcStub, RpcPromise, RpcProperty, WorkerEntrypoint } from "cloudflare:workers";
let disposals = [], saved = null;
class Mine extends RpcTarget {
  constructor(count = 0) { super(); this.count = count; }
  async add(by) { this.count += by; return this.count; }
  [Symbol.dispose]() { disposals.push(this.count); }
}
const fails = async (promise) => { try { await (promise instanceof Function ? promise() : promise); return "no error"; } catch (e) { return [e.name, e.message]; } };
const until = async (condition) => { for (let i = 0; i < 2000 && !(await condition()); i++) await scheduler.wait(2); return condition(); };
"""


def caller(code: str, **fields: Any) -> Version:
    """A worker that answers with the JSON of what `code` returns, or of [name, message] of what it throws."""
    source = f"""{HELPERS}
      export default {{ async fetch(request, env, ctx) {{
        const run = async () => {{ {code} }};
        try {{ const value = await run(); return Response.json(value === undefined ? "undefined" : value); }}
        catch (error) {{ return Response.json(["thrown", error.name, error.message]); }}
      }} }};"""
    targets = {"API": ServiceTarget("api"), "NAMED": ServiceTarget("api", "Named", {"p": 1})}
    targets |= {"HANDLERS": ServiceTarget("api", "handlers")}
    grants = {name: Grant(name, "service", target.encode()) for name, target in targets.items()}
    fields = {"limits": Limits(cpu_ms=5000), **fields}
    return script(source, name="caller", grants=grants, **fields)


async def ask(room: EngineRoom, code: str, **fields: Any) -> Any:
    ear = await room.get(caller(code, **fields))
    assert ear.failure is None, (code, ear.failure)
    return json.loads(ear.body)
