"""Counts of calls over time: what the meter counted is neither lost nor told twice, in memory and on disk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import apsw

from atoll.observe import series
from atoll.observe.meter import Meter
from atoll.observe.series import DELETED, SERIES_FILE, SeriesStore, of_tenant, of_worker
from atoll.observe.series_points import StepCounts, percentile, shown, total_of
from atoll.wire.generated import Outcome
from atoll.workers import Version

START = 1_800_000_000.0  # a whole quarter


class Clock:
    def __init__(self) -> None:
        self.now = START + 5

    def __call__(self) -> float:
        return self.now


def version(number: int = 1, worker: str = "shop", tenant: str = "acme") -> Version:
    return Version(
        f"{worker}-v{number}", worker_id=f"id-{worker}", worker_name=worker, tenant=tenant, modules=(), main=""
    )


def worker_id(name: str) -> str:
    return f"id-{name}"


async def open_store(folder: Path, meter: Meter, clock: Callable[[], float]) -> SeriesStore:
    return SeriesStore(folder, meter, worker_id, clock)


async def test_each_call_is_counted_once_for_worker_tenant_and_node(tmp_path: Path) -> None:
    clock, meter = Clock(), Meter()
    store = await open_store(tmp_path, meter, clock)
    for step in range(4):
        meter.count(version(1 + step % 2), Outcome.OK, 200, 900, 4_000)
        meter.count(version(1), Outcome.EXCEPTION, 500, 900, 4_000)
        meter.count(version(1, "other"), Outcome.OK, 503, 900, 4_000)
        clock.now += 10
        await store.look()
    for subject, calls, errors in ((of_worker("id-shop"), 8, 4), (of_tenant("acme"), 12, 8), ("n", 12, 8)):
        for step in (10, 60, 900):
            whole = total_of(each.point for each in await store.find(subject, int(START), int(clock.now) + 1, step))
            assert (whole.calls, whole.errors) == (calls, errors), (subject, step)
    assert total_of(each.point for each in store.last_hour("id-shop")).calls == 8
    by_version = await store.find(of_worker("id-shop"), int(START), int(clock.now), 900)
    assert {each.version: each.point.calls for each in by_version} == {"shop-v1": 6, "shop-v2": 2}
    assert await store.find(of_tenant("globex"), 0, 2**40, 60) == []
    await store.close()


async def test_a_restart_keeps_minutes_and_adds_to_the_open_one(tmp_path: Path) -> None:
    clock = Clock()
    for _ in range(3):
        meter = Meter()
        store = await open_store(tmp_path, meter, clock)
        store.start()
        await store.find("n", 0, 1, 60)  # the last hour is read by then
        meter.count(version(), Outcome.OK, 200, 100, 100)
        clock.now += 10
        await store.close()
    store = await open_store(tmp_path, Meter(), clock)
    await store.warm()
    assert total_of(each.point for each in store.last_hour("id-shop")).calls == 3
    [point] = await store.find(of_worker("id-shop"), int(START), int(START) + 60, 60)
    assert point.point.calls == 3
    await store.close()


async def test_points_are_deleted_when_their_time_is_over(tmp_path: Path) -> None:
    clock, meter = Clock(), Meter()
    store = await open_store(tmp_path, meter, clock)
    await store.close()
    connection = apsw.Connection(str(tmp_path / SERIES_FILE))
    rows = [(60, "w:a", int(START) - 86_400 - 60 * number, "v", StepCounts({2: 1})) for number in range(DELETED * 2)]
    series.insert(
        connection, [*rows, (60, "w:a", int(START), "v", StepCounts({2: 1})), (900, "w:a", 900, "v", StepCounts({}))]
    )
    connection.close()
    store = await open_store(tmp_path, meter, clock)
    clock.now += 900
    meter.count(version(), Outcome.OK, 200, 1, 1)
    await store.look()
    clock.now += 900
    await store.look()  # a quarter is over: old points go
    assert len(await store.find("w:a", 0, 2**40, 60)) == 1
    assert await store.find("w:a", 0, int(START), 900) == []
    await store.close()


async def test_a_version_that_is_counted_again_from_zero_takes_nothing_away(tmp_path: Path) -> None:
    clock, meter = Clock(), Meter()
    store = await open_store(tmp_path, meter, clock)
    for _ in range(5):
        meter.count(version(), Outcome.OK, 200, 100, 100)
    await store.look()
    meter.tallies(lambda worker: False)  # the worker was deleted: its counts are dropped
    meter.count(version(), Outcome.OK, 200, 100, 100)
    clock.now += 10
    await store.look()
    found = await store.find("n", int(START), int(clock.now) + 1, 60)
    assert total_of(each.point for each in found).calls == 6
    await store.close()


async def test_workers_that_share_a_set_are_part_of_the_node_only(tmp_path: Path) -> None:
    clock, meter = Clock(), Meter(max_workers=1)
    store = await open_store(tmp_path, meter, clock)
    for name in ("shop", "crowded"):
        meter.count(version(1, name), Outcome.OK, 200, 100, 100)
    await store.look()
    assert meter.is_shared("id-crowded") and not meter.is_shared("id-shop")
    assert await store.find(of_worker("id-crowded"), 0, 2**40, 60) == []
    assert total_of(each.point for each in await store.find("n", 0, 2**40, 60)).calls == 2
    await store.close()


def test_percentiles_come_from_the_buckets() -> None:
    bounds = (1_000, 2_000, 10_000)
    assert percentile([0, 0, 0, 0], bounds, 0.5) is None
    assert percentile([0, 10, 0, 0], bounds, 0.5) == 1.5
    assert percentile([50, 49, 1, 0], bounds, 0.99) == 2.0
    assert percentile([0, 0, 0, 3], bounds, 0.5) == 10.0


def test_a_client_that_leaves_is_no_error() -> None:
    point = StepCounts({Outcome.CANCELED * 10: 3, Outcome.OK * 10 + 5: 1, Outcome.LOAD_SHED * 10 + 5: 2})
    answer = shown("", "", point)
    assert (answer.calls, answer.errors) == (6, 3)
    assert answer.outcomes == {"canceled": 3, "status_5xx": 1, "loadShed": 2}
