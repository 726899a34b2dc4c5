"""GET /api/routes: what leads to which worker."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atoll.control.boundary import Route, caller_of, json_answer
from atoll.control.callers import Scope
from atoll.control.version_rows import Deployment


class RouteAnswer(msgspec.Struct):
    pattern: str
    worker: str
    kind: str  # "name" the worker's own host, "custom_domain" a host alone, "route" host and path


class RoutesAnswer(msgspec.Struct):
    routes: list[RouteAnswer]


class RoutesApi:
    def __init__(self, deployments: Callable[[str], Sequence[Deployment]], base_domain: str) -> None:
        self._deployments = deployments
        self._base = base_domain

    def routes(self) -> list[Route]:
        return [Route("GET", "/api/routes", self.list, Scope.READ, "What leads to which worker", gives=RoutesAnswer)]

    async def list(self, request: Request) -> Response:
        found = []
        for deployment in self._deployments(caller_of(request).tenant):
            found.append(RouteAnswer(f"{deployment.name}.{self._base}/*", deployment.name, "name"))
            for text in deployment.routes:
                kind = "route" if "/" in text else "custom_domain"
                found.append(RouteAnswer(text, deployment.name, kind))
        return json_answer(RoutesAnswer(found))
