"""The event loop's lag: measured, reported for the last minute or two, and cheap."""

from __future__ import annotations

import asyncio
import time

from atoll.observe.lag import TICK, WINDOW, LoopLag


async def test_blocking_the_loop_is_measured() -> None:
    lag = LoopLag()
    lag.start()
    await asyncio.sleep(TICK * 1.5)
    time.sleep(0.3)  # noqa: ASYNC251  # what is to be seen
    await asyncio.sleep(TICK * 2)
    lag.close()
    now = lag.lag()
    assert now.longest == now.recent and 0.2 < now.recent < 2
    assert sum(lag.times.counts) >= 2


async def test_the_recent_maximum_expires_after_two_windows_and_the_overall_one_stays() -> None:
    lag = LoopLag(clock=lambda: 0.0)
    for second in range(100):
        lag.note(0.0005, second / 10)
    lag.note(0.7, 10.0)
    assert (lag.lag().recent, lag.lag().p99) == (0.7, 0.001)
    lag.note(0.001, WINDOW + 1)
    assert lag.lag().recent == 0.7, "one scrape per minute misses nothing"
    lag.note(0.001, 2 * WINDOW + 2)
    assert (lag.lag().recent, lag.lag().longest) == (0.001, 0.7)
    assert lag.in_ms() == {"p99": 1.0, "max": 1.0, "max_since_start": 700.0}


async def test_the_99th_percentile_is_that_of_the_recent_ticks() -> None:
    lag = LoopLag(clock=lambda: 0.0)
    for number in range(1_000):
        lag.note(0.2 if number % 20 == 0 else 0.0, 1.0)
    assert lag.lag().p99 == 0.2  # the bucket ends at 0.25, but the maximum is more exact
    for window in range(1, 3):
        for _ in range(100):
            lag.note(0.0, window * (WINDOW + 1))
    assert lag.lag().p99 == 0.0


async def test_a_tick_costs_microseconds() -> None:
    lag = LoopLag()
    start = time.process_time()
    for _ in range(10_000):
        lag.note(0.001, 1.0)
    assert (time.process_time() - start) / 10_000 < 50e-6  # there are 20 per second
