"""Cron triggers against a clock that the test sets: due runs, missed runs, no overlap, and what is put down."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from atoll.triggers.cron import CronTriggers, newest_slot
from atoll.triggers.expression import parse_cron
from atoll.triggers.history import CronHistory
from atoll.triggers.sqlite import SqliteCronHistory
from tests.engine.engine_room import EngineRoom, script
from tests.eventually import eventually

HOUR = 3_600_000
TICK = "export default { scheduled(c) { console.log(c.cron, c.scheduledTime); } }"


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0 + 59.95  # nearly the full minute

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def history(tmp_path: Path, clock: Clock) -> AsyncIterator[CronHistory]:
    history = SqliteCronHistory(tmp_path / "crons.db", clock=clock)
    yield history
    await history.close()


@pytest.fixture
async def triggers(room: EngineRoom, history: CronHistory, clock: Clock) -> AsyncIterator[CronTriggers]:
    triggers = CronTriggers(room.pool, history, clock=clock)
    yield triggers
    await triggers.close()


async def ran(room: EngineRoom, triggers: CronTriggers, count: int) -> list[str]:
    """What the handler said once `count` runs are over and put down."""
    history = triggers.history

    async def are_over() -> bool:
        return sum(run.ended_at is not None for run in await history.runs("worker-test")) >= count

    await eventually(are_over, f"{count} runs")
    return [line.text for record in room.records for line in record.logs]


async def test_a_handler_runs_when_its_minute_comes(room: EngineRoom, triggers: CronTriggers, clock: Clock) -> None:
    triggers.put(script(TICK), ["* * * * *"])
    await eventually(lambda: triggers.history.mark("worker-test", "* * * * *"), "a look at the clock: nothing is due")
    clock.now += 0.1
    assert await ran(room, triggers, 1) == ["* * * * * 1800000060000"]
    (run,) = await triggers.history.runs("worker-test")
    assert (run.cron, run.slot, run.outcome, run.by_hand) == ("* * * * *", 1_800_000_060_000, "ok", 0)


async def test_of_the_runs_a_stopped_node_missed_only_the_newest_is_made_up(
    room: EngineRoom, triggers: CronTriggers, clock: Clock
) -> None:
    await triggers.history.set_mark("worker-test", "*/15 * * * *", triggers.now() - 5 * HOUR)
    triggers.put(script(TICK), ["*/15 * * * *"])
    (said,) = await ran(room, triggers, 1)
    slot = int(said.split()[-1])
    assert 0 <= triggers.now() - slot < HOUR / 4
    assert await triggers.history.mark("worker-test", "*/15 * * * *") == slot


async def test_runs_of_one_worker_never_overlap(room: EngineRoom, triggers: CronTriggers, clock: Clock) -> None:
    source = """let running = 0; export default { async scheduled(c, env) {
      console.log(++running); await env.ECHO.wait(100); running--; } }"""
    for cron in ("* * * * *", "*/2 * * * *", "0-59 * * * *"):
        await triggers.history.set_mark("worker-test", cron, triggers.now() - HOUR)
    triggers.put(script(source), ["* * * * *", "*/2 * * * *", "0-59 * * * *"])
    assert await ran(room, triggers, 3) == ["1", "1", "1"]


async def test_a_run_by_hand_waits_for_one_that_goes_on(room: EngineRoom, triggers: CronTriggers) -> None:
    source = """let running = 0; export default { async scheduled(c, env) {
      console.log(++running); await env.ECHO.wait(100); running--; } }"""
    version = script(source)
    runs = [triggers.run(version, "0 0 * * *", slot, by_hand=slot > 0) for slot in range(3)]
    assert await asyncio.gather(*runs) == [("ok", "")] * 3
    assert await ran(room, triggers, 3) == ["1", "1", "1"]


async def test_a_deploy_without_crons_lets_a_run_end(room: EngineRoom, triggers: CronTriggers) -> None:
    await triggers.history.set_mark("worker-test", "* * * * *", triggers.now() - HOUR)
    triggers.put(
        script("export default { async scheduled(c, env) { await env.ECHO.wait(200); console.log('ended'); } }"),
        ["* * * * *"],
    )
    await eventually(lambda: triggers.history.runs("worker-test"), "the run")
    triggers.put(script(TICK), [])
    assert await ran(room, triggers, 1) == ["ended"]
    [run] = await triggers.history.runs("worker-test")
    assert run.outcome == "ok"


async def test_an_expression_that_comes_back_has_missed_nothing_while_it_was_gone(
    room: EngineRoom, triggers: CronTriggers, clock: Clock
) -> None:
    daily, hourly = "0 0 * * *", "0 * * * *"

    async def are_known(crons: list[str]) -> bool:
        known = [cron for cron in (daily, hourly) if await triggers.history.mark("worker-test", cron) is not None]
        return known == crons

    for crons in ([daily, hourly], [hourly], [daily, hourly], []):
        triggers.put(script(TICK), crons)
        await eventually(partial(are_known, crons), "marks of the expressions there are")
        clock.now += 40
    clock.now += 48 * 3600
    triggers.put(script(TICK), [daily, hourly])
    await eventually(lambda: triggers.history.mark("worker-test", hourly), "the mark")
    assert await triggers.history.runs("worker-test") == []


async def test_a_run_that_fails_is_put_down_with_its_reason(
    room: EngineRoom, triggers: CronTriggers, clock: Clock
) -> None:
    version = script("export default { scheduled() { throw new RangeError('broken'); } }")
    assert await triggers.run(version, "0 0 * * *", 0) == ("exception", "RangeError: broken")
    (run,) = await triggers.history.runs("worker-test")
    assert (run.outcome, run.message) == ("exception", "RangeError: broken")


async def test_a_new_expression_counts_from_its_deploy(room: EngineRoom, triggers: CronTriggers, clock: Clock) -> None:
    triggers.put(script(TICK), ["0 0 * * *"])
    await eventually(lambda: triggers.history.mark("worker-test", "0 0 * * *"), "the mark")
    assert await triggers.history.runs("worker-test") == []


async def test_a_clock_that_was_set_back_does_not_stop_the_triggers(
    room: EngineRoom, triggers: CronTriggers, clock: Clock
) -> None:
    await triggers.history.set_mark("worker-test", "* * * * *", triggers.now() + 9000 * HOUR)
    triggers.put(script(TICK), ["* * * * *"])

    async def is_noticed() -> bool:
        return await triggers.history.mark("worker-test", "* * * * *") == triggers.now()

    await eventually(is_noticed, "a look at the clock")
    clock.now += 0.1
    assert await ran(room, triggers, 1) == ["* * * * * 1800000060000"]


async def test_a_clock_set_back_a_little_repeats_no_run(room: EngineRoom, triggers: CronTriggers, clock: Clock) -> None:
    slot = 1_800_000_060_000
    await triggers.history.set_mark("worker-test", "* * * * *", slot)
    triggers.put(script(TICK), ["* * * * *"])
    await asyncio.sleep(0.05)
    clock.now += 0.1  # the same minute once more
    await asyncio.sleep(0.3)
    assert await triggers.history.runs("worker-test") == []


@pytest.mark.parametrize("text", ["* * * * *", "*/7 3 * * *", "0 0 1 1 *", "0 0 29 2 *"])
def test_the_newest_slot_is_found_however_long_ago_the_last_was(text: str) -> None:
    cron = parse_cron(text)
    now = int(datetime.datetime(2030, 5, 6, 7, 8, tzinfo=datetime.UTC).timestamp() * 1000)
    for hours in (0, 1, 30, 9_000, 60_000):
        slot = newest_slot(cron, now - hours * HOUR, now)
        expected = None
        start = now - min(hours, 30 if text[0] == "*" else hours) * HOUR
        at = datetime.datetime.fromtimestamp(start / 1000, datetime.UTC)
        while (following := cron.next_after(at)) is not None and following.timestamp() * 1000 <= now:
            expected, at = int(following.timestamp() * 1000), following
        assert slot == expected, hours
