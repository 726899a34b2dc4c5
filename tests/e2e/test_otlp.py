"""Metrics and logs of a real node arrive at a collector that speaks OTLP over HTTP."""

from __future__ import annotations

import gzip
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest

from tests.running import Atoll

WORKER = """export default { fetch(request) {
  console.warn("careful", request.url);
  if (request.url.endsWith("/bad")) throw new TypeError("broken");
  return new Response("ok");
} }"""


class Collector(ThreadingHTTPServer):
    def __init__(self) -> None:
        self.logs: list[Any] = []
        self.metrics: dict[str, Any] = {}
        self.headers: list[dict[str, str]] = []
        self.status = 200
        super().__init__(("127.0.0.1", 0), CollectorHandler)

    def url(self, signal: str) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1/{signal}"


class CollectorHandler(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        body = gzip.decompress(self.rfile.read(int(self.headers["content-length"])))
        self.server.headers.append({name.lower(): value for name, value in self.headers.items()})
        if self.server.status == 200 and self.path == "/v1/logs":
            for within in ExportLogsServiceRequest.FromString(body).resource_logs:
                self.server.logs += [each for scope in within.scope_logs for each in scope.log_records]
        elif self.server.status == 200:
            for within in ExportMetricsServiceRequest.FromString(body).resource_metrics:
                self.server.metrics |= {each.name: each for scope in within.scope_metrics for each in scope.metrics}
        self.send_response(self.server.status)
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture
def collector() -> Iterator[Collector]:
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def facts(entry: Any) -> dict[str, str]:
    return {each.key: each.value.string_value for each in entry.attributes}


def test_lines_errors_and_the_nodes_own_log_arrive(
    new_atoll: Callable[..., Atoll], collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=ops,authorization=Bearer%20abc")
    atoll = new_atoll(engines=1, otlp_logs_endpoint=collector.url("logs"))
    atoll.deploy("spoken", WORKER)
    atoll.get("spoken", "/?token=0123456789abcdef0123456789abcdef")
    assert atoll.get("spoken", "/bad").status == 500
    assert atoll.stop() == 0, "the node sends what is left before it ends"
    lines = [each for each in collector.logs if each.body.string_value.startswith("careful")]
    assert len(lines) == 2 and {each.severity_text for each in lines} == {"WARN"} and lines[0].severity_number == 13
    told = facts(lines[0])
    assert told["atoll.worker"] == "spoken" and told["atoll.tenant"] == "default" and told["atoll.version"]
    assert told["url.full"].endswith("?token=REDACTED")
    [error] = [each for each in collector.logs if "exception.stacktrace" in facts(each)]
    assert error.severity_text == "ERROR" and "broken" in error.body.string_value
    assert "worker.js" in facts(error)["exception.stacktrace"] and facts(error)["atoll.outcome"] == "exception"
    own = [each for each in collector.logs if "atoll.logger" in facts(each)]
    assert own and all(facts(each)["atoll.logger"] != "atoll.otlp" for each in own)
    assert collector.headers[0]["x-team"] == "ops" and collector.headers[0]["authorization"] == "Bearer abc"


def test_metrics_arrive_with_the_names_and_values_of_a_scrape(
    new_atoll: Callable[..., Atoll], collector: Collector
) -> None:
    atoll = new_atoll(engines=1, otlp_metrics_endpoint=collector.url("metrics"), otlp_metrics_seconds=3600)
    atoll.deploy("counted", WORKER)
    for _ in range(3):
        atoll.get("counted")
    assert atoll.stop() == 0
    found = collector.metrics
    [point] = [each for each in found["atoll_requests"].sum.data_points if facts(each)["worker"] == "counted"]
    assert point.as_double == 3 and facts(point)["outcome"] == "ok" and found["atoll_requests"].sum.is_monotonic
    assert point.time_unix_nano > point.start_time_unix_nano > 1.7e18
    [times] = found["atoll_request_duration_seconds"].histogram.data_points
    assert times.count == 3 == sum(times.bucket_counts) and len(times.bucket_counts) == len(times.explicit_bounds) + 1
    assert 0 < times.sum < 60 and list(times.explicit_bounds) == sorted(times.explicit_bounds)
    [workers] = found["atoll_workers"].gauge.data_points
    assert workers.as_double == 1
    assert "atoll_storage_bytes" in found and "atoll_info" in found


def test_a_collector_that_refuses_costs_nothing_and_is_said(
    new_atoll: Callable[..., Atoll], collector: Collector
) -> None:
    collector.status = 503
    both = {f"otlp_{signal}_endpoint": collector.url(signal) for signal in ("logs", "metrics")}
    atoll = new_atoll(engines=1, otlp_metrics_seconds=1, **both)
    atoll.deploy("spoken", WORKER)
    atoll.get("spoken")
    Atoll.wait_until(lambda: "otlp_logs_endpoint does not take what is sent: HTTP Error 503" in atoll.log(), 20)
    Atoll.wait_until(lambda: 'atoll_unsent_entries_total{to="metrics"} 0' not in unsent(atoll), 20)
    assert atoll.get("spoken").text == "ok"
    assert atoll.stop() == 0 and "Traceback" not in atoll.log()


def unsent(atoll: Atoll) -> str:
    return "\n".join(line for line in atoll.control("GET", "/metrics").text.splitlines() if "unsent" in line)


def test_an_endpoint_that_is_no_url_refuses_the_start(new_atoll: Callable[..., Atoll]) -> None:
    with pytest.raises(AssertionError, match="otlp_logs_endpoint 'localhost:4318' is not a URL"):
        new_atoll(engines=1, otlp_logs_endpoint="localhost:4318")
