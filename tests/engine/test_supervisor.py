"""Engines that die, restart, drain and stop."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from engine_room import HELLO, Ear, EngineRoom, alive, script

from atoll.engine.link.ledger import Ledger
from atoll.engine.process import engine_process as process
from atoll.engine.process.engine_process import EngineFiles, ensure_snapshot, find_files
from atoll.errors import StartError
from atoll.wire.generated import Outcome

SLEEPER = "export default { fetch() { return new Promise(r => setTimeout(() => r(new Response('slept')), 300)); } };"


async def test_a_killed_engine_costs_only_its_calls_in_flight_under_load(open_room: Callable[..., Any]) -> None:
    room = await open_room(engines=2)
    versions = [script(HELLO, f"w{n}") for n in range(8)]
    for version in versions:
        await room.get(version)
    failed: list[Ear] = []
    killed = asyncio.Event()

    async def client(number: int) -> int:
        count = 0
        while not killed.is_set() or count < 200:
            ear = await room.get(versions[number % 8])
            if ear.failure is not None:
                failed.append(ear)
            else:
                assert ear.body == b"hello"
            count += 1
        return count

    clients = [asyncio.create_task(client(number)) for number in range(16)]
    for _ in range(3):
        await asyncio.sleep(0.2)
        old = room.kill_engine()
        await room.until(
            lambda old=old: old not in room.supervisor.pids and len(room.supervisor.pids) == 2, "the restart"
        )
    killed.set()
    counts = await asyncio.gather(*clients)
    assert sum(counts) > 3000
    assert {ear.code for ear in failed} <= {"ENGINE_DIED"}
    assert len(failed) <= 3 * 16
    assert room.pool.stats().engines_lost == 3
    assert len(room.records) == sum(counts) + 8


async def test_calls_that_had_not_started_move_to_another_engine(open_room: Callable[..., Any]) -> None:
    room = await open_room(engines=2)
    slow_start = script("await new Promise(r => setTimeout(r, 2000)); " + HELLO)
    ears = [room.call(slow_start) for _ in range(5)]
    isolate = room.isolate(slow_start)
    number = list(room.supervisor._running).index(isolate.session)
    await asyncio.sleep(0.1)
    room.kill_engine(number)
    assert [(await ear.over()).body for ear in ears] == [b"hello"] * 5
    assert room.pool.stats().moves == 5


async def test_a_running_call_fails_when_its_engine_dies(room: EngineRoom) -> None:
    version = script("export default { fetch() { return new Promise(r => setTimeout(r, 20_000)); } };")
    await room.pool.loader.check(version)
    ledger = room.isolate(version).session.ledger
    ear = room.call(version)
    await room.until(lambda: ear.call is not None and ledger.begun(ear.call.id), "the begin of the call")
    room.kill_engine()
    assert (await ear.over()).code == "ENGINE_DIED"
    await room.until(lambda: room.records, "the record")
    assert room.records[0].outcome == Outcome.INTERNAL_ERROR
    assert room.records[0].status == 502


async def test_a_call_made_while_no_engine_runs_waits_for_the_restart(room: EngineRoom) -> None:
    room.kill_engine()
    await room.until(lambda: not room.supervisor.pids, "the death")
    began = time.monotonic()
    ear = await room.get(script(HELLO))
    assert ear.body == b"hello"
    assert time.monotonic() - began < 5


async def test_without_engines_calls_are_refused_in_time(tmp_path: Path, make_room: Callable[..., EngineRoom]) -> None:
    now = 1000.0
    room = make_room(tmp_path, clock=lambda: now)
    version = script(HELLO)
    ears = [room.call(version) for _ in range(101)]
    assert ears[-1].code == "OVERLOADED"
    cancelled = ears[0].call
    assert cancelled is not None
    cancelled.cancel()
    now += 4.9
    room.pool.sweep()
    assert {ear.code for ear in ears[:100]} == {""}
    now += 0.2
    room.pool.sweep()
    assert {ear.code for ear in ears[1:100]} == {"UNAVAILABLE"}
    assert ears[0].failure is None
    assert len(room.records) == 101


async def test_drain_waits_for_the_calls_in_flight(room: EngineRoom) -> None:
    ear = room.call(script(SLEEPER))
    assert await room.supervisor.drain(10)
    assert ear.body == b"slept"


async def test_drain_is_bounded_and_remaining_calls_fail_as_shutting_down(room: EngineRoom) -> None:
    ear = room.call(script("export default { fetch() { return new Promise(r => setTimeout(r, 20_000)); } };"))
    began = time.monotonic()
    assert not await room.supervisor.drain(0.2)
    await room.supervisor.stop()
    assert time.monotonic() - began < 15, "the drain does not wait for the 20 s of the call"
    assert ear.code == "SHUTTING_DOWN"
    assert room.call(script(HELLO)).code == "SHUTTING_DOWN"


async def test_no_process_is_left_after_stop_even_when_engines_die_at_that_moment(
    snapshots: Path, make_room: Callable[..., EngineRoom]
) -> None:
    room = make_room(snapshots, engines=2)
    await room.supervisor.start()
    pids = room.supervisor.pids
    room.kill_engine()
    await asyncio.sleep(0)
    await room.supervisor.stop()
    assert not [pid for pid in pids if alive(pid)]


async def test_restarts_leave_no_open_file_behind(room: EngineRoom) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(3):
        old = room.kill_engine()
        await room.until(lambda old=old: room.supervisor.pids not in ([], [old]), "the restart")
    assert (await room.get(script(HELLO))).body == b"hello"
    assert len(os.listdir("/proc/self/fd")) == before
    assert room.supervisor.restarts == 3


async def test_engines_exit_by_themselves_when_their_socket_closes(
    snapshots: Path, make_room: Callable[..., EngineRoom]
) -> None:
    room = make_room(snapshots)
    await room.supervisor.start()
    (running,) = room.supervisor._running.values()
    await room.supervisor.stop()
    assert running.exited.result() == 0, "the engine exits without being killed"


def open_files(pid: int) -> dict[str, str]:
    return {fd.name: str(fd.readlink()) for fd in Path(f"/proc/{pid}/fd").iterdir()}


def environment(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


async def test_an_engine_has_only_its_sockets_and_its_snapshot_open(open_room: Callable[..., Any]) -> None:
    room: EngineRoom = await open_room(sandbox="off")  # only root may look into a confined engine
    (pid,) = room.supervisor.pids
    assert environment(pid) == b"OPENSSL_CONF=/dev/null\0"
    assert os.readlink(f"/proc/{pid}/cwd") == "/"
    targets = open_files(pid)
    assert targets["0"] == "/dev/null"
    assert targets["3"].startswith("socket:")
    sockets = [name for name, target in targets.items() if target.startswith("socket:")]
    assert sorted(sockets) == ["3", "6"], "frames, and files of objects"
    assert targets["4"].startswith("/memfd:engine-")
    assert targets["5"].startswith("/memfd:atoll-ledger")
    files = {name for name, target in targets.items() if target.startswith("/") and not target.startswith("/dev")}
    assert files == {"4", "5"}


async def test_calls_to_a_busy_worker_that_had_not_begun_move_when_its_engine_dies(
    open_room: Callable[..., Any],
) -> None:
    room = await open_room(engines=2)
    version = script("""export default { fetch(request) {
      if (request.url.endsWith("busy")) { for (let i = 0; i < 3e9; i++); }
      return new Response("hello");
    } };""")
    await room.pool.loader.check(version)
    isolate = room.isolate(version)
    busy = room.call(version, "http://test/busy")
    await room.until(lambda: isolate.session.ledger.begun(busy.call.id), "the begin of the first")
    waiting = [room.call(version) for _ in range(20)]
    await asyncio.sleep(0.05)  # long enough for the engine to receive them
    room.kill_engine(list(room.supervisor._running).index(isolate.session))
    assert (await busy.over()).code == "ENGINE_DIED"
    assert [(await ear.over()).body for ear in waiting] == [b"hello"] * 20
    assert room.pool.stats().moves == 20


def test_an_engine_cannot_shrink_the_ledger() -> None:
    ledger = Ledger()
    with pytest.raises(PermissionError):
        os.ftruncate(ledger.fd, 0)
    ledger.clear(5)
    assert not ledger.begun(5)
    assert ledger.begun(1 << 30), "an id beyond the ledger counts as begun"
    ledger.close()


async def test_a_missing_engine_is_an_error_with_a_hint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process, "built_folders", lambda: [tmp_path])
    with pytest.raises(StartError) as refused:
        find_files()
    assert "make setup" in refused.value.hint


async def test_the_error_of_an_engine_that_cannot_start_includes_its_output(
    tmp_path: Path, make_room: Callable[..., EngineRoom]
) -> None:
    real = find_files()
    broken = tmp_path / "main.js"
    broken.write_text(
        'if (process.argv[2] === "snapshot") require("fs").writeFileSync(process.argv[4], "x");'
        'else { console.error("out of luck"); process.exit(3); }'
    )
    room = make_room(tmp_path, files=EngineFiles(real.node, broken, real.addon, real.web))
    with pytest.raises(StartError, match=r"exit code 3; it printed: out of luck"):
        await room.supervisor.start()
    assert room.supervisor.pids == []


def test_a_snapshot_is_made_once_and_stale_ones_are_deleted(tmp_path: Path) -> None:
    (tmp_path / "engine-0123.snapshot").write_bytes(b"of another build")
    (tmp_path / "engine-abcd.tmp").write_bytes(b"of a node that was killed")
    path = ensure_snapshot(find_files(), tmp_path)
    made = path.stat().st_mtime_ns
    assert ensure_snapshot(find_files(), tmp_path) == path
    assert path.stat().st_mtime_ns == made
    assert [file.name for file in tmp_path.iterdir()] == [path.name]
