"""Analytics Engine over HTTP: datasets and queries."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.audit import AuditLog
from atoll.api.bodies import read_body
from atoll.api.callers import Scope
from atoll.api.paging import name_page_of, name_query, page_answer
from atoll.api.refusals import ApiCode, Refused, bad_body
from atoll.api.routes import HEADERS, Route, caller_of, no_content
from atoll.bindings.analytics_engine.points import DataPoints, Dataset
from atoll.bindings.analytics_engine.sql.run import MAX_QUERY, run
from atoll.bindings.analytics_engine.sql.tokens import QueryError


class DatasetAnswer(msgspec.Struct):
    name: str
    points: int
    bytes: int


class DatasetsAnswer(msgspec.Struct, omit_defaults=True):
    datasets: list[DatasetAnswer]
    cursor: str = ""


class AnalyticsApi:
    def __init__(self, points: DataPoints, audit: AuditLog) -> None:
        self._points = points
        self._audit = audit

    def routes(self) -> list[Route]:
        at = "/api/analytics_engine"
        return [
            Route("POST", f"{at}/sql", self.query, Scope.READ, "Query data points with SQL", raw="text/plain"),
            Route(
                "GET", f"{at}/datasets", self.list, Scope.READ, "The datasets of a tenant, by name",
                gives=DatasetsAnswer, query=name_query(),
            ),
            Route(
                "DELETE", at + "/datasets/{dataset}", self.delete, Scope.DEPLOY, "Delete a dataset and its data points",
                status=204,
            ),
        ]  # fmt: skip

    async def query(self, request: Request) -> Response:
        text = (await read_body(request, 4 * MAX_QUERY)).decode("utf-8", "replace")
        try:
            content, media = await run(self._points, caller_of(request).tenant, text)
        except QueryError as error:
            raise bad_body(str(error), "docs/bindings/analytics-engine.md lists what queries may use") from None
        return Response(content, headers=HEADERS, media_type=media)

    async def list(self, request: Request) -> Response:
        after, limit = name_page_of(request)
        return await page_answer("datasets", self._listed(caller_of(request).tenant, after), limit)

    async def _listed(self, tenant: str, after: str) -> AsyncIterator[tuple[str, DatasetAnswer]]:
        for each in self._points.of_tenant(tenant):
            if each.name > after:
                yield each.name, DatasetAnswer(each.name, each.points, each.bytes)

    async def delete(self, request: Request) -> Response:
        dataset = self._find(request)
        await self._audit.note(caller_of(request), "analytics_engine.delete", dataset.name)
        await self._points.delete(dataset)
        return no_content()

    def _find(self, request: Request) -> Dataset:
        name = request.path_params["dataset"]
        found = self._points.find(caller_of(request).tenant, name)
        if found is None:
            hint = "GET /api/analytics_engine/datasets lists the datasets"
            raise Refused(ApiCode.NOT_FOUND, f"there is no dataset `{name[:80]}`", hint)
        return found
