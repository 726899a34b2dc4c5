"""Numbers are counted cheaply, stay bounded, and are told as Prometheus wants them."""

from __future__ import annotations

import os
import time

from prometheus_client.parser import text_string_to_metric_families

from atoll.engine.measures import PoolStats
from atoll.logs import Invocation
from atoll.observe.meter import Meter
from atoll.observe.metrics import Metrics
from atoll.observe.processes import use_of, uses_of
from atoll.observe.sources import Sources
from atoll.tallies import RECENT, Histogram, OpTally
from atoll.wire.generated import Outcome
from atoll.workers import Version

LABELS = ("tenant", "worker", "outcome", "status", "binding", "op", "process", "reason", "result", "version", "le")


def call(worker: str, status: int = 200, outcome: Outcome = Outcome.OK, wall_us: int = 2_000) -> Invocation:
    version = Version("v", f"id of {worker}", worker, "local", (), "worker.js")
    return Invocation(version, outcome, status, 150, wall_us, 1.8e9, b"")


def samples(meter: Meter, *workers: str, **sources: object) -> dict[tuple[str, ...], float]:
    """Everything a scrape shows, by name and values of labels."""
    known = {
        "pool": lambda: PoolStats(engines=2, evictions=3),
        "ops": lambda: (),
        "restarts": lambda: 1,
        "processes": dict,
        "workers": lambda: [f"id of {worker}" for worker in workers],
        "deploys": lambda: {"ok": 4},
        "logs": lambda: (5, 6),
        "connections": lambda: 7,
        "version": "1.2.3",
    } | sources
    text = Metrics(meter, Sources(**known)).text().decode()  # type: ignore[arg-type]
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


def test_what_other_rooms_count_is_shown() -> None:
    tally = OpTally()
    tally.times.add(300)
    tally.refused += 1
    ops = [("kv", "kv.get", tally), ("kv", "kv.put", OpTally())]
    found = samples(Meter(), ops=lambda: ops, processes=lambda: uses_of({"node": os.getpid(), "gone": 2**22 + 1}))
    assert found["atoll_op_duration_seconds_bucket", "kv", "kv.get", "0.0005"] == 1
    assert found["atoll_ops_refused_total", "kv", "kv.get"] == 1
    assert ("atoll_ops_refused_total", "kv", "kv.put") not in found, "what never happened takes no room"
    assert found["atoll_resident_bytes", "node"] > 1e6 and ("atoll_resident_bytes", "gone") not in found
    assert found["atoll_cpu_seconds_total", "node"] > 0
    assert (found["atoll_engines",], found["atoll_evictions_total",], found["atoll_engine_restarts_total",]) == (
        2,
        3,
        1,
    )
    assert (found["atoll_log_records_dropped_total",], found["atoll_log_listeners",]) == (5, 6)
    assert found["atoll_deploys_total", "ok"] == 4 and found["atoll_info", "1.2.3"] == 1


def test_series_are_bounded_and_a_deleted_worker_gives_its_place_away() -> None:
    meter = Meter(max_workers=2)
    for worker in ("a", "b", "c", "d"):
        meter.record(call(worker))
    found = samples(meter, "a", "b", "c", "d")
    assert found["atoll_requests_total", "", "(other)", "ok", "2xx"] == 2
    assert {key[2] for key in found if key[0] == "atoll_requests_total"} == {"a", "b", "(other)"}
    samples(meter, "b", "c")  # a and d were deleted
    meter.record(call("c"))
    found = samples(meter, "b", "c")
    assert {key[2] for key in found if key[0] == "atoll_requests_total"} == {"b", "c", "(other)"}


def test_names_may_hold_anything() -> None:
    meter = Meter()
    meter.record(call('a"b\\c\nd'))
    assert samples(meter, 'a"b\\c\nd')["atoll_requests_total", "local", 'a"b\\c\nd', "ok", "2xx"] == 1


def test_a_value_on_a_bound_is_within_it() -> None:
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


def test_a_process_that_is_gone_uses_nothing() -> None:
    assert use_of(2**22 + 1) is None


def test_counting_is_quick() -> None:
    meter, one = Meter(), call("a")
    best = 1.0
    for _ in range(5):
        start = time.process_time()
        for _ in range(5_000):
            meter.record(one)
        best = min(best, (time.process_time() - start) / 5_000)
    assert best < 10e-6  # it is about 1 us on the machine it was written on; a slow one must not fail the test
