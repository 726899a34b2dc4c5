"""The contract of every cron history. Another backend is one more entry of BACKENDS."""

from __future__ import annotations

import secrets
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest

from atoll.bindings.cron.history import KEPT_RUNS, CronHistory
from atoll.bindings.cron.postgres import PostgresCronHistory
from atoll.bindings.cron.sqlite import SqliteCronHistory
from tests.postgres_server import opened_database


@asynccontextmanager
async def in_sqlite(folder: Path) -> AsyncIterator[Callable[[], CronHistory]]:
    yield lambda: SqliteCronHistory(folder / "crons.db")


@asynccontextmanager
async def in_postgres(folder: Path) -> AsyncIterator[Callable[[], CronHistory]]:
    pool = await opened_database("cron")
    yield lambda: PostgresCronHistory(pool, Alone(), time.time)
    await pool.close()


class Alone:
    """A node that is alone in its cluster."""

    def __init__(self) -> None:
        self.session = secrets.token_hex(8)
        self.ahead_ms = 0


BACKENDS: dict[str, Callable[[Path], AbstractAsyncContextManager[Callable[[], CronHistory]]]] = {
    "sqlite": in_sqlite,
    "postgres": in_postgres,
}
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
    async with BACKENDS[request.param](tmp_path) as make:
        made = Opened(make)
        yield made
        await made.history.close()


async def test_a_run_is_recorded_at_its_start_and_its_end(opened: Opened) -> None:
    history = opened.history
    number = await history.begin("w", EVERY, 60_000, by_hand=False)
    [run] = await history.runs("w")
    assert (run.cron, run.slot, run.outcome, run.ended_at, run.by_hand) == (EVERY, 60_000, "running", None, 0)
    await history.end(number, "exception", "Error: no")
    [run] = await (await opened.reopen()).runs("w")
    assert (run.outcome, run.message) == ("exception", "Error: no") and run.ended_at is not None


async def test_a_run_interrupted_by_a_crash_is_recorded(opened: Opened) -> None:
    await opened.history.begin("w", EVERY, 60_000, by_hand=False)
    history = await opened.reopen()
    later = await history.begin("w", EVERY, 120_000, by_hand=False)
    assert [run.outcome for run in await history.runs("w")] == ["running", "interrupted"]
    await history.end(later, "ok", "")
    assert [run.outcome for run in await history.runs("w")] == ["ok", "interrupted"]


async def test_a_mark_only_moves_forward_unless_it_is_set(opened: Opened) -> None:
    history = opened.history
    assert await history.mark("w", EVERY) is None
    await history.begin("w", EVERY, 120_000, by_hand=False)
    await history.begin("w", EVERY, 60_000, by_hand=False)
    await history.begin("w", EVERY, 900_000, by_hand=True)
    assert await history.mark("w", EVERY) == 120_000, "a manual run does not move the mark"
    assert await history.mark("w", "0 0 * * *") is None and await history.mark("other", EVERY) is None
    await history.set_mark("w", EVERY, 5)
    assert await (await opened.reopen()).mark("w", EVERY) == 5


async def test_the_last_hundred_runs_are_kept_and_deleted_with_the_worker(opened: Opened) -> None:
    history = opened.history
    await history.begin("other", EVERY, 1, by_hand=True)
    for slot in range(KEPT_RUNS + 5):
        await history.begin("w", EVERY, slot, by_hand=True)
    assert [run.slot for run in await history.runs("w")] == list(range(KEPT_RUNS + 4, 4, -1))
    await history.forget("w")
    assert await history.runs("w") == [] and len(await history.runs("other")) == 1


async def test_only_current_expressions_are_remembered(opened: Opened) -> None:
    history = opened.history
    for worker in ("w", "other"):
        for cron in (EVERY, "0 * * * *"):
            await history.set_mark(worker, cron, 60_000)
    await history.keep_marks("w", [EVERY, "never seen"])
    history = await opened.reopen()
    assert await history.mark("w", EVERY) == 60_000
    assert await history.mark("w", "0 * * * *") is None
    assert await history.mark("other", "0 * * * *") == 60_000
