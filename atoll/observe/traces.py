"""Traces for OpenTelemetry: a span for each call that is chosen, and one below it for each op the worker asked for.

It is an extra (`pip install 'atoll[otel]'`) and off unless `otlp_endpoint` is set. A span costs some 40 us, so the
event loop only puts a chosen record into a bounded box; a thread makes the spans and sends them.
"""

from __future__ import annotations

import random
import re
import threading
import time
from typing import TYPE_CHECKING

from atoll import __version__
from atoll.errors import StartError
from atoll.logs import Invocation
from atoll.observe.redact import redacted_url
from atoll.wire.generated import OUTCOME_NAMES, Outcome

if TYPE_CHECKING:
    from opentelemetry.context import Context

BOX = 2_000  # records that wait for the thread
REST_SECONDS = 0.5
TRACEPARENT = re.compile(rb"\r?\ntraceparent: *00-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})", re.IGNORECASE)


class Tracer:
    """`record` what is over; `close` sends what is left."""

    def __init__(self, endpoint: str, share: float) -> None:
        try:
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
            from opentelemetry.sdk.resources import Resource
            from opentelemetry.sdk.trace import TracerProvider
            from opentelemetry.sdk.trace.export import BatchSpanProcessor
        except ImportError:
            raise StartError("the setting otlp_endpoint needs OpenTelemetry", "pip install 'atoll[otel]'") from None
        resource = Resource.create({"service.name": "atoll", "service.version": __version__})
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint, timeout=5)))
        self._tracer = self._provider.get_tracer("atoll", __version__)
        self._share = share
        self._epoch_ns = time.time_ns() - time.perf_counter_ns()  # ops are timed with the clock that never jumps
        self._box: list[Invocation] = []
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._work, name="traces", daemon=True)
        self._thread.start()

    def record(self, record: Invocation) -> None:
        if random.random() < self._share and len(self._box) < BOX:
            self._box.append(record)

    def close(self) -> None:
        """Waits for the network, a few seconds at most: call it in a thread."""
        self._closing.set()
        self._thread.join()
        self._provider.shutdown()

    def _work(self) -> None:
        while not self._closing.wait(REST_SECONDS):
            self._empty()
        self._empty()

    def _empty(self) -> None:
        box, self._box = self._box, []
        for record in box:
            self._tell(record)

    def _tell(self, record: Invocation) -> None:
        from opentelemetry.trace import SpanKind, Status, StatusCode, set_span_in_context

        address, _, _ = record.head.partition(b"\n")
        method, _, url = address.decode("latin-1").partition(" ")
        start = int(record.started_at * 1e9)
        span = self._tracer.start_span(
            f"{record.event} {record.version.worker_name}",
            context=parent_of(record.head) if record.event == "fetch" else None,
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


def parent_of(head: bytes) -> Context | None:
    """The span that the client said the call belongs to."""
    from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

    found = TRACEPARENT.search(head)
    if found is None:
        return None
    context = SpanContext(
        int(found[1], 16), int(found[2], 16), is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED)
    )
    return set_span_in_context(NonRecordingSpan(context)) if context.is_valid else None
