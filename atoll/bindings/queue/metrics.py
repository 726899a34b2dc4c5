"""The metrics of queues."""

from __future__ import annotations

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from atoll.bindings.queue.store import QueueStore

MAX_QUEUES = 200


async def queue_metrics(store: QueueStore) -> list[Metric]:
    """Metrics of the first queues only: the number of series is bounded."""
    labels = ["tenant", "queue"]
    messages = GaugeMetricFamily("atoll_queue_messages", "Messages in a queue.", labels=[*labels, "state"])
    oldest = GaugeMetricFamily("atoll_queue_oldest_seconds", "Age of its oldest message.", labels=labels)
    size = GaugeMetricFamily("atoll_queue_bytes", "What its messages take.", labels=labels)
    dropped = CounterMetricFamily("atoll_queue_messages_dropped", "Messages that failed too often.", labels=labels)
    for queue in await store.some(MAX_QUEUES):
        names, depth = [queue.tenant, queue.name], await store.depth(queue.id)
        for state in ("waiting", "delayed", "leased"):
            messages.add_metric([*names, state], getattr(depth, state))
        age = 0.0 if depth.oldest_at is None else max(store.now() - depth.oldest_at, 0) / 1000
        oldest.add_metric(names, age)
        size.add_metric(names, depth.bytes)
        dropped.add_metric(names, queue.dropped)
    return [messages, oldest, size, dropped]
