"""Endpoints about the node itself: the front page, its health, and the state of its pool."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atoll import __version__
from atoll.api.callers import Scope
from atoll.api.routes import Route, caller_of, json_answer
from atoll.config import Settings
from atoll.control.deploy.deployer import Deployer
from atoll.control.edge.boundary import PAGE_HEADERS
from atoll.control.edge.page import front_page
from atoll.engine.pool import PoolStats
from atoll.public_address import is_secure

MAX_SHOWN = 100  # workers on the front page


class HealthAnswer(msgspec.Struct):
    status: str
    engines: int
    version: str


class NodeApi:
    def __init__(
        self,
        settings: Settings,
        deployer: Deployer,
        stats: Callable[[], PoolStats],
        pool_report: Callable[[], Mapping[str, object]],
        url_of: Callable[[str], str],
    ) -> None:
        self._settings = settings
        self._deployer = deployer
        self._stats = stats
        self._pool_report = pool_report
        self._url_of = url_of

    def routes(self) -> list[Route]:
        return [
            Route("GET", "/", self.front_page, Scope.PUBLIC, "The front page", media="text/html"),
            Route("GET", "/health", self.health, Scope.PUBLIC, "Whether engines run", gives=HealthAnswer),
            Route(
                "GET", "/admin/pool", self.pool, Scope.READ, "The state of the pool", gives=dict[str, Any], is_node=True
            ),
        ]

    async def front_page(self, request: Request) -> Response:
        caller = caller_of(request)
        shown, count = None, 0
        if caller.may(Scope.READ):
            names = self._deployer.names.under(None if caller.is_operator else caller.tenant)
            shown, count = [(name, self._url_of(name)) for name in names[:MAX_SHOWN]], len(names)
        host = request.headers["host"]
        is_https = request.headers.get("x-forwarded-proto", "").lower() == "https" or is_secure(self._settings, host)
        with_token = shown is None or "authorization" in request.headers
        control = f"{'https' if is_https else 'http'}://{host}"
        page = front_page(shown, count, control, __version__, with_token=with_token)
        return Response(page, media_type="text/html", headers=PAGE_HEADERS)

    async def health(self, request: Request) -> Response:
        engines = self._stats().engines
        answer = HealthAnswer("ok" if engines else "no engine", engines, __version__)
        return json_answer(answer, status=200 if engines else 503)

    async def pool(self, request: Request) -> Response:
        return json_answer(self._pool_report())
