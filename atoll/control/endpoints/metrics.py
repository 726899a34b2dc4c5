"""Endpoints for monitoring: metrics, liveness and readiness."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
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

    def __init__(
        self,
        meter: Meter,
        sources: Sources,
        bindings: Collection[Binding],
        state: Callable[[], str],
        send: Callable[[Callable[[], Awaitable[bytes]]], None] = lambda text: None,
    ) -> None:
        """`send` is given how to make the text, for those to whom the node sends it by itself."""
        self._meter = meter
        self._sources = sources
        self._bindings = bindings
        self._state = state
        self._metrics: Metrics | None = None
        send(self.text)

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
        return Response(await self.text(), headers=HEADERS | {"content-type": CONTENT_TYPE})

    async def text(self) -> bytes:
        """All metrics, made in steps."""
        if self._metrics is None:
            from atoll.observe.metrics import Metrics  # imports prometheus_client: a node without scrapes starts sooner

            self._metrics = Metrics(self._meter, self._sources)
        return await self._metrics.text(await self._families())

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
