"""A point of a time series: what happened in one step, as numbers that can be added up, and the steps to show.

Durations are histograms, so the percentiles of a longer time or of several versions come from the sums of their counts.
A percentile is the place in its bucket, so it is near and not exact.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

from atoll.observe.meter import CPU_BOUNDS, STATUS_CLASSES, WALL_BOUNDS, Tally
from atoll.wire.generated import OUTCOME_NAMES, Outcome

FAILING_CLASS: Final = 5  # answers 5xx count as errors, whatever the outcome
NO_FAULT: Final = (Outcome.OK, Outcome.CANCELED, Outcome.RESPONSE_STREAM_DISCONNECTED)  # the client went away


class StepCounts(msgspec.Struct, array_like=True):
    """The counts of one step."""

    counts: dict[int, int] = {}  # by outcome * 10 + class of status
    wall: list[int] = []  # by WALL_BOUNDS
    cpu: list[int] = []  # by CPU_BOUNDS
    cpu_us: int = 0
    subrequests: int = 0
    assets: int = 0  # answers with static assets, which need no call

    @property
    def calls(self) -> int:
        return sum(self.counts.values())

    @property
    def errors(self) -> int:
        return sum(count for key, count in self.counts.items() if is_error(key))

    def add(self, other: StepCounts) -> None:
        for key, count in other.counts.items():
            self.counts[key] = self.counts.get(key, 0) + count
        self.wall = _sum(self.wall, other.wall)
        self.cpu = _sum(self.cpu, other.cpu)
        self.cpu_us += other.cpu_us
        self.subrequests += other.subrequests
        self.assets += other.assets


def is_error(key: int) -> bool:
    return key // STATUS_CLASSES not in NO_FAULT or key % STATUS_CLASSES == FAILING_CLASS


def point_of(tally: Tally) -> StepCounts:
    """All that a tally has counted so far."""
    assets = sum(tally.asset_answers.values())
    wall, cpu = list(tally.wall.counts), list(tally.cpu.counts)
    return StepCounts(dict(tally.counts), wall, cpu, tally.cpu.total, tally.subrequests, assets)


def since(now: StepCounts, before: StepCounts) -> StepCounts:
    """What was counted between two looks at a tally."""
    counts = {key: more for key, count in now.counts.items() if (more := count - before.counts.get(key, 0))}
    return StepCounts(
        counts,
        [a - b for a, b in zip(now.wall, before.wall, strict=True)] if before.wall else now.wall,
        [a - b for a, b in zip(now.cpu, before.cpu, strict=True)] if before.cpu else now.cpu,
        now.cpu_us - before.cpu_us,
        now.subrequests - before.subrequests,
        now.assets - before.assets,
    )


def _sum(one: list[int], other: list[int]) -> list[int]:
    if not one or not other:
        return list(one or other)
    return [a + b for a, b in zip(one, other, strict=True)]


# As the API shows them


class SeriesPoint(msgspec.Struct):
    """One step. Durations in ms; null where there were no calls."""

    at: str
    version: str  # "" for all versions together
    calls: int
    errors: int
    outcomes: dict[str, int]
    p50_ms: float | None
    p99_ms: float | None
    cpu_p50_ms: float | None
    cpu_p99_ms: float | None
    cpu_ms: float  # of all calls together
    subrequests: int
    assets: int


def shown(at: str, version: str, point: StepCounts) -> SeriesPoint:
    outcomes: dict[str, int] = {}
    for key, count in point.counts.items():
        name = OUTCOME_NAMES[Outcome(key // STATUS_CLASSES)]
        name = "status_5xx" if key // STATUS_CLASSES == Outcome.OK and is_error(key) else name
        outcomes[name] = outcomes.get(name, 0) + count
    return SeriesPoint(
        at,
        version,
        point.calls,
        point.errors,
        outcomes,
        percentile(point.wall, WALL_BOUNDS, 0.5),
        percentile(point.wall, WALL_BOUNDS, 0.99),
        percentile(point.cpu, CPU_BOUNDS, 0.5),
        percentile(point.cpu, CPU_BOUNDS, 0.99),
        round(point.cpu_us / 1000, 3),
        point.subrequests,
        point.assets,
    )


def percentile(counts: Sequence[int], bounds: Sequence[int], share: float) -> float | None:
    """A percentile in ms, by its place between the two bounds in microseconds. Above all bounds: the last bound."""
    total = sum(counts)
    if not total:
        return None
    wanted, seen, low = total * share, 0, 0
    for count, bound in zip(counts, bounds, strict=False):
        if count and seen + count >= wanted:
            return round((low + (bound - low) * (wanted - seen) / count) / 1000, 3)
        seen, low = seen + count, bound
    return bounds[-1] / 1000


def total_of(points: Iterable[StepCounts]) -> StepCounts:
    whole = StepCounts({})
    for point in points:
        whole.add(point)
    return whole
