"""Watches deployments that have a rollback rule, and says which of them fail.

The meter counts every call by version anyway. A timer reads these counts a few times per window, so a rule costs a
request nothing. The counts of a window are the difference between two samples. After a restart of the node the counts
begin at zero and so does the window; the end of the rule stays.

A call fails if that is the fault of its version: it threw, exceeded a limit, broke its response, was blocked because it
made engines fail, or was answered by the worker with a status of 500 or more. Calls that say nothing about the version
are not counted at all: clients that disconnected, a tenant beyond its quota (429), an overloaded node, a lost engine.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from random import random
from typing import Final, Protocol

from msgspec import Struct

from atoll.control.store.rollback_rows import RollbackRule
from atoll.observe.meter import STATUS_CLASSES, Tally
from atoll.wire.generated import Outcome
from atoll.workers import Version

SAMPLES: Final = 20  # per window
MIN_PERIOD: Final = 0.25  # seconds between samples
MAX_PERIOD: Final = 10.0
RETRY: Final = 5.0  # seconds after a rollback that could not be made at once

FAULTS: Final = frozenset({
    Outcome.EXCEPTION,
    Outcome.EXCEEDED_CPU,
    Outcome.EXCEEDED_MEMORY,
    Outcome.EXCEEDED_WALL_TIME,
    Outcome.RESPONSE_STREAM_DISCONNECTED,
    Outcome.KILL_SWITCH,
})  # fmt: skip


class Counts(Protocol):
    """The part of observe.meter.Meter that this uses."""

    def watch(self, version: Version) -> Tally: ...
    def unwatch(self, version: Version) -> None: ...


class Verdict(Struct, frozen=True):
    """A version that fails too often."""

    version: Version
    number: int
    calls: int
    failed: int
    above: float

    def __str__(self) -> str:
        share = 100 * self.failed / self.calls
        return (
            f"{self.failed:,} of {self.calls:,} requests to version {self.number} failed"
            f" ({share:.3g} %, rule {self.above:g} %)"
        )


class FailureWindow:
    """The calls of one version within a sliding window, from samples of counters that only grow."""

    def __init__(self, seconds: float, now: float, calls: int, failed: int) -> None:
        self._seconds = seconds
        self._samples = deque([(now, calls, failed)])

    def add(self, now: float, calls: int, failed: int) -> tuple[int, int]:
        """Add a sample; returns the calls and the failures of the window."""
        samples = self._samples
        samples.append((now, calls, failed))
        while len(samples) > 2 and samples[1][0] <= now - self._seconds:
            samples.popleft()
        _, old_calls, old_failed = samples[0]
        return calls - old_calls, failed - old_failed


def judged(counts: Mapping[int, int]) -> tuple[int, int]:
    """The calls that say something about their version, and how many of these failed."""
    calls = failed = 0
    for key, count in counts.items():
        outcome, status = divmod(key, STATUS_CLASSES)
        if outcome == Outcome.OK:
            calls += count
            failed += count if status == 5 else 0
        elif outcome in FAULTS and status != 4:  # with 4xx: refused for its tenant, or thrown after such an answer
            calls += count
            failed += count
    return calls, failed


class Watch:
    """One deployment with a rule, from its start to the end of the rule."""

    def __init__(self, worker_id: str, rule: RollbackRule, versions: Iterable[Version], counts: Counts, now: float):
        self.worker_id = worker_id
        self.rule = rule
        self._counts = counts
        numbers = {share.version_id: share.number for share in rule.watched}
        self._watched = []
        for version in versions:
            if version.id in numbers:
                tally = counts.watch(version)
                window = FailureWindow(rule.window_seconds, now, *judged(tally.counts))
                self._watched.append((version, numbers[version.id], tally, window))
        self.period = min(max(rule.window_seconds / SAMPLES, MIN_PERIOD), MAX_PERIOD)
        self.timer: asyncio.TimerHandle | None = None

    def look(self, now: float) -> Verdict | None:
        """Take a sample; returns a version that fails too often."""
        found = None
        for version, number, tally, window in self._watched:
            calls, failed = window.add(now, *judged(tally.counts))
            if calls >= self.rule.min_requests and 100 * failed > self.rule.above * calls:
                found = found or Verdict(version, number, calls, failed, self.rule.above)
        return found

    def close(self) -> None:
        if self.timer is not None:
            self.timer.cancel()
        for version, *_ in self._watched:
            self._counts.unwatch(version)


class Health:
    """The watches of a node, at most one per worker. `on_failure` and `on_end` are told what they find."""

    def __init__(self, counts: Counts, clock: Callable[[], float], ticks: Callable[[], float]) -> None:
        self.on_failure: Callable[[Watch, Verdict], None] = lambda watch, verdict: None
        self.on_end: Callable[[Watch], None] = lambda watch: None
        self._counts = counts
        self._clock = clock  # the end of a rule is a time of day, which survives a restart
        self._ticks = ticks  # windows are measured by a clock that nobody sets
        self._watches: dict[str, Watch] = {}  # by worker id

    def watch_of(self, worker_id: str) -> Watch | None:
        return self._watches.get(worker_id)

    def follow(self, worker_id: str, rule: RollbackRule | None, versions: Iterable[Version]) -> None:
        """Watch the current deployment of a worker, instead of the one before. Without a rule: stop watching."""
        self.forget(worker_id)
        if rule is not None:
            watch = self._watches[worker_id] = Watch(worker_id, rule, versions, self._counts, self._ticks())
            # By chance: after a restart the timers of many workers would all fire at once
            self._set_timer(watch, watch.period * (0.5 + random() / 2))

    def forget(self, worker_id: str) -> None:
        watch = self._watches.pop(worker_id, None)
        if watch is not None:
            watch.close()

    def close(self) -> None:
        for worker_id in list(self._watches):
            self.forget(worker_id)

    def look(self, watch: Watch) -> None:
        """Take a sample of a deployment and act on it."""
        verdict = watch.look(self._ticks())
        if verdict is not None:
            self._set_timer(watch, RETRY)  # a rollback that succeeds replaces the watch, and this timer with it
            self.on_failure(watch, verdict)
        elif self._clock() * 1000 >= watch.rule.ends_at:
            self.forget(watch.worker_id)
            self.on_end(watch)
        else:
            self._set_timer(watch, watch.period)

    def _set_timer(self, watch: Watch, seconds: float) -> None:
        if watch.timer is not None:
            watch.timer.cancel()
        watch.timer = asyncio.get_running_loop().call_later(seconds, self.look, watch)
