"""The metrics of env.AI."""

from __future__ import annotations

from collections.abc import Mapping

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from atoll.bindings.ai.usage import AiUsage

MAX_TENANTS = 200


def ai_metrics(use: AiUsage, counted: Mapping[int, int]) -> list[Metric]:
    """Metrics of the tenants that use most: the number of series is bounded."""
    requests = GaugeMetricFamily("atoll_ai_requests_today", "Requests to AI models since 0:00 UTC.", labels=["tenant"])
    tokens = GaugeMetricFamily("atoll_ai_tokens_today", "Their tokens.", labels=["tenant", "kind"])
    faults = CounterMetricFamily("atoll_ai_faults", "Requests to AI models without a result.", labels=["code"])
    days = [use.of(each.tenant) for each in use.all()]
    for day in sorted(days, key=lambda day: -day.tokens)[:MAX_TENANTS]:
        requests.add_metric([day.tenant], day.requests)
        tokens.add_metric([day.tenant, "prompt"], day.prompt_tokens)
        tokens.add_metric([day.tenant, "completion"], day.completion_tokens)
    for code, count in sorted(counted.items()):
        faults.add_metric([str(code)], count)
    return [requests, tokens, faults]
