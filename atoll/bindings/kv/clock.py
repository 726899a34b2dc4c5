"""A watch on the wall clock: whether it went on as time does, or was set."""

from __future__ import annotations

import time
from collections.abc import Callable


class ClockWatch:
    def __init__(self, wall: Callable[[], float], steady: Callable[[], float] = time.monotonic) -> None:
        self._wall = wall
        self._steady = steady
        self._seen = wall(), steady()

    def leap(self) -> float:
        """By how many seconds the wall clock was set forward since the last look, or back if that is negative."""
        wall, steady = self._seen
        self._seen = self._wall(), self._steady()
        return (self._seen[0] - wall) - (self._seen[1] - steady)
