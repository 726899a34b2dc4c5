"""Cron triggers with a clock that the test controls: due runs, missed runs, no overlap, and the history."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from atoll.bindings.cron.clock import CronTriggers, newest_slot
from atoll.bindings.cron.expression import parse_cron
from atoll.bindings.cron.history import CronHistory
from atoll.bindings.cron.sqlite import SqliteCronHistory
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
    triggers = CronTriggers(room.events, history, clock=clock)
    yield triggers
    await triggers.close()


async def ran(room: EngineRoom, triggers: CronTriggers, count: int) -> list[str]:
    """The messages of the handler once `count` runs have ended and are in the history."""
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


async def test_only_the_newest_missed_run_of_a_stopped_node_is_made_up(
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


async def test_a_manual_run_waits_for_a_running_one(room: EngineRoom, triggers: CronTriggers) -> None:
    source = """let running = 0; export default { async scheduled(c, env) {
      console.log(++running); await env.ECHO.wait(100); running--; } }"""
    version = script(source)
    runs = [triggers.run(version, "0 0 * * *", slot, by_hand=slot > 0) for slot in range(3)]
    assert await asyncio.gather(*runs) == [("ok", "")] * 3
    assert await ran(room, triggers, 3) == ["1", "1", "1"]


async def test_a_deploy_without_crons_lets_a_run_finish(room: EngineRoom, triggers: CronTriggers) -> None:
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


async def test_an_expression_that_is_added_again_has_no_missed_runs(
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


async def test_a_failed_run_is_recorded_with_its_reason(room: EngineRoom, triggers: CronTriggers, clock: Clock) -> None:
    version = script("export default { scheduled() { throw new RangeError('broken'); } }")
    assert await triggers.run(version, "0 0 * * *", 0) == ("exception", "RangeError: broken")
    (run,) = await triggers.history.runs("worker-test")
    assert (run.outcome, run.message) == ("exception", "RangeError: broken")


async def test_a_new_expression_counts_from_its_deploy(room: EngineRoom, triggers: CronTriggers, clock: Clock) -> None:
    triggers.put(script(TICK), ["0 0 * * *"])
    await eventually(lambda: triggers.history.mark("worker-test", "0 0 * * *"), "the mark")
    assert await triggers.history.runs("worker-test") == []


async def test_setting_the_clock_back_does_not_stop_the_triggers(
    room: EngineRoom, triggers: CronTriggers, clock: Clock
) -> None:
    await triggers.history.set_mark("worker-test", "* * * * *", triggers.now() + 9000 * HOUR)
    triggers.put(script(TICK), ["* * * * *"])

    async def is_noticed() -> bool:
        return await triggers.history.mark("worker-test", "* * * * *") == triggers.now()

    await eventually(is_noticed, "a look at the clock")
    clock.now += 0.1
    assert await ran(room, triggers, 1) == ["* * * * * 1800000060000"]


async def test_setting_the_clock_back_a_little_repeats_no_run(
    room: EngineRoom, triggers: CronTriggers, clock: Clock
) -> None:
    slot = 1_800_000_060_000
    await triggers.history.set_mark("worker-test", "* * * * *", slot)
    triggers.put(script(TICK), ["* * * * *"])
    await asyncio.sleep(0.05)
    clock.now += 0.1  # the same minute again
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
