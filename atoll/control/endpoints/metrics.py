"""Endpoints for monitoring: metrics, liveness and readiness."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection
from typing import TYPE_CHECKING

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.callers import Scope
from atoll.api.routes import HEADERS, Route, json_answer
from atoll.bindings.base import Binding
from atoll.errors import StorageFailed
from atoll.observe.meter import Meter
from atoll.observe.sources import Sources

if TYPE_CHECKING:
    from prometheus_client.metrics_core import Metric

    from atoll.observe.metrics import Metrics

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class StateAnswer(msgspec.Struct):
    status: str


class MetricsApi:
    """`state` is "ok", or the reason why the node is not ready."""

    def __init__(self, meter: Meter, sources: Sources, bindings: Collection[Binding], state: Callable[[], str]) -> None:
        self._meter = meter
        self._sources = sources
        self._bindings = bindings
        self._state = state
        self._metrics: Metrics | None = None

    def routes(self) -> list[Route]:
        return [
            Route(
                "GET", "/metrics", self.metrics, Scope.READ, "Metrics for Prometheus", is_node=True, media=CONTENT_TYPE
            ),
            Route("GET", "/healthz", self.alive, Scope.PUBLIC, "Liveness: the process responds", gives=StateAnswer),
            Route(
                "GET",
                "/readyz",
                self.ready,
                Scope.PUBLIC,
                "Readiness: whether to send requests to this node",
                gives=StateAnswer,
            ),
        ]

    async def metrics(self, request: Request) -> Response:
        """GET /metrics"""
        text = await self._made().text(await self._families())
        return Response(text, headers=HEADERS | {"content-type": CONTENT_TYPE})

    async def collect(self) -> AsyncIterator[Metric]:
        """All metrics, in steps."""
        async for family in self._made().collected(await self._families()):
            yield family

    def _made(self) -> Metrics:
        if self._metrics is None:
            from atoll.observe.metrics import Metrics  # imports prometheus_client: a node without scrapes starts sooner

            self._metrics = Metrics(self._meter, self._sources)
        return self._metrics

    async def _families(self) -> list[Metric]:
        """The metrics of the bindings. A binding whose storage fails is left out."""
        families: list[Metric] = []
        for binding in self._bindings:
            try:
                families += await binding.metrics()
            except StorageFailed:
                pass
        return families

    async def alive(self, request: Request) -> Response:
        """GET /healthz: the process answers, so it needs no restart."""
        return json_answer(StateAnswer("ok"))

    async def ready(self, request: Request) -> Response:
        """GET /readyz: 503 while it starts, drains or has no engine."""
        state = self._state()
        return json_answer(StateAnswer(state), status=200 if state == "ok" else 503)
