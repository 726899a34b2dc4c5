"""Several isolates for a busy worker, and what one worker or tenant may have at once."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import time
from collections.abc import Callable
from typing import Any

import pytest
from engine_room import HELLO, EngineRoom, script

from atoll.engine import spread
from atoll.engine.pool import PoolLimits, TenantCaps
from atoll.workers import Limits, Version

SPIN = """let id; export default { fetch() {
  id ??= crypto.randomUUID();
  for (let i = 0; i < 2e7; i++);
  return new Response(id);
} };"""
SLEEPER = "export default { fetch() { return new Promise(r => setTimeout(() => r(new Response('slept')), 300)); } };"


async def keep_busy(room: EngineRoom, version: Version, clients: int, until: Callable[[], object]) -> list[bytes]:
    """So many clients, each asking again as soon as it has its answer."""
    answers: list[bytes] = []
    deadline = time.monotonic() + 20

    async def client() -> None:
        while not until():
            assert time.monotonic() < deadline, "never happened"
            ear = await room.get(version)
            assert ear.failure is None, ear.failure
            answers.append(ear.body)

    await asyncio.gather(*(client() for _ in range(clients)))
    return answers


def isolates(room: EngineRoom, version: Version) -> int:
    home = room.pool._homes.get(version)
    return 0 if home is None else sum(placement.ready for placement in home.placements)


async def test_a_worker_that_computes_all_the_time_gets_an_isolate_in_every_engine_and_loses_them_when_quiet(
    open_room: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spread, "CALM", 2)
    room: EngineRoom = await open_room(engines=2, limits=PoolLimits(idle_seconds=60))
    version = script(SPIN, limits=Limits(cpu_ms=2000))
    await keep_busy(room, version, 6, lambda: isolates(room, version) == 2)
    served = len(room.records)
    answers = await keep_busy(room, version, 6, lambda: len(room.records) > served + 40)
    counts = sorted(answers.count(answer) for answer in set(answers))
    assert len(counts) == 2 and counts[0] > 5, "both isolates take calls"
    placements = room.pool._homes[version].placements
    assert len({placement.session for placement in placements}) == 2
    assert room.pool.stats().spreads == 1
    await room.until(lambda: isolates(room, version) == 1, "the second isolate to go")
    assert (await room.get(version)).body in answers, "the first one stays"
    assert room.pool.stats().engines_lost == 0


async def test_a_worker_that_only_waits_stays_in_one_isolate(open_room: Callable[..., Any]) -> None:
    room: EngineRoom = await open_room(engines=2)
    version = script(SLEEPER)
    ears = [room.call(version) for _ in range(50)]
    for _ in range(3):
        for ear in ears:
            assert (await ear.over()).body == b"slept"
        ears = [room.call(version) for _ in range(50)]
    for ear in ears:
        await ear.over()
    assert room.pool.stats().spreads == 0


async def test_spreading_can_be_switched_off(open_room: Callable[..., Any]) -> None:
    room: EngineRoom = await open_room(engines=2, limits=PoolLimits(worker_isolates=1))
    version = script(SPIN, limits=Limits(cpu_ms=2000))

    def pressed() -> bool:
        home = room.pool._homes.get(version)
        return home is not None and home.pressed > 2 * spread.PRESSED

    await keep_busy(room, version, 4, pressed)
    assert isolates(room, version) == 1


async def test_a_new_version_of_a_spread_worker_retires_all_its_isolates(open_room: Callable[..., Any]) -> None:
    room: EngineRoom = await open_room(engines=2)
    version = script(SPIN, limits=Limits(cpu_ms=2000))
    await keep_busy(room, version, 6, lambda: isolates(room, version) == 2)
    room.pool.retire(version)
    await room.until(lambda: room.pool.stats().loaded == 0, "both to go")


async def test_calls_wait_for_a_busy_isolate_up_to_the_queue_and_no_further(open_room: Callable[..., Any]) -> None:
    room: EngineRoom = await open_room(limits=PoolLimits(worker_queue=10))
    version = script(SPIN.replace("2e7", "1e11"), limits=Limits(cpu_ms=1500))
    await room.pool.check(version)
    ears = [room.call(version) for _ in range(12)]
    placement = room.placement(version)
    await room.until(lambda: room.pool._placer.is_throttled(placement), "the queue to be full")
    refused = await room.get(version)
    assert refused.code == "OVERLOADED"
    assert refused.failure is not None and "wait for this worker" in refused.failure.message
    for ear in ears:
        assert ear.call is not None
        ear.call.cancel()


COUNTING = """let begun = 0; export default { fetch(request) {
  if (request.url.endsWith("/begun")) return new Response(String(begun));
  begun++;
  for (let i = 0; i < 2e7; i++);
  return new Response("served");
} };"""


async def begun(room: EngineRoom, version: Version) -> int:
    return int((await room.get(version, "http://test/begun")).body)


async def test_of_a_burst_what_waits_beyond_the_queue_is_turned_away_and_never_begins(
    open_room: Callable[..., Any],
) -> None:
    room: EngineRoom = await open_room(limits=PoolLimits(worker_queue=10))
    version = script(COUNTING, limits=Limits(cpu_ms=2000))
    await room.pool.check(version)
    ears = [room.call(version) for _ in range(80)]
    for ear in ears:
        await ear.over()
    served = [ear for ear in ears if ear.body == b"served"]
    away = ears[len(served) :]
    assert served == ears[: len(served)] and len(served) >= 10, "the first are served, in order"
    assert len(away) >= 20 and {ear.code for ear in away} == {"OVERLOADED"}
    assert away[0].failure is not None and "wait for this worker" in away[0].failure.message
    assert await begun(room, version) == len(served)
    assert room.pool.stats().refused == len(away)
    await room.until(lambda: not room.pool.busy, "DONE of all")
    assert len(room.records) == len(ears) + 1 and room.pool.tenants.of(version.tenant).in_flight == 0


async def test_a_burst_of_quick_calls_is_not_turned_away(open_room: Callable[..., Any]) -> None:
    room: EngineRoom = await open_room(limits=PoolLimits(worker_queue=10))
    version = script(HELLO)
    await room.pool.check(version)
    for ear in [room.call(version) for _ in range(100)]:
        assert (await ear.over()).body == b"hello"


async def test_a_queue_is_full_when_two_looks_say_so_since_a_machine_that_stood_still_looks_the_same(
    open_room: Callable[..., Any],
) -> None:
    now = [1000.0]
    room: EngineRoom = await open_room(limits=PoolLimits(worker_queue=10), clock=lambda: now[0])
    version = script(HELLO)
    await room.pool.check(version)
    ears = [room.call(version) for _ in range(50)]
    now[0] += 0.2
    room.pool.sweep()
    now[0] -= 0.2  # by the next look they have begun
    assert [(await ear.over()).body for ear in ears] == [b"hello"] * 50

    ears = [room.call(version) for _ in range(50)]
    now[0] += 0.2
    room.pool.sweep()
    room.pool.sweep()
    assert [ear.code for ear in ears] == [""] * 10 + ["OVERLOADED"] * 40
    now[0] -= 0.2
    assert [(await ear.over()).body for ear in ears[:10]] == [b"hello"] * 10


@pytest.mark.parametrize("startup", ["", "await new Promise((resolve) => setTimeout(resolve, 300));"])
async def test_a_call_whose_client_leaves_while_it_waits_never_begins(
    open_room: Callable[..., Any], startup: str
) -> None:
    room: EngineRoom = await open_room()
    version = script(startup + COUNTING.replace("2e7", "2e8"), limits=Limits(cpu_ms=5000))
    first = room.call(version)
    await asyncio.sleep(0.1)  # it is on its way, or waits for the top-level code
    leaving = [room.call(version, body=b"some", open_body=True) for _ in range(5)]
    last = room.call(version)
    await asyncio.sleep(0)
    for ear in leaving:
        assert ear.call is not None
        ear.call.send_body(b" more", False)
        ear.call.cancel()
    assert (await first.over()).body == (await last.over()).body == b"served"
    await room.until(lambda: not room.pool.busy, "DONE of all")
    assert await begun(room, version) == 2
    again = [room.call(version, "http://test/begun") for _ in range(7)]
    assert {(await ear.over()).body for ear in again} == {b"2"}, "their numbers are used again"
    assert room.pool.stats().engines_lost == 0


def of_tenant(source: str, tenant: str, name: str) -> Version:
    return dataclasses.replace(script(source, name), tenant=tenant)


async def test_a_tenant_at_its_cap_of_calls_is_refused_and_others_are_not(open_room: Callable[..., Any]) -> None:
    room: EngineRoom = await open_room(limits=PoolLimits(tenant_calls=5))
    workers = [of_tenant(SLEEPER, "greedy", f"w{n}") for n in range(2)]
    for worker in workers:
        await room.pool.check(worker)
    ears = [room.call(workers[n % 2]) for n in range(8)]
    codes = [ear.code for ear in ears]
    assert codes == [""] * 5 + ["QUOTA_EXCEEDED"] * 3
    assert ears[7].failure is not None and ears[7].failure.facts.status == 429
    assert (await room.get(of_tenant(HELLO, "modest", "m"))).body == b"hello"
    for ear in ears[:5]:
        assert (await ear.over()).body == b"slept"
    assert (await room.get(workers[0])).body == b"slept", "room again"
    room.pool.set_caps("greedy", TenantCaps(calls=1))
    first, second = room.call(workers[0]), room.call(workers[1])
    assert (first.code, second.code) == ("", "QUOTA_EXCEEDED")
    await first.over()
    assert room.pool.tenants.of("greedy").in_flight == 0


async def test_a_tenant_has_so_many_calls_per_second_and_is_told_when_to_come_back(
    open_room: Callable[..., Any],
) -> None:
    now = [1000.0]
    room: EngineRoom = await open_room(clock=lambda: now[0])
    room.pool.set_caps("greedy", TenantCaps(calls_per_second=3))
    worker = of_tenant(HELLO, "greedy", "w")
    assert [(await room.get(worker)).code for _ in range(5)] == ["", "", "", "QUOTA_EXCEEDED", "QUOTA_EXCEEDED"]
    assert (await room.get(of_tenant(HELLO, "modest", "m"))).body == b"hello"
    now[0] += 0.7
    assert [(await room.get(worker)).code for _ in range(3)] == ["", "", "QUOTA_EXCEEDED"]
    room.pool.set_caps("greedy", None)
    assert {(await room.get(worker)).code for _ in range(20)} == {""}


async def test_an_engine_cannot_tell_of_more_cpu_time_than_there_was(open_room: Callable[..., Any]) -> None:
    """One that was taken over could else use up the quota of its neighbour for years."""
    now = [1000.0]
    room: EngineRoom = await open_room(clock=lambda: now[0])
    assert (await room.get(of_tenant(HELLO, "victim", "v"))).body == b"hello"
    [session] = room.supervisor._running
    [(number, _)] = session.loads.items()
    now[0] += 2
    for lie in (1 << 60, -5, "much", True, None):
        session.link.pong = {"cpu_us": {str(number): lie}}
        session.charge_open_calls()
        assert 0 <= room.pool.tenants.of("victim").cpu_us <= 2_000_000 * (os.cpu_count() or 1)


async def test_a_tenant_has_so_much_cpu_time_per_minute(open_room: Callable[..., Any]) -> None:
    now = [1000.0]
    room: EngineRoom = await open_room(clock=lambda: now[0])
    room.pool.set_caps("greedy", TenantCaps(cpu_seconds_per_minute=0.06))
    worker = of_tenant(SPIN, "greedy", "w")
    codes = [(await room.get(worker)).code for _ in range(40)]
    assert codes[0] == "" and codes[-1] == "CPU_QUOTA"
    refused = await room.get(worker)
    assert refused.failure is not None and refused.failure.retry_after >= 1
    now[0] += 120
    assert (await room.get(worker)).code == ""


async def test_a_tenant_at_its_cap_of_isolates_makes_room_among_its_own(open_room: Callable[..., Any]) -> None:
    room: EngineRoom = await open_room(limits=PoolLimits(tenant_loaded=2))
    other = of_tenant(HELLO, "modest", "m")
    await room.get(other)
    for n in range(5):
        assert (await room.get(of_tenant(HELLO, "greedy", f"w{n}"))).body == b"hello"
    assert room.pool.tenants.of("greedy").loaded == 2
    assert other in room.pool._homes, "the least recently used of all, but not the greedy one's"
    assert room.pool.stats().evictions == 3


async def test_when_room_is_short_tenants_get_it_in_turns(open_room: Callable[..., Any]) -> None:
    room: EngineRoom = await open_room(limits=PoolLimits(max_loaded=1))
    blocker = room.call(of_tenant(SLEEPER, "first", "blocker"))
    greedy = [room.call(of_tenant(HELLO, "greedy", f"w{n}")) for n in range(20)]
    modest = room.call(of_tenant(HELLO, "modest", "m"))
    assert (await modest.over()).body == b"hello"
    done = sum(bool(ear.body) for ear in greedy)
    assert done <= 2, "it did not wait for all that came before"
    for ear in [blocker, *greedy]:
        assert (await ear.over()).failure is None
