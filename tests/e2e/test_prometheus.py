"""The alerts and the dashboard of Atoll, in a real Prometheus that scrapes a real node."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from tests.debian import require
from tests.running import Atoll, free_port

DEPLOY = Path(__file__).parents[2] / "deploy"
ALERTS = DEPLOY / "prometheus/atoll-alerts.yml"
DASHBOARD = DEPLOY / "grafana/atoll.json"
UNIT_TESTS = Path(__file__).parent / "alerts.yml"
CONFIG = """
global: {{scrape_interval: 1s, evaluation_interval: 1s}}
rule_files: [{rules}]
scrape_configs:
  - job_name: atoll
    static_configs: [{{targets: ["localhost:{port}"]}}]
"""
WORKER = """export default {
  async fetch(request, env) { await env.KV.put("k", "v"); return new Response("hi"); },
};"""


@pytest.fixture(scope="module", autouse=True)
def tools() -> None:
    require("prometheus", "promtool")


def promtool(*arguments: str | Path) -> str:
    found = subprocess.run(["promtool", *arguments], capture_output=True, text=True, timeout=60)
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout


def test_the_alerts_are_valid() -> None:
    names = re.findall(r"alert: (\w+)", ALERTS.read_text())
    assert f"{len(names)} rules found" in promtool("check", "rules", ALERTS)


def test_every_alert_fires_on_its_condition_and_none_on_a_healthy_node(tmp_path: Path) -> None:
    names = re.findall(r"alert: (\w+)", ALERTS.read_text())
    firing = "".join(f"          - {{labels: '{{alertname=\"{name}\"}}', value: 1}}\n" for name in sorted(names))
    path = tmp_path / "tests.yml"
    path.write_text(UNIT_TESTS.read_text().replace("RULES", str(ALERTS)).replace("ALL\n", firing))
    assert "SUCCESS" in promtool("test", "rules", path)


class Prometheus:
    def __init__(self, folder: Path, port: int, node: Atoll) -> None:
        self.port = port
        self.node = node
        (folder / "prometheus.yml").write_text(CONFIG.format(rules=ALERTS, port=node.port))
        self.log = (folder / "prometheus.log").open("wb")
        self.process = subprocess.Popen(
            ["prometheus", f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'tsdb'}",
             f"--web.listen-address=127.0.0.1:{port}"],
            stdout=self.log, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def close(self) -> None:
        self.process.terminate()
        self.process.wait(30)
        self.log.close()

    def query(self, expression: str) -> list[dict[str, Any]]:
        with urlopen(f"http://127.0.0.1:{self.port}/api/v1/query?{urlencode({'query': expression})}") as answer:
            found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
            return found

    def is_scraping(self) -> bool:
        try:
            found = self.query('count_over_time(up{job="atoll"}[1m]) > 3 and up == 1')
        except OSError:
            return False
        self.node.get("scraped")
        return bool(found)


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    folder = tmp_path_factory.mktemp("prometheus")
    node = Atoll(folder / "node")
    node.start()
    node.deploy("scraped", WORKER, bindings=[{"type": "kv", "name": "KV", "namespace": "scraped"}])
    node.control("POST", "/api/queues", {"name": "waits"})
    node.control("POST", "/api/queues/waits/messages", {"messages": [{"body": 1}]})
    assert node.get("scraped").text == "hi"
    prometheus = Prometheus(folder, free_port(), node)
    try:
        node.wait_until(prometheus.is_scraping, seconds=60)
        yield prometheus
    finally:
        prometheus.close()
        node.stop()


def panels() -> list[tuple[str, str]]:
    dashboard = json.loads(DASHBOARD.read_text("utf-8"))
    return [(panel["title"], target["expr"]) for panel in dashboard["panels"] for target in panel.get("targets", ())]


@pytest.mark.parametrize(("title", "expression"), panels())
def test_every_query_of_the_dashboard_returns_data(title: str, expression: str, prometheus: Prometheus) -> None:
    asked = expression.replace("$__rate_interval", "1m").replace("$worker", ".*")
    assert "$" not in asked
    prometheus.node.wait_until(lambda: bool(prometheus.query(asked)), seconds=20)


def test_the_variables_of_the_dashboard_return_data(prometheus: Prometheus) -> None:
    for variable in json.loads(DASHBOARD.read_text("utf-8"))["templating"]["list"]:
        if variable["type"] == "query":
            metric, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["query"]).groups()  # type: ignore[union-attr]
            assert prometheus.query(f"group by ({label}) ({metric})")[0]["metric"][label] == "scraped"


def test_prometheus_loads_the_alerts_and_none_fires(prometheus: Prometheus) -> None:
    with urlopen(f"http://127.0.0.1:{prometheus.port}/api/v1/rules") as answer:
        [group] = json.load(answer)["data"]["groups"]
    assert all(rule["health"] in ("ok", "unknown") for rule in group["rules"]), group
    # Ignores alerts about the test machine itself
    firing = {rule["name"] for rule in group["rules"] if rule["state"] == "firing"}
    assert not firing - {"AtollDiskAlmostFull", "AtollMemoryHigh", "AtollLoopLags", "AtollLoopStalls"}
