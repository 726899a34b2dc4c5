"""Alerts that the node judges by itself, so that an operator without Prometheus sees them: those of deploy/prometheus.

Every PERIOD seconds the node notes a few of its counters and asks each rule. Names, bounds and times are those of
deploy/prometheus/atoll-alerts.yml (a test compares them). Rules about data of bindings need a Prometheus.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack

import msgspec

from atoll.clock import iso_time
from atoll.engine.process.memory import total_bytes
from atoll.observe.meter import STATUS_CLASSES, Meter
from atoll.observe.sources import Sources
from atoll.observe.storage import FileState
from atoll.wire.generated import OUTCOME_NAMES, Outcome

PERIOD = 15.0
MINUTES = 60.0
KEPT = int(10 * MINUTES / PERIOD) + 1  # notes: rules look back for ten minutes
MOST_NAMED = 3  # workers in a summary
NO_FAULT = (Outcome.OK, Outcome.CANCELED)
LIMITS = (Outcome.EXCEEDED_CPU, Outcome.EXCEEDED_MEMORY, Outcome.EXCEEDED_WALL_TIME)


class Alert(msgspec.Struct):
    """An alert that fires."""

    name: str
    severity: str  # page, ticket, info
    summary: str
    since: str
    runbook: str  # the page and section of the documents that say what to do


class CounterNote(msgspec.Struct):
    """Counters at one time."""

    at: float
    engines: int
    crashes: int
    refused: int
    failed_deploys: int
    dropped_records: int
    ended: int  # calls that a limit ended
    resident: int
    lag_p99: float
    lag_max: float
    free: int | None  # bytes of the disk
    files: dict[str, FileState]
    workers: dict[tuple[str, str], tuple[int, int]]  # calls, and those that failed, by tenant and worker


class AlertRule(msgspec.Struct, frozen=True):
    """`says` is given the newest note and that of `window` seconds ago: the summary, or "" if all is well."""

    name: str
    severity: str
    hold: float  # seconds for which it must be so
    window: float
    says: Callable[[CounterNote, CounterNote], str]


def _files(now: CounterNote, before: CounterNote) -> str:
    none = FileState(0, 0)
    bad = [name for name, file in now.files.items() if file.faults > before.files.get(name, none).faults]
    return f"operations on {', '.join(bad)} fail" if bad else ""


def _disk(now: CounterNote, before: CounterNote) -> str:
    return f"{now.free / 1e9:.1f} GB of disk left" if now.free is not None and now.free < 5e9 else ""


def _failing(now: CounterNote, before: CounterNote) -> str:
    bad = []
    for names, (calls, errors) in now.workers.items():
        calls_before, errors_before = before.workers.get(names, (0, 0))
        if calls > calls_before and (errors - errors_before) / (calls - calls_before) > 0.05:
            bad.append((errors - errors_before, "/".join(names)))
    bad.sort(reverse=True)
    named = ", ".join(name for _, name in bad[:MOST_NAMED]) + (" …" if len(bad) > MOST_NAMED else "")
    return f"more than 5 % of the calls fail: {named}" if bad else ""


def _rate(now: CounterNote, before: CounterNote, field: str) -> float:
    return float((getattr(now, field) - getattr(before, field)) / max(now.at - before.at, PERIOD))


def _refused(now: CounterNote, before: CounterNote) -> str:
    rate = _rate(now, before, "refused")
    return f"{rate:.2g} calls per second are refused" if rate > 0 else ""


RULES = [
    AlertRule("AtollStorageFails", "page", 0, 5 * MINUTES, _files),
    AlertRule("AtollDiskAlmostFull", "page", 10 * MINUTES, 0, _disk),
    AlertRule("AtollEnginesCrash", "ticket", 0, 10 * MINUTES, lambda n, b: "engines crash" * (n.crashes > b.crashes)),
    AlertRule("AtollEngineMissing", "page", 30, 0, lambda n, _: "no engine runs" * (n.engines < 1)),
    AlertRule("AtollRefusesCalls", "ticket", 5 * MINUTES, 5 * MINUTES, _refused),
    AlertRule("AtollWorkerErrors", "ticket", 10 * MINUTES, 5 * MINUTES, _failing),
    AlertRule(
        "AtollWorkersHitLimits",
        "ticket",
        5 * MINUTES,
        5 * MINUTES,
        lambda n, b: "limits end more than a call per second" * (_rate(n, b, "ended") > 1),
    ),
    AlertRule(
        "AtollMemoryHigh",
        "ticket",
        10 * MINUTES,
        0,
        lambda n, _: "Atoll uses more than 80 % of the memory" * (n.resident > 0.8 * total_bytes()),
    ),
    AlertRule(
        "AtollLoopStalls",
        "ticket",
        0,
        0,
        lambda n, _: f"the event loop was blocked for {n.lag_max:.1f} s" if n.lag_max > 0.5 else "",
    ),
    AlertRule(
        "AtollLoopLags",
        "ticket",
        5 * MINUTES,
        0,
        lambda n, _: f"the event loop is late: p99 is {n.lag_p99 * 1000:.0f} ms" if n.lag_p99 > 0.05 else "",
    ),
    AlertRule(
        "AtollLogsNotKept",
        "info",
        30 * MINUTES,
        5 * MINUTES,
        lambda n, b: "log records of busy workers are not kept" * (n.dropped_records > b.dropped_records),
    ),
    AlertRule(
        "AtollDeploysFail",
        "ticket",
        0,
        10 * MINUTES,
        lambda n, b: "deploys fail because of the node" * (n.failed_deploys > b.failed_deploys),
    ),
]


class NodeAlerts:
    def __init__(
        self, meter: Meter, sources: Sources, clock: Callable[[], float] = time.time, rules: list[AlertRule] = RULES
    ) -> None:
        self.sources = sources
        self.meter = meter
        self._clock = clock
        self._rules = rules
        self._notes: deque[CounterNote] = deque(maxlen=KEPT)
        self._since: dict[str, float] = {}  # by rule, while it is so
        self._told: dict[str, str] = {}
        self._timer: asyncio.TimerHandle | None = None

    @classmethod
    def begin(cls, meter: Meter, sources: Sources, undo: AsyncExitStack) -> NodeAlerts:
        """Alerts that are judged until `undo` is closed."""
        alerts = cls(meter, sources)
        alerts._timer = asyncio.get_running_loop().call_later(PERIOD, alerts._tick)
        undo.callback(alerts.close)
        return alerts

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _tick(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(PERIOD, self._tick)
        self.look()

    def look(self) -> None:
        """Note the counters and ask every rule."""
        now = self._note()
        self._notes.append(now)
        for rule in self._rules:
            summary = rule.says(now, self._before(now.at - rule.window))
            if summary:
                self._since.setdefault(rule.name, now.at)
                self._told[rule.name] = summary
            else:
                self._since.pop(rule.name, None)

    def firing(self) -> Iterator[Alert]:
        """The worst first."""
        now = self._notes[-1].at if self._notes else 0.0
        order = ("page", "ticket", "info")
        for rule in sorted(self._rules, key=lambda rule: order.index(rule.severity)):
            since = self._since.get(rule.name)
            if since is not None and now - since >= rule.hold:
                page = f"docs/guides/runbook.md#{rule.name.lower()}"
                yield Alert(rule.name, rule.severity, self._told[rule.name], iso_time(since * 1000), page)

    def _before(self, at: float) -> CounterNote:
        """The newest note that is at least as old, or the oldest."""
        return next((note for note in reversed(self._notes) if note.at <= at), self._notes[0])

    def _note(self) -> CounterNote:
        sources, pool, storage = self.sources, self.sources.pool(), self.sources.storage()
        loop_lag = sources.lag()
        lag = None if loop_lag is None else loop_lag.lag()
        return CounterNote(
            at=self._clock(),
            engines=pool.engines,
            crashes=pool.crashes,
            refused=pool.refused,
            failed_deploys=sources.deploys().get("failed", 0),
            dropped_records=sources.logs()[0],
            ended=sum(self.meter.outcomes[outcome] for outcome in LIMITS),
            resident=sum(use.resident_bytes for use in sources.processes().values()),
            lag_p99=lag.p99 if lag else 0.0,
            lag_max=lag.recent if lag else 0.0,
            free=storage.free_bytes,
            files=dict(storage.files),
            workers=self._workers(),
        )

    def _workers(self) -> dict[tuple[str, str], tuple[int, int]]:
        found: dict[tuple[str, str], tuple[int, int]] = {}
        names = {int(number) for number in OUTCOME_NAMES} - set(map(int, NO_FAULT))
        for tally in self.meter.each():
            calls = sum(tally.counts.values())
            errors = sum(count for key, count in tally.counts.items() if key // STATUS_CLASSES in names)
            before = found.get((tally.tenant, tally.worker), (0, 0))
            found[tally.tenant, tally.worker] = before[0] + calls, before[1] + errors
        return found
