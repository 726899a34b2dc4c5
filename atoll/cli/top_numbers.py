"""The numbers of `atoll top`: two looks at the metrics of a node, and what happened between them."""

from __future__ import annotations

import time
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

from prometheus_client.parser import text_string_to_metric_families

if TYPE_CHECKING:
    from atoll.cli.client import Client

LONGEST_ANSWER = 64 << 20
GOOD = ("ok", "canceled")


class WorkerLine(NamedTuple):
    """One worker, or all workers of a tenant. Rates are of the time between two looks."""

    worker: str
    tenant: str
    calls: float  # per second
    errors: float  # share of the calls
    p50_ms: float | None
    p99_ms: float | None
    cpu: float  # cores
    in_flight: int
    queued: int
    full: float  # share of the calls that it may have
    isolates: int
    memory: float  # bytes


class EngineLine(NamedTuple):
    name: str
    serves: str
    cpu: float
    memory: float
    workers: int
    isolates: int
    in_flight: int
    waiting: int
    up: float  # seconds


class NodeLine(NamedTuple):
    calls: float
    errors: float
    in_flight: int
    queued: int
    connections: int
    refused: float  # per second
    cpu: float
    free: float  # bytes of memory
    lag_ms: float
    version: str


class TopSnapshot(NamedTuple):
    """What `atoll top` shows."""

    node: NodeLine
    workers: list[WorkerLine]
    tenants: list[WorkerLine]
    engines: list[EngineLine]


class Look:
    """All metrics at one moment: by name, the value for each set of labels."""

    def __init__(self, client: Client) -> None:
        from atoll.cli.talk import fail

        response = client.send("GET", "/metrics")
        raw = response.read(LONGEST_ANSWER)
        self.at = time.monotonic()
        self.pool: dict[str, Any] = client.get("/admin/pool")
        self.values: dict[str, dict[tuple[tuple[str, str], ...], float]] = defaultdict(dict)
        try:
            for family in text_string_to_metric_families(raw.decode("utf-8", "replace")):
                for sample in family.samples:
                    self.values[sample.name][tuple(sorted(sample.labels.items()))] = sample.value
        except ValueError as error:
            fail(f"{client.target.api}/metrics has no metrics: {error}", "check that --api is a control host of Atoll")

    def one(self, name: str) -> float:
        return sum(self.values[name].values())


Pair = tuple[str, str]  # tenant, worker
Bucket = tuple[float, float]  # upper bound, calls up to it


class Between:
    """What happened between two looks; without an earlier one, since the node started."""

    def __init__(self, before: Look | None, now: Look) -> None:
        self.now = now
        self.before = before
        self.seconds = now.at - before.at if before is not None else 0.0

    def rates(self, name: str) -> dict[tuple[tuple[str, str], ...], float]:
        """By labels: how much a counter grew in a second. A node that restarted counts from zero again."""
        if self.before is None or self.seconds <= 0:
            return dict.fromkeys(self.now.values[name], 0.0)
        before = self.before.values[name]
        return {
            labels: (value - before.get(labels, 0.0) if value >= before.get(labels, 0.0) else value) / self.seconds
            for labels, value in self.now.values[name].items()
        }

    def snapshot(self) -> TopSnapshot:
        workers = self._workers()
        by_tenant: dict[str, list[WorkerLine]] = defaultdict(list)
        for line in workers:
            by_tenant[line.tenant].append(line)
        waits = self._waits(by_tenant=True)
        tenants = [summed(tenant, lines, waits.get((tenant, ""), [])) for tenant, lines in by_tenant.items() if tenant]
        return TopSnapshot(self._node(workers), workers, tenants, self._engines())

    def _workers(self) -> list[WorkerLine]:
        calls: dict[Pair, float] = defaultdict(float)
        errors: dict[Pair, float] = defaultdict(float)
        for labels, rate in self.rates("atoll_requests_total").items():
            found = dict(labels)
            pair = found.get("tenant", ""), found.get("worker", "")
            calls[pair] += rate
            errors[pair] += 0.0 if found.get("outcome") in GOOD else rate
        cpu = by_pair(self.rates("atoll_request_cpu_seconds_sum"))
        gauges = {
            name: by_pair(self.now.values[f"atoll_worker_{name}"])
            for name in ("calls", "queued", "saturation", "isolates", "memory_bytes")
        }
        waits = self._waits(by_tenant=False)
        lines = []
        for tenant, worker in sorted({*calls, *gauges["calls"], *gauges["isolates"]}):
            pair = tenant, worker
            rate = calls[pair]
            lines.append(
                WorkerLine(
                    worker=worker,
                    tenant=tenant,
                    calls=rate,
                    errors=errors[pair] / rate if rate else 0.0,
                    p50_ms=quantile(waits.get(pair, []), 0.5),
                    p99_ms=quantile(waits.get(pair, []), 0.99),
                    cpu=cpu.get(pair, 0.0),
                    in_flight=int(gauges["calls"].get(pair, 0)),
                    queued=int(gauges["queued"].get(pair, 0)),
                    full=gauges["saturation"].get(pair, 0.0),
                    isolates=int(gauges["isolates"].get(pair, 0)),
                    memory=gauges["memory_bytes"].get(pair, 0.0),
                )
            )
        return lines

    def _waits(self, *, by_tenant: bool) -> dict[Pair, list[Bucket]]:
        """The durations of calls as buckets, by worker or by tenant."""
        sums: dict[Pair, dict[float, float]] = defaultdict(lambda: defaultdict(float))
        for labels, rate in self.rates("atoll_request_duration_seconds_bucket").items():
            found = dict(labels)
            pair = found.get("tenant", ""), "" if by_tenant else found.get("worker", "")
            sums[pair][float(found.get("le", "inf"))] += rate
        return {pair: sorted(buckets.items()) for pair, buckets in sums.items()}

    def _engines(self) -> list[EngineLine]:
        cpu = {dict(labels).get("process", ""): rate for labels, rate in self.rates("atoll_cpu_seconds_total").items()}
        rss = {dict(k).get("process", ""): value for k, value in self.now.values["atoll_resident_bytes"].items()}
        told = {str(each.get("name", "")): each for each in self.now.pool["processes"]}
        lines = []
        for name in sorted(rss, key=lambda name: (name != "node", name)):
            each = told.get(name, {})
            lines.append(
                EngineLine(
                    name=name,
                    serves=str(each.get("for", "")),
                    cpu=cpu.get(name, 0.0),
                    memory=rss[name],
                    workers=int(each.get("workers", 0)),
                    isolates=int(each.get("isolates", 0)),
                    in_flight=int(each.get("in_flight", 0)),
                    waiting=int(each.get("waiting", 0)),
                    up=float(each.get("uptime_seconds", 0)),
                )
            )
        return lines

    def _node(self, workers: list[WorkerLine]) -> NodeLine:
        now, calls = self.now, sum(line.calls for line in workers)
        info = next(iter(now.values["atoll_info"]), ())
        return NodeLine(
            calls=calls,
            errors=sum(line.calls * line.errors for line in workers) / calls if calls else 0.0,
            in_flight=int(now.one("atoll_calls_in_flight")),
            queued=int(now.one("atoll_calls_queued")),
            connections=int(now.one("atoll_connections")),
            refused=sum(self.rates("atoll_calls_refused_total").values()),
            cpu=sum(self.rates("atoll_cpu_seconds_total").values()),
            free=now.one("atoll_memory_available_bytes"),
            lag_ms=now.one("atoll_loop_lag_p99_seconds") * 1000,
            version=dict(info).get("version", ""),
        )


def by_pair(values: dict[tuple[tuple[str, str], ...], float]) -> dict[Pair, float]:
    sums: dict[Pair, float] = defaultdict(float)
    for labels, value in values.items():
        found = dict(labels)
        sums[found.get("tenant", ""), found.get("worker", "")] += value
    return sums


def summed(tenant: str, lines: list[WorkerLine], waits: list[Bucket]) -> WorkerLine:
    calls = sum(line.calls for line in lines)
    return WorkerLine(
        worker=f"{len(lines)} worker{'s' if len(lines) != 1 else ''}",
        tenant=tenant,
        calls=calls,
        errors=sum(line.calls * line.errors for line in lines) / calls if calls else 0.0,
        p50_ms=quantile(waits, 0.5),
        p99_ms=quantile(waits, 0.99),
        cpu=sum(line.cpu for line in lines),
        in_flight=sum(line.in_flight for line in lines),
        queued=sum(line.queued for line in lines),
        full=max(line.full for line in lines),
        isolates=sum(line.isolates for line in lines),
        memory=sum(line.memory for line in lines),
    )


def quantile(buckets: list[Bucket], share: float) -> float | None:
    """Milliseconds within which this share of the calls ended, interpolated within a bucket."""
    total = buckets[-1][1] if buckets else 0.0
    if total <= 0:
        return None
    below, start = 0.0, 0.0
    for bound, count in buckets:
        if count >= share * total:
            if bound == float("inf"):
                return start * 1000
            part = (share * total - below) / (count - below) if count > below else 1.0
            return (start + (bound - start) * part) * 1000
        below, start = count, bound
    return start * 1000
