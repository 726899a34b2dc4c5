"""GET /api/routes: the routes of all workers."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.callers import Scope
from atoll.api.paging import bad_cursor, name_page_of, name_query, page_answer
from atoll.api.routes import Route, caller_of
from atoll.control.deploy.deployer import Deployer
from atoll.control.store.version_rows import Deployment
from atoll.workers import host_label


class RouteAnswer(msgspec.Struct):
    pattern: str
    worker: str
    kind: str  # "name": the worker's own host; "custom_domain": a whole host; "route": host and path


class RoutesAnswer(msgspec.Struct, omit_defaults=True):
    routes: list[RouteAnswer]
    cursor: str = ""


class RoutesApi:
    def __init__(self, deployer: Deployer, base_domain: str) -> None:
        self._deployer = deployer
        self._base = base_domain

    def routes(self) -> list[Route]:
        summary = "Routes, by worker"
        return [Route("GET", "/api/routes", self.list, Scope.READ, summary, gives=RoutesAnswer, query=name_query())]

    async def list(self, request: Request) -> Response:
        cursor, limit = name_page_of(request)
        name, _, count = cursor.partition("/")  # a worker, and how many of its routes were listed
        if cursor and not (count.isascii() and count.isdigit() and len(count) < 10):
            raise bad_cursor(cursor)
        tenant = caller_of(request).tenant
        return await page_answer("routes", self._listed(tenant, name, int(count or 0)), limit)

    async def _listed(self, tenant: str, begun: str, told: int) -> AsyncIterator[tuple[str, RouteAnswer]]:
        first = self._deployer.named(begun)
        if first is not None and first.version.tenant == tenant:
            for number in range(told, len(first.routes) + 1):
                yield self._shown(first, number)
        for deployment in self._deployer.after(tenant, begun):
            for number in range(len(deployment.routes) + 1):
                yield self._shown(deployment, number)

    def _shown(self, deployment: Deployment, number: int) -> tuple[str, RouteAnswer]:
        """The worker's own host is its route number 0."""
        name = deployment.name
        text = deployment.routes[number - 1] if number else f"{host_label(name)}.{self._base}/*"
        kind = "name" if not number else "route" if "/" in text else "custom_domain"
        return f"{name}/{number + 1}", RouteAnswer(text, name, kind)
