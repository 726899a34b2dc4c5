"""Endpoints about the node itself: a page for people, its health, and the figures of its pool."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atoll import __version__
from atoll.control.boundary import PAGE_HEADERS, Route, caller_of, json_answer
from atoll.control.callers import Scope
from atoll.control.deploy import Deployer
from atoll.control.page import front_page
from atoll.engine.pool import PoolStats


class HealthAnswer(msgspec.Struct):
    status: str
    engines: int
    version: str


class NodeApi:
    def __init__(
        self,
        deployer: Deployer,
        stats: Callable[[], PoolStats],
        pool_report: Callable[[], Mapping[str, object]],
        url_of: Callable[[str], str],
    ) -> None:
        self._deployer = deployer
        self._stats = stats
        self._pool_report = pool_report
        self._url_of = url_of

    def routes(self) -> list[Route]:
        return [
            Route("GET", "/", self.front_page, Scope.PUBLIC, "A page for people", media="text/html"),
            Route("GET", "/health", self.health, Scope.PUBLIC, "Whether engines run", gives=HealthAnswer),
            Route(
                "GET", "/admin/pool", self.pool, Scope.READ, "Figures of the pool", gives=dict[str, Any], is_node=True
            ),
        ]

    async def front_page(self, request: Request) -> Response:
        caller = caller_of(request)
        deployments = self._deployer.all(None if caller.is_operator else caller.tenant)
        shown = [(deployment.name, self._url_of(deployment.name)) for deployment in deployments]
        page = front_page(shown if caller.may(Scope.READ) else [], f"http://{request.headers['host']}", __version__)
        return Response(page, media_type="text/html", headers=PAGE_HEADERS)

    async def health(self, request: Request) -> Response:
        engines = self._stats().engines
        answer = HealthAnswer("ok" if engines else "no engine", engines, __version__)
        return json_answer(answer, status=200 if engines else 503)

    async def pool(self, request: Request) -> Response:
        return json_answer(self._pool_report())
