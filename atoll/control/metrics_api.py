"""What machines ask of a node: its numbers, whether it lives, and whether it should be sent requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atoll.bindings.queue.store import QueueStore
from atoll.control.boundary import HEADERS, Route, json_answer
from atoll.control.callers import Scope
from atoll.errors import StorageFailed
from atoll.observe.meter import Meter
from atoll.observe.sources import QueueState, Sources

if TYPE_CHECKING:
    from atoll.observe.metrics import Metrics

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
MAX_QUEUES = 200


class StateAnswer(msgspec.Struct):
    status: str


class MetricsApi:
    """`state` is "ok", or why no request should be sent here."""

    def __init__(self, meter: Meter, sources: Sources, queues: QueueStore, state: Callable[[], str]) -> None:
        self._meter = meter
        self._sources = sources
        self._queues = queues
        self._state = state
        self._metrics: Metrics | None = None

    def routes(self) -> list[Route]:
        return [
            Route(
                "GET", "/metrics", self.metrics, Scope.READ, "Numbers for Prometheus", is_node=True, media=CONTENT_TYPE
            ),
            Route("GET", "/healthz", self.alive, Scope.PUBLIC, "Whether the process lives", gives=StateAnswer),
            Route("GET", "/readyz", self.ready, Scope.PUBLIC, "Whether to send requests here", gives=StateAnswer),
        ]

    async def metrics(self, request: Request) -> Response:
        """GET /metrics"""
        if self._metrics is None:
            from atoll.observe.metrics import Metrics  # prometheus_client: a node that nobody scrapes starts sooner

            self._metrics = Metrics(self._meter, self._sources)
        return Response(
            self._metrics.text(await self._queue_states()), headers=HEADERS | {"content-type": CONTENT_TYPE}
        )

    async def _queue_states(self) -> list[QueueState]:
        """Of the first queues only: series are bounded. None when the disk does not tell: the rest still counts."""
        states = []
        try:
            for queue in (await self._queues.all())[:MAX_QUEUES]:
                depth = await self._queues.depth(queue.id)
                now = self._queues.now()
                age = max(now - depth.oldest_at, 0) / 1000 if depth.oldest_at is not None else 0.0
                states.append(QueueState(queue.tenant, queue.name, *depth[:3], age, depth.bytes, queue.dropped))
        except StorageFailed:
            pass
        return states

    async def alive(self, request: Request) -> Response:
        """GET /healthz: the process answers, so it needs no restart."""
        return json_answer(StateAnswer("ok"))

    async def ready(self, request: Request) -> Response:
        """GET /readyz: 503 while it starts, drains or has no engine."""
        state = self._state()
        return json_answer(StateAnswer(state), status=200 if state == "ok" else 503)
