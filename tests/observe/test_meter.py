"""Metrics are counted cheaply, stay bounded, and have the format of Prometheus."""

from __future__ import annotations

import asyncio
import os
import time

from prometheus_client.parser import text_string_to_metric_families

from atoll import __version__
from atoll.engine.stats import PoolStats
from atoll.logs import Invocation
from atoll.observe.meter import Meter
from atoll.observe.metrics import Metrics
from atoll.observe.processes import use_of, uses_of
from atoll.observe.sources import Sources
from atoll.tallies import RECENT, Histogram, OpTally
from atoll.wire.generated import Outcome
from atoll.workers import Version

LABELS = ("tenant", "worker", "version", "outcome", "status", "binding", "op", "process", "reason", "result", "le")


def call(
    worker: str, status: int = 200, outcome: Outcome = Outcome.OK, wall_us: int = 2_000, number: int = 1
) -> Invocation:
    version = Version(f"{worker} {number}", f"id of {worker}", worker, "local", (), "worker.js")
    return Invocation(version, outcome, status, 150, wall_us, 1.8e9, b"")


def samples(meter: Meter, *workers: str, **sources: object) -> dict[tuple[str, ...], float]:
    """Everything a scrape shows, by name and label values."""
    known = {
        "pool": lambda: PoolStats(engines=2, evictions=3),
        "ops": lambda: (),
        "restarts": lambda: 1,
        "processes": dict,
        "workers": lambda: [f"id of {worker}" for worker in workers],
        "deploys": lambda: {"ok": 4},
        "logs": lambda: (5, 6),
        "connections": lambda: 7,
    } | sources
    text = asyncio.run(Metrics(meter, Sources(**known)).text()).decode()  # type: ignore[arg-type]
    return {
        (sample.name, *(sample.labels[label] for label in LABELS if label in sample.labels)): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_calls_are_counted_by_worker_outcome_and_status() -> None:
    meter = Meter()
    for _ in range(3):
        meter.record(call("a"))
    meter.record(call("a", 503, Outcome.EXCEEDED_CPU, wall_us=70_000))
    meter.record(call("b", 404))
    found = samples(meter, "a", "b")
    assert found["atoll_requests_total", "local", "a", "ok", "2xx"] == 3
    assert found["atoll_requests_total", "local", "a", "exceededCpu", "5xx"] == 1
    assert found["atoll_requests_total", "local", "b", "ok", "4xx"] == 1
    assert found["atoll_terminations_total", "exceededCpu"] == 1
    assert found["atoll_request_duration_seconds_bucket", "local", "a", "0.001"] == 0
    assert found["atoll_request_duration_seconds_bucket", "local", "a", "0.0025"] == 3
    assert found["atoll_request_duration_seconds_bucket", "local", "a", "+Inf"] == 4
    assert found["atoll_request_duration_seconds_count", "local", "a"] == 4
    assert round(found["atoll_request_duration_seconds_sum", "local", "a"], 6) == 0.076
    assert found["atoll_request_cpu_seconds_bucket", "local", "b", "0.00025"] == 1


def test_labels_of_workers_are_escaped() -> None:
    meter = Meter()
    version = Version("v 1", "id of odd", 'say "a\\b"\nc', "local", (), "worker.js")
    meter.record(Invocation(version, Outcome.OK, 200, 150, 2_000, 1.8e9, b""))
    found = samples(meter, "odd", memory=lambda: [(version, 5)])
    assert found["atoll_requests_total", "local", 'say "a\\b"\nc', "ok", "2xx"] == 1
    assert found["atoll_version_requests_total", "local", 'say "a\\b"\nc', "v 1", "ok", "2xx"] == 1
    assert found["atoll_worker_memory_bytes", "local", 'say "a\\b"\nc'] == 5


def test_counters_of_other_rooms_are_shown() -> None:
    tally = OpTally()
    tally.times.add(300)
    tally.refused += 1
    ops = [("kv", "kv.get", tally), ("kv", "kv.put", OpTally())]
    found = samples(Meter(), ops=lambda: ops, processes=lambda: uses_of({"node": os.getpid(), "gone": 2**22 + 1}))
    assert found["atoll_op_duration_seconds_bucket", "kv", "kv.get", "0.0005"] == 1
    assert found["atoll_ops_refused_total", "kv", "kv.get"] == 1
    assert ("atoll_ops_refused_total", "kv", "kv.put") not in found, "a counter at zero has no series"
    assert found["atoll_resident_bytes", "node"] > 1e6 and ("atoll_resident_bytes", "gone") not in found
    assert found["atoll_cpu_seconds_total", "node"] > 0
    assert (found["atoll_engines",], found["atoll_evictions_total",], found["atoll_engine_restarts_total",]) == (
        2,
        3,
        1,
    )
    assert (found["atoll_log_records_dropped_total",], found["atoll_log_listeners",]) == (5, 6)
    assert found["atoll_deploys_total", "ok"] == 4 and found["atoll_info", __version__] == 1


def test_series_are_bounded_and_deleted_workers_free_their_place() -> None:
    meter = Meter(max_workers=2)
    for worker in ("a", "b", "c", "d"):
        meter.record(call(worker))
    found = samples(meter, "a", "b", "c", "d")
    assert found["atoll_requests_total", "", "(other)", "ok", "2xx"] == 2
    assert {key[2] for key in found if key[0] == "atoll_requests_total"} == {"a", "b", "(other)"}
    samples(meter, "b", "c")  # a and d are deleted
    meter.record(call("c"))
    found = samples(meter, "b", "c")
    assert {key[2] for key in found if key[0] == "atoll_requests_total"} == {"b", "c", "(other)"}


def test_versions_are_counted_apart_and_together_they_are_the_worker() -> None:
    meter = Meter()
    for number in range(1, 9):
        for _ in range(number):
            meter.record(call("a", number=number, wall_us=number * 1_000))
    meter.record(call("a", 500, Outcome.EXCEPTION, number=8))
    found = samples(meter, "a")
    by_version = {key[3:]: count for key, count in found.items() if key[0] == "atoll_version_requests_total"}
    newest = {(f"a {number}", "ok", "2xx"): float(number) for number in range(4, 9)}
    assert by_version == newest | {("a 8", "exception", "5xx"): 1}
    assert found["atoll_requests_total", "local", "a", "ok", "2xx"] == sum(range(9))
    assert found["atoll_request_duration_seconds_count", "local", "a"] == sum(range(9)) + 1
    assert (
        round(found["atoll_request_duration_seconds_sum", "local", "a"], 3)
        == sum(n * n for n in range(9)) / 1e3 + 0.002
    )
    meter.record(call("a", number=1))  # an old one is counted again
    again = samples(meter, "a")
    assert again["atoll_requests_total", "local", "a", "ok", "2xx"] == sum(range(9)) + 1
    assert len({key[3] for key in again if key[0] == "atoll_version_requests_total"}) == 5
    assert not [key for key in samples(meter) if key[0] in ("atoll_version_requests_total", "atoll_requests_total")]


def test_a_watched_version_keeps_its_counts() -> None:
    meter = Meter()
    watched = call("a", number=1).version
    tally = meter.watch(watched)
    for number in range(1, 10):
        meter.record(call("a", number=number))
    meter.record(call("a", number=1))
    assert sum(tally.counts.values()) == 2
    assert len(meter.versions()) == 5 and tally in meter.versions()
    meter.unwatch(watched)
    for number in range(2, 10):
        meter.record(call("a", number=number))
    assert tally not in meter.versions()
    assert samples(meter, "a")["atoll_requests_total", "local", "a", "ok", "2xx"] == 18


def test_a_worker_beyond_the_bound_has_counts_while_it_is_watched() -> None:
    meter = Meter(max_workers=1)
    meter.record(call("a"))
    meter.record(call("b"))
    watched = call("b").version
    meter.watch(watched)
    meter.record(call("b"))
    meter.count_rollback(watched)
    found = samples(meter, "a", "b")
    assert found["atoll_requests_total", "local", "b", "ok", "2xx"] == 1
    assert found["atoll_automatic_rollbacks_total", "local", "b"] == 1
    meter.unwatch(watched)
    found = samples(meter, "a", "b")
    assert found["atoll_requests_total", "", "(other)", "ok", "2xx"] == 2
    assert ("atoll_requests_total", "local", "b", "ok", "2xx") not in found
    assert found["atoll_automatic_rollbacks_total", "", "(other)"] == 1
    meter.watch(watched)
    samples(meter)  # both are deleted
    assert not meter.versions()
    meter.unwatch(watched)


def test_names_may_contain_any_character() -> None:
    meter = Meter()
    meter.record(call('a"b\\c\nd'))
    assert samples(meter, 'a"b\\c\nd')["atoll_requests_total", "local", 'a"b\\c\nd', "ok", "2xx"] == 1


def test_a_value_on_a_bucket_boundary_is_in_that_bucket() -> None:
    histogram = Histogram((10, 20))
    for value in (0, 10, 11, 20, 21):
        histogram.add(value)
    assert (histogram.counts, histogram.total) == ([2, 2, 1], 62)


def test_values_are_counted_in_batches_and_none_is_lost() -> None:
    histogram = Histogram((10, 20))
    for value in range(2 * RECENT + 5):
        histogram.add(value % 30)
    assert len(histogram.recent) == 5
    values = [value % 30 for value in range(2 * RECENT + 5)]
    assert histogram.counts == [
        sum(value in part for value in values) for part in (range(11), range(11, 21), range(21, 30))
    ]
    assert histogram.recent == []


def test_a_process_that_has_ended_uses_nothing() -> None:
    assert use_of(2**22 + 1) is None


def test_counting_is_quick() -> None:
    meter, one = Meter(), call("a")
    best = 1.0
    for _ in range(5):
        start = time.process_time()
        for _ in range(5_000):
            meter.record(one)
        best = min(best, (time.process_time() - start) / 5_000)
    assert best < 10e-6  # about 1 us on the author's machine; the limit allows slow machines
