"""Workers that compute for long run at low priority. Others do not wait for them, and they do not starve each other."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path

from engine_room import HELLO, EngineRoom, script

from atoll.workers import Limits, Version

# Computes for as many rounds as the path says; a million iterations take a few milliseconds.
BURN = """export default { fetch(request) {
  const rounds = Number(new URL(request.url).pathname.slice(1)) * 1e6;
  let sum = 0;
  for (let i = 0; i < rounds; i++) sum += i % 7;
  return new Response("done");
} };"""
LONG, SHORT = "http://test/20", "http://test/0"  # long, but too short for a thread to lose its place
LOW = 10  # the nice value of slow threads
THREADS = 2  # per lane in the engines of these tests


def burner(name: str, tenant: str = "hungry") -> Version:
    return dataclasses.replace(script(BURN, name, Limits(cpu_ms=30_000)), tenant=tenant)


def threads(room: EngineRoom) -> dict[str, int]:
    """Every thread of the engine with its nice value."""
    (pid,) = room.supervisor.pids
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            found[task.name] = int((task / "stat").read_text().rpartition(")")[2].split()[16])
        except OSError:  # the thread has just ended
            continue
    return found


def nices(room: EngineRoom) -> list[int]:
    return list(threads(room).values())


async def test_a_thread_that_computes_for_long_gets_low_priority_and_is_replaced(room: EngineRoom) -> None:
    await room.get(script(HELLO))
    before = nices(room)
    assert LOW not in before
    for _ in range(20):  # on a busy machine the watchdog may get no core meanwhile
        await room.get(burner("burner"), LONG)
        after = nices(room)
        if LOW in after:
            break
    assert after.count(LOW) == 1
    assert after.count(0) >= before.count(0), "the number of normal threads is the same as before"


async def test_a_tenant_that_computes_much_runs_on_slow_threads_until_it_stops(room: EngineRoom) -> None:
    first, second = burner("first"), burner("second")
    await room.get(first, LONG)
    count = nices(room).count(LOW)
    for _ in range(5):
        await room.get(first, LONG)
        await room.get(second, LONG)  # of the same tenant
    assert nices(room).count(LOW) <= max(count, THREADS), "no further normal thread is slowed for them"
    calm = script(HELLO, "calm")
    await room.get(calm)
    assert nices(room).count(LOW) <= max(count, THREADS), "nor for other tenants"


async def test_loads_for_a_tenant_that_computes_much_use_no_normal_thread(room: EngineRoom) -> None:
    """Each of these calls ends its isolate, so the next one follows directly after a LOAD."""
    await room.get(burner("first"), LONG)
    endless = script("export default { fetch() { for (;;); } }", "endless", Limits(cpu_ms=50))
    version = dataclasses.replace(endless, tenant="hungry")
    await room.get(version)
    usual = {thread for thread, nice in threads(room).items() if nice == 0}
    for _ in range(10):
        assert (await room.get(version)).code == "CPU"
    assert usual == {thread for thread, nice in threads(room).items() if nice == 0}


async def test_quiet_workers_are_answered_beside_many_computing_ones(room: EngineRoom) -> None:
    calm = script(HELLO)
    await room.get(calm)
    burning = [room.call(burner(f"b{n}"), "http://test/150") for n in range(6)]
    answers = 0
    while not all(ear.ended for ear in burning):
        assert (await room.get(calm)).body == b"hello"
        answers += 1
        await asyncio.sleep(0.01)
    assert answers > 10
    assert all(ear.body == b"done" for ear in burning), "the computing calls finish too"


async def test_a_short_call_of_a_computing_tenant_does_not_wait_for_its_long_calls(room: EngineRoom) -> None:
    """Threads of long calls lose their places when they continue."""
    last = burner("last")
    await room.get(last, LONG)
    endless = [script("export default { fetch() { for (;;); } }", f"e{n}", Limits(cpu_ms=600)) for n in range(THREADS)]
    burning = [room.call(dataclasses.replace(version, tenant="hungry")) for version in endless]
    ear = await room.get(last, SHORT)
    assert ear.body == b"done" and not any(other.failure for other in burning)
    for other in burning:
        assert (await other.over()).code == "CPU"


async def test_a_thread_that_computes_for_very_long_loses_its_place(room: EngineRoom) -> None:
    last = burner("last")
    await room.get(last, LONG)
    endless = [script("export default { fetch() { for (;;); } }", f"e{n}", Limits(cpu_ms=2000)) for n in range(THREADS)]
    burning = [room.call(dataclasses.replace(version, tenant="hungry")) for version in endless]
    assert (await room.get(last, LONG)).body == b"done"
    assert not any(other.failure for other in burning), "the call does not wait for the endless ones"
    for other in burning:
        assert (await other.over()).code == "CPU"
    await room.until(lambda: nices(room).count(LOW) <= THREADS, "the end of the surplus")


async def test_calls_behind_a_displaced_thread_run_on_another_thread(room: EngineRoom) -> None:
    version = burner("burner")
    ears = [room.call(version, "http://test/150") for _ in range(3)]  # one isolate, so one after the other
    for ear in ears:
        assert (await ear.over()).body == b"done"


async def test_surplus_slow_threads_end(room: EngineRoom) -> None:
    for n in range(12):  # of twelve tenants, none of which has computed before
        assert (await room.get(burner("surprise", f"tenant{n}"), LONG)).body == b"done"
    await room.until(lambda: nices(room).count(LOW) <= THREADS, "the end of the surplus")
    assert (await room.get(burner("surprise", "tenant3"), LONG)).body == b"done"
    assert (await room.get(script(HELLO))).body == b"hello"


async def test_a_slow_call_is_charged_for_cpu_time_and_not_for_waiting(room: EngineRoom) -> None:
    """Eight calls at once on few cores take several times as long as one, but use no more CPU time each."""
    await room.get(burner("alone"), LONG)
    alone = room.records[-1].cpu_us
    ears = [room.call(burner(f"b{n}"), LONG) for n in range(8)]
    for ear in ears:
        assert (await ear.over()).body == b"done"
    used = [record.cpu_us for record in room.records[-8:]]
    assert max(used) < 4 * alone and sum(used) < 16 * alone
