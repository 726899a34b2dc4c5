"""The line of a call in `atoll dev`: what the call used, and what comes close to a limit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import click
import pytest
from msgspec import structs

from atoll.cli.dev.terminal import facts_of, summary
from atoll.logs import Invocation
from atoll.wire.generated import Outcome
from atoll.workers import Limits, Version

LIMITS = Limits(cpu_ms=50, memory_mb=128, subrequests=50, internal_subrequests=1000)
VERSION = Version(
    id="v", worker_id="w", worker_name="worker", tenant="default", modules=(), main="", grants={}, limits=LIMITS
)


def call(**used: Any) -> Invocation:
    return Invocation(VERSION, Outcome.OK, 200, used.pop("cpu_us", 1500), 2_500, 1.8e9, b"GET http://x/a\n", **used)


def shown(record: Invocation) -> str:
    return click.unstyle(summary(record, "GET", "/a", False))


def test_a_call_shows_what_it_used() -> None:
    record = call(memory_mb=4, subrequests=5, fetches=2)
    assert shown(record) == "GET /a  200  cpu 1.5 ms  wall 2.5 ms  memory 4 MB  fetches 2  binding calls 3  warm"
    facts = facts_of(record, "GET", "/a", False, None)
    assert (facts["memory_mb"], facts["fetches"], facts["binding_calls"]) == (4, 2, 3)


@pytest.mark.parametrize(
    ("used", "marked"),
    [
        ({"cpu_us": 40_100}, "cpu 40.1 ms of 50"),
        ({"memory_mb": 103}, "memory 103 MB of 128"),
        ({"subrequests": 41, "fetches": 41}, "fetches 41 of 50"),
        ({"subrequests": 801}, "binding calls 801 of 1000"),
    ],
)
def test_usage_above_four_fifths_of_a_limit_is_marked(used: dict[str, int], marked: str) -> None:
    assert marked in shown(call(**used))


def test_usage_below_four_fifths_of_a_limit_is_not_marked() -> None:
    assert " of " not in shown(call(cpu_us=40_000, memory_mb=102, subrequests=840, fetches=40))


def test_a_cron_trigger_may_compute_for_longer() -> None:
    assert " of " not in shown(call(cpu_us=900_000)._replace(event="scheduled"))
    assert " of " in shown(call(cpu_us=29_000_000)._replace(event="scheduled"))
    large = replace(VERSION, limits=structs.replace(LIMITS, cpu_ms=60_000))
    assert " of " not in shown(call(cpu_us=29_000_000)._replace(event="scheduled", version=large))
