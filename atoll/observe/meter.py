"""Counts calls on the event loop: a few numbers per version, for up to `max_workers` workers; others share one set.

Of each worker the VERSIONS versions that were counted last have numbers of their own. Those of older ones are added to
one set, so that the numbers of the worker as a whole, which are a sum, never go down. A version that is watched keeps
its own numbers, even if its worker is one of those that share a set.

sources.py names the numbers of other packages. metrics.py turns both into metrics; it is imported at the first scrape.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from atoll.engine.limits import EVENT_CPU_MS
from atoll.logs import Invocation
from atoll.tallies import RECENT, Histogram
from atoll.wire.generated import OUTCOME_NAMES, Outcome
from atoll.workers import Version

OTHER = "(other)"
VERSIONS: Final = 5  # versions of a worker with counts of their own, as many as can have traffic
STATUS_CLASSES: Final = 10  # the status from the engine is checked to be below 1000

WALL_BOUNDS = (1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000, 5_000_000, 30_000_000)
CPU_BOUNDS = (100, 250, 500, 1_000, 2_500, 5_000, 10_000, 25_000, 50_000, 100_000, 500_000, 5_000_000)  # us, as above


NEAR: Final = 0.8  # of a limit
EXCEEDED: Final = frozenset((Outcome.EXCEEDED_CPU, Outcome.EXCEEDED_MEMORY, Outcome.EXCEEDED_WALL_TIME))
NO_LIMIT: Final[tuple[str, ...]] = ()


def near_limits(record: Invocation) -> tuple[str, ...]:
    """The limits to which a call came near, though it ended by itself: cpu, memory, subrequests."""
    limits = record.version.limits
    used = record.subrequests - record.fetches
    cpu_us = record.cpu_us
    near_cpu = cpu_us >= NEAR * 1000 * limits.cpu_ms
    if near_cpu and record.event != "fetch" and record.event != "rpc":
        near_cpu = cpu_us >= NEAR * 1000 * max(limits.cpu_ms, EVENT_CPU_MS)
    near_memory = record.memory_mb >= NEAR * limits.memory_mb
    near_requests = record.fetches >= NEAR * limits.subrequests or used >= NEAR * limits.internal_subrequests
    if not (near_cpu or near_memory or near_requests) or record.outcome in EXCEEDED:
        return NO_LIMIT
    found = (("cpu", near_cpu), ("memory", near_memory), ("subrequests", near_requests))
    return tuple([name for name, is_near in found if is_near])


class Tally:
    """The calls of one version, or of several versions of a worker."""

    __slots__ = (
        "asset_answers", "counts", "cpu", "near", "rollbacks", "sent_bytes", "subrequests", "tenant", "version",
        "wall", "worker",
    )  # fmt: skip

    def __init__(self, tenant: str, worker: str, version: str = "") -> None:
        self.tenant = tenant
        self.worker = worker
        self.version = version
        self.counts: dict[int, int] = {}  # by outcome and class of status
        self.wall = Histogram(WALL_BOUNDS)
        self.cpu = Histogram(CPU_BOUNDS)
        self.subrequests = 0
        self.near: dict[str, int] = {}  # calls that came near a limit, by limit
        self.asset_answers: dict[int, int] = {}  # answers with static assets, by class of status
        self.sent_bytes = 0
        self.rollbacks = 0  # automatic ones, of versions that failed

    def merge(self, other: Tally) -> None:
        for key, count in other.counts.items():
            self.counts[key] = self.counts.get(key, 0) + count
        self.wall.merge(other.wall)
        self.cpu.merge(other.cpu)
        self.subrequests += other.subrequests
        for limit, count in other.near.items():
            self.near[limit] = self.near.get(limit, 0) + count
        for status, count in other.asset_answers.items():
            self.asset_answers[status] = self.asset_answers.get(status, 0) + count
        self.sent_bytes += other.sent_bytes
        self.rollbacks += other.rollbacks


class Meter:
    """Counts calls."""

    def __init__(self, max_workers: int = 200) -> None:
        self._max_workers = max_workers
        self._others = Tally("", OTHER)
        self._tallies: dict[str, Tally] = {}  # by version id
        self._of: dict[str, list[Tally]] = {}  # the same by worker id, the newest last
        self._past: dict[str, Tally] = {}  # by worker id: of versions that have no tally any more
        self._watched: set[str] = set()  # ids of versions
        self._guests: set[str] = set()  # ids of workers beyond `max_workers` with a watched version
        self.outcomes = [0] * (max(OUTCOME_NAMES) + 1)  # of all calls since the start

    def record(self, record: Invocation) -> None:
        self.count(record.version, record.outcome, record.status, record.cpu_us, record.wall_us)
        if record.subrequests:
            self._tallies.get(record.version.id, self._others).subrequests += record.subrequests
        near = near_limits(record)
        if near:
            counts = self._tallies.get(record.version.id, self._others).near
            for limit in near:
                counts[limit] = counts.get(limit, 0) + 1

    def count(self, version: Version, outcome: int, status: int, cpu_us: int, wall_us: int) -> None:
        tally = self._tallies.get(version.id)
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

    def count_asset(self, version: Version, status: int, size: int) -> None:
        """Count an answer that needed no worker."""
        tally = self._tallies.get(version.id) or self._add(version)
        tally.asset_answers[status // 100] = tally.asset_answers.get(status // 100, 0) + 1
        tally.sent_bytes += size

    def count_rollback(self, version: Version) -> None:
        """Count an automatic rollback of a version that failed."""
        tally = self._tallies.get(version.id) or self._add(version)
        tally.rollbacks += 1

    def _add(self, version: Version) -> Tally:
        mine = self._of.get(version.worker_id)
        if mine is None:
            if len(self._of) >= self._max_workers:
                if version.id not in self._watched:
                    return self._others
                self._guests.add(version.worker_id)
            mine = self._of[version.worker_id] = []
        tally = self._tallies[version.id] = Tally(version.tenant, version.worker_name, version.id)
        mine.append(tally)
        unwatched = [each for each in mine[:-1] if each.version not in self._watched]
        if len(mine) > VERSIONS and unwatched:
            oldest = unwatched[0]
            mine.remove(oldest)
            del self._tallies[oldest.version]
            past = self._past.get(version.worker_id)
            if past is None:
                past = self._past[version.worker_id] = Tally(oldest.tenant, oldest.worker)
            past.merge(oldest)
        return tally

    def watch(self, version: Version) -> Tally:
        """The counts of a version, which keeps them until `unwatch`."""
        self._watched.add(version.id)
        return self._tallies.get(version.id) or self._add(version)

    def unwatch(self, version: Version) -> None:
        self._watched.discard(version.id)
        worker_id = version.worker_id
        if worker_id in self._guests and not any(each.version in self._watched for each in self._of[worker_id]):
            self._others.merge(self._sum(worker_id))
            self._drop(worker_id)

    def forget(self, worker_id: str) -> None:
        """The worker is gone: its counts join those of others, and its place is free."""
        if worker_id in self._of:
            self._others.merge(self._sum(worker_id))
            self._drop(worker_id)

    def _drop(self, worker_id: str) -> None:
        for tally in self._of.pop(worker_id):
            del self._tallies[tally.version]
        self._past.pop(worker_id, None)
        self._guests.discard(worker_id)

    def names(self, version: Version) -> tuple[str, str]:
        """The labels of a worker's series: its own tenant and name, or those of the shared series."""
        tally = self._tallies.get(version.id) or self._add(version)
        return tally.tenant, tally.worker

    def tallies(self, exists: Callable[[str], bool]) -> list[Tally]:
        """The counts by worker. Deleted workers free their place for others."""
        for worker_id in [worker_id for worker_id in self._of if not exists(worker_id)]:
            self._drop(worker_id)
        shown = [self._sum(worker_id) for worker_id in self._of]
        return [*shown, self._others] if self._others.counts or self._others.asset_answers else shown

    def _sum(self, worker_id: str) -> Tally:
        mine, past = self._of[worker_id], self._past.get(worker_id)
        if len(mine) == 1 and past is None:
            return mine[0]
        whole = Tally(mine[0].tenant, mine[0].worker)
        for tally in mine:
            whole.merge(tally)
        if past is not None:
            whole.merge(past)
        return whole

    def versions(self) -> list[Tally]:
        """The counts of single versions."""
        return list(self._tallies.values())

    def is_shared(self, worker_id: str) -> bool:
        """Whether calls of a worker are counted together with those of others."""
        return worker_id not in self._of and len(self._of) >= self._max_workers

    def each(self) -> list[Tally]:
        """The counts of single versions, and the set that other workers share."""
        return [*self._tallies.values(), self._others]
