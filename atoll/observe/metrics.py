"""What `/metrics` tells: numbers of the request path, which meter.py counts, and those other rooms keep.

All of it happens when somebody scrapes. Series per worker are bounded: the first `max_workers` have their own, the
others share one.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from atoll.egress.client import ClientStats
from atoll.engine.measures import PoolStats
from atoll.observe.meter import STATUS_CLASSES, Meter, Tally
from atoll.observe.processes import ProcessUse
from atoll.observe.sources import QueueState, Sources
from atoll.observe.storage import StorageState
from atoll.tallies import Histogram, OpTally
from atoll.wire.generated import OUTCOME_NAMES, Outcome

# Why Atoll ends code that would go on: the outcomes that are its own doing.
TERMINATIONS = (Outcome.EXCEEDED_CPU, Outcome.EXCEEDED_MEMORY, Outcome.EXCEEDED_WALL_TIME)

# Names for what the pool counts, all of it.
POOL_GAUGES = {
    "engines": ("atoll_engines", "Engine processes that serve."),
    "loaded": ("atoll_isolates", "Versions of workers that are loaded."),
    "in_flight": ("atoll_calls_in_flight", "Calls under way."),
    "queued": ("atoll_calls_queued", "Calls that wait for an engine or for room."),
}
POOL_COUNTERS = {
    "calls": ("atoll_calls", "Calls made to workers."),
    "hits": ("atoll_warm_calls", "Calls that found their worker loaded."),
    "loads": ("atoll_cold_starts", "Loads of a version into an engine."),
    "load_failures": ("atoll_load_failures", "Loads that failed."),
    "evictions": ("atoll_evictions", "Versions that were unloaded to make room for another."),
    "condemned": ("atoll_isolates_condemned", "Isolates that an engine had to give up, with all their calls."),
    "offences": ("atoll_isolates_stuck", "Isolates that did not end and cost their engine."),
    "spreads": ("atoll_spreads", "Loads of a version that was loaded already, because it was busy."),
    "refused": ("atoll_calls_refused", "Calls that were refused because there were too many."),
    "crashes": ("atoll_engine_crashes", "Engines that died of what ran in them."),
    "moves": ("atoll_calls_moved", "Calls that had not begun and were sent to another engine."),
    "engines_lost": ("atoll_engines_lost", "Engines that ended without being asked to."),
}


class Metrics(Collector):
    """Call `text` for what a scrape gets."""

    def __init__(self, meter: Meter, sources: Sources) -> None:
        self._meter = meter
        self._sources = sources
        self._queues: Sequence[QueueState] = ()
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def text(self, queues: Sequence[QueueState] = ()) -> bytes:
        """`queues` are looked at beforehand, since that may wait for a disk."""
        self._queues = queues
        return generate_latest(self._registry)

    def describe(self) -> Iterable[Metric]:
        return ()  # nothing is collected when it is registered

    def collect(self) -> Iterator[Metric]:
        sources = self._sources
        workers = set(sources.workers())
        yield from request_metrics(self._meter.tallies(workers.__contains__))
        yield from self._terminations()
        yield from self._memory()
        yield from pool_metrics(sources.pool())
        yield from op_metrics(sources.ops())
        yield from process_metrics(sources.processes())
        yield from egress_metrics(sources.egress())
        yield from queue_metrics(self._queues)
        yield from storage_metrics(sources.storage())
        yield tail_metric(sources.tails())
        yield _labelled("atoll_deploys", "Changes of workers that were asked for.", "result", sources.deploys())
        yield CounterMetricFamily("atoll_engine_restarts", "Engines that were started again.", sources.restarts())
        dropped, listeners = sources.logs()
        yield CounterMetricFamily("atoll_log_records_dropped", "Log records that were not kept: see log_rate.", dropped)
        yield GaugeMetricFamily("atoll_log_listeners", "Live streams of logs that are open.", listeners)
        yield GaugeMetricFamily("atoll_connections", "Connections of clients.", sources.connections())
        yield GaugeMetricFamily("atoll_workers", "Workers that are deployed.", len(workers))
        info = GaugeMetricFamily("atoll_info", "Which Atoll this is.", labels=["version"])
        info.add_metric([sources.version], 1)
        yield info

    def _terminations(self) -> Iterator[Metric]:
        counts = {OUTCOME_NAMES[outcome]: self._meter.outcomes[outcome] for outcome in TERMINATIONS}
        yield _labelled("atoll_terminations", "Calls that Atoll ended because of a limit.", "reason", counts)

    def _memory(self) -> Iterator[Metric]:
        labels = ["tenant", "worker"]
        used: Counter[tuple[str, str]] = Counter()
        isolates: Counter[tuple[str, str]] = Counter()
        for version, size in self._sources.memory():
            names = self._meter.names(version)
            used[names] += size
            isolates[names] += 1
        memory = GaugeMetricFamily("atoll_worker_memory_bytes", "Memory of a worker's isolates.", labels=labels)
        counts = GaugeMetricFamily("atoll_worker_isolates", "Isolates a worker is loaded in.", labels=labels)
        for names in used:
            memory.add_metric(names, used[names])
            counts.add_metric(names, isolates[names])
        yield from (memory, counts)


def egress_metrics(stats: ClientStats) -> Iterator[Metric]:
    yield CounterMetricFamily("atoll_fetch_requests", "Requests of workers to other servers.", stats.requests)
    yield CounterMetricFamily("atoll_fetch_failures", "Those of them that got no answer.", stats.failures)
    yield CounterMetricFamily("atoll_fetch_connects", "Connections that were opened for them.", stats.connects)
    yield CounterMetricFamily("atoll_fetch_reused", "Requests on a connection that was kept.", stats.reused)
    yield GaugeMetricFamily("atoll_fetch_connections", "Connections to other servers, idle ones too.", stats.open)


def storage_metrics(state: StorageState) -> Iterator[Metric]:
    size = GaugeMetricFamily("atoll_storage_bytes", "What a database takes on disk.", labels=["file"])
    faults = CounterMetricFamily("atoll_storage_faults", "Operations that failed as the disk did.", labels=["file"])
    for name, file in state.files.items():
        size.add_metric([name], file.bytes)
        faults.add_metric([name], file.faults)
    yield from (size, faults)
    if state.free_bytes is not None:
        yield GaugeMetricFamily("atoll_disk_free_bytes", "What the data folder's disk has left.", state.free_bytes)


def tail_metric(dropped: Mapping[tuple[str, str], int]) -> Metric:
    family = CounterMetricFamily(
        "atoll_tail_records_dropped", "Records that a tail worker lost.", labels=["tenant", "worker"]
    )
    for names, count in dropped.items():
        family.add_metric(names, count)
    return family


def queue_metrics(queues: Iterable[QueueState]) -> Iterator[Metric]:
    labels = ["tenant", "queue"]
    messages = GaugeMetricFamily("atoll_queue_messages", "Messages in a queue.", labels=[*labels, "state"])
    oldest = GaugeMetricFamily("atoll_queue_oldest_seconds", "Age of its oldest message.", labels=labels)
    size = GaugeMetricFamily("atoll_queue_bytes", "What its messages take.", labels=labels)
    dropped = CounterMetricFamily("atoll_queue_messages_dropped", "Messages that failed too often.", labels=labels)
    for queue in queues:
        names = [queue.tenant, queue.name]
        for state, count in (("waiting", queue.waiting), ("delayed", queue.delayed), ("leased", queue.leased)):
            messages.add_metric([*names, state], count)
        oldest.add_metric(names, queue.oldest_seconds)
        size.add_metric(names, queue.bytes)
        dropped.add_metric(names, queue.dropped)
    yield from (messages, oldest, size, dropped)


def request_metrics(tallies: Iterable[Tally]) -> Iterator[Metric]:
    labels = ["tenant", "worker"]
    requests = CounterMetricFamily("atoll_requests", "Calls that are over.", labels=[*labels, "outcome", "status"])
    wall = HistogramMetricFamily("atoll_request_duration_seconds", "From request to end of call.", labels=labels)
    cpu = HistogramMetricFamily("atoll_request_cpu_seconds", "CPU time of a call.", labels=labels)
    subrequests = CounterMetricFamily(
        "atoll_subrequests", "What calls asked of bindings and other servers.", labels=labels
    )
    for tally in tallies:
        names = [tally.tenant, tally.worker]
        for key, count in sorted(tally.counts.items()):
            outcome, status = divmod(key, STATUS_CLASSES)
            requests.add_metric([*names, OUTCOME_NAMES[outcome], f"{status}xx"], count)
        wall.add_metric(names, *_buckets(tally.wall))
        cpu.add_metric(names, *_buckets(tally.cpu))
        subrequests.add_metric(names, tally.subrequests)
    yield from (requests, wall, cpu, subrequests)


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
    """Microseconds as seconds, and each count with those below it, as Prometheus has it."""
    buckets, count = [], 0
    for bound, here in zip([*histogram.bounds, None], histogram.counts, strict=True):
        count += here
        buckets.append(("+Inf" if bound is None else str(bound / 1e6), float(count)))
    return buckets, histogram.total / 1e6
