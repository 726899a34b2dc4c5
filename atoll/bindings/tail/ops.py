"""Tail workers as a binding without ops: a trigger, and its metric."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from atoll.bindings.base import Binding
from atoll.bindings.tail.delivery import TailTriggers

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric


class TailBinding(Binding):
    kind = "tail"
    ambient = True

    def __init__(self, trigger: TailTriggers) -> None:
        self.trigger: TailTriggers = trigger

    async def metrics(self) -> Sequence[Metric]:
        from prometheus_client.core import CounterMetricFamily

        labels = ["tenant", "worker"]
        metric = CounterMetricFamily("atoll_tail_records_dropped", "Records that a tail worker lost.", labels=labels)
        for key, count in self.trigger.dropped.items():
            metric.add_metric(list(key), count)
        return [metric]
