"""Service bindings: one worker calls another by fetch and by methods, and neither can harm the other."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Any

import pytest
import pytest_asyncio

from atoll.bindings.scope import CallScope
from atoll.bindings.service.target import ServiceTarget
from atoll.bindings.services import InnerRequest
from atoll.wire.generated import Event, Outcome
from atoll.workers import Grant, Limits, Version
from tests.engine.conftest import open_room, snapshots
from tests.engine.engine_room import EngineRoom, script

__all__ = ["open_room", "snapshots"]

API = """
import { WorkerEntrypoint } from "cloudflare:workers";
let calls = 0;
export default class extends WorkerEntrypoint {
  field = () => "no method";
  async fetch(request) {
    const { method, url, headers } = request;
    return new Response(`${method} ${url} ${headers.get("x-a")} ${await request.text()}`, { status: 201 });
  }
  add(a, b) { return a + b; }
  count() { return ++calls; }
  clone(value) { return value; }
  types(map, date, bytes) { return [map instanceof Map, date.getTime(), bytes.length]; }
  async respond(request) {
    const init = { status: 418, headers: { "x-b": "1" } };
    return new Response(`${request.method} ${await request.text()}`, init);
  }
  stream() {
    const chunks = ["str", "eam"].map((text) => new TextEncoder().encode(text));
    return ReadableStream.from(chunks);
  }
  fail() { throw new RangeError("out of range"); }
  failOddly() { throw Object.assign(new Error("odd"), { name: "OddError" }); }
  spin() { for (;;); }
  whoami() { return [this.env.NAME ?? null, this.ctx.props]; }
  give() { return () => 1; }
  later() { this.ctx.waitUntil(Promise.resolve().then(() => console.log("later"))); return "now"; }
}
export class Admin extends WorkerEntrypoint {
  fetch(request) { return new Response(`admin ${JSON.stringify(this.ctx.props)}`); }
  whoami() { return "admin"; }
}
export const plain = { fetch() { return new Response("plain"); } };
"""

API_TARGET = {"service": "api"}


def caller(code: str, name: str = "caller", **targets: Any) -> Version:
    grants = {key: Grant(key, "service", ServiceTarget(**fields).encode()) for key, fields in targets.items()}
    source = f"""export default {{ async fetch(request, env, ctx) {{
      const show = (value) => Response.json(value === undefined ? "undefined" : value);
      try {{ {code} }} catch (error) {{ return show([error.name, error.message]); }}
    }} }};"""
    return script(source, name=name, grants=grants, limits=Limits(cpu_ms=5000))


@pytest_asyncio.fixture(params=["over Python", "inside the engine"])
async def room(open_room: Callable[..., Any], request: pytest.FixtureRequest) -> AsyncIterator[EngineRoom]:
    room = await open_room()
    room.stays_inside = request.param == "inside the engine"
    room.workers["api"] = replace(script(API, name="api", limits=Limits(cpu_ms=300)), env={"NAME": "api"})
    yield room


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("return show(await env.API.add(2, 3));", "5"),
        ("return show(await env.API.add('a', 'b'));", '"ab"'),
        ("return show([await env.API.count(), await env.API.count()]);", "[1,2]"),
        ("return show(await env.API.clone({a: [1, null, {b: true}]}));", '{"a":[1,null,{"b":true}]}'),
        ("return show(await env.API.clone());", '"undefined"'),
        ("return show(await env.API.types(new Map(), new Date(7), new Uint8Array(3)));", "[true,7,3]"),
        ("return show((await env.API.clone(new Headers({a: '1'}))).get('a'));", '"1"'),
        ("return show(await new Response(await env.API.stream()).text());", '"stream"'),
        ("const r = await env.API.respond(new Request('http://x/', {method: 'PUT', body: 'in'}));"
         "return show([r.status, r.headers.get('x-b'), await r.text()]);", '[418,"1","PUT in"]'),
        ("return show(await env.API.whoami());", '["api",{}]'),
        ("return show(await env.ADMIN.whoami());", '"admin"'),
        ("return show(await env.API.later());", '"now"'),
        ("await env.API.fail();", '["RangeError","out of range"]'),
        ("await env.API.failOddly();", '["OddError","odd"]'),
        ("await env.API.nothing();", '["TypeError","The RPC receiver does not implement the method \\"nothing\\"."]'),
        ("await env.API.field();", '["TypeError","The RPC receiver does not implement the method \\"field\\"."]'),
        ("return show([`${env.API}`, env.API.hasOwnProperty('x'), env.API.valueOf() === env.API]);",
         '["[object Fetcher]",false,true]'),
        ("await env.PLAIN.fetched(1);", 'does not implement the method \\"fetched\\"'),
        ("await env.API.add(Symbol('s'));", "Symbol(s) could not be cloned."),
        ("await env.API.add(new FormData());", 'Could not serialize object of type \\"FormData\\"'),
        ("return show(await (await env.API.give())());", "1"),
        ("await env.NOBODY.add(1);", "the service `nobody` is not there"),
        ("await env.NOBODY.fetch('http://x/');", "the service `nobody` is not there"),
        ("await env.MISSING.whoami();", 'has no entrypoint \\"Missing\\"'),
        ("await env.API.spin();", "used 3"),
    ],
)  # fmt: skip
async def test_a_method_of_another_worker(room: EngineRoom, code: str, expected: str) -> None:
    version = caller(
        code,
        API={"service": "api"},
        ADMIN={"service": "api", "entrypoint": "Admin"},
        PLAIN={"service": "api", "entrypoint": "plain"},
        NOBODY={"service": "nobody"},
        MISSING={"service": "api", "entrypoint": "Missing"},
    )
    answer = await room.get(version)
    assert expected in answer.body.decode()


async def test_fetch_of_a_service_reaches_the_other_worker_and_no_network(room: EngineRoom) -> None:
    code = """const init = {method: 'POST', headers: {'x-a': '1'}, body: 'hi'};
      const r = await env.API.fetch('https://any.where/path?q', init);
      return new Response(`${r.status} ${await r.text()}`);"""
    answer = await room.get(caller(code, API={"service": "api"}))
    assert answer.body == b"201 POST https://any.where/path?q 1 hi"


async def test_fetch_of_an_entry_point_has_its_props(room: EngineRoom) -> None:
    code = "return env.ADMIN.fetch('http://x/');"
    answer = await room.get(caller(code, ADMIN={"service": "api", "entrypoint": "Admin", "props": {"role": "é"}}))
    assert answer.body.decode() == 'admin {"role":"é"}'


async def test_fetch_of_an_entry_point_that_is_an_object(room: EngineRoom) -> None:
    answer = await room.get(caller("return env.P.fetch('http://x/');", P={"service": "api", "entrypoint": "plain"}))
    assert answer.body == b"plain"


async def test_large_arguments_and_results_pass(room: EngineRoom) -> None:
    code = "const b = await env.API.clone(new Uint8Array(5_000_000).fill(7)); return show([b.length, b[4_999_999]]);"
    assert (await room.get(caller(code, API={"service": "api"}))).body == b"[5000000,7]"


async def test_workers_that_call_each_other_endlessly_are_stopped(room: EngineRoom) -> None:
    source = """import { WorkerEntrypoint } from "cloudflare:workers";
      export default class extends WorkerEntrypoint {
        again(n) { return this.env.SELF.again(n + 1).catch((error) => `${n} ${error.message}`); }
        async fetch() { return new Response(await this.again(1)); }
      }"""
    loop = script(source, name="loop", grants={"SELF": Grant("SELF", "service", ServiceTarget("loop").encode())})
    room.workers["loop"] = loop
    text = (await room.get(loop)).body.decode()
    assert text.startswith("17 ") and "looks like a loop" in text


async def test_subrequests_of_a_bound_worker_count_for_its_caller(room: EngineRoom) -> None:
    """Otherwise three workers with 50 subrequests each could make 125,000 of one request."""
    inner = """import { WorkerEntrypoint } from "cloudflare:workers";
      export default class extends WorkerEntrypoint {
        async many(n) { let made = 0; try { for (; made < n; made++) await this.env.API.add(1, 1); } catch (e) { return `${made} ${e.message}`; } return made; }
        async fetch() { return new Response(await this.many(5)); }
      }"""
    grants = {"API": Grant("API", "service", ServiceTarget("api").encode())}
    room.workers["middle"] = script(inner, name="middle", grants=grants, limits=Limits(internal_subrequests=50))
    code = "return show([await env.M.many(3), await (await env.M.fetch('http://x/')).text(), await env.M.many(9)]);"
    version = replace(
        caller(code, M={"service": "middle"}), limits=Limits(cpu_ms=5000, subrequests=1, internal_subrequests=13)
    )
    answer = (await room.get(version)).body.decode()
    assert answer.startswith(
        '[3,"5","2 Too many subrequests: one request may make 13 calls of bindings'
    )  # and three for the calls themselves


async def test_a_worker_of_another_tenant_is_not_found(room: EngineRoom) -> None:
    room.workers["api"] = replace(room.workers["api"], tenant="other")
    answer = await room.get(caller("await env.API.add(1);", API={"service": "api"}))
    assert "is not there" in answer.body.decode()


async def test_the_callee_has_its_own_record(room: EngineRoom) -> None:
    await room.get(caller("await env.API.fail();", API={"service": "api"}))
    await room.until(lambda: len(room.records) == 2, "both records")
    (record,) = [record for record in room.records if record.event == "rpc"]
    assert record.version.worker_name == "api" and record.outcome == Outcome.EXCEPTION and record.hops == 1
    assert record.head.startswith(b"RPC default.fail\n") and record.failure is not None


FORGED_STUB = b'[{"kind":"stub","home":7,"form":"none","size":0}]'


@pytest.mark.parametrize(
    "body",
    [
        b"\xff" * 8,
        bytes(64),
        bytes(5) + b"\xff\xff\xff\xff",
        bytes(5) + len(FORGED_STUB).to_bytes(4, "little") + FORGED_STUB,
    ],
    ids=["no value", "zeros", "a length beyond the end", "a stub that does not exist"],
)
async def test_forged_arguments_fail_only_the_call(room: EngineRoom, body: bytes) -> None:
    """A hostile engine could send anything as arguments: here the op gets garbage."""
    from atoll.errors import CalleeFailed

    head = b'RPC add\n{"entrypoint": null, "props": {}, "method": "add"}'
    api = room.workers["api"]
    with pytest.raises(CalleeFailed):
        await room.inner.method(InnerRequest(api, head, body, event=int(Event.RPC), within=CallScope(api))).value()
    assert (await room.get(caller("return show(await env.API.add(1, 1));", API={"service": "api"}))).body == b"2"


async def test_a_repeated_call_has_its_own_url_and_body(room: EngineRoom) -> None:
    code = """const all = [];
      for (const [path, body] of [["/", "a"], ["/b?c=%20", "bb"], ["/b?c=%20", ""], ["/", "a"]]) {
        all.push(await (await env.API.fetch("http://x" + path, { method: "POST", headers: { "x-a": "1" }, body })).text());
      }
      all.push(await (await env.API.fetch("http://y/", { headers: { "x-a": "2" } })).text());
      all.push(await (await env.ADMIN.fetch("http://y/", { headers: { "x-a": "2" } })).text());
      all.push(await (await env.ADMIN.fetch("http://y/", { headers: { "x-a": "2" } })).text());
      all.push(await (await env.PROPS.fetch("http://y/", { headers: { "x-a": "2" } })).text());
      return show(all);"""
    targets = {"API": {"service": "api"}, "ADMIN": {"service": "api", "entrypoint": "Admin", "props": {"a": 1}}}
    targets["PROPS"] = {"service": "api", "entrypoint": "Admin", "props": {"a": 2}}
    called = caller(code, **targets)
    for _ in range(2):
        assert json.loads((await room.get(called)).body) == [
            "POST http://x/ 1 a", "POST http://x/b?c=%20 1 bb", "POST http://x/b?c=%20 1 ", "POST http://x/ 1 a",
            "GET http://y/ 2 ", 'admin {"a":1}', 'admin {"a":1}', 'admin {"a":2}',
        ]  # fmt: skip


async def test_repeated_calls_go_to_the_active_version(room: EngineRoom) -> None:
    called = caller(
        "return show([await env.API.add(1, 2), (await env.API.fetch('http://x/')).status]);", API=API_TARGET
    )
    assert json.loads((await room.get(called)).body) == [3, 201]
    room.workers["api"] = script(
        API.replace("return a + b", "return a * b").replace("status: 201", "status: 202"), name="api"
    )
    assert json.loads((await room.get(called)).body) == [2, 202]
    del room.workers["api"]
    assert "the service `api` is not there" in json.loads((await room.get(called)).body)[1]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/throw", '["RangeError","of the callee"]'),
        ("/reject", '["OddError","odd"]'),
        ("/spin", "of CPU"),
        ("/hang", "had hung"),
        ("/nothing", '["TypeError",'),
    ],
)
@pytest.mark.parametrize("init", ["{}", "{ method: 'POST', body: new Blob(['streamed']).stream() }"])
async def test_an_error_of_a_bound_fetch_handler_is_thrown_in_the_caller(
    room: EngineRoom, path: str, expected: str, init: str
) -> None:
    source = """export default { async fetch(request) {
      const { pathname } = new URL(request.url);
      if (pathname === "/throw") throw new RangeError("of the callee");
      if (pathname === "/reject") return Promise.reject(Object.assign(new Error("odd"), { name: "OddError" }));
      if (pathname === "/spin") for (;;);
      if (pathname === "/hang") return new Promise(() => {});
    } };"""
    room.workers["bad"] = script(source, name="bad", limits=Limits(cpu_ms=100))
    answer = await room.get(caller(f"return await env.BAD.fetch('http://x{path}', {init});", BAD={"service": "bad"}))
    assert expected in answer.body.decode()


async def test_a_bound_worker_gets_its_callers_facts_about_the_client(room: EngineRoom) -> None:
    source = """export default { fetch(request) {
      const names = ["cf-connecting-ip", "x-forwarded-for", "cf-atoll-tls", "cf-worker"];
      return Response.json([request.cf.clientIp, ...names.map((name) => request.headers.get(name))]);
    } };"""
    room.workers["shows"] = script(source, name="shows")
    headers = "{'CF-Connecting-IP': '192.0.2.1', 'X-Forwarded-For': '192.0.2.1', 'CF-Atoll-TLS': 'TLSv1.3 x'}"
    code = f"""const first = await env.SHOWS.fetch('http://x/', {{ headers: {headers} }});
      await first.text();
      return env.SHOWS.fetch('http://x/', {{ headers: {headers} }});"""
    answer = await room.get(caller(code, SHOWS={"service": "shows"}))
    ip, *told, worker = json.loads(answer.body)
    assert (ip, told) == ("192.0.2.1", ["192.0.2.1", "192.0.2.1", None])
    assert worker.startswith("caller.")
