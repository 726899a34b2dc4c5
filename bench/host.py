"""What the host of a virtual machine takes of it: time in which nothing here runs, and no clock of ours leaves out.

On a crowded host that is a tenth of the machine in one minute and nothing in the next, so that of two measurements one
after the other the second may take ten times as long, whatever is measured. Hence: look, and measure again.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")

LITTLE = 0.02  # of the machine
TRIES = 8
STEAL = 7  # in the line of /proc/stat


class HostTime:
    """From when it is made."""

    def __init__(self) -> None:
        self._began = self._read()

    def share(self) -> float:
        """Of the machine's time since then, what its host took."""
        spent = [now - then for then, now in zip(self._began, self._read(), strict=True)]
        return spent[STEAL] / max(sum(spent), 1)

    @staticmethod
    def _read() -> list[int]:
        with Path("/proc/stat").open() as file:
            return [int(ticks) for ticks in file.readline().split()[1:9]]


def undisturbed(measure: Callable[[], T], little: float = LITTLE) -> tuple[T, float]:
    """Measure until the host takes little meanwhile. Of several tries the one of which it took least, and how much."""
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
