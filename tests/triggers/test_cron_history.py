"""What every store of the cron history promises. Another backend is one more entry of BACKENDS."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from atoll.triggers.history import KEPT_RUNS, CronHistory
from atoll.triggers.sqlite import SqliteCronHistory

BACKENDS: dict[str, Callable[[Path], CronHistory]] = {"sqlite": lambda folder: SqliteCronHistory(folder / "crons.db")}
EVERY = "* * * * *"


class Opened:
    def __init__(self, make: Callable[[], CronHistory]) -> None:
        self.make = make
        self.history = make()

    async def reopen(self) -> CronHistory:
        await self.history.close()
        self.history = self.make()
        return self.history


@pytest.fixture(params=BACKENDS)
async def opened(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Opened]:
    made = Opened(lambda: BACKENDS[request.param](tmp_path))
    yield made
    await made.history.close()


async def test_a_run_is_put_down_when_it_begins_and_when_it_ends(opened: Opened) -> None:
    history = opened.history
    number = await history.begin("w", EVERY, 60_000, by_hand=False)
    [run] = await history.runs("w")
    assert (run.cron, run.slot, run.outcome, run.ended_at, run.by_hand) == (EVERY, 60_000, "running", None, 0)
    await history.end(number, "exception", "Error: no")
    [run] = await (await opened.reopen()).runs("w")
    assert (run.outcome, run.message) == ("exception", "Error: no") and run.ended_at is not None


async def test_a_run_that_a_crash_cut_off_is_told(opened: Opened) -> None:
    await opened.history.begin("w", EVERY, 60_000, by_hand=False)
    history = await opened.reopen()
    later = await history.begin("w", EVERY, 120_000, by_hand=False)
    assert [run.outcome for run in await history.runs("w")] == ["running", "interrupted"]
    await history.end(later, "ok", "")
    assert [run.outcome for run in await history.runs("w")] == ["ok", "interrupted"]


async def test_a_mark_only_moves_on_unless_it_is_set(opened: Opened) -> None:
    history = opened.history
    assert await history.mark("w", EVERY) is None
    await history.begin("w", EVERY, 120_000, by_hand=False)
    await history.begin("w", EVERY, 60_000, by_hand=False)
    await history.begin("w", EVERY, 900_000, by_hand=True)
    assert await history.mark("w", EVERY) == 120_000, "a run by hand is no slot"
    assert await history.mark("w", "0 0 * * *") is None and await history.mark("other", EVERY) is None
    await history.set_mark("w", EVERY, 5)
    assert await (await opened.reopen()).mark("w", EVERY) == 5


async def test_the_last_hundred_runs_are_kept_and_go_with_the_worker(opened: Opened) -> None:
    history = opened.history
    await history.begin("other", EVERY, 1, by_hand=True)
    for slot in range(KEPT_RUNS + 5):
        await history.begin("w", EVERY, slot, by_hand=True)
    assert [run.slot for run in await history.runs("w")] == list(range(KEPT_RUNS + 4, 4, -1))
    await history.forget("w")
    assert await history.runs("w") == [] and len(await history.runs("other")) == 1


async def test_only_the_expressions_of_now_are_remembered(opened: Opened) -> None:
    history = opened.history
    for worker in ("w", "other"):
        for cron in (EVERY, "0 * * * *"):
            await history.set_mark(worker, cron, 60_000)
    await history.keep_marks("w", [EVERY, "never seen"])
    history = await opened.reopen()
    assert await history.mark("w", EVERY) == 60_000
    assert await history.mark("w", "0 * * * *") is None
    assert await history.mark("other", "0 * * * *") == 60_000
