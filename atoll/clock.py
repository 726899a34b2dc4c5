"""Clocks that detect or ignore that the wall clock is set, and the format of times."""

from __future__ import annotations

import datetime
import time
from collections.abc import Callable


def seconds_up() -> float:
    """A clock that cannot be set and that continues while the machine sleeps."""
    return time.clock_gettime(time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic()


class SteadyClock:
    """Seconds since 1970: the wall clock at the start plus the time passed. Setting the wall clock has no effect.

    For delays: a jump of the wall clock makes them neither longer nor shorter.
    """

    def __init__(self, wall: Callable[[], float] = time.time, steady: Callable[[], float] = seconds_up) -> None:
        self._steady = steady
        self._offset = wall() - steady()

    def __call__(self) -> float:
        return self._offset + self._steady()


class ClockWatch:
    """Detects that the wall clock was set."""

    def __init__(self, wall: Callable[[], float], steady: Callable[[], float] = seconds_up) -> None:
        self._wall = wall
        self._steady = steady
        self._seen = wall(), steady()

    def leap(self) -> float:
        """Seconds by which the wall clock was set forward since the last call; negative if it was set back."""
        wall, steady = self._seen
        self._seen = self._wall(), self._steady()
        return (self._seen[0] - wall) - (self._seen[1] - steady)


def iso_time(ms: float) -> str:
    """Milliseconds since 1970 as ISO 8601 in UTC. Values outside of the calendar become its first or last day."""
    moment = datetime.datetime.fromtimestamp(min(max(ms, 0), 253_402_300_799_000) / 1000, datetime.UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
