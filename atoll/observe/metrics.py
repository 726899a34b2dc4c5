"""The text of `/metrics`: numbers of calls, counted by meter.py, and numbers of other packages.

It is made at each scrape, in steps that let the event loop run in between. Series per worker are bounded: the first
`max_workers` workers have their own, the others share one.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from atoll import __version__
from atoll.engine.stats import PoolStats
from atoll.observe.lag import LoopLag
from atoll.observe.meter import Meter
from atoll.observe.processes import ProcessUse
from atoll.observe.sources import Sources
from atoll.observe.storage import StorageState
from atoll.observe.worker_series import gauge_of, series_of
from atoll.offload.pool import JobCounts
from atoll.tallies import Histogram, OpTally
from atoll.wire.generated import OUTCOME_NAMES, Outcome

# Outcomes of calls that Atoll ended because of a limit.
TERMINATIONS = (Outcome.EXCEEDED_CPU, Outcome.EXCEEDED_MEMORY, Outcome.EXCEEDED_WALL_TIME)

# Names and help texts for all counts of the pool.
POOL_GAUGES = {
    "engines": ("atoll_engines", "Running engine processes."),
    "loaded": ("atoll_isolates", "Loaded isolates."),
    "in_flight": ("atoll_calls_in_flight", "Calls in flight."),
    "queued": ("atoll_calls_queued", "Calls that wait for an engine or for capacity."),
}
POOL_COUNTERS = {
    "calls": ("atoll_calls", "Calls made to workers."),
    "hits": ("atoll_warm_calls", "Calls that found their worker loaded."),
    "loads": ("atoll_cold_starts", "Loads of a version into an engine."),
    "load_failures": ("atoll_load_failures", "Loads that failed."),
    "evictions": ("atoll_evictions", "Isolates that were unloaded to make room for another."),
    "condemned": ("atoll_isolates_condemned", "Isolates that an engine terminated with all their calls."),
    "offences": ("atoll_isolates_stuck", "Isolates that could not be terminated, so that their engine was replaced."),
    "spreads": ("atoll_spreads", "Loads of a version into another engine because it was busy."),
    "refused": ("atoll_calls_refused", "Calls that were refused because of a concurrency limit."),
    "crashes": ("atoll_engine_crashes", "Engines that crashed."),
    "moves": ("atoll_calls_moved", "Calls that were moved to another engine before they began."),
    "engines_lost": ("atoll_engines_lost", "Engines that ended unexpectedly."),
}


class Some(Collector):
    """A part of a family, for the writer."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric

    def collect(self) -> Iterator[Metric]:
        yield self._metric


class Metrics:
    """Call `text` for the answer to a scrape."""

    def __init__(self, meter: Meter, sources: Sources) -> None:
        self._meter = meter
        self._sources = sources

    async def text(self, families: Sequence[Metric] = ()) -> bytes:
        """`families` are those of bindings, made before, because that may wait for a disk."""
        workers = self._sources.workers()
        parts = []
        series = series_of(self._meter.tallies(workers.__contains__), self._meter.versions())
        for part in chain(series, self._memory(), self._load()):
            parts.append(part)
            await asyncio.sleep(0)
        for metric in self._collect(len(workers), families):
            parts.append(generate_latest(Some(metric)))
            await asyncio.sleep(0)
        return b"".join(parts)

    def _collect(self, workers: int, families: Sequence[Metric]) -> Iterator[Metric]:
        """All families but those of worker_series.py."""
        sources = self._sources
        yield from lag_metrics(sources.lag())
        yield from self._terminations()
        yield from pool_metrics(sources.pool())
        yield from op_metrics(sources.ops())
        yield from process_metrics(sources.processes())
        total, available = sources.room()
        yield GaugeMetricFamily("atoll_memory_total_bytes", "Total memory of the machine or the control group.", total)
        yield GaugeMetricFamily(
            "atoll_memory_available_bytes", "Available memory of the machine or the control group.", available
        )
        yield from families
        yield from storage_metrics(sources.storage())
        yield from job_metrics(sources.jobs())
        yield _labelled("atoll_deploys", "Requested changes of workers, by result.", "result", sources.deploys())
        yield CounterMetricFamily("atoll_engine_restarts", "Engines that were restarted.", sources.restarts())
        unsent = "Entries that were dropped, by where they were to go."
        yield _labelled("atoll_unsent_entries", unsent, "to", sources.unsent())
        dropped, listeners = sources.logs()
        yield CounterMetricFamily("atoll_log_records_dropped", "Log records that were dropped: see log_rate.", dropped)
        yield GaugeMetricFamily("atoll_log_listeners", "Open live streams of logs.", listeners)
        yield GaugeMetricFamily("atoll_connections", "Connections of clients.", sources.connections())
        yield GaugeMetricFamily("atoll_workers", "Deployed workers.", workers)
        info = GaugeMetricFamily("atoll_info", "The version of Atoll.", labels=["version"])
        info.add_metric([__version__], 1)
        yield info

    def _terminations(self) -> Iterator[Metric]:
        counts = {OUTCOME_NAMES[outcome]: self._meter.outcomes[outcome] for outcome in TERMINATIONS}
        yield _labelled("atoll_terminations", "Calls that Atoll ended because of a limit.", "reason", counts)

    def _load(self) -> Iterator[bytes]:
        """What loaded workers do now. Versions of a worker are added up, and of saturation the largest counts."""
        calls: Counter[tuple[str, str]] = Counter()
        queued: Counter[tuple[str, str]] = Counter()
        full: dict[tuple[str, str], float] = {}
        for load in self._sources.load():
            names = self._meter.names(load.version)
            calls[names] += load.in_flight
            queued[names] += load.waiting
            full[names] = max(full.get(names, 0.0), load.saturation)
        yield from gauge_of("atoll_worker_calls", "Calls of a worker in flight.", calls)
        yield from gauge_of("atoll_worker_queued", "Calls of a worker that have not begun.", queued)
        meaning = "Calls as a share of how many a worker may have; at 1 it refuses."
        yield from gauge_of("atoll_worker_saturation", meaning, full)

    def _memory(self) -> Iterator[bytes]:
        used: Counter[tuple[str, str]] = Counter()
        isolates: Counter[tuple[str, str]] = Counter()
        for version, size in self._sources.memory():
            names = self._meter.names(version)
            used[names] += size
            isolates[names] += 1
        yield from gauge_of("atoll_worker_memory_bytes", "Memory of a worker's isolates.", used)
        yield from gauge_of("atoll_worker_isolates", "Loaded isolates of a worker.", isolates)


def storage_metrics(state: StorageState) -> Iterator[Metric]:
    size = GaugeMetricFamily("atoll_storage_bytes", "Size of a database on disk.", labels=["file"])
    faults = CounterMetricFamily("atoll_storage_faults", "Operations that failed because of the disk.", labels=["file"])
    for name, file in state.files.items():
        size.add_metric([name], file.bytes)
        faults.add_metric([name], file.faults)
    yield from (size, faults)
    if state.free_bytes is not None:
        yield GaugeMetricFamily("atoll_disk_free_bytes", "Free space of the data folder's disk.", state.free_bytes)


def job_metrics(counts: JobCounts) -> Iterator[Metric]:
    ended = CounterMetricFamily("atoll_jobs", "Jobs of job processes, by ending.", labels=["job", "ending"])
    for names, count in counts.endings.items():
        ended.add_metric(names, count)
    seconds = CounterMetricFamily(
        "atoll_job_seconds", "Time that jobs took, without time in the queue.", labels=["job"]
    )
    for name, total in counts.seconds.items():
        seconds.add_metric([name], total)
    yield from (ended, seconds)
    yield GaugeMetricFamily("atoll_jobs_waiting", "Jobs in the queue.", counts.waiting)
    yield GaugeMetricFamily("atoll_job_processes", "Running job processes.", counts.processes)


def lag_metrics(lag: LoopLag | None) -> Iterator[Metric]:
    if lag is None:
        return
    times = HistogramMetricFamily("atoll_loop_lag_seconds", "Lag of the event loop, measured 20 times a second.")
    times.add_metric([], *_buckets(lag.times))
    now = lag.lag()
    yield times
    yield GaugeMetricFamily(
        "atoll_loop_lag_p99_seconds", "99th percentile of the event loop's lag in the last one to two minutes.", now.p99
    )
    yield GaugeMetricFamily(
        "atoll_loop_lag_max_seconds", "Maximum of the event loop's lag in the last one to two minutes.", now.recent
    )


def pool_metrics(stats: PoolStats) -> Iterator[Metric]:
    for field in dataclasses.fields(stats):
        value = getattr(stats, field.name)
        if field.name in POOL_COUNTERS:
            yield CounterMetricFamily(*POOL_COUNTERS[field.name], value)
        else:
            yield GaugeMetricFamily(*POOL_GAUGES[field.name], value)


def op_metrics(ops: Iterable[tuple[str, str, OpTally]]) -> Iterator[Metric]:
    labels = ["binding", "op"]
    times = HistogramMetricFamily("atoll_op_duration_seconds", "Ops of workers, by kind of binding.", labels=labels)
    refused = CounterMetricFamily("atoll_ops_refused", "Ops that were answered with an error.", labels=labels)
    for kind, name, tally in ops:
        if any(tally.times.counts):
            times.add_metric([kind, name], *_buckets(tally.times))
            refused.add_metric([kind, name], tally.refused)
    yield from (times, refused)


def process_metrics(processes: Mapping[str, ProcessUse]) -> Iterator[Metric]:
    rss = GaugeMetricFamily("atoll_resident_bytes", "Memory of a process.", labels=["process"])
    cpu = CounterMetricFamily("atoll_cpu_seconds", "CPU time of a process.", labels=["process"])
    for name, use in processes.items():
        rss.add_metric([name], use.resident_bytes)
        cpu.add_metric([name], use.cpu_seconds)
    yield from (rss, cpu)


def _labelled(name: str, meaning: str, label: str, counts: Mapping[str, int]) -> Metric:
    family = CounterMetricFamily(name, meaning, labels=[label])
    for value, count in counts.items():
        family.add_metric([value], count)
    return family


def _buckets(histogram: Histogram) -> tuple[list[tuple[str, float]], float]:
    """Microseconds as seconds, with cumulative counts, as in Prometheus."""
    buckets, count = [], 0
    for bound, here in zip([*histogram.bounds, None], histogram.counts, strict=True):
        count += here
        buckets.append(("+Inf" if bound is None else str(bound / 1e6), float(count)))
    return buckets, histogram.total / 1e6
