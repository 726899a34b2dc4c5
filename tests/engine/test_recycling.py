"""Engines that are replaced because of size or age, memory shortage, and engines of single tenants."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from engine_room import HELLO, EngineRoom, script

from atoll.engine.pool import PoolLimits, TenantCaps
from atoll.engine.process import memory, recycling
from atoll.engine.process.recycling import RecycleLimits
from atoll.engine.report import pool_report
from atoll.workers import Isolation, Limits, Version

SLEEPER = "export default { fetch() { return new Promise(r => setTimeout(() => r(new Response('slept')), 1500)); } };"
HOARD = """const kept = []; export default { fetch() {
  kept.push(new Uint8Array(60 << 20).fill(1)); return new Response(String(kept.length)); } };"""


async def test_an_engine_that_has_grown_is_replaced_and_no_call_is_lost(
    open_room: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recycling, "LOOKS", 1)
    room: EngineRoom = await open_room(recycling=RecycleLimits(restart_memory_mb=150))
    (old,) = room.supervisor.pids
    hoard, calm = script(HOARD, "hoard", Limits(cpu_ms=5000, memory_mb=256)), script(HELLO, "calm")
    sleeping = room.call(script(SLEEPER, "sleeper"))
    for _ in range(3):
        await room.get(hoard)
    while room.supervisor.pids != [] and room.supervisor.pids[0] == old:
        assert (await room.get(calm)).body == b"hello"
    await room.until(lambda: room.supervisor.pids not in ([], [old]), "the replacement")
    assert (await room.get(calm)).body == b"hello"
    assert (await sleeping.over()).body == b"slept", "the old engine stays until its last call ends"
    await room.until(lambda: not room.supervisor.draining, "the end of the old engine")
    assert {record.outcome.name for record in room.records} == {"OK"}


async def test_recently_called_workers_are_loaded_before_the_old_engine_drains(
    open_room: Callable[..., Any],
) -> None:
    room: EngineRoom = await open_room()
    version = script(HELLO)
    await room.get(version)
    (session,) = room.supervisor.running
    session.condemn("for the test", is_urgent=False)
    await room.until(lambda: room.session_of(version) not in (None, session), "the move")
    isolate = room.isolate(version)
    assert isolate.ready and isolate.session.takes_loads
    hits = room.pool.stats().hits
    assert (await room.get(version)).body == b"hello"
    assert room.pool.stats().hits == hits + 1, "no cold start"


async def test_an_engine_that_is_old_enough_is_replaced(open_room: Callable[..., Any]) -> None:
    room: EngineRoom = await open_room(recycling=RecycleLimits(restart_hours=0.0001))
    (old,) = room.supervisor.pids
    await room.until(lambda: room.supervisor.pids not in ([], [old]), "the replacement")


async def test_when_memory_is_short_idle_workers_are_evicted_and_busy_ones_stay(open_room: Callable[..., Any]) -> None:
    room: EngineRoom = await open_room(recycling=RecycleLimits(min_free_mb=1 << 40))
    busy = room.call(script(SLEEPER, "busy"))
    for n in range(3):
        await room.get(script(HELLO, f"w{n}"))
    await room.until(lambda: room.pool.stats().loaded == 1, "the idle ones to go")
    assert (await busy.over()).body == b"slept"
    assert room.pool.stats().evictions == 3
    assert room.supervisor.recycler.is_short


async def test_an_engine_that_does_not_answer_is_replaced(open_room: Callable[..., Any]) -> None:
    room: EngineRoom = await open_room(heartbeat_seconds=0.1)
    version = script(HELLO)
    await room.get(version)
    (silent,) = room.supervisor.pids
    os.kill(silent, signal.SIGSTOP)
    await room.until(lambda: room.supervisor.pids not in ([], [silent]), "the replacement")
    assert (await room.get(version)).body == b"hello"


async def test_an_isolate_that_broke_a_limit_is_replaced_before_the_next_call(room: EngineRoom) -> None:
    version = script("export default { fetch() { for (;;); } };", limits=Limits(cpu_ms=50))
    assert (await room.get(version)).code == "CPU"
    await room.until(lambda: version in room.pool.loader.versions and room.isolate(version).ready, "the replacement")
    assert room.pool.stats().calls == 1


async def test_other_calls_of_an_ended_isolate_fail_with_the_same_reason(room: EngineRoom) -> None:
    source = """export default { async fetch(request) {
      if (request.url.endsWith("/loop")) for (;;);
      await new Promise((r) => setTimeout(r, 5000)); return new Response(""); } };"""
    version = script(source, limits=Limits(cpu_ms=100))
    await room.pool.loader.check(version)
    waiting = room.call(version)
    isolate = room.isolate(version)
    await room.until(lambda: isolate.session.ledger.begun(waiting.call.id), "the first to begin")
    loop = room.call(version, "http://test/loop")
    assert (await loop.over()).code == (await waiting.over()).code == "CPU"


# --- engines of single tenants ---


def alone(tenant: str, name: str, source: str = HELLO) -> Version:
    return dataclasses.replace(script(source, name), tenant=tenant, isolation=Isolation.PROCESS)


async def test_a_worker_with_process_isolation_shares_its_engine_only_with_its_tenant(
    open_room: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("atoll.engine.loaded.engine_groups.OWN_IDLE_SECONDS", 0.2)
    room: EngineRoom = await open_room(limits=PoolLimits(idle_seconds=1))
    usual = dataclasses.replace(script(HELLO, "usual"), tenant="acme")
    versions = [alone("acme", "a1"), alone("acme", "a2"), alone("other", "o1"), usual]
    assert [(await room.get(version)).body for version in versions] == [b"hello"] * 4
    a1, a2, o1, shared = (room.isolate(version).session for version in versions)
    assert a1 is a2
    assert len({a1, o1, shared}) == 3
    assert {session.group for session in (a1, o1, shared)} == {"tenant acme", "tenant other", ""}
    assert len(room.supervisor.pids) == 3
    for _ in range(20):  # workers of other tenants are never loaded there
        await room.get(dataclasses.replace(script(HELLO, f"more{_}"), tenant="third"))
    assert {isolate.version.tenant for isolate in a1.isolates.values()} == {"acme"}
    assert {isolate.version.tenant for isolate in o1.isolates.values()} == {"other"}
    await room.until(lambda: len(room.supervisor.pids) == 1, "their engines to end")
    assert (await room.get(versions[0])).body == b"hello"


async def test_a_tenant_may_be_given_an_engine_for_all_its_workers(room: EngineRoom) -> None:
    version = dataclasses.replace(script(HELLO), tenant="acme")
    await room.get(version)
    assert room.isolate(version).session.group == ""
    room.pool.set_caps("acme", TenantCaps(own_engine=True))
    await room.pool.loader.check(version)
    assert (await room.get(version)).body == b"hello"
    assert room.isolate(version).session.group == "tenant acme"


async def test_engines_of_tenants_are_bounded_and_an_idle_one_makes_room(open_room: Callable[..., Any]) -> None:
    room: EngineRoom = await open_room(limits=PoolLimits(own_engines=1, idle_seconds=0.1))
    sleeping = room.call(alone("first", "f", SLEEPER))
    await room.until(lambda: len(room.supervisor.pids) == 2, "its engine")
    refused = await room.get(alone("second", "s"))
    assert refused.code == "OVERLOADED"
    assert (await sleeping.over()).body == b"slept"
    (group,) = room.pool.loader.groups.own.values()
    await room.until(lambda: group.is_empty, "it to be idle")
    assert (await room.get(alone("second", "s"))).body == b"hello"


async def test_a_killed_engine_of_a_tenant_is_restarted(room: EngineRoom) -> None:
    version = alone("acme", "a")
    await room.get(version)
    session = room.isolate(version).session
    os.kill(room.supervisor.running[session], signal.SIGKILL)
    await room.until(lambda: version not in room.pool.loader.versions, "its death")
    ears = [room.call(version) for _ in range(3)]
    assert [(await ear.over()).body for ear in ears] == [b"hello"] * 3


async def test_the_report_shows_every_engine(room: EngineRoom) -> None:
    await asyncio.gather(room.get(script(HELLO)), room.get(alone("acme", "a")))
    report: Any = pool_report(room.pool, room.supervisor)
    assert {engine["for"]: engine["workers"] for engine in report["processes"]} == {"all": 1, "tenant acme": 1}
    assert all(20 < engine["rss_mb"] < 500 for engine in report["processes"])
    assert (report["total"], report["cached"], report["capacity"]) == (1000, 2, 998)
    assert [tenant["loaded"] for tenant in report["tenants"]] == [1, 1]
    assert report["quarantine"] == []


# --- memory ---


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)


def test_available_memory_follows_the_tightest_limit(tmp_path: Path) -> None:
    write(tmp_path, {"proc/meminfo": "MemTotal: 9000 kB\nMemAvailable:    8000 kB\n"})
    assert memory.available_bytes(tmp_path) == 8000 * 1024
    group = "sys/fs/cgroup/atoll/memory"
    write(tmp_path, {"proc/self/cgroup": "0::/atoll\n", f"{group}.max": "max\n", f"{group}.current": "5000000\n"})
    assert memory.available_bytes(tmp_path) == 8000 * 1024, "no control group limits it"
    write(tmp_path, {f"{group}.max": "6000000\n", f"{group}.stat": "anon 1\ninactive_file 2000000\n"})
    assert memory.available_bytes(tmp_path) == 3_000_000, "the kernel frees cached files when memory is short"


def test_a_version_1_control_group_counts_even_inside_a_container(tmp_path: Path) -> None:
    group = "sys/fs/cgroup/memory/memory"
    write(
        tmp_path,
        {
            "proc/self/cgroup": "4:cpu,cpuacct:/x\n3:memory:/docker/0123\n",
            f"{group}.limit_in_bytes": "1000000\n",
            f"{group}.usage_in_bytes": "400000\n",
            f"{group}.stat": "total_inactive_file 100000\n",
        },
    )
    assert memory.available_bytes(tmp_path) == 700_000


def test_this_machine_has_memory() -> None:
    assert 1 << 20 < memory.available_bytes() < 1 << 60
    assert memory.resident_bytes(os.getpid()) > 1 << 20
    assert memory.resident_bytes(2**22 + 1) == 0


BOMB = """export default { fetch() {
  const kept = [];
  try { for (;;) kept.push(new Uint8Array(32 << 20).fill(1)); }
  catch (error) { return new Response(`${error.name} after ${kept.length}`); }
} };"""


async def test_no_worker_can_exceed_the_memory_limit_of_its_engine(open_room: Callable[..., Any]) -> None:
    """The engine's own limit holds even for a worker with a limit of 32 GB."""
    room: EngineRoom = await open_room(
        recycling=RecycleLimits(engine_bytes=512 * recycling.MB), sandbox="require", limits=PoolLimits(max_loaded=2)
    )
    (pid,) = room.supervisor.pids
    largest = 0
    ear = room.call(script(BOMB, "bomb", Limits(cpu_ms=30_000, memory_mb=32 << 10)))
    while not ear.ended and ear.failure is None:
        largest = max(largest, memory.resident_bytes(pid))
        await asyncio.sleep(0.005)
    assert ear.failure is not None or ear.body.startswith(b"RangeError after"), ear.body
    assert largest < 1200 * recycling.MB
    await room.until(lambda: room.supervisor.pids, "an engine")
    assert (await room.get(script(HELLO))).body == b"hello"


async def test_an_engine_that_bypasses_its_memory_limit_is_ended(
    open_room: Callable[..., Any], caplog: pytest.LogCaptureFixture
) -> None:
    room: EngineRoom = await open_room(recycling=RecycleLimits(engine_bytes=512 * recycling.MB))
    (pid,) = room.supervisor.pids
    room.supervisor.recycler._resident = lambda of: 1 << 33 if of == pid else 0
    await room.until(lambda: room.supervisor.pids not in ([], [pid]), "the replacement")
    assert any("it uses 8192 MB of memory, more than the 512 it may" in text for text in caplog.messages)
    assert (await room.get(script(HELLO))).body == b"hello"


def test_total_memory_is_the_minimum_of_machine_and_control_group(tmp_path: Path) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "sys/fs/cgroup/ours").mkdir(parents=True)
    (tmp_path / "proc/meminfo").write_text("MemTotal:       8000 kB\nMemAvailable:   4000 kB\n")
    (tmp_path / "proc/self/cgroup").write_text("0::/ours\n")
    assert memory.total_bytes(tmp_path) == 8000 * 1024
    (tmp_path / "sys/fs/cgroup/ours/memory.max").write_text("max\n")
    assert memory.total_bytes(tmp_path) == 8000 * 1024
    (tmp_path / "sys/fs/cgroup/ours/memory.max").write_text("4096000\n")
    assert memory.total_bytes(tmp_path) == 4_096_000
