"""Traces for OpenTelemetry: a span for each sampled call, and a child span for each of its ops.

It is an extra (`pip install '.[otel]'`) and off unless `otlp_endpoint` is set. A span costs some 40 us, so the
event loop only puts a sampled record into a bounded box; a thread makes the spans and sends them. Requests of a call
carry its trace in `traceparent` (atoll/tracing.py), so Atoll chooses the ids when the call begins, not OpenTelemetry.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from atoll import __version__
from atoll.errors import StartError
from atoll.logs import Invocation
from atoll.redact import redacted_url
from atoll.tracing import Trace, trace_of
from atoll.wire.generated import OUTCOME_NAMES, Outcome

if TYPE_CHECKING:
    from opentelemetry.context import Context

BOX = 2_000  # records that wait for the thread
REST_SECONDS = 0.5


class Tracer:
    """`record` takes finished calls; `close` sends those that are left."""

    def __init__(self, endpoint: str, share: float) -> None:
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
            from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
        except ImportError:
            raise StartError("the setting otlp_endpoint needs OpenTelemetry", "pip install '.[otel]'") from None
        resource = Resource.create({"service.name": "atoll", "service.version": __version__})

        class Ids(RandomIdGenerator):
            """Random ids, except for the current call: its ids were already sent to others."""

            call: Trace | None = None

            def generate_trace_id(self) -> int:
                return super().generate_trace_id() if self.call is None else self.call.id

            def generate_span_id(self) -> int:
                return super().generate_span_id() if self.call is None else self.call.span

        self._ids = Ids()
        self._provider = TracerProvider(resource=resource, id_generator=self._ids, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint, timeout=5)))
        self._tracer = self._provider.get_tracer("atoll", __version__)
        self._share = share
        self._epoch_ns = time.time_ns() - time.perf_counter_ns()  # ops are timed with the monotonic clock
        self._box: list[tuple[Invocation, Trace]] = []
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._work, name="traces", daemon=True)
        self._thread.start()

    def record(self, record: Invocation) -> None:
        trace = record.trace or trace_of(record.head, self._share)
        if trace.is_kept and len(self._box) < BOX:
            self._box.append((record, trace))

    def close(self) -> None:
        """Waits for the network for up to a few seconds: call it in a thread."""
        self._closing.set()
        self._thread.join()
        self._provider.shutdown()

    def _work(self) -> None:
        while not self._closing.wait(REST_SECONDS):
            self._empty()
        self._empty()

    def _empty(self) -> None:
        box, self._box = self._box, []
        for record, trace in box:
            self._tell(record, trace)

    def _tell(self, record: Invocation, trace: Trace) -> None:
        from opentelemetry.trace import SpanKind, Status, StatusCode, set_span_in_context

        address, _, _ = record.head.partition(b"\n")
        method, _, url = address.decode("latin-1").partition(" ")
        start = int(record.started_at * 1e9)
        self._ids.call = trace
        span = self._tracer.start_span(
            f"{record.event} {record.version.worker_name}",
            context=parent_of(trace),
            kind=SpanKind.SERVER,
            start_time=start,
            attributes={
                "http.request.method": method,
                "url.full": redacted_url(url),
                "http.response.status_code": record.status,
                "atoll.worker": record.version.worker_name,
                "atoll.tenant": record.version.tenant,
                "atoll.version": record.version.id,
                "atoll.outcome": OUTCOME_NAMES[record.outcome],
                "atoll.cpu_ms": record.cpu_us / 1000,
            },
        )
        self._ids.call = None
        if record.outcome not in (Outcome.OK, Outcome.CANCELED):
            message = record.failure.message if record.failure is not None else OUTCOME_NAMES[record.outcome]
            span.set_status(Status(StatusCode.ERROR, message[:500]))
        below = set_span_in_context(span)
        for op in record.spans:
            began = self._epoch_ns + op.began_ns
            child = self._tracer.start_span(op.name, context=below, kind=SpanKind.CLIENT, start_time=began)
            if op.refused:
                child.set_status(Status(StatusCode.ERROR))
            child.end(began + op.took_us * 1000)
        span.end(start + record.wall_us * 1000)


def parent_of(trace: Trace) -> Context | None:
    """The parent span that the client named."""
    from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

    if not trace.parent:
        return None
    context = SpanContext(trace.id, trace.parent, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
    return set_span_in_context(NonRecordingSpan(context))
