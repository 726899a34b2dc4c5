"""Measures the lag of the event loop: how late a timer fires that should fire every TICK.

Work that blocks the loop delays every client of every tenant, so this is the number to watch. There are two maximums:
since the node started, and over the last one to two minutes, so that a scrape each minute misses none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from msgspec import Struct

from atoll.tallies import Histogram

TICK: Final = 0.05  # seconds: 20 wake-ups a second take a thousandth of a core
WINDOW: Final = 60.0  # seconds after which a maximum begins again
BOUNDS: Final = (1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 5_000_000)  # us


class Lag(Struct, frozen=True):
    """Lag in seconds. The last two fields are for the last one to two minutes."""

    longest: float  # since the node started
    recent: float
    p99: float


class LoopLag:
    """Runs from `start` to `close`."""

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._clock = clock or self._loop.time
        self.times = Histogram(BOUNDS)
        self._longest = 0.0
        self._maxima = [0.0, 0.0]  # of the previous window and of this one
        self._counts = [[0] * (len(BOUNDS) + 1) for _ in range(2)]  # of `times` when each of the two began
        self._window_ends = self._clock() + WINDOW
        self._due = 0.0
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        self._due = self._clock() + TICK
        self._timer = self._loop.call_later(TICK, self._tick)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _tick(self) -> None:
        now = self._clock()
        self.note(max(now - self._due, 0.0), now)
        self._due = now + TICK
        self._timer = self._loop.call_later(TICK, self._tick)

    def note(self, late: float, now: float) -> None:
        if now >= self._window_ends:
            self._maxima = [self._maxima[1], 0.0]
            self._counts = [self._counts[1], list(self.times.counts)]
            self._window_ends = now + WINDOW
        self.times.add(int(late * 1e6))
        self._longest = max(self._longest, late)
        self._maxima[1] = max(self._maxima[1], late)

    def lag(self) -> Lag:
        recent = max(self._maxima)
        return Lag(self._longest, recent, min(self._quantile(0.99), recent))

    def in_ms(self) -> dict[str, float]:
        """The lag in milliseconds, for the API."""
        now = self.lag()
        seconds = {"p99": now.p99, "max": now.recent, "max_since_start": now.longest}
        return {name: round(each * 1000, 1) for name, each in seconds.items()}

    def _quantile(self, share: float) -> float:
        """The bound that this share of the recent ticks stayed below."""
        counts = [new - old for new, old in zip(self.times.counts, self._counts[0], strict=True)]
        wanted, seen = share * sum(counts), 0
        for bound, count in zip(BOUNDS, counts, strict=False):
            seen += count
            if seen >= wanted:
                return bound / 1e6
        return max(self._maxima)
