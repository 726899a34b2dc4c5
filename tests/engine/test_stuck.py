"""Code that V8 can neither finish nor interrupt: the engine is replaced, and no other call is affected."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Callable
from typing import Any

import pytest
from engine_room import HELLO, Ear, EngineRoom, alive, script

from atoll.errors import LoadFailed
from atoll.wire.generated import ErrorCode, Frame, Outcome
from atoll.workers import Limits

SHORT = Limits(cpu_ms=50)
STUCK = "export default { fetch() { [].indexOf.call({ length: 2 ** 53 - 1 }, 1); return new Response('never'); } };"
DIVIDE = "const x = (1n << 30000000n) - 1n, y = (1n << 300000n) - 1n; for (;;) x % y;"
LATE = f"export default {{ fetch() {{ {DIVIDE} }} }};"
LATE_AFTER_ANSWER = f"""export default {{ fetch(request, env, ctx) {{
  ctx.waitUntil((async () => {{ for (let i = 0; i < 20; i++) await i; {DIVIDE} }})());
  return new Response('early');
}} }};"""
FATAL = "export default { fetch() { const all = new Set(); for (let i = 0; ; i++) all.add(i + ' of the bomb'); } };"
SLEEPER = "export default { fetch() { return new Promise(r => setTimeout(() => r(new Response('slept')), 1500)); } };"


async def test_stuck_code_costs_only_its_own_call(room: EngineRoom) -> None:
    victims = [script(HELLO, f"victim{n}") for n in range(4)]
    for version in victims:
        await room.get(version)
    sleeper = script(SLEEPER, "sleeper")
    await room.pool.loader.check(sleeper)
    [old] = room.supervisor.pids
    asleep = room.call(sleeper)
    began = time.monotonic()
    attack = room.call(script(STUCK, "attacker", SHORT))
    answers: list[Ear] = []
    while not attack.failure or old in room.supervisor.pids or not room.supervisor.pids:
        answers.append(await room.get(victims[len(answers) % 4]))
        await asyncio.sleep(0.005)
        assert time.monotonic() - began < 10
    assert attack.code == "CPU"
    assert attack.failure is not None and attack.failure.message.endswith("ms of CPU, limit 50 ms")
    answers += [await room.get(version) for version in victims]  # now from the new engine
    assert {(ear.code, ear.body) for ear in answers} == {("", b"hello")}
    assert (await asleep.over()).body == b"slept", "a call in the old engine may finish"
    await room.until(lambda: not alive(old), "the end of the old engine")
    assert room.pool.stats().offences == 1
    record = next(record for record in room.records if record.version.worker_name == "attacker")
    assert record.outcome == Outcome.EXCEEDED_CPU


@pytest.mark.parametrize("cpu_ms", [50, 400])
async def test_a_stuck_call_is_answered_within_one_and_a_half_times_its_limit(room: EngineRoom, cpu_ms: int) -> None:
    version = script(STUCK, limits=Limits(cpu_ms=cpu_ms))
    await room.pool.loader.check(version)
    [old] = room.supervisor.pids
    ear = await room.get(version)
    assert ear.code == "CPU"
    used = re.match(r"used (\d+) ms of CPU", ear.failure.message if ear.failure else "")
    assert used is not None and int(used[1]) <= 1.5 * cpu_ms
    assert old in room.supervisor.pids and room.pool.stats().offences == 0, "the code may still end by itself"
    await room.until(lambda: room.pool.stats().offences, "the engine to be condemned")
    [record] = room.records
    assert record.cpu_us / 1000 > cpu_ms + 90, "all CPU time is charged, not only what the caller saw"


async def test_code_that_ends_late_is_answered_in_time_and_keeps_its_engine(room: EngineRoom) -> None:
    """V8 divides a number of nine million digits by one of ninety thousand, and rarely checks for interrupts."""
    version = script(LATE, limits=SHORT)
    await room.pool.loader.check(version)
    [old] = room.supervisor.pids
    for _ in range(3):
        ear = await room.get(version)
        used = re.match(r"used (\d+) ms of CPU", ear.failure.message if ear.failure else "")
        assert used is not None and int(used[1]) <= 75
        await room.until(lambda: not room.pool.busy, "the end of the code")
    assert list(room.supervisor.pids) == [old]
    assert {record.outcome for record in room.records} == {Outcome.EXCEEDED_CPU}
    assert len(room.records) == 3


async def test_an_answer_given_before_the_code_is_late_is_sent(room: EngineRoom) -> None:
    version = script(LATE_AFTER_ANSWER, limits=SHORT)
    await room.pool.loader.check(version)
    ear = await room.get(version)
    assert (ear.status, ear.body, ear.code) == (200, b"early", "")
    await room.until(lambda: room.records, "the record")
    assert room.records[0].outcome == Outcome.EXCEEDED_CPU


async def test_calls_that_wait_behind_stuck_code_fail_for_the_same_reason(room: EngineRoom) -> None:
    version = script(STUCK, limits=SHORT)
    await room.pool.loader.check(version)
    ears = [room.call(version) for _ in range(10)]
    assert {(await ear.over()).code for ear in ears} == {"CPU"}
    assert "limit 50 ms, in a built-in function that cannot be interrupted" in str(ears[-1].failure)
    assert room.pool.stats().offences == 1, "the waiting calls do not end the next engine too"


async def test_stuck_top_level_code_is_a_failed_deploy(room: EngineRoom) -> None:
    with pytest.raises(LoadFailed, match=r"top-level code used .* limit 1000 ms, in a built-in"):
        await room.pool.loader.check(
            script("new Array(2 ** 27).fill(0).indexOf(1) + [].indexOf.call({length: 2 ** 53}, 1);" + HELLO)
        )
    assert (await room.get(script(HELLO))).body == b"hello"


async def test_an_out_of_memory_error_of_v8_does_not_end_the_process(room: EngineRoom) -> None:
    victim = script(HELLO, "victim")
    await room.get(victim)
    attack = room.call(script(FATAL, "attacker", Limits(cpu_ms=10_000, memory_mb=64)))
    while not attack.failure:
        assert (await room.get(victim)).body == b"hello"
    assert attack.code == "MEMORY"
    await room.until(lambda: room.supervisor.pids, "an engine")
    assert (await room.get(victim)).body == b"hello"


async def test_stopping_a_node_ends_condemned_engines(open_room: Callable[..., Any]) -> None:
    room = await open_room()
    [old] = room.supervisor.pids
    sleeper = script(SLEEPER, "sleeper")
    await room.pool.loader.check(sleeper)
    room.call(sleeper)
    await room.get(script(STUCK, limits=SHORT))
    await room.until(lambda: room.pool.stats().offences, "the end of its engine")
    assert alive(old)
    await room.supervisor.stop()
    assert not alive(old)


async def test_running_out_of_memory_after_unload_costs_no_call(room: EngineRoom) -> None:
    """V8 may run out of memory while it frees a condemned isolate. The engine then reports a worker that is gone."""
    gone, sleeper = script(HELLO, "gone"), script(SLEEPER, "sleeper")
    await room.get(gone)
    await room.pool.loader.check(sleeper)
    asleep = room.call(sleeper)
    session, number = room.isolate(gone).session, room.isolate(gone).load_id
    [old] = room.supervisor.pids
    room.pool.loader.retire(gone)
    await room.until(lambda: number not in session.isolates, "the end of the isolate")
    told = json.dumps({"code": ErrorCode.MEMORY, "message": "used too much memory"}).encode()
    session.handlers()[Frame.STUCK](0, number, 0, told, 0, len(told))
    assert (await asleep.over()).body == b"slept"
    await room.until(lambda: not alive(old) and room.supervisor.pids, "another engine in its place")
    assert (await room.get(script(HELLO, "next"))).body == b"hello"
