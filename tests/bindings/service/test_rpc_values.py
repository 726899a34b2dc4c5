"""Platform objects and exceptions over RPC, in both directions, in calls of bindings and of stubs."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio

from atoll.bindings.pipe.ops import ROOM
from atoll.workers import Limits
from tests.bindings.service.rpc_workers import API, ask
from tests.engine.conftest import open_room, snapshots
from tests.engine.engine_room import EngineRoom, script

__all__ = ["open_room", "snapshots"]

PAIR = "const { readable, writable } = new IdentityTransformStream();"
TEXT = "foo, bar, baz!"

CASES: list[tuple[str, object]] = [
    # streams
    (f"{PAIR} const p = env.API.write(writable); return [await new Response(readable).text(), await p];", [TEXT, "written"]),
    (f"{PAIR} const p = env.API.read(readable); const w = writable.getWriter(); for (const t of ['foo, ', 'bar, ', 'baz!']) await w.write(new TextEncoder().encode(t)); await w.close(); return p;", TEXT),
    ("return env.API.read(await env.API.stream());", TEXT),
    ("let text = ''; const w = new WritableStream({ write(c) { text += new TextDecoder().decode(c); } }); await env.API.write(w); await until(() => text.endsWith('!')); return text;", TEXT),
    (f"{PAIR} const r = await env.API.roundTrip(readable), w = (await env.API.roundTrip(writable)).getWriter(); const p = new Response(r).text(); await w.write(new TextEncoder().encode('round')); await w.close(); return p;", "round"),
    (f"{PAIR} writable.getWriter(); readable.getReader(); return [await fails(env.API.write(writable)), await fails(env.API.read(readable))];",
     [["TypeError", "The WritableStream has been locked to a writer."], ["TypeError", "The ReadableStream has been locked to a reader."]]),
    (f"{PAIR} const p = env.API.roundTrip(readable); return [readable.locked, typeof await p];", [True, "object"]),
    (f"{PAIR} env.API.write(writable).catch(() => 0); return writable.locked;", True),
    ("const w = new WritableStream({ write() { throw new RangeError('full'); } }); return (await fails(env.API.writeMuch(w, 100)))[0];", "Error"),
    (f"{PAIR} const w = await env.API.roundTrip(writable); await w.abort(new RangeError('given up')); return fails(new Response(readable).text());", ["RangeError", "given up"]),
    ("const s = await env.API.ofStub(); return [(await (await s.read()).text()).length, await s.take(new Blob(['x'.repeat(300_000)]).stream())];", [200_000, 300_000]),
    # the other platform objects
    ("const [is, type, text, back] = await env.API.blob(new Blob(['hello'], { type: 'text/x' })); return [is, type, text, back instanceof Blob, await back.text()];", [True, "text/x", "hello", True, "hello"]),
    ("const f = await env.API.roundTrip(new File(['x'], 'a.txt', { lastModified: 7 })); return [f instanceof File, f.name, f.lastModified];", [True, "a.txt", 7]),
    ("const h = new Headers([['foo', 'bar'], ['Set-Cookie', 'abc'], ['set-cookie', 'def']]); return [...await env.API.roundTrip(h)];", [["foo", "bar"], ["set-cookie", "abc"], ["set-cookie", "def"]]),
    ("const e = await env.API.roundTrip(new DOMException('no', 'NotFoundError')); return [e instanceof DOMException, e.name, e.message];", [True, "NotFoundError", "no"]),
    ("const e = await env.API.roundTrip(new RangeError('far')); return [e instanceof RangeError, e.message];", [True, "far"]),
    ("const c = new AbortController(); const p = env.API.aborts(c.signal); await scheduler.wait(5); c.abort(); return p;", "AbortError"),
    ("const c = new AbortController(); const p = env.API.aborts(c.signal); c.abort('because'); return p;", "because"),
    ("return env.API.isAborted(AbortSignal.abort('early'));", [True, "early"]),
    ("return env.API.isAborted(new AbortController().signal);", [False, "undefined"]),
    ("const r = await (await env.API.ofStub()).read(); return [r instanceof Response, r.status];", [True, 200]),
]  # fmt: skip


@pytest_asyncio.fixture(params=["over Python", "inside the engine"])
async def room(open_room: Callable[..., Any], request: pytest.FixtureRequest) -> AsyncIterator[EngineRoom]:
    room = await open_room()
    room.stays_inside = request.param == "inside the engine"
    room.workers["api"] = script(API, name="api", limits=Limits(cpu_ms=5000))
    yield room


async def test_platform_objects(room: EngineRoom) -> None:
    found = [(code, await ask(room, code)) for code, _ in CASES]
    assert [case for case, wanted in zip(found, CASES, strict=True) if case != wanted] == []


async def test_the_writer_of_a_remote_stream_waits_while_it_is_not_read(room: EngineRoom) -> None:
    code = """let size = 0, open; const gate = new Promise((resolve) => { open = resolve; });
      const w = new WritableStream({ async write(c) { await gate; size += c.length; } });
      let isOver = false; const p = env.API.writeMuch(w, 100).then(() => { isOver = true; });
      await env.API.log(); await scheduler.wait(50); const early = isOver; open(); await p; await until(() => size === 6553600); return [early, size];"""
    assert 2 * ROOM < 100 * 65536
    assert await ask(room, code) == [False, 6553600]


ERROR = """try { await env.API.throwOdd(); } catch (e) {
  return [e.constructor.name, e.name, e.message, e.code ?? null, e.cause?.message ?? null, e.remote, e.stack.includes("throwOdd")]; }"""


async def test_exceptions_keep_their_properties_from_2026_04_21_on(room: EngineRoom) -> None:
    assert await ask(room, ERROR) == ["Error", "Odd", "odd", 7, "inner", True, False]
    old = {"compatibility_date": "2026-04-20"}
    room.workers["api"] = script(API, name="api", **old)
    assert await ask(room, ERROR, **old) == ["Error", "Error", "Odd: odd", None, None, True, False]
    code = "return fails((await env.API.counter(1)).fails());"
    assert await ask(room, code, **old) == ["RangeError", "count failed"]


async def test_ctx_exports_needs_its_date(room: EngineRoom) -> None:
    code = "return [typeof ctx.exports, typeof (await import('cloudflare:workers')).exports];"
    assert await ask(room, code, compatibility_date="2025-11-16") == ["undefined", "object"]
    assert await ask(room, code, compatibility_date="2025-11-17") == ["object", "object"]
    code = "return (await fails(() => ctx.exports.default({ props: { f() {} } })))[0];"
    assert await ask(room, code) == "DataCloneError"
