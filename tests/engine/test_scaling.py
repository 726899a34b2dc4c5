"""Several isolates for a busy worker, and the limits of one worker or tenant."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import time
from collections.abc import Callable
from typing import Any

import pytest
from engine_room import HELLO, EngineRoom, script

from atoll.engine.loaded import scaling
from atoll.engine.pool import PoolLimits, TenantCaps
from atoll.workers import Limits, Version

SPIN = """let id; export default { fetch() {
  id ??= crypto.randomUUID();
  for (let i = 0; i < 1e8; i++);
  return new Response(id);
} };"""
SLEEPER = "export default { fetch() { return new Promise(r => setTimeout(() => r(new Response('slept')), 300)); } };"


async def keep_busy(room: EngineRoom, version: Version, clients: int, until: Callable[[], object]) -> list[bytes]:
    """This many clients; each sends its next request as soon as it has its answer."""
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
    loaded = room.pool.loader.versions.get(version)
    return 0 if loaded is None else sum(isolate.ready for isolate in loaded.isolates)


async def test_a_computing_worker_gets_an_isolate_in_every_engine_until_it_is_quiet(
    open_room: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scaling, "CALM_LOOKS", 2)
    room: EngineRoom = await open_room(engines=2, limits=PoolLimits(idle_seconds=60))
    version = script(SPIN, limits=Limits(cpu_ms=2000))
    await keep_busy(room, version, 6, lambda: isolates(room, version) == 2)
    served = len(room.records)
    answers = await keep_busy(room, version, 6, lambda: len(room.records) > served + 40)
    counts = sorted(answers.count(answer) for answer in set(answers))
    assert len(counts) == 2 and counts[0] > 5, "both isolates take calls"
    assert len({isolate.session for isolate in room.pool.loader.versions[version].isolates}) == 2
    assert room.pool.stats().spreads == 1
    await room.until(lambda: isolates(room, version) == 1, "the second isolate to go")
    assert (await room.get(version)).body in answers, "the first isolate stays"
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


async def test_scaling_can_be_switched_off(open_room: Callable[..., Any]) -> None:
    room: EngineRoom = await open_room(engines=2, limits=PoolLimits(worker_isolates=1))
    version = script(SPIN, limits=Limits(cpu_ms=2000))

    def pressed() -> bool:
        loaded = room.pool.loader.versions.get(version)
        return loaded is not None and loaded.late_looks > 2 * scaling.LATE_LOOKS

    await keep_busy(room, version, 4, pressed)
    assert isolates(room, version) == 1


async def test_a_new_version_of_a_scaled_worker_retires_all_its_isolates(open_room: Callable[..., Any]) -> None:
    room: EngineRoom = await open_room(engines=2)
    version = script(SPIN, limits=Limits(cpu_ms=2000))
    await keep_busy(room, version, 6, lambda: isolates(room, version) == 2)
    room.pool.loader.retire(version)
    await room.until(lambda: room.pool.stats().loaded == 0, "both to go")


async def test_calls_for_a_busy_isolate_wait_up_to_the_queue_limit(open_room: Callable[..., Any]) -> None:
    room: EngineRoom = await open_room(limits=PoolLimits(worker_queue=10))
    version = script(SPIN.replace("1e8", "1e11"), limits=Limits(cpu_ms=1500))
    await room.pool.loader.check(version)
    ears = [room.call(version) for _ in range(12)]
    isolate = room.isolate(version)
    await room.until(lambda: room.pool.loader.is_throttled(isolate), "the queue to be full")
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
    answer = await room.get(version, "http://test/begun")
    assert answer.failure is None, answer.failure
    return int(answer.body)


async def test_calls_of_a_burst_beyond_the_queue_limit_are_refused_and_never_start(
    open_room: Callable[..., Any],
) -> None:
    room: EngineRoom = await open_room(limits=PoolLimits(worker_queue=10))
    version = script(COUNTING, limits=Limits(cpu_ms=2000))
    await room.pool.loader.check(version)
    ears = [room.call(version) for _ in range(200)]  # seconds of work, on a fast machine too
    for ear in ears:
        await ear.over()
    served = [ear for ear in ears if ear.body == b"served"]
    away = ears[len(served) :]
    assert served == ears[: len(served)] and len(served) >= 10, "the first calls are served, in order"
    assert len(away) >= 20 and {ear.code for ear in away} == {"OVERLOADED"}
    assert away[0].failure is not None and "wait for this worker" in away[0].failure.message
    await room.until(lambda: not room.pool.busy, "DONE of all")
    assert await begun(room, version) == len(served)
    assert room.pool.stats().refused == len(away)
    await room.until(lambda: not room.pool.busy, "DONE of the last")
    assert len(room.records) == len(ears) + 1 and room.pool.loader.tenants.of(version.tenant).in_flight == 0


async def test_a_burst_of_quick_calls_is_not_refused(open_room: Callable[..., Any]) -> None:
    room: EngineRoom = await open_room(limits=PoolLimits(worker_queue=10))
    version = script(HELLO)
    await room.pool.loader.check(version)
    for ear in [room.call(version) for _ in range(100)]:
        assert (await ear.over()).body == b"hello"


async def test_a_queue_counts_as_full_only_after_two_checks(
    open_room: Callable[..., Any],
) -> None:
    now = [1000.0]
    room: EngineRoom = await open_room(limits=PoolLimits(worker_queue=10), clock=lambda: now[0])
    version = script(HELLO)
    await room.pool.loader.check(version)
    ears = [room.call(version) for _ in range(50)]
    now[0] += 0.2
    room.pool.sweep()
    now[0] -= 0.2  # by the next check they have started
    assert [(await ear.over()).body for ear in ears] == [b"hello"] * 50

    ears = [room.call(version) for _ in range(50)]
    now[0] += 0.2
    room.pool.sweep()
    room.pool.sweep()
    assert [ear.code for ear in ears] == [""] * 10 + ["OVERLOADED"] * 40
    now[0] -= 0.2
    assert [(await ear.over()).body for ear in ears[:10]] == [b"hello"] * 10


@pytest.mark.parametrize("startup", ["", "await new Promise((resolve) => setTimeout(resolve, 300));"])
async def test_a_waiting_call_whose_client_disconnects_never_starts(
    open_room: Callable[..., Any], startup: str
) -> None:
    room: EngineRoom = await open_room()
    version = script(startup + COUNTING.replace("2e7", "1e9"), limits=Limits(cpu_ms=20_000))
    first = room.call(version)
    await asyncio.sleep(0.05)  # the call is on its way, or waits for the top-level code
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
    assert {(await ear.over()).body for ear in again} == {b"2"}, "their ids are reused"
    assert room.pool.stats().engines_lost == 0


def of_tenant(source: str, tenant: str, name: str) -> Version:
    return dataclasses.replace(script(source, name), tenant=tenant)


async def test_a_tenant_at_its_cap_of_calls_is_refused_and_others_are_not(open_room: Callable[..., Any]) -> None:
    room: EngineRoom = await open_room(limits=PoolLimits(tenant_calls=5))
    workers = [of_tenant(SLEEPER, "greedy", f"w{n}") for n in range(2)]
    for worker in workers:
        await room.pool.loader.check(worker)
    ears = [room.call(workers[n % 2]) for n in range(8)]
    codes = [ear.code for ear in ears]
    assert codes == [""] * 5 + ["QUOTA_EXCEEDED"] * 3
    assert ears[7].failure is not None and ears[7].failure.facts.status == 429
    assert (await room.get(of_tenant(HELLO, "modest", "m"))).body == b"hello"
    for ear in ears[:5]:
        assert (await ear.over()).body == b"slept"
    assert (await room.get(workers[0])).body == b"slept", "a call has ended, so there is room again"
    room.pool.set_caps("greedy", TenantCaps(calls=1))
    first, second = room.call(workers[0]), room.call(workers[1])
    assert (first.code, second.code) == ("", "QUOTA_EXCEEDED")
    await first.over()
    assert room.pool.loader.tenants.of("greedy").in_flight == 0


async def test_calls_per_second_of_a_tenant_are_limited_with_retry_after(
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


async def test_an_engine_cannot_report_more_cpu_time_than_possible(open_room: Callable[..., Any]) -> None:
    """Otherwise a compromised engine could use up the CPU quota of another tenant for years."""
    now = [1000.0]
    room: EngineRoom = await open_room(clock=lambda: now[0])
    assert (await room.get(of_tenant(HELLO, "victim", "v"))).body == b"hello"
    [session] = room.supervisor._running
    [(number, _)] = session.isolates.items()
    now[0] += 2
    for lie in (1 << 60, -5, "much", True, None):
        session.link.pong = {"cpu_us": {str(number): lie}}
        session.charge_open_calls()
        assert 0 <= room.pool.loader.tenants.of("victim").cpu_us <= 2_000_000 * (os.cpu_count() or 1)


async def test_cpu_time_per_minute_of_a_tenant_is_limited(open_room: Callable[..., Any]) -> None:
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


async def test_a_tenant_at_its_isolate_cap_evicts_its_own_isolates(open_room: Callable[..., Any]) -> None:
    room: EngineRoom = await open_room(limits=PoolLimits(tenant_loaded=2))
    other = of_tenant(HELLO, "modest", "m")
    await room.get(other)
    for n in range(5):
        assert (await room.get(of_tenant(HELLO, "greedy", f"w{n}"))).body == b"hello"
    assert room.pool.loader.tenants.of("greedy").loaded == 2
    assert other in room.pool.loader.versions, "it is the least recently used of all, but of another tenant"
    assert room.pool.stats().evictions == 3


async def test_when_room_is_short_tenants_get_it_in_turns(open_room: Callable[..., Any]) -> None:
    room: EngineRoom = await open_room(limits=PoolLimits(max_loaded=1))
    blocker = room.call(of_tenant(SLEEPER, "first", "blocker"))
    greedy = [room.call(of_tenant(HELLO, "greedy", f"w{n}")) for n in range(20)]
    modest = room.call(of_tenant(HELLO, "modest", "m"))
    assert (await modest.over()).body == b"hello"
    done = sum(bool(ear.body) for ear in greedy)
    assert done <= 2, "it does not wait for all earlier calls of the other tenant"
    for ear in [blocker, *greedy]:
        assert (await ear.over()).failure is None
