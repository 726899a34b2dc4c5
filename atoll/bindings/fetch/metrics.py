"""The metrics of requests to other servers."""

from __future__ import annotations

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from atoll.egress.client import ClientStats


def fetch_metrics(stats: ClientStats) -> list[Metric]:
    return [
        CounterMetricFamily("atoll_fetch_requests", "Requests of workers to other servers.", stats.requests),
        CounterMetricFamily(
            "atoll_fetch_failures", "Requests of workers to other servers that got no response.", stats.failures
        ),
        CounterMetricFamily("atoll_fetch_connects", "Connections opened to other servers.", stats.connects),
        CounterMetricFamily("atoll_fetch_reused", "Requests that reused a connection.", stats.reused),
        GaugeMetricFamily(
            "atoll_fetch_connections", "Open connections to other servers, idle ones included.", stats.open
        ),
    ]
