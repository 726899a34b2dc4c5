"""What machines ask of a node: its numbers, whether it lives, and whether it should be sent requests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atoll.observe.metrics import CONTENT_TYPE, Metrics

HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}


class MetricsApi:
    """`state` is "ok", or why no request should be sent here."""

    def __init__(self, metrics: Metrics, state: Callable[[], str]) -> None:
        self._metrics = metrics
        self._state = state

    def endpoints(self) -> dict[str, Callable[[Request], Awaitable[Response]]]:
        """By path; all are asked with GET."""
        return {"/metrics": self.metrics, "/healthz": self.alive, "/readyz": self.ready}

    async def metrics(self, request: Request) -> Response:
        """GET /metrics"""
        return Response(self._metrics.text(), headers=HEADERS | {"content-type": CONTENT_TYPE})

    async def alive(self, request: Request) -> Response:
        """GET /healthz: the process answers, so it needs no restart."""
        return Response(b'{"status":"ok"}', headers=HEADERS, media_type="application/json")

    async def ready(self, request: Request) -> Response:
        """GET /readyz: 503 while it starts, drains or has no engine."""
        state = self._state()
        body = msgspec.json.encode({"status": state})
        return Response(body, 200 if state == "ok" else 503, headers=HEADERS, media_type="application/json")
