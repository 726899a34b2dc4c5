"""The metrics of email."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client.core import CounterMetricFamily
from prometheus_client.metrics_core import Metric


def email_metrics(received: Mapping[str, int], sent: int, failed: int) -> list[Metric]:
    came = CounterMetricFamily("atoll_email_received", "Messages for email() handlers.", labels=["outcome"])
    for outcome, count in sorted(received.items()):
        came.add_metric([outcome], count)
    went = CounterMetricFamily("atoll_email_sent", "Messages that workers sent.", labels=["outcome"])
    went.add_metric(["ok"], sent)
    went.add_metric(["failed"], failed)
    return [came, went]
