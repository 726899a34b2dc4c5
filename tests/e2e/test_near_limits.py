"""Calls that come near a limit are flagged and counted before anything fails; load and saturation of workers are metrics."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from atoll.logs import Invocation
from atoll.observe.meter import Meter, near_limits
from atoll.wire.generated import Outcome
from atoll.workers import Limits, Version
from tests.running import Atoll

LIMITS = Limits(cpu_ms=50, memory_mb=128, subrequests=50, internal_subrequests=1000)
VERSION = Version("id", "worker id", "w", "t", (), "worker.js", limits=LIMITS)
WORKER = """export default { async fetch(request, env) {
  const many = Number(new URL(request.url).searchParams.get("n"));
  for (let i = 0; i < many; i++) await env.KV.get("a");
  if (request.url.includes("wait")) await scheduler.wait(3000);
  return new Response("ok");
} }"""


def used(event: str = "fetch", outcome: Outcome = Outcome.OK, **numbers: int) -> Invocation:
    cpu_us = numbers.pop("cpu_us", 0)
    return Invocation(VERSION, outcome, 200, cpu_us, 1000, 1.8e9, b"", event=event, **numbers)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("record", "near"),
    [
        (used(), ()),
        (used(cpu_us=39_999), ()),
        (used(cpu_us=40_000), ("cpu",)),
        (used(cpu_us=49_000, outcome=Outcome.EXCEEDED_CPU), ()),
        (used("scheduled", cpu_us=60_000), ()),
        (used("scheduled", cpu_us=24_000_000), ("cpu",)),
        (used(memory_mb=102), ()),
        (used(memory_mb=103), ("memory",)),
        (used(subrequests=40, fetches=40), ("subrequests",)),
        (used(subrequests=799), ()),
        (used(subrequests=800), ("subrequests",)),
        (used(cpu_us=45_000, memory_mb=120, subrequests=45, fetches=45), ("cpu", "memory", "subrequests")),
    ],
)
def test_eighty_percent_of_a_limit_is_near(record: Invocation, near: tuple[str, ...]) -> None:
    assert near_limits(record) == near
    meter = Meter()
    meter.record(record)
    [tally] = meter.tallies(lambda worker: True)
    assert tally.near == dict.fromkeys(near, 1)


def metric(atoll: Atoll, start: str) -> float:
    lines = [line for line in atoll.control("GET", "/metrics").text.splitlines() if line.startswith(start)]
    return float(lines[0].rpartition(" ")[2]) if lines else 0.0


def test_a_call_near_its_subrequests_is_flagged_in_its_record_and_counted(new_atoll: Callable[..., Atoll]) -> None:
    atoll = new_atoll(engines=1)
    kv = [{"type": "kv", "name": "KV", "namespace": "near"}]
    atoll.deploy("near", WORKER, bindings=kv, limits={"internal_subrequests": 10})
    assert atoll.get("near", "/?n=7").status == 200
    assert atoll.get("near", "/?n=8").status == 200
    newest, before = atoll.logs("near")[:2]
    assert newest["near_limits"] == ["subrequests"] and "near_limits" not in before
    labels = 'tenant="default",worker="near"'
    assert metric(atoll, f'atoll_near_limit_total{{limit="subrequests",{labels}}}') == 1


def test_calls_of_a_worker_in_flight_and_its_saturation_are_metrics(new_atoll: Callable[..., Atoll]) -> None:
    atoll = new_atoll(engines=1, worker_calls=20)
    atoll.deploy("full", WORKER, bindings=[{"type": "kv", "name": "KV", "namespace": "near"}])
    threads = [threading.Thread(target=atoll.get, args=("full", "/wait")) for _ in range(10)]
    for thread in threads:
        thread.start()
    labels = '{tenant="default",worker="full"}'
    Atoll.wait_until(lambda: metric(atoll, f"atoll_worker_saturation{labels}") == 0.5)
    assert metric(atoll, f"atoll_worker_calls{labels}") == 10
    for thread in threads:
        thread.join()
    Atoll.wait_until(lambda: metric(atoll, f"atoll_worker_calls{labels}") == 0)
