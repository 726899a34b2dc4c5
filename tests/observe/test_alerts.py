"""Alerts that a node judges by itself: the same as those of Prometheus, when they begin, and when they end."""

from __future__ import annotations

from pathlib import Path

import yaml

from atoll.engine.stats import PoolStats
from atoll.observe.alerts import MINUTES, RULES, NodeAlerts
from atoll.observe.meter import Meter
from atoll.observe.sources import Sources
from atoll.observe.storage import FileState, StorageState

ROOT = Path(__file__).resolve().parents[2]
# The node cannot judge them, or keeps too few notes: the last two look at each worker for longer.
ELSEWHERE = {"AtollDown", "AtollQueueStuck", "AtollMessagesDropped", "AtollWorkerNearLimit", "AtollWorkerSaturated"}
SECONDS = {"s": 1, "m": 60}


class Counters:
    """What the other parts of a node say, for a test to change."""

    def __init__(self) -> None:
        self.pool = PoolStats(engines=1)
        self.storage = StorageState(10**12, {"kv.db": FileState(1, 0)})
        self.now = 1_000.0
        sources = Sources(
            pool=lambda: self.pool,
            ops=tuple,
            restarts=lambda: 0,
            processes=dict,
            workers=tuple,
            deploys=dict,
            logs=lambda: (0, 0),
            connections=lambda: 0,
            storage=lambda: self.storage,
        )
        self.alerts = NodeAlerts(Meter(), sources, clock=lambda: self.now)
        self.alerts.look()

    def names_after(self, seconds: float) -> list[str]:
        end = self.now + seconds
        while self.now < end:
            self.now += 15
            self.alerts.look()
        return [alert.name for alert in self.alerts.firing()]


def test_names_severities_and_times_are_those_of_the_rules_for_prometheus() -> None:
    [group] = yaml.safe_load((ROOT / "deploy/prometheus/atoll-alerts.yml").read_text())["groups"]
    theirs = {
        rule["alert"]: (
            rule["labels"]["severity"],
            int(rule.get("for", "0s")[:-1]) * SECONDS[rule.get("for", "0s")[-1]],
        )
        for rule in group["rules"]
    }
    mine = {rule.name: (rule.severity, int(rule.hold)) for rule in RULES}
    assert mine == {name: facts for name, facts in theirs.items() if name not in ELSEWHERE}


def test_an_alert_fires_once_it_has_lasted_and_ends_with_its_cause() -> None:
    counters = Counters()
    counters.pool.engines = 0
    assert counters.names_after(15) == []
    assert counters.names_after(30) == ["AtollEngineMissing"]
    [alert] = counters.alerts.firing()
    assert alert.since == "1970-01-01T00:16:55.000Z" and alert.runbook.endswith("#atollenginemissing")
    counters.pool.engines = 1
    assert counters.names_after(15) == []


def test_a_failed_operation_on_a_file_is_named_for_five_minutes() -> None:
    counters = Counters()
    counters.storage = StorageState(10**12, {"kv.db": FileState(1, 2)})
    assert counters.names_after(15) == ["AtollStorageFails"]
    assert "kv.db" in next(counters.alerts.firing()).summary
    assert counters.names_after(4 * MINUTES) == ["AtollStorageFails"]
    assert counters.names_after(2 * MINUTES) == []


def test_a_crash_and_a_full_disk_come_in_the_order_of_their_urgency() -> None:
    counters = Counters()
    counters.storage = StorageState(10**9, {})
    assert counters.names_after(9 * MINUTES) == []
    counters.pool.crashes = 1
    assert counters.names_after(2 * MINUTES) == ["AtollDiskAlmostFull", "AtollEnginesCrash"]
