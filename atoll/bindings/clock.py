"""Clocks that notice, or do not mind, when the wall clock is set."""

from __future__ import annotations

import time
from collections.abc import Callable


def seconds_up() -> float:
    """A clock that nobody sets and that goes on while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class SteadyClock:
    """Seconds since 1970 as the wall clock had them at the start, and since then as time goes, whatever it is set to.

    For what is to happen so long from now: a clock that jumps neither delays it nor brings it forward.
    """

    def __init__(self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = seconds_up) -> None:
        self._steady = steady
        self._offset = wall() - steady()

    def __call__(self) -> float:
        return self._offset + self._steady()


class ClockWatch:
    """Whether the wall clock went on as time does, or was set."""

    def __init__(self, wall: Callable[[], float], steady: Callable[[], float] = seconds_up) -> None:
        self._wall = wall
        self._steady = steady
        self._seen = wall(), steady()

    def leap(self) -> float:
        """By how many seconds the wall clock was set forward since the last look, or back if that is negative."""
        wall, steady = self._seen
        self._seen = self._wall(), self._steady()
        return (self._seen[0] - wall) - (self._seen[1] - steady)
