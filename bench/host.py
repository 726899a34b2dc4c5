"""Steal time: the share of a virtual machine's time that its host takes.

Nothing in the machine runs during that time, but its clocks go on. A crowded host may take a tenth of the machine in
one minute and nothing in the next, so that the second of two measurements takes ten times as long. So the benchmarks
check the steal time and repeat a disturbed measurement.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

LITTLE = 0.02  # share of the machine's time
TRIES = 8
STEAL = 7  # in the line of /proc/stat


class HostTime:
    """Measures the host's share since this object was created."""

    def __init__(self) -> None:
        self._began = self._read()

    def share(self) -> float:
        """The share of the machine's time that the host has taken since then."""
        spent = [now - then for then, now in zip(self._began, self._read(), strict=True)]
        return spent[STEAL] / max(sum(spent), 1)

    @staticmethod
    def _read() -> list[int]:
        with Path("/proc/stat").open() as file:
            return [int(ticks) for ticks in file.readline().split()[1:9]]


def undisturbed(measure: Callable[[], T], little: float = LITTLE) -> tuple[T, float]:
    """Repeats a measurement until the host takes little meanwhile. Returns the least disturbed try and the share."""
    best: tuple[T, float] | None = None
    for _ in range(TRIES):
        host = HostTime()
        found = measure()
        share = host.share()
        if best is None or share < best[1]:
            best = found, share
        if share < little:
            break
    assert best is not None
    return best
