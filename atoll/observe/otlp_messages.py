"""What otlp.py sends: metrics, from the text of /metrics, and logs, as messages of the protocol."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from atoll import __version__
from atoll.logs import Invocation
from atoll.redact import redacted_url
from atoll.wire.generated import OUTCOME_NAMES, Level

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

STARTED_NS = time.time_ns()
# Numbers and names of severities in OpenTelemetry's data model.
OF_LINE = {Level.DEBUG: (5, "DEBUG"), Level.WARN: (13, "WARN"), Level.ERROR: (17, "ERROR")}
USUAL = (9, "INFO")
OF_LOGGER = ((logging.ERROR, (17, "ERROR")), (logging.WARNING, (13, "WARN")), (logging.INFO, USUAL), (0, (5, "DEBUG")))


def attributes(values: Mapping[str, object]) -> list[Any]:
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue

    return [KeyValue(key=key, value=AnyValue(string_value=str(value))) for key, value in values.items()]


def resource() -> Any:
    from opentelemetry.proto.resource.v1.resource_pb2 import Resource

    return Resource(attributes=attributes({"service.name": "atoll", "service.version": __version__}))


def scope() -> Any:
    from opentelemetry.proto.common.v1.common_pb2 import InstrumentationScope

    return InstrumentationScope(name="atoll", version=__version__)


def metric_message(lines: Iterable[str]) -> tuple[bytes, int]:
    """The message that says what the lines of /metrics say, and the number of its metrics."""
    from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
    from opentelemetry.proto.metrics.v1.metrics_pb2 import ResourceMetrics, ScopeMetrics
    from prometheus_client.parser import text_fd_to_metric_families

    families = text_fd_to_metric_families(lines)  # type: ignore[arg-type]  # it only iterates
    metrics = [metric for family in families if (metric := _metric(family, time.time_ns())) is not None]
    within = ResourceMetrics(resource=resource(), scope_metrics=[ScopeMetrics(scope=scope(), metrics=metrics)])
    return ExportMetricsServiceRequest(resource_metrics=[within]).SerializeToString(), len(metrics)


def _metric(family: Metric, now: int) -> Any:
    from opentelemetry.proto.metrics.v1 import metrics_pb2 as pb

    times: dict[str, Any] = {"start_time_unix_nano": STARTED_NS, "time_unix_nano": now}
    cumulative = pb.AGGREGATION_TEMPORALITY_CUMULATIVE
    metric = pb.Metric(name=family.name, description=family.documentation)
    if family.type == "histogram":
        points = _histograms(family, times)
        metric.histogram.CopyFrom(pb.Histogram(data_points=points, aggregation_temporality=cumulative))
        return metric if points else None
    numbers = [
        pb.NumberDataPoint(attributes=attributes(sample.labels), as_double=sample.value, **times)
        for sample in family.samples
        if not sample.name.endswith("_created")
    ]
    if family.type == "counter":
        metric.sum.CopyFrom(pb.Sum(data_points=numbers, aggregation_temporality=cumulative, is_monotonic=True))
    else:
        metric.gauge.CopyFrom(pb.Gauge(data_points=numbers))
    return metric if numbers else None


def _histograms(family: Metric, times: dict[str, Any]) -> list[Any]:
    """Prometheus counts each bucket with all below it, OTLP counts it alone."""
    from opentelemetry.proto.metrics.v1.metrics_pb2 import HistogramDataPoint

    buckets: dict[tuple[tuple[str, str], ...], list[tuple[float, float]]] = {}
    sums: dict[tuple[tuple[str, str], ...], float] = {}
    for sample in family.samples:
        labels = tuple((key, value) for key, value in sample.labels.items() if key != "le")
        if sample.name.endswith("_bucket"):
            buckets.setdefault(labels, []).append((float(sample.labels["le"]), sample.value))
        elif sample.name.endswith("_sum"):
            sums[labels] = sample.value
    points = []
    for labels, found in buckets.items():
        found.sort()
        counts = [int(count) for _, count in found]
        points.append(
            HistogramDataPoint(
                attributes=attributes(dict(labels)),
                count=counts[-1],
                sum=sums.get(labels, 0.0),
                bucket_counts=[count - below for count, below in zip(counts, [0, *counts], strict=False)],
                explicit_bounds=[bound for bound, _ in found[:-1]],
                **times,
            )
        )
    return points


def log_message(items: Iterable[Invocation | logging.LogRecord]) -> bytes:
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
    from opentelemetry.proto.logs.v1.logs_pb2 import ResourceLogs, ScopeLogs

    entries: list[Any] = []
    for item in items:
        entries += [_of_node(item)] if isinstance(item, logging.LogRecord) else _of_call(item)
    within = ResourceLogs(resource=resource(), scope_logs=[ScopeLogs(scope=scope(), log_records=entries)])
    message: bytes = ExportLogsServiceRequest(resource_logs=[within]).SerializeToString()
    return message


def _entry(at: float, severity: tuple[int, str], text: str, facts: Mapping[str, object]) -> Any:
    from opentelemetry.proto.common.v1.common_pb2 import AnyValue
    from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

    number, name = severity
    return LogRecord(
        time_unix_nano=int(at * 1e9),
        observed_time_unix_nano=time.time_ns(),
        severity_number=number,  # type: ignore[arg-type]
        severity_text=name,
        body=AnyValue(string_value=text.encode("utf-8", "backslashreplace").decode()),
        attributes=attributes(facts),
    )


def _of_node(record: logging.LogRecord) -> Any:
    severity = next(found for level, found in OF_LOGGER if record.levelno >= level)
    facts = {"atoll.logger": record.name}
    if record.exc_info:
        facts["exception.stacktrace"] = logging.Formatter().formatException(record.exc_info)
    return _entry(record.created, severity, record.getMessage(), facts)


def _of_call(record: Invocation) -> list[Any]:
    """Each console line, and the error that ended the call."""
    address, _, _ = record.head.partition(b"\n")
    method, _, url = address.decode("latin-1").partition(" ")
    facts: dict[str, object] = {
        "atoll.tenant": record.version.tenant,
        "atoll.worker": record.version.worker_name,
        "atoll.version": record.version.id,
        "atoll.event": record.event,
        "atoll.outcome": OUTCOME_NAMES[record.outcome],
        "http.request.method": method,
        "url.full": redacted_url(url),
    }
    trace = record.trace
    found = [_entry(line.timestamp_ms / 1000, OF_LINE.get(line.level, USUAL), line.text, facts) for line in record.logs]
    if record.failure is not None:
        failure = record.failure
        more = {"exception.message": failure.message, "exception.stacktrace": failure.stack}
        ended = record.started_at + record.wall_us / 1e6
        found.append(_entry(ended, (17, "ERROR"), failure.message, facts | more))
    if trace is not None:
        for entry in found:
            entry.trace_id, entry.span_id = trace.id.to_bytes(16, "big"), trace.span.to_bytes(8, "big")
    return found
