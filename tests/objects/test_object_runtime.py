"""Where objects live, with real engines: the output gate, eviction, overload, and engines that lie about commits."""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from atoll.bindings.durable_object.ops import DurableObjects
from atoll.bindings.services import ObjectTarget
from atoll.engine.objects import runtime as runtime_module
from atoll.engine.objects.live_object import LiveObject
from atoll.engine.objects.residents import IsolateResidents
from atoll.engine.process.engine_process import EngineFiles
from atoll.errors import EngineError, InvalidArgument, ObjectFailure, StorageFailed
from atoll.objects.store import Opened
from atoll.wire.generated import Event
from atoll.workers import Grant, Version
from tests.engine import lying_engine
from tests.engine.conftest import open_room, snapshots
from tests.engine.engine_room import Ear, EngineRoom, script
from tests.engine.lying_engine import OBJECT_LIES
from tests.objects.slow_disk import SlowDisk

__all__ = ["open_room", "snapshots"]

COUNTER = """
import { DurableObject } from "cloudflare:workers";
export class Counter extends DurableObject {
  memory = 0;
  async fetch(request) {
    const { pathname } = new URL(request.url);
    if (pathname === "/read") return Response.json([(await this.ctx.storage.get("n")) ?? 0, this.memory]);
    if (pathname === "/wait") return new Promise(() => setTimeout(() => {}, 20_000));
    if (pathname === "/slow") return new Promise((done) => setTimeout(() => done(new Response("slow")), 1000));
    this.memory++;
    const n = ((await this.ctx.storage.get("n")) ?? 0) + 1;
    await this.ctx.storage.put("n", n);
    return new Response(`${n}`);
  }
}
export default { fetch() { return new Response("main"); } };
"""


def fetch(room: EngineRoom, version: Version, target: ObjectTarget, path: str = "/") -> Ear:
    ear = Ear()
    head = f"GET http://object{path}\nHost: object\r\n".encode()
    ear.call = room.objects.runtime.call(target, version, head, b"", True, ear, int(Event.ENTRYPOINT), 0)
    return ear


async def answer(room: EngineRoom, version: Version, target: ObjectTarget, path: str = "/") -> str:
    ear = await fetch(room, version, target, path).over()
    assert ear.failure is None, ear.failure
    return ear.body.decode()


@pytest.fixture
def target() -> ObjectTarget:
    return ObjectTarget("namespace", secrets.token_hex(32), "Counter", True)


async def test_a_response_waits_until_its_write_is_durable(
    open_room: Callable[..., Any], target: ObjectTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    room, version = await open_room(), script(COUNTER)
    disk = SlowDisk(room, monkeypatch)
    written = fetch(room, version, target)
    await room.until(lambda: disk.waiting, "a commit")
    read = fetch(room, version, target, "/read")
    other = await room.get(version)  # an ordinary call of the same isolate
    assert other.body == b"main"
    live = next(iter(room.objects.runtime.live.values()))
    await room.until(lambda: len(live._held) >= 2, "both responses have come")
    assert not written.status and not read.status
    disk.finish()
    assert (await written.over()).body == b"1"
    assert (await read.over()).body == b"[1,1]"


async def test_an_unconfirmed_write_is_confirmed_like_every_other(
    open_room: Callable[..., Any], target: ObjectTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    """allowUnconfirmed may let output leave early. It does not: one journal makes all writes of a turn durable."""
    source = COUNTER.replace('storage.put("n", n)', 'storage.put("n", n, { allowUnconfirmed: true })')
    assert source != COUNTER
    room, version = await open_room(), script(source)
    disk = SlowDisk(room, monkeypatch)
    written = fetch(room, version, target)
    await room.until(lambda: disk.waiting, "a commit")
    live = next(iter(room.objects.runtime.live.values()))
    await room.until(lambda: len(live._held) >= 1, "the response has come")
    assert not written.status
    disk.finish()
    assert (await written.over()).body == b"1"


async def test_a_write_that_cannot_be_stored_fails_its_calls_and_resets_the_object(
    open_room: Callable[..., Any], target: ObjectTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    room, version = await open_room(), script(COUNTER)
    with monkeypatch.context() as patched:
        disk = SlowDisk(room, patched)
        written = fetch(room, version, target)
        await room.until(lambda: disk.waiting, "a commit")
        disk.finish(StorageFailed("the disk is full"))
        await written.over()
    assert not written.status
    assert isinstance(written.failure, ObjectFailure) and written.failure.is_reset
    assert json.loads(await answer(room, version, target, "/read"))[1] == 0, "a new instance"


async def test_output_that_is_not_durable_ends_with_its_engine(
    open_room: Callable[..., Any], target: ObjectTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    room, version = await open_room(), script(COUNTER)
    disk = SlowDisk(room, monkeypatch)
    written = fetch(room, version, target)
    await room.until(lambda: disk.waiting, "a commit")
    room.kill_engine()
    await written.over()
    assert (written.code, written.failure and written.failure.message) == ("ENGINE_DIED", "Network connection lost.")
    disk.finish()
    assert not written.status
    assert json.loads(await answer(room, version, target, "/read")) == [1, 0], "what was on disk is there"


async def test_an_idle_object_is_evicted_and_returns_with_what_it_stored(
    open_room: Callable[..., Any], target: ObjectTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    room, version = await open_room(), script(COUNTER)
    monkeypatch.setattr(runtime_module, "IDLE_SECONDS", 0.3)
    runtime = room.objects.runtime
    busy = fetch(room, version, target, "/slow")
    assert await answer(room, version, target) == "1"
    await asyncio.sleep(0.5)  # with a call it is not idle, however long that takes
    assert runtime.count() == 1
    await busy.over()
    await room.until(lambda: not runtime.count(), "its eviction")
    assert json.loads(await answer(room, version, target, "/read")) == [1, 0]


async def test_too_many_calls_of_one_object_are_refused(
    open_room: Callable[..., Any], target: ObjectTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    room, version = await open_room(), script(COUNTER)
    await answer(room, version, target)
    waiting = [fetch(room, version, target, "/wait") for _ in range(runtime_module.MAX_CALLS)]
    refused = await fetch(room, version, target).over()
    assert isinstance(refused.failure, ObjectFailure) and refused.failure.is_overloaded
    assert refused.failure.message == "Durable Object is overloaded. Too many requests queued."
    for each in waiting:
        if each.call is not None:
            each.call.cancel()


class ShakyEngine:
    """Fails the first attempts to open an object in an engine, as an engine that has just ended does."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, failures: int) -> None:
        self.attempts = 0
        real = IsolateResidents.open

        def open(residents: IsolateResidents, live: LiveObject, opened: Opened, most: int) -> bool:
            self.attempts += 1
            if self.attempts <= failures:
                raise EngineError("the engine took no file")
            return real(residents, live, opened, most)

        monkeypatch.setattr(IsolateResidents, "open", open)
        monkeypatch.setattr(runtime_module, "FIRST_PAUSE", 0.01)


async def test_calls_that_never_reached_their_object_are_sent_again(
    open_room: Callable[..., Any], target: ObjectTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    room, version = await open_room(), script(COUNTER)
    engine = ShakyEngine(monkeypatch, 4)
    ears = [fetch(room, version, target) for _ in range(3)]
    assert [(await ear.over()).body for ear in ears] == [b"1", b"2", b"3"]
    assert engine.attempts == 5 and room.objects.runtime.counts()["retried"] == 4


async def test_calls_are_given_up_after_five_attempts(
    open_room: Callable[..., Any], target: ObjectTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    room, version = await open_room(), script(COUNTER)
    engine = ShakyEngine(monkeypatch, 100)
    failed = await fetch(room, version, target).over()
    assert isinstance(failed.failure, ObjectFailure) and failed.failure.is_retryable
    assert failed.failure.message == "Network connection lost." and failed.failure.object_id == target.id
    assert engine.attempts == runtime_module.ATTEMPTS


async def test_a_call_that_reached_its_object_is_not_sent_again(
    open_room: Callable[..., Any], target: ObjectTarget
) -> None:
    room, version = await open_room(), script(COUNTER)
    assert await answer(room, version, target) == "1"
    waiting = fetch(room, version, target, "/wait")
    await room.until(lambda: waiting.call is not None and waiting.call.state, "it is sent")
    room.kill_engine()
    failed = await waiting.over()
    assert failed.failure is not None and failed.failure.message == "Network connection lost."
    assert room.objects.runtime.counts()["retried"] == 0


async def test_too_much_data_that_waits_for_an_object_is_refused(
    open_room: Callable[..., Any], target: ObjectTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    room, version = await open_room(), script(COUNTER)
    monkeypatch.setattr(runtime_module, "MOST_WAITING", 1 << 20)
    head, body = b"GET http://object/\nHost: object\r\n", bytes(300_000)
    ears = [Ear() for _ in range(5)]
    for ear in ears:
        ear.call = room.objects.runtime.call(target, version, head, body, True, ear, int(Event.ENTRYPOINT), 0)
    assert [(await ear.over()).failure is None for ear in ears] == [True, True, True, False, False]
    refused = ears[3].failure
    assert isinstance(refused, ObjectFailure) and refused.is_overloaded
    assert refused.message == "Durable Object is overloaded. Too much data queued."


async def test_an_object_whose_disk_does_not_answer_is_reset(
    open_room: Callable[..., Any], target: ObjectTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    room, version = await open_room(), script(COUNTER)
    monkeypatch.setattr(runtime_module, "STORAGE_SECONDS", 0.2)
    disk = SlowDisk(room, monkeypatch)
    failed = await fetch(room, version, target).over()
    assert isinstance(failed.failure, ObjectFailure) and failed.failure.is_overloaded and failed.failure.is_reset
    assert failed.failure.message == (
        "Durable Object storage operation exceeded timeout which caused object to be reset."
    )
    disk.finish()


async def test_many_objects_open_at_once(open_room: Callable[..., Any]) -> None:
    room, version = await open_room(engines=2), script(COUNTER)
    targets = [ObjectTarget("namespace", secrets.token_hex(32), "Counter", True) for _ in range(100)]
    answers = await asyncio.gather(*(answer(room, version, each) for each in targets))
    assert answers == ["1"] * 100
    assert await answer(room, version, targets[0]) == "2"


async def test_more_objects_than_fit_into_an_isolate_take_turns(
    open_room: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """847 open databases filled half of the 128 MB of an isolate: the next one could not be opened."""
    monkeypatch.setattr("atoll.engine.objects.residents.OBJECTS_PER_MB", 0.1)
    room, version = await open_room(), script(COUNTER)
    targets = [ObjectTarget("namespace", secrets.token_hex(32), "Counter", True) for _ in range(60)]
    for each in targets:
        assert await answer(room, version, each) == "1"
    assert room.objects.runtime.count() < 20 and room.objects.runtime.evicted > 40
    assert [await answer(room, version, each) for each in targets] == ["2"] * 60


async def test_objects_of_a_drained_isolate_move_on(open_room: Callable[..., Any], target: ObjectTarget) -> None:
    room, version = await open_room(engines=2), script(COUNTER)
    assert await answer(room, version, target) == "1"
    session = room.isolate(version).session
    room.pool.loader.drain_engine(session)
    await room.until(lambda: not room.objects.runtime.count(), "it left")
    assert json.loads(await answer(room, version, target, "/read")) == [1, 0]


def liar(tmp_path: Path, lie: str) -> EngineFiles:
    """The files of an engine that sends the given lie."""
    program = Path(lying_engine.__file__)
    node = tmp_path / "node"
    node.write_text(f"#!{sys.executable}\n" + program.read_text().replace("__file__", repr(str(program))))
    node.chmod(0o755)
    for name in ("engine.node", "web.js", "main.js"):
        (tmp_path / name).write_text(lie)
    return EngineFiles(node, tmp_path / "main.js", tmp_path / "engine.node", tmp_path / "web.js")


@pytest.mark.parametrize("lie", OBJECT_LIES)
async def test_an_engine_that_lies_about_commits_is_killed(
    open_room: Callable[..., Any], tmp_path: Path, target: ObjectTarget, lie: str
) -> None:
    room = await open_room(files=liar(tmp_path, lie), sandbox="off", kinds=("echo",))
    (pid,) = room.supervisor.pids
    ear = await fetch(room, script(COUNTER), target).over()
    assert ear.failure is not None and ear.failure.message == "Network connection lost."
    await room.until(lambda: pid not in room.supervisor.pids, "the end of the liar")


async def test_ids_of_another_tenant_are_refused_and_new_objects_obey_the_quota(open_room: Callable[..., Any]) -> None:
    room = await open_room()
    binding = room.bindings["durable_object"]
    assert isinstance(binding, DurableObjects)
    grant = Grant("COUNTER", "durable_object", '{"class_name":"Counter"}')
    plain = {tenant: script(COUNTER, name=tenant, grants={"COUNTER": grant}) for tenant in "ab"}
    versions = {tenant: replace(version, tenant=tenant) for tenant, version in plain.items()}
    for tenant, version in versions.items():
        await binding.namespaces.create(tenant, version.worker_name, "Counter", True, "v1")
        room.workers[version.worker_name] = version
    ids = {tenant: id_of(binding.namespaces.of_tenant(tenant)[0].key()) for tenant in versions}
    target, callee = binding.target(versions["a"], grant, ids["a"], None)
    assert callee is versions["a"]
    for forged in (ids["b"], "0" * 64, ids["a"][:-1] + "x", 5, None):
        with pytest.raises(InvalidArgument, match="not valid for this namespace"):
            binding.target(versions["a"], grant, forged, None)
    binding.bound("a", {"durable_objects": 1})
    assert await answer(room, callee, target) == "1"
    other, _ = binding.target(callee, grant, id_of(binding.namespaces.of_tenant("a")[0].key()), None)
    refused = await fetch(room, callee, other).over()
    assert refused.failure is not None and "quota reached (1 of 1)" in refused.failure.message
    assert await answer(room, callee, target) == "2"


def id_of(key: bytes) -> str:
    first = secrets.token_bytes(16)
    return (first + hmac.digest(key, first, "sha256")[:16]).hex()
