"""Charts and the first page of the dashboard: counts of calls over time, of a worker, a tenant or the node."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.callers import Scope
from atoll.api.paging import name_page_of, name_query, page_answer
from atoll.api.refusals import bad_body
from atoll.api.routes import Query, Route, caller_of, json_answer
from atoll.clock import iso_time
from atoll.control.deploy.deployer import Deployer
from atoll.control.endpoints.logs import time_of
from atoll.control.store.workers import Deployment
from atoll.observe.meter import CPU_BOUNDS, WALL_BOUNDS
from atoll.observe.series import (
    COARSE,
    COARSE_KEPT,
    FINE,
    NODE,
    STEPS,
    SeriesStep,
    SeriesStore,
    merged,
    of_tenant,
    of_worker,
)
from atoll.observe.series_points import SeriesPoint, percentile, shown, total_of

HOUR = 3_600
MAX_POINTS = 1_500  # of one version in an answer
USUAL_POINTS = 120
CHOICES = (FINE, 60, 300, 900, 3_600, 10_800, 21_600, 86_400)  # steps to choose from, in seconds
TIME = {"type": "string"}
PARAMETERS = ("since", "until", "step", "by")
QUERIES = (
    Query("since", "ISO 8601, or ms since 1970; an hour ago by default", TIME),
    Query("until", "ISO 8601, or ms since 1970; now by default", TIME),
    Query("step", "Seconds of a point: 10, or a multiple of 60; by default it fits the span", {"type": "integer"}),
    Query("by", "A series for each version", {"enum": ["version"]}),
)


class SeriesAnswer(msgspec.Struct):
    since: str
    until: str
    step: int
    points: list[SeriesPoint]  # only where there were calls
    is_counted: bool  # false: the worker shares its counters with others (setting metrics_workers), so it has no points


class WorkerSummary(msgspec.Struct):
    """A worker in the last hour."""

    id: str
    name: str
    url: str
    version: int
    versions: int  # that get traffic
    message: str
    updated_at: str
    calls: int
    errors: int
    p50_ms: float | None
    p99_ms: float | None
    cpu_p99_ms: float | None
    cpu_limit_ms: int
    spark: list[int]  # calls in each 2 minutes of the hour
    errors_spark: list[int]
    is_counted: bool


class OverviewAnswer(msgspec.Struct, omit_defaults=True):
    workers: list[WorkerSummary]
    cursor: str = ""


class SeriesApi:
    def __init__(self, deployer: Deployer, series: SeriesStore, url_of: Callable[[str], str]) -> None:
        self._deployer = deployer
        self._series = series
        self._meter = series.meter
        self._url_of = url_of

    def routes(self) -> list[Route]:
        found = {"gives": SeriesAnswer, "query": QUERIES[:3]}
        return [
            Route(
                "GET",
                "/api/workers/{worker}/series",
                self.of_worker,
                Scope.READ,
                "Calls, errors and durations of a worker over time",
                gives=SeriesAnswer,
                query=QUERIES,
            ),
            Route("GET", "/api/series", self.of_tenant, Scope.READ, "The same of a tenant", **found),  # type: ignore[arg-type]
            Route(
                "GET",
                "/api/node/series",
                self.of_node,
                Scope.READ,
                "The same of the node",
                is_node=True,
                **found,  # type: ignore[arg-type]
            ),
            Route(
                "GET",
                "/api/overview",
                self.overview,
                Scope.READ,
                "Each worker of a tenant with its last hour",
                gives=OverviewAnswer,
                query=name_query(),
            ),
        ]

    async def of_worker(self, request: Request) -> Response:
        worker = self._deployer.find(request.path_params["worker"], caller_of(request))
        is_counted = not self._meter.is_shared(worker.id)
        return await self._answer(request, of_worker(worker.id), PARAMETERS, is_counted=is_counted)

    async def of_tenant(self, request: Request) -> Response:
        return await self._answer(request, of_tenant(caller_of(request).tenant), PARAMETERS[:3])

    async def of_node(self, request: Request) -> Response:
        return await self._answer(request, NODE, PARAMETERS[:3])

    async def _answer(
        self, request: Request, subject: str, known: tuple[str, ...], *, is_counted: bool = True
    ) -> Response:
        given = dict(request.query_params)
        for name in given:
            if name not in known:
                raise bad_body(f"there is no parameter `{name[:80]}`", f"the known ones are {', '.join(known)}")
        now = time.time()
        until = time_of("until", given["until"]) / 1000 if "until" in given else now + FINE
        since = time_of("since", given["since"]) / 1000 if "since" in given else min(until, now) - HOUR
        step = _checked_step(given.get("step"), since, until, now)
        if given.get("by", "version") != "version":
            raise bad_body(f"`by` is {given['by'][:80]!r}", "use `version`, or leave it out")
        begin = int(since) // step * step
        found = await self._series.find(subject, begin, int(until), step)
        if "by" not in given:
            found = merged(((each.at, "", each.point) for each in found), step)
        points = [shown(iso_time(each.at * 1000), each.version, each.point) for each in found]
        return json_answer(SeriesAnswer(iso_time(begin * 1000), iso_time(until * 1000), step, points, is_counted))

    async def overview(self, request: Request) -> Response:
        after, limit = name_page_of(request)
        return await page_answer("workers", self._listed(caller_of(request).tenant, after), limit)

    async def _listed(self, tenant: str, after: str) -> AsyncIterator[tuple[str, WorkerSummary]]:
        begin = (int(time.time()) // COARSE - COARSE_KEPT + 1) * COARSE
        for deployment in self._deployer.after(tenant, after):
            yield deployment.name, self._summary(deployment, begin)

    def _summary(self, deployment: Deployment, begin: int) -> WorkerSummary:
        found = self._series.last_hour(deployment.id)
        whole = total_of(each.point for each in found)
        return WorkerSummary(
            id=deployment.id,
            name=deployment.name,
            url=self._url_of(deployment.name),
            version=deployment.number,
            versions=len(self._deployer.traffic(deployment.id)),
            message=deployment.message,
            updated_at=iso_time(deployment.updated_at),
            calls=whole.calls,
            errors=whole.errors,
            p50_ms=percentile(whole.wall, WALL_BOUNDS, 0.5),
            p99_ms=percentile(whole.wall, WALL_BOUNDS, 0.99),
            cpu_p99_ms=percentile(whole.cpu, CPU_BOUNDS, 0.99),
            cpu_limit_ms=deployment.version.limits.cpu_ms,
            spark=_spark(found, begin, lambda each: each.point.calls),
            errors_spark=_spark(found, begin, lambda each: each.point.errors),
            is_counted=not self._meter.is_shared(deployment.id),
        )


def _spark(found: list[SeriesStep], begin: int, of: Callable[[SeriesStep], int]) -> list[int]:
    counts = [0] * COARSE_KEPT
    for each in found:
        place = (each.at - begin) // COARSE
        if 0 <= place < COARSE_KEPT:
            counts[place] += of(each)
    return counts


def _checked_step(raw: str | None, since: float, until: float, now: float) -> int:
    """The step of a query; one whose points are kept no longer is an error, not a chart with a hole."""
    if until <= since:
        raise bad_body("`until` is not after `since`", "use an earlier `since`")
    finest = FINE if now - since <= HOUR + 60 else 60 if now - since <= STEPS[60] + 60 else 900
    if raw is None:
        fitting = (step for step in CHOICES if step >= finest and (until - since) / step <= USUAL_POINTS)
        return next(fitting, max(CHOICES[-1], int((until - since) / USUAL_POINTS / 86_400 + 1) * 86_400))
    step = int(raw) if raw.isascii() and raw.isdigit() and len(raw) <= 8 else 0
    if step != FINE and (not step or step % 60):
        raise bad_body(f"`step` is {raw[:80]!r}", f"use {FINE}, or a multiple of 60")
    if step < finest or (finest == 900 and step % 900):
        raise bad_body(
            f"points of {step} s are not kept that long", "10 s: an hour; a minute: a day; 15 minutes and more: 30 days"
        )
    if (until - since) / step > MAX_POINTS:
        raise bad_body(f"that is more than {MAX_POINTS:,} points", "use a larger `step`, or leave it out")
    return step
