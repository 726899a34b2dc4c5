"""Metrics and health of a whole node. The dashboard and the alerts use only metrics that exist."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Callable
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from tests.running import Atoll

DASHBOARD = Path(__file__).resolve().parents[2] / "deploy/grafana/atoll.json"
ALERTS = DASHBOARD.parents[1] / "prometheus/atoll-alerts.yml"
LABELS = (
    "tenant",
    "worker",
    "queue",
    "file",
    "outcome",
    "status",
    "binding",
    "op",
    "process",
    "reason",
    "result",
    "version",
    "le",
)
HELLO = 'export default { fetch() { return new Response("hi"); } }'


def scraped(atoll: Atoll) -> dict[tuple[str, ...], float]:
    answer = atoll.control("GET", "/metrics")
    assert answer.status == 200 and answer.headers["content-type"].startswith("text/plain")
    return {
        (sample.name, *(sample.labels[label] for label in LABELS if label in sample.labels)): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def test_calls_ops_and_processes_are_counted(atoll: Atoll) -> None:
    before = scraped(atoll).get(("atoll_deploys_total", "ok"), 0)
    atoll.deploy("counted", HELLO)
    atoll.deploy("loops", "export default { fetch() { for (;;); } }", limits={"cpu_ms": 20})
    for _ in range(5):
        assert atoll.get("counted").status == 200
    assert atoll.get("loops").status == 503
    found = scraped(atoll)
    tenant = next(key[1] for key in found if key[0] == "atoll_requests_total" and key[2] == "counted")
    assert found["atoll_requests_total", tenant, "counted", "ok", "2xx"] == 5
    assert found["atoll_requests_total", tenant, "loops", "exceededCpu", "5xx"] == 1
    assert found["atoll_request_duration_seconds_count", tenant, "counted"] == 5
    assert found["atoll_deploys_total", "ok"] == before + 2
    assert found["atoll_engines",] == 2 and found["atoll_isolates",] >= 1
    assert found["atoll_resident_bytes", "node"] > 1e7 and found["atoll_resident_bytes", "engine-1"] > 1e7


def test_metrics_report_the_memory_of_each_worker(atoll: Atoll) -> None:
    keeps = "const kept = Array.from({ length: 2_000_000 }, (_, i) => i + 0.5); "
    atoll.deploy("heavy", keeps + "export default { fetch() { return new Response(String(kept.length)); } }")
    atoll.deploy("light", HELLO)
    assert (atoll.get("heavy").text, atoll.get("light").text) == ("2000000", "hi")
    name = "atoll_worker_memory_bytes"
    atoll.wait_until(lambda: {(name, "default", worker) for worker in ("heavy", "light")} <= set(scraped(atoll)))
    found = scraped(atoll)
    assert found[name, "default", "heavy"] > 16_000_000 > 8_000_000 > found[name, "default", "light"] > 100_000
    assert found["atoll_worker_isolates", "default", "heavy"] >= 1
    atoll.control("DELETE", "/api/workers/heavy")
    atoll.wait_until(lambda: (name, "default", "heavy") not in scraped(atoll))


def test_metrics_report_storage_and_queues(atoll: Atoll) -> None:
    atoll.control("POST", "/api/queues", {"name": "told"})
    atoll.control(
        "POST", "/api/queues/told/messages", {"messages": [{"body": "x" * 70}, {"body": "", "delay_seconds": 60}]}
    )
    found = scraped(atoll)
    assert found["atoll_queue_bytes", "default", "told"] == 72 + 2 + 2 * 128
    assert found["atoll_storage_bytes", "queues.db"] > 1_000 and found["atoll_storage_faults_total", "kv.db"] == 0
    assert found["atoll_disk_free_bytes",] > 0


def test_metrics_report_lost_tail_records(atoll: Atoll) -> None:
    atoll.deploy("tail-lost", "export default { tail() { for (;;); } }", limits={"cpu_ms": 10})
    atoll.deploy("tailed", HELLO, tail_consumers=[{"service": "tail-lost"}])
    assert [atoll.get("tailed").status for _ in range(3)] == [200] * 3
    name = ("atoll_tail_records_dropped_total", "default", "tail-lost")
    atoll.wait_until(lambda: scraped(atoll).get(name) == 3)


def test_worker_hosts_do_not_serve_metrics(atoll: Atoll) -> None:
    atoll.deploy("own-paths", "export default { fetch(r) { return new Response(new URL(r.url).pathname); } }")
    for path in ("/metrics", "/healthz", "/readyz"):
        assert atoll.get("own-paths", path).text == path
        assert atoll.request("GET", "nobody.example", path).status == 404


def told_names(atoll: Atoll) -> set[str]:
    told = atoll.control("GET", "/metrics").text
    families = {family.name: family.type for family in text_string_to_metric_families(told)}
    parts = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "gauge": ("",)}
    return {name + part for name, kind in families.items() for part in parts[kind]}


def test_every_metric_of_the_dashboard_exists(atoll: Atoll) -> None:
    wanted = set(re.findall(r"\batoll_\w+", DASHBOARD.read_text("utf-8")))
    assert len(wanted) > 20 and not wanted - told_names(atoll)
    assert len({panel["id"] for panel in json.loads(DASHBOARD.read_text("utf-8"))["panels"]}) > 15


def test_every_metric_of_the_alerts_exists_and_every_alert_is_documented(atoll: Atoll) -> None:
    alerts = ALERTS.read_text("utf-8")
    wanted = set(re.findall(r"\batoll_\w+", alerts))
    assert len(wanted) > 10 and not wanted - told_names(atoll)
    page = (DASHBOARD.parents[2] / "docs/guides/runbook.md").read_text("utf-8")
    names = re.findall(r"alert: (\w+)", alerts)
    assert len(names) > 10 and sorted(re.findall(r"^## (Atoll\w+)$", page, re.MULTILINE)) == sorted(names)
    books = re.findall(r"runbook: \"docs/guides/runbook.md#(\w+)\"", alerts)
    assert books == [name.lower() for name in names]


def test_the_metrics_page_lists_every_metric(atoll: Atoll) -> None:
    page = (DASHBOARD.parents[2] / "docs/guides/observe.md").read_text("utf-8")
    told = atoll.control("GET", "/metrics").text
    for family in text_string_to_metric_families(told):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        assert f"`{name}`" in page, name


def test_a_node_reports_draining_before_it_stops(new_atoll: Callable[..., Atoll]) -> None:
    atoll = new_atoll(drain_delay=2, engines=1)
    atoll.deploy("hello", HELLO)
    assert atoll.control("GET", "/readyz").json == {"status": "ok"}
    assert atoll.control("GET", "/healthz").status == 200
    assert atoll.process is not None
    atoll.process.send_signal(signal.SIGTERM)
    atoll.wait_until(lambda: atoll.control("GET", "/readyz").status == 503)
    assert atoll.control("GET", "/readyz").json == {"status": "draining"}
    assert atoll.get("hello").text == "hi", "it still serves, because load balancers have not noticed yet"
    assert atoll.control("GET", "/healthz").status == 200
    assert atoll.process.wait(20) == 0
