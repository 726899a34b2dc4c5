"""Calls of objects that stay inside the engine: the way, the gates, the ends of objects, and engines that lie about it."""

from __future__ import annotations

import asyncio
import json
import struct
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest

from atoll.bindings.durable_object.ops import DurableObjects
from atoll.engine.calls import doors as doors_module
from atoll.engine.calls.doors import OPEN, Doors, HasDoor
from atoll.engine.objects import runtime as runtime_module
from atoll.engine.objects.live_object import LiveObject
from atoll.errors import EngineError, StorageFailed
from atoll.wire.generated import INNER_CALLS
from atoll.workers import Grant, Limits, Switches, Version
from tests.engine.conftest import open_room, snapshots
from tests.engine.engine_room import Ear, EngineRoom, script
from tests.objects.slow_disk import SlowDisk

__all__ = ["open_room", "snapshots"]

SOURCE = """
import { DurableObject } from "cloudflare:workers";
export class Counter extends DurableObject {
  memory = 0;
  fetch(request) { return new Response(`${request.method} ${new URL(request.url).pathname} ${++this.memory}`, { headers: { "x-a": "b" } }); }
  add(n) { return (this.memory += n); }
  read() { return [this.ctx.storage.kv.get("n") ?? 0, this.memory]; }
  write() { const n = (this.ctx.storage.kv.get("n") ?? 0) + 1; this.ctx.storage.kv.put("n", n); return n; }
  says(text) { console.log(text); return text; }
  fails() { throw new RangeError("not here"); }
  spin() { for (;;); }
  wait() { return new Promise((resolve) => { this.release = resolve; setTimeout(() => {}, 20_000); }); }
  abort() { this.ctx.abort("enough"); }
  block() { this.ctx.blockConcurrencyWhile(() => scheduler.wait(50).then(() => { this.memory = 100; })); return this.memory; }
  async visit(other, method) { this.write(); return this.env.COUNTER.getByName(other)[method](); }
  async relay(other) { return this.env.COUNTER.getByName(other).add(1); }
  async deep(n) { return n === 0 ? "end" : this.env.COUNTER.getByName(`deep ${n}`).deep(n - 1); }
}
const AsyncFunction = Object.getPrototypeOf(async () => {}).constructor;
export default { async fetch(request, env) {
  const fails = async (promise) => { try { return await promise; } catch (error) { return [error.message, error.retryable ?? false, error.durableObjectReset ?? false, error.overloaded ?? false]; } };
  const run = new AsyncFunction("env", "one", "fails", await request.text());
  return Response.json((await run(env, env.COUNTER.getByName("one"), fails)) ?? null);
} };
"""


@dataclass
class Place:
    room: EngineRoom
    version: Version
    caller: Version

    def begin(self, code: str) -> Ear:
        return self.room.call(self.caller, body=code.encode())

    async def ask(self, code: str) -> Any:
        ear = await self.begin(code).over()
        assert ear.failure is None, ear.failure
        return json.loads(ear.body)

    async def open(self, name: str = "one") -> None:
        """Call it until its door is open."""
        await self.ask(f"const o = env.COUNTER.getByName({name!r}); for (let i = 0; i < 3; i++) await o.read();")
        assert self.live(name).door == OPEN

    def live(self, name: str = "one") -> LiveObject:
        found = [live for live in self.room.objects.runtime.live.values() if live.name == name]
        return found[0]

    async def sent(self, code: str) -> int:
        """The number of calls that Python has sent to objects, for this code."""
        before = self.room.pool.stats().calls
        await self.ask(code)
        return self.room.pool.stats().calls - before - 1

    def turn_off(self) -> None:
        for session in self.room.pool.loader.groups.sessions():
            session.inside.is_off = True


async def make_place(room: EngineRoom, is_apart: bool = False, **limits: Any) -> Place:
    binding = room.bindings["durable_object"]
    assert isinstance(binding, DurableObjects)
    grant = Grant("COUNTER", "durable_object", '{"class_name":"Counter"}')
    found = script(SOURCE, name="objects", grants={"COUNTER": grant}, limits=Limits(**{"cpu_ms": 3000, **limits}))
    version = replace(found, switches=Switches(allow_eval=True))
    await binding.namespaces.create("default", "objects", "Counter", True, "v1")
    room.workers["objects"] = version
    if not is_apart:
        return Place(room, version, version)
    far = Grant("COUNTER", "durable_object", '{"class_name":"Counter","script_name":"objects"}')
    return Place(
        room, version, replace(version, id="caller", worker_id="caller", worker_name="caller", grants={"COUNTER": far})
    )


@pytest.fixture(params=[False, True], ids=["own objects", "objects of another worker"])
async def place(request: pytest.FixtureRequest, open_room: Callable[..., Any]) -> Place:
    return await make_place(await open_room(), request.param)


@pytest.fixture
async def apart(open_room: Callable[..., Any]) -> Place:
    return await make_place(await open_room(), is_apart=True)


# --- the way ---


@pytest.mark.parametrize(
    ("code", "sent"),
    [
        ("for (let i = 0; i < 20; i++) await one.add(1);", 0),
        ("for (let i = 0; i < 20; i++) await (await one.fetch('http://x/', { method: 'POST', body: 'y' })).text();", 0),
        ("await one.add(new ReadableStream({ type: 'bytes' })).catch(() => 1);", 1),  # a stream
        ("await one.fetch('http://x/', { method: 'POST', body: new ReadableStream({ start(c) { c.close(); } }) });", 1),
    ],
)
async def test_plain_calls_of_an_object_are_not_sent_by_python(place: Place, code: str, sent: int) -> None:
    await place.open()
    assert await place.sent(code) == sent


async def test_both_ways_give_the_same_answers_and_records(place: Place) -> None:
    code = """const found = [await one.add(2), await one.says("hi"), await fails(one.fails()), await one.block(), await one.read()];
      const response = await one.fetch("http://x/path", { method: "PUT", body: "b", headers: { "x-q": "1" } });
      return [...found, response.headers.get("x-a"), await response.text(), await one.write(), await one.relay("two")];"""
    told = []
    for _ in range(2):
        await place.ask(
            "for (const name of ['one', 'two']) { const o = env.COUNTER.getByName(name); await o.read(); await o.read(); }"
        )
        place.room.records.clear()
        answer = await place.ask(code)
        await place.room.until(lambda: len(place.room.records) == 10, "ten records")
        fields = ("outcome", "status", "head", "event", "entrypoint", "hops")
        records = [
            [*(str(getattr(each, field)) for field in fields), *(line.text for line in each.logs)]
            for each in place.room.records
        ]
        told.append((answer, sorted(records), max((each.ops for each in place.room.records), key=len)))
        place.turn_off()
        for key in list(place.room.objects.runtime.live):
            await place.room.objects.runtime.delete(key)
        for record in told[-1][1]:
            record[2] = record[2].split('"slot"')[0]
    assert told[0] == told[1]


@pytest.mark.parametrize("is_off", [False, True], ids=["inside", "over Python"])
async def test_a_chain_of_objects_ends_at_its_limit(place: Place, is_off: bool) -> None:
    if is_off:
        place.turn_off()
    await place.ask("for (let i = 0; i < 3; i++) await one.deep(5);")
    assert await place.ask("return await one.deep(13)") == "end"
    message, *_ = await place.ask("return await fails(one.deep(30))")
    assert "chain" in message


@pytest.mark.parametrize("is_off", [False, True], ids=["inside", "over Python"])
async def test_calls_of_objects_count_as_subrequests(open_room: Callable[..., Any], is_off: bool) -> None:
    place = await make_place(await open_room(), is_apart=True, internal_subrequests=20)
    if is_off:
        place.turn_off()
    code = "let n = 0; try { for (; n < 50; n++) await one.add(1); } catch {} return n;"
    assert await place.ask(code) == 20


async def test_too_many_calls_of_an_object_are_refused_in_the_known_words(apart: Place) -> None:
    await apart.open()
    waits = "await Promise.all(Array.from({ length: 50 }, () => fails(one.wait())));"
    busy = [apart.begin(waits) for _ in range(20)]
    await apart.room.until(lambda: apart.live().look() == 1000, "a thousand calls")
    assert apart.live().door != OPEN  # Python counts them all
    texts = await apart.ask(
        "return (await Promise.all(Array.from({ length: 30 }, () => fails(one.read())))).map(([text]) => text);"
    )
    apart.room.objects.runtime.reset(apart.live().key, "a test")
    for each in busy:
        await each.over()
    assert len(texts) == 30
    assert set(texts) == {"Durable Object is overloaded. Too many requests queued."}


async def test_objects_open_near_their_callers(open_room: Callable[..., Any]) -> None:
    place = await make_place(await open_room(engines=2), is_apart=True)
    loader = place.room.pool.loader
    await loader.check(place.caller)
    group = loader.group_of(place.version)
    for session in group.open_sessions():
        loader.load(place.version, group, session)
    await place.room.until(
        lambda: all(each.ready for each in loader.versions[place.version].isolates), "both are loaded"
    )
    assert len({each.session for each in loader.versions[place.version].isolates}) == 2
    await place.ask("await Promise.all(Array.from({ length: 8 }, (_, i) => env.COUNTER.getByName(`o${i}`).add(1)));")
    homes = {live.isolate.session for live in place.room.objects.runtime.live.values() if live.isolate is not None}
    assert homes == {place.room.isolate(place.caller).session}


# --- the gates ---


async def test_a_result_waits_until_its_write_is_durable(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    await place.open()
    disk = SlowDisk(place.room, monkeypatch)
    written = place.begin("return await one.write();")
    await place.room.until(lambda: disk.waiting, "a commit")
    read = place.begin("return await one.read();")
    await place.room.until(lambda: len(place.live()._held) >= 2, "both results have come")
    assert not written.status and not read.status
    disk.finish()
    assert json.loads((await written.over()).body) == 1
    assert json.loads((await read.over()).body) == [1, 0]
    assert await place.sent("return await one.read();") == 0


async def test_an_object_with_an_unfinished_write_calls_no_other(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    await place.open()
    await place.open("two")
    await place.ask("await one.relay('two');")
    assert await place.ask(
        "for (let i = 0; i < 3; i++) await one.relay('two'); return await env.COUNTER.getByName('two').read();"
    ) == [0, 4]
    disk = SlowDisk(place.room, monkeypatch)
    visit = place.begin("return await one.visit('two', 'write');")
    await place.room.until(lambda: disk.waiting, "a commit")
    await place.room.until(lambda: place.live()._held, "the call that waits")
    assert not place.live("two").look()
    disk.finish()
    await place.room.until(lambda: disk.waiting, "the commit of the other")
    assert place.live("two").sequence == 1
    disk.finish()
    assert json.loads((await visit.over()).body) == 1


async def test_a_write_that_cannot_be_stored_fails_its_callers(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    await place.open()
    with monkeypatch.context() as patched:
        disk = SlowDisk(place.room, patched)
        asked = place.begin("return Promise.all([fails(one.write()), fails(one.wait())]);")
        await place.room.until(lambda: disk.waiting and len(place.live().calls) >= 2, "a commit")
        disk.finish(StorageFailed("the disk is full"))
        told = json.loads((await asked.over()).body)
    text = "Durable Object was reset because what it wrote could not be stored."
    assert told == [[text, False, True, False]] * 2
    assert await place.ask("return await env.COUNTER.getByName('one').add(1);") == 1


# --- ends ---


async def test_an_idle_object_leaves_and_comes_back(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    await place.open()
    assert await place.ask("await one.add(5); return await one.write();") == 1
    monkeypatch.setattr(runtime_module, "IDLE_SECONDS", 0.1)
    await place.room.until(lambda: not place.room.objects.runtime.count(), "it left")
    assert not place.room.isolate(place.version).session.inside._routes
    assert await place.ask("return await one.read();") == [1, 0]


async def test_calls_of_an_object_that_is_reset_fail_and_the_next_ones_find_a_new_copy(place: Place) -> None:
    await place.open()
    await place.ask("await one.add(5);")
    asked = place.begin("return Promise.all([fails(one.wait()), fails(one.wait())]);")
    await place.room.until(lambda: place.live().look() == 2, "both are announced")
    place.room.objects.runtime.reset(place.live().key, "a test")
    assert json.loads((await asked.over()).body) == [["a test", False, True, False]] * 2
    assert await place.ask("return await one.read();") == [0, 0]


async def test_an_object_that_aborts_fails_its_calls(place: Place) -> None:
    await place.open()
    asked = await place.ask(
        "const waits = fails(one.wait()); await one.add(1); return [(await fails(one.abort()))[0], (await waits)[0]];"
    )
    assert asked == ["enough", "enough"]
    assert await place.ask("return await one.read();") == [0, 0]


async def test_code_that_computes_too_long_resets_its_object(open_room: Callable[..., Any]) -> None:
    place = await make_place(await open_room(), is_apart=True, cpu_ms=100)
    await place.open()
    assert await place.ask("return await fails(one.spin());") == [
        "Durable Object exceeded its CPU time limit and was reset.", False, True, False,
    ]  # fmt: skip
    assert await place.ask("return await one.add(1);") == 1


async def test_a_deploy_resets_the_objects_that_are_called_inside(apart: Place) -> None:
    await apart.open()
    waits = apart.begin("return await fails(one.wait());")
    await apart.room.until(lambda: apart.live().look(), "it is announced")
    new = script(SOURCE.replace("memory = 0;", "memory = 1000;"), name="objects", grants=apart.version.grants)
    new = replace(new, worker_id=apart.version.worker_id, switches=apart.version.switches)
    apart.room.workers["objects"] = new
    apart.room.objects.runtime.update(new)
    text = "Durable Object reset because its code was updated."
    assert json.loads((await waits.over()).body) == [text, False, True, False]
    assert await apart.ask("return await one.read();") == [0, 1000]


async def test_an_engine_that_is_killed_loses_no_acknowledged_write(apart: Place) -> None:
    await apart.open()
    counted = await apart.ask("let n = 0; for (let i = 0; i < 20; i++) n = await one.write(); return n;")
    assert counted == 20
    waits = apart.begin("return await one.wait();")
    await apart.room.until(lambda: apart.live().look(), "it is announced")
    apart.room.kill_engine()
    assert (await waits.over()).failure is not None
    assert await apart.ask("return await one.read();") == [20, 0]


async def test_no_copy_opens_before_the_door_of_the_last_one_is_shut(
    apart: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    await apart.open()
    shut: list[HasDoor] = []
    runtime = apart.room.objects.runtime
    real = Doors._is_shut
    with monkeypatch.context() as patched:
        patched.setattr(Doors, "_is_shut", lambda self, holder: shut.append(holder))
        runtime.reset(apart.live().key, "a test")
        await apart.room.until(lambda: shut, "the answer of the engine")
        opened = runtime.opened
        read = apart.begin("return await one.read();")
        await apart.room.until(lambda: runtime.live, "the call waits")
        await asyncio.sleep(0.05)
        assert runtime.opened == opened and not read.status
    real(apart.room.isolate(apart.version).session.inside.doors, shut[0])
    assert json.loads((await read.over()).body) == [0, 0]


# --- lies ---


def inner(route: int, worker: int, caller: int, call: int) -> bytes:
    return struct.pack("<IIIIHHIIHBBI", route, caller, call, 1, 0, 200, 1, 1, 1, 0, 3, 2) + b"{}RPC Counter.add\n{}"


async def test_an_engine_that_does_not_shut_a_door_is_ended(apart: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    await apart.open()
    await apart.ask("await one.write();")
    (pid,) = apart.room.supervisor.pids
    monkeypatch.setattr(doors_module, "SHUT_SECONDS", 0.2)
    monkeypatch.setattr(Doors, "on_shut", lambda *_: None)
    session = apart.room.isolate(apart.version).session
    session.link.use({**session.handlers()}, session.on_long_op)  # with the patched one: the answer is not heard
    apart.room.objects.runtime.reset(apart.live().key, "a test")
    await apart.room.until(lambda: pid not in apart.room.supervisor.pids, "the end of the engine")
    assert await apart.ask("return await one.read();") == [1, 0]


async def test_a_lying_engine_cannot_announce_calls_through_a_shut_door(apart: Place) -> None:
    await apart.open()
    live = apart.live()
    session = apart.room.isolate(apart.version).session
    (route,) = live.routes
    busy = apart.begin("return await fails(one.wait());")
    await apart.room.until(live.look, "it is announced")
    made = next(call for call in session.calls.calls.values() if call.worker == route.caller.load_id)  # type: ignore[attr-defined]
    where = route.number, live.isolate.load_id, made.worker, made.id  # type: ignore[attr-defined, union-attr]
    lie = inner(*where)
    for worker in (0, live.isolate.load_id + 7, made.worker):  # type: ignore[union-attr]
        with pytest.raises(EngineError, match="which cannot be"):  # an object of another worker, or tenant
            session.inside.on_inner(0, worker, INNER_CALLS + 77, lie, 0, len(lie))
    apart.room.objects.runtime.reset(live.key, "a test")
    await busy.over()
    await apart.room.until(lambda: not live.routes, "its door is shut")
    with pytest.raises(EngineError, match="which cannot be"):
        session.inside.on_inner(0, where[1], INNER_CALLS + 77, lie, 0, len(lie))


async def test_calls_of_another_tenant_get_no_route(apart: Place) -> None:
    await apart.open()
    session = apart.room.isolate(apart.version).session
    stranger = replace(apart.version, tenant="other", id="stranger", worker_id="stranger", worker_name="stranger")
    await apart.room.pool.loader.check(stranger)
    (route,) = apart.live().routes
    binding = apart.room.bindings["durable_object"]
    assert isinstance(binding, DurableObjects)
    before = len(session.inside._routes)
    way = binding.way(stranger, "COUNTER", apart.live().target)
    session.inside.connect(apart.room.isolate(stranger), way, route.callee, apart.live())  # type: ignore[attr-defined]
    assert len(session.inside._routes) == before
