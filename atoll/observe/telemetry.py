"""What a node sends to collectors of OpenTelemetry: traces, logs and metrics, each if its setting names a URL."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Protocol

from atoll.config import Settings
from atoll.logs import Invocation
from atoll.observe.traces import Tracer

if TYPE_CHECKING:
    from atoll.observe.otlp import Collect, OtlpLogs, OtlpMetrics


class Traced(Protocol):
    """Chooses the calls that are traced."""

    trace_share: float


class Telemetry:
    """Made on the event loop. OpenTelemetry is imported only if a setting needs it. Raises StartError."""

    def __init__(self, settings: Settings, undo: AsyncExitStack, broker: Traced) -> None:
        """What it starts ends with `undo` at the latest."""
        self._settings = settings
        undo.push_async_callback(self.close)
        self.tracer: Tracer | None = None
        self._logs: OtlpLogs | None = None
        self._metrics: OtlpMetrics | None = None
        if settings.otlp_endpoint:
            self.tracer = Tracer(settings.otlp_endpoint, settings.trace_share)
            broker.trace_share = settings.trace_share
        if settings.otlp_logs_endpoint:
            from atoll.observe.otlp import OtlpLogs

            self._logs = OtlpLogs(settings.otlp_logs_endpoint)

    def send_metrics(self, collect: Collect) -> None:
        """Send metrics from now on."""
        if self._settings.otlp_metrics_endpoint:
            from atoll.observe.otlp import OtlpMetrics

            seconds = self._settings.otlp_metrics_seconds
            self._metrics = OtlpMetrics(self._settings.otlp_metrics_endpoint, seconds, collect)

    def record(self, record: Invocation) -> None:
        if self.tracer is not None:
            self.tracer.record(record)
        if self._logs is not None:
            self._logs.hear(record)

    def dropped(self) -> dict[str, int]:
        """Entries of logs and metrics that no collector took, by signal."""
        senders = {"logs": self._logs, "metrics": self._metrics}
        return {signal: sender.sender.dropped for signal, sender in senders.items() if sender is not None}

    async def close(self) -> None:
        """Send what is left. May be called again."""
        tracer, self.tracer = self.tracer, None
        logs, self._logs = self._logs, None
        metrics, self._metrics = self._metrics, None
        if metrics is not None:
            await metrics.close()
        if tracer is not None:
            await asyncio.to_thread(tracer.close)
        if logs is not None:
            await asyncio.to_thread(logs.end)
