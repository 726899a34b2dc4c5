"""Durable Objects for /metrics."""

from __future__ import annotations

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from atoll.bindings.durable_object.namespaces import Namespaces
from atoll.bindings.services import Objects


def object_metrics(objects: Objects, namespaces: Namespaces) -> list[Metric]:
    counts = objects.counts()
    events = CounterMetricFamily("atoll_object_events", "What happened to Durable Objects.", labels=["event"])
    for name, value in sorted(counts.items()):
        events.add_metric([name], value)
    return [
        GaugeMetricFamily("atoll_objects_live", "Durable Objects in use.", objects.count()),
        GaugeMetricFamily("atoll_object_sockets", "Hibernatable WebSockets of Durable Objects.", objects.sockets()),
        events,
    ]
