"""Workers that crash their engine: found by the ledger, quarantined in their own engine, then blocked."""

from __future__ import annotations

import dataclasses
import os
import signal
from collections.abc import Callable
from typing import Any

import pytest
from engine_room import HELLO, Ear, EngineRoom, script

from atoll.engine.loaded.engine_session import EngineSession
from atoll.engine.loaded.offences import Offences
from atoll.engine.pool import PoolLimits
from atoll.wire.generated import Outcome
from atoll.workers import Limits, Version

# V8 fails to allocate this in a built-in and aborts: the engine ends, whatever the memory limit.
BOMB = """export default { fetch(request) {
  if (request.url.endsWith("/bomb")) new Array(2 ** 27).fill(0);
  return new Response("harmless");
} };"""
SLEEPER = """export default { async fetch(request) {
  if (request.url.endsWith("/sleep")) await new Promise((r) => setTimeout(r, 20_000));
  return new Response("slept");
} };"""
SPINNER = """export default { fetch(request) {
  if (request.url.endsWith("/spin")) for (let i = 0; i < 1e11; i++);
  return new Response("spun");
} };"""


def bomb() -> Version:
    return named_bomb("bomb")


async def explode(room: EngineRoom, version: Version) -> None:
    """Lets a worker end its engine; returns when the shared engines are complete again."""
    offences = room.pool.stats().offences
    ear = await room.get(version, "http://test/bomb")
    assert ear.code == "MEMORY", ear.failure or ear.body
    await room.until(lambda: room.pool.stats().offences == offences + 1, "its code to be given up")
    await room.until(lambda: room.pool.loader.groups.shared.is_whole, "the shared engines")


async def crash(room: EngineRoom, session: EngineSession) -> None:
    """A crash without a known cause, as a bug in V8 would be."""
    process = room.supervisor._running[session]
    crashes = room.pool.stats().crashes
    os.kill(process.pid, signal.SIGSEGV)
    await room.until(lambda: room.pool.stats().crashes == crashes + 1, "the crash to be noticed")
    await room.until(lambda: room.pool.loader.groups.shared.is_whole, "the shared engines")


def status(room: EngineRoom) -> dict[object, object]:
    return {entry["worker"]: entry["status"] for entry in room.pool.loader.offences.listed(room.pool._clock())}


async def test_a_worker_that_crashes_engines_is_quarantined_and_then_blocked(open_room: Callable[..., Any]) -> None:
    room: EngineRoom = await open_room(engines=2)
    bad = bomb()
    victims = [script(HELLO, f"victim{n}") for n in range(4)]
    for victim in victims:
        await room.get(victim)

    await explode(room, bad)
    assert status(room) == {}, "a single crash may be an accident"
    await explode(room, bad)
    assert status(room) == {"bomb": "alone"}
    shared = {session for session in room.supervisor._running if not session.group}

    assert (await room.get(bad)).body == b"harmless", "it is still served, in its own engine"
    assert room.isolate(bad).session.group == "worker worker-bomb"
    await explode(room, bad)
    assert status(room) == {"bomb": "blocked"}
    assert shared <= set(room.supervisor._running), "in its own engine it ends no shared engine"

    refused = await room.get(bad)
    assert refused.code == "BLOCKED"
    assert refused.failure is not None and refused.failure.facts.page == 1103
    assert 590 <= refused.failure.retry_after <= 600
    assert room.records[-1].outcome == Outcome.KILL_SWITCH
    for victim in victims:
        assert (await room.get(victim)).body == b"hello"
    assert {record.outcome for record in room.records if record.version in victims} == {Outcome.OK}


async def test_a_new_version_of_a_blocked_worker_is_served_alone(open_room: Callable[..., Any]) -> None:
    room: EngineRoom = await open_room(limits=PoolLimits(quarantine_seconds=1000))
    bad = bomb()
    now = room.pool._clock()
    for alone in (False, False, True):
        room.pool.loader.offences.accuse(bad, now, was_alone=alone)
    assert (await room.get(bad)).code == "BLOCKED"
    repaired = script(HELLO, "bomb")
    await room.pool.loader.check(repaired)
    assert (await room.get(repaired)).body == b"hello"
    assert room.isolate(repaired).session.group


async def test_a_crash_is_blamed_on_executing_workers_and_not_on_waiting_ones(
    room: EngineRoom,
) -> None:
    waiting, executing = script(SLEEPER, "waiting"), script(SPINNER, "executing", Limits(cpu_ms=20_000))
    for _ in range(2):
        for version in (waiting, executing):
            await room.get(version)
        session = room.isolate(waiting).session
        sleeps, spins = room.call(waiting, "http://test/sleep"), room.call(executing, "http://test/spin")
        await began(room, session, sleeps)
        await began(room, session, spins)
        await room.until(lambda: len(session.ledger.running()) == 1, "one to run")  # noqa: B023
        await crash(room, session)
        assert (await sleeps.over()).code == (await spins.over()).code == "ENGINE_DIED"
    assert status(room) == {"executing": "alone"}
    assert (await room.get(executing)).body == b"spun"

    session = room.isolate(executing).session
    spins = room.call(executing, "http://test/spin")
    await began(room, session, spins)
    await crash(room, session)
    assert (await room.get(executing)).code == "BLOCKED"
    assert (await room.get(waiting)).body == b"slept"


async def began(room: EngineRoom, session: EngineSession, ear: Ear) -> None:
    await room.until(lambda: ear.call is not None and session.ledger.begun(ear.call.id), "the call to begin")


async def test_an_engine_killed_from_outside_is_blamed_on_no_worker(room: EngineRoom) -> None:
    busy = script(SPINNER, limits=Limits(cpu_ms=20_000))
    for _ in range(3):
        await room.get(busy)
        ear = room.call(busy, "http://test/spin")
        await began(room, room.isolate(busy).session, ear)
        room.kill_engine()
        assert (await ear.over()).code == "ENGINE_DIED"
        await room.until(lambda: room.supervisor.pids, "the restart")
    assert status(room) == {}
    assert room.pool.stats().crashes == 0


async def test_the_engine_of_a_quarantined_worker_ends_when_idle(
    open_room: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("atoll.engine.loaded.engine_groups.OWN_IDLE_SECONDS", 0.2)
    room: EngineRoom = await open_room(limits=PoolLimits(idle_seconds=0.1))
    version = script(HELLO, "once-bad")
    now = room.pool._clock()
    for _ in range(2):
        room.pool.loader.offences.accuse(version, now, was_alone=False)
    assert (await room.get(version)).body == b"hello"
    assert len(room.supervisor.pids) == 2
    await room.until(lambda: len(room.supervisor.pids) == 1, "the end of its engine")
    assert (await room.get(version)).body == b"hello", "it is started again when needed"
    assert room.pool.stats().engines_lost == 0


def test_old_offences_expire() -> None:
    book = Offences(quarantine_seconds=100, blocked_seconds=10)
    version = script(HELLO)
    book.accuse(version, 0, was_alone=False)
    book.accuse(version, 150, was_alone=False)
    assert not book.is_alone(version, 150), "the two crashes are too far apart"
    book.accuse(version, 160, was_alone=False)
    assert book.is_alone(version, 200)
    book.accuse(version, 200, was_alone=True)
    assert book.refusal(version, 209) is not None
    assert [(entry["status"], entry["seconds_left"]) for entry in book.listed(201)] == [("blocked", 9)]
    assert [(entry["status"], entry["seconds_left"]) for entry in book.listed(211)] == [("alone", 99)]
    assert book.refusal(version, 211) is None
    assert book.is_alone(version, 211), "after the block it runs alone, on probation"
    assert not book.is_alone(version, 311)


async def test_a_tenant_that_crashes_engines_with_new_workers_is_quarantined(open_room: Callable[..., Any]) -> None:
    room: EngineRoom = await open_room(engines=2)
    calm, other = script(HELLO, "calm"), dataclasses.replace(script(HELLO, "other"), tenant="other")
    await room.get(calm)
    for number in range(4):
        await explode(room, named_bomb(f"bomb{number}"))
    assert status(room) == {}, "no worker crashed an engine twice"
    assert [entry["tenant"] for entry in room.pool.loader.offences.tenants(room.pool._clock())] == ["default"]
    shared = {session for session in room.pool.loader.groups.shared.sessions if session.takes_loads}

    fifth = named_bomb("bomb4")
    await explode(room, fifth)
    assert status(room) == {"bomb4": "blocked"}, "it runs alone there, so one crash is proof"
    assert (await room.get(fifth)).code == "BLOCKED"
    fresh = script(HELLO, "fresh")
    for version in (calm, other, fresh):
        assert (await room.get(version)).body == b"hello"
    assert [bool(room.isolate(version).session.group) for version in (calm, other, fresh)] == [False, False, True]
    assert {session for session in shared if session.takes_loads} == shared, "no further shared engine ends"
    assert set(room.pool.loader.groups.own) == {"new workers of default"}


def named_bomb(name: str) -> Version:
    return script(BOMB, name, Limits(cpu_ms=20_000, memory_mb=16))


async def test_a_crash_with_workers_of_several_tenants_is_blamed_on_no_tenant(room: EngineRoom) -> None:
    one = script(HELLO, "one")
    two = dataclasses.replace(script(HELLO, "two"), tenant="other")
    session = room.pool.loader.groups.shared.sessions[0]
    for _ in range(10):
        room.pool._accuse(session, [one, two])
    assert room.pool.loader.offences.tenants(room.pool._clock()) == []
    assert status(room) == {"one": "alone", "two": "alone"}


async def test_calls_that_wait_for_their_own_engine_are_all_served(room: EngineRoom) -> None:
    version = script(HELLO, "waits")
    for _ in range(2):
        room.pool.loader.offences.accuse(version, room.pool._clock(), was_alone=False)
    ears = [room.call(version) for _ in range(20)]
    assert [(await ear.over()).body for ear in ears] == [b"hello"] * 20
