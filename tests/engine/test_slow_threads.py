"""Workers that compute for long run at low priority, and make neither others wait nor each other starve."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path

from engine_room import HELLO, EngineRoom, script

from atoll.workers import Limits, Version

# Computes for as many rounds as the path says; a million take some milliseconds.
BURN = """export default { fetch(request) {
  const rounds = Number(new URL(request.url).pathname.slice(1)) * 1e6;
  let sum = 0;
  for (let i = 0; i < rounds; i++) sum += i % 7;
  return new Response("done");
} };"""
LONG, SHORT = "http://test/20", "http://test/0"  # long, but not so long that a thread loses its place
LOW = 10  # the nice value of slow threads
THREADS = 2  # of each lane in the engines of these tests


def burner(name: str, tenant: str = "hungry") -> Version:
    return dataclasses.replace(script(BURN, name, Limits(cpu_ms=30_000)), tenant=tenant)


def threads(room: EngineRoom) -> dict[str, int]:
    """Every thread of the engine with its nice value."""
    (pid,) = room.supervisor.pids
    found = {}
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            found[task.name] = int((task / "stat").read_text().rpartition(")")[2].split()[16])
        except OSError:  # it has just ended
            continue
    return found


def nices(room: EngineRoom) -> list[int]:
    return list(threads(room).values())


async def test_a_thread_that_computes_for_long_is_slowed_and_another_takes_its_place(room: EngineRoom) -> None:
    await room.get(script(HELLO))
    before = nices(room)
    assert LOW not in before
    for _ in range(20):  # on a crowded machine the watchdog may have no core meanwhile
        await room.get(burner("burner"), LONG)
        after = nices(room)
        if LOW in after:
            break
    assert after.count(LOW) == 1
    assert after.count(0) >= before.count(0), "there are as many usual threads as before"


async def test_a_tenant_that_computes_much_runs_on_slow_threads_and_comes_back_when_it_stops(room: EngineRoom) -> None:
    first, second = burner("first"), burner("second")
    await room.get(first, LONG)
    count = nices(room).count(LOW)
    for _ in range(5):
        await room.get(first, LONG)
        await room.get(second, LONG)  # of the same tenant
    assert nices(room).count(LOW) <= max(count, THREADS), "no usual thread was spent on them any more"
    calm = script(HELLO, "calm")
    await room.get(calm)
    assert nices(room).count(LOW) <= max(count, THREADS), "nor on others"


async def test_what_is_loaded_for_a_tenant_that_computes_much_takes_no_usual_thread(room: EngineRoom) -> None:
    """Each of these calls ends with its isolate, so the next one comes right behind a LOAD."""
    await room.get(burner("first"), LONG)
    endless = script("export default { fetch() { for (;;); } }", "endless", Limits(cpu_ms=50))
    version = dataclasses.replace(endless, tenant="hungry")
    await room.get(version)
    usual = {thread for thread, nice in threads(room).items() if nice == 0}
    for _ in range(10):
        assert (await room.get(version)).code == "CPU"
    assert usual == {thread for thread, nice in threads(room).items() if nice == 0}


async def test_beside_many_that_compute_others_are_answered_meanwhile(room: EngineRoom) -> None:
    calm = script(HELLO)
    await room.get(calm)
    burning = [room.call(burner(f"b{n}"), "http://test/150") for n in range(6)]
    answers = 0
    while not all(ear.ended for ear in burning):
        assert (await room.get(calm)).body == b"hello"
        answers += 1
        await asyncio.sleep(0.01)
    assert answers > 10
    assert all(ear.body == b"done" for ear in burning), "and they end"


async def test_a_short_call_of_a_hungry_tenant_does_not_wait_for_its_long_ones(room: EngineRoom) -> None:
    """Those lose their places when they go on."""
    last = burner("last")
    await room.get(last, LONG)
    endless = [script("export default { fetch() { for (;;); } }", f"e{n}", Limits(cpu_ms=600)) for n in range(THREADS)]
    burning = [room.call(dataclasses.replace(version, tenant="hungry")) for version in endless]
    ear = await room.get(last, SHORT)
    assert ear.body == b"done" and not any(other.failure for other in burning)
    for other in burning:
        assert (await other.over()).code == "CPU"


async def test_a_thread_that_goes_on_for_very_long_loses_its_place(room: EngineRoom) -> None:
    last = burner("last")
    await room.get(last, LONG)
    endless = [script("export default { fetch() { for (;;); } }", f"e{n}", Limits(cpu_ms=2000)) for n in range(THREADS)]
    burning = [room.call(dataclasses.replace(version, tenant="hungry")) for version in endless]
    assert (await room.get(last, LONG)).body == b"done"
    assert not any(other.failure for other in burning), "it did not wait for their end"
    for other in burning:
        assert (await other.over()).code == "CPU"
    await room.until(lambda: nices(room).count(LOW) <= THREADS, "the end of the surplus")


async def test_what_waits_for_a_thread_that_has_lost_its_place_is_run_by_another(room: EngineRoom) -> None:
    version = burner("burner")
    ears = [room.call(version, "http://test/150") for _ in range(3)]  # one isolate: one after the other
    for ear in ears:
        assert (await ear.over()).body == b"done"


async def test_slowed_threads_end_when_there_are_enough(room: EngineRoom) -> None:
    for n in range(12):  # of twelve tenants: each is a surprise
        assert (await room.get(burner("surprise", f"tenant{n}"), LONG)).body == b"done"
    await room.until(lambda: nices(room).count(LOW) <= THREADS, "the end of the surplus")
    assert (await room.get(burner("surprise", "tenant3"), LONG)).body == b"done"
    assert (await room.get(script(HELLO))).body == b"hello"


async def test_a_slow_call_is_charged_what_it_computes_and_not_what_it_waits(room: EngineRoom) -> None:
    """Eight at once on few cores take several times as long as one, and use no more."""
    await room.get(burner("alone"), LONG)
    alone = room.records[-1].cpu_us
    ears = [room.call(burner(f"b{n}"), LONG) for n in range(8)]
    for ear in ears:
        assert (await ear.over()).body == b"done"
    used = [record.cpu_us for record in room.records[-8:]]
    assert max(used) < 4 * alone and sum(used) < 16 * alone
