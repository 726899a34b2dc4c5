"""Instances of Workflows, for /metrics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from prometheus_client.metrics_core import GaugeMetricFamily, Metric

from atoll.bindings.workflow.index import STATUSES, WorkflowIndex


async def workflow_metrics(index: WorkflowIndex) -> Sequence[Metric]:
    counts: Counter[str] = Counter()
    for workflow in index.all():
        counts.update(await index.counts(workflow))
    family = GaugeMetricFamily("atoll_workflow_instances", "Instances of Workflows, by status.", labels=["status"])
    for status in STATUSES:
        family.add_metric([status], counts[status])
    return [family]
