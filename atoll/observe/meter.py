"""Counts calls, once each on the event loop: a few numbers per worker, of which `max_workers` have their own.

What others keep is named in sources.py. Both are turned into metrics when somebody scrapes: metrics.py, which is
imported then and not before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from atoll.logs import Invocation
from atoll.tallies import RECENT, Histogram
from atoll.wire.generated import OUTCOME_NAMES
from atoll.workers import Version

OTHER = "(other)"
STATUS_CLASSES: Final = 10  # the engine's word is checked to be below 1000

WALL_BOUNDS = (1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 5_000_000, 30_000_000)
CPU_BOUNDS = (100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 500_000, 5_000_000)  # us, as above


class Tally:
    """The calls of one worker."""

    __slots__ = ("counts", "cpu", "subrequests", "tenant", "wall", "worker")

    def __init__(self, tenant: str, worker: str) -> None:
        self.tenant = tenant
        self.worker = worker
        self.counts: dict[int, int] = {}  # by outcome and class of status
        self.wall = Histogram(WALL_BOUNDS)
        self.cpu = Histogram(CPU_BOUNDS)
        self.subrequests = 0


class Meter:
    """Counts calls."""

    def __init__(self, max_workers: int = 200) -> None:
        self._max_workers = max_workers
        self._others = Tally("", OTHER)
        self._tallies: dict[str, Tally] = {}  # by worker id
        self.outcomes = [0] * (max(OUTCOME_NAMES) + 1)  # of all calls since the start

    def record(self, record: Invocation) -> None:
        self.count(record.version, record.outcome, record.status, record.cpu_us, record.wall_us)
        if record.subrequests:
            self._tallies.get(record.version.worker_id, self._others).subrequests += record.subrequests

    def count(self, version: Version, outcome: int, status: int, cpu_us: int, wall_us: int) -> None:
        tally = self._tallies.get(version.worker_id)
        if tally is None:
            tally = self._add(version)
        key = outcome * STATUS_CLASSES + status // 100
        counts = tally.counts
        counts[key] = counts.get(key, 0) + 1
        walls = tally.wall.recent
        walls.append(wall_us)
        tally.cpu.recent.append(cpu_us)
        if len(walls) >= RECENT:
            tally.wall.fold()
            tally.cpu.fold()
        self.outcomes[outcome] += 1

    def _add(self, version: Version) -> Tally:
        if len(self._tallies) >= self._max_workers:
            return self._others
        tally = self._tallies[version.worker_id] = Tally(version.tenant, version.worker_name)
        return tally

    def names(self, version: Version) -> tuple[str, str]:
        """Tenant and worker as series are labelled: its own names, or those of the others."""
        tally = self._tallies.get(version.worker_id) or self._add(version)
        return tally.tenant, tally.worker

    def tallies(self, exists: Callable[[str], bool]) -> list[Tally]:
        """What was counted, by worker. Workers that are gone give their place to others."""
        for worker_id in [worker_id for worker_id in self._tallies if not exists(worker_id)]:
            del self._tallies[worker_id]
        shown = list(self._tallies.values())
        return [*shown, self._others] if self._others.counts else shown
