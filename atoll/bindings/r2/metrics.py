"""The metrics of buckets."""

from __future__ import annotations

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from atoll.bindings.r2.store import ObjectStore

MAX_BUCKETS_SHOWN = 200


async def r2_metrics(store: ObjectStore) -> list[Metric]:
    """Metrics of the first buckets only: the number of series is bounded."""
    labels = ["tenant", "bucket"]
    objects = GaugeMetricFamily("atoll_r2_objects", "Objects in a bucket.", labels=labels)
    size = GaugeMetricFamily("atoll_r2_bytes", "Bytes of a bucket, unfinished uploads included.", labels=labels)
    for place, facts in await store.some(MAX_BUCKETS_SHOWN):
        objects.add_metric(list(place), facts.objects)
        size.add_metric(list(place), facts.bytes)
    return [objects, size]
