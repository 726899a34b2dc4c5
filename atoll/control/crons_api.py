"""Cron triggers over HTTP: when they run next, how they ran, and a run by hand."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from atoll.control.audit import AuditLog
from atoll.control.boundary import HEADERS, Query, Route, caller_of, json_answer, read_shape
from atoll.control.callers import Caller, Scope
from atoll.control.check import bad_body
from atoll.control.deploy import Deployer
from atoll.control.refusals import ApiCode, Refused
from atoll.control.workers import Deployment
from atoll.observe.records import iso_time
from atoll.triggers.cron import CronTriggers
from atoll.triggers.history import Run

LATEST = 253_402_300_799_000  # the last ms of the year 9999


class RunAnswer(msgspec.Struct):
    cron: str
    scheduled_at: str
    started_at: str
    ended_at: str | None
    outcome: str  # running, ok, interrupted, or as in the logs
    message: str
    by_hand: bool


class CronAnswer(msgspec.Struct):
    cron: str
    next_run: str | None


class CronsAnswer(msgspec.Struct):
    crons: list[CronAnswer]
    runs: list[RunAnswer]  # the last 100, newest first


class WantedRun(msgspec.Struct, forbid_unknown_fields=True):
    """`cron` is what the handler is told: the first of the worker's unless given. `scheduled_time` is ms since 1970."""

    cron: str | None = None
    scheduled_time: int | None = None


class RanAnswer(msgspec.Struct):
    outcome: str
    message: str


class CronsApi:
    def __init__(self, deployer: Deployer, triggers: CronTriggers, audit: AuditLog) -> None:
        self._deployer = deployer
        self._find: Callable[[str, Caller], Deployment] = deployer.find
        self._triggers = triggers
        self._audit = audit

    def routes(self) -> list[Route]:
        path = "/api/workers/{worker}/crons"
        text = {"type": "string"}
        queries = (
            Query("worker", "Which worker; may be left out when only one has a scheduled handler", text),
            Query("cron", "What the handler is told as cron", text),
            Query("time", "What the handler is told as scheduledTime, in ms since 1970", text),
        )
        return [
            Route("GET", path, self.show, Scope.READ, "Cron triggers of a worker and their runs", gives=CronsAnswer),
            Route(
                "POST", f"{path}/run", self.run, Scope.DEPLOY, "Run the scheduled handler now", takes=WantedRun,
                gives=RanAnswer,
            ),
            Route(
                "GET", "/cdn-cgi/handler/scheduled", self.run_as_miniflare, Scope.DEPLOY,
                "Run a scheduled handler; the answer is its outcome in plain text", query=queries, media="text/plain",
            ),
        ]  # fmt: skip

    async def show(self, request: Request) -> Response:
        deployment = self._find(request.path_params["worker"], caller_of(request))
        crons = []
        for cron in deployment.version.crons:
            following = self._triggers.next_run(cron)
            crons.append(CronAnswer(cron, None if following is None else iso_time(following)))
        runs = [_shown(run) for run in await self._triggers.history.runs(deployment.id)]
        return json_answer(CronsAnswer(crons, runs))

    async def run(self, request: Request) -> Response:
        deployment = self._find(request.path_params["worker"], caller_of(request))
        wanted = await read_shape(request, WantedRun, empty=True)
        ran = await self._run(deployment, wanted.cron, wanted.scheduled_time, caller_of(request))
        return json_answer(RanAnswer(*ran))

    async def run_as_miniflare(self, request: Request) -> Response:
        given = request.query_params
        deployment = self._chosen(given.get("worker"), caller_of(request))
        time = given.get("time")
        if time is not None and not (time.isascii() and time.isdigit() and len(time) < 16):
            raise bad_body("`time` is not a number of milliseconds since 1970")
        slot = None if time is None else int(time)
        outcome, _ = await self._run(deployment, given.get("cron"), slot, caller_of(request))
        return PlainTextResponse(outcome, 200 if outcome == "ok" else 500, headers=HEADERS)

    async def _run(self, deployment: Deployment, cron: str | None, time: int | None, by: Caller) -> tuple[str, str]:
        if "scheduled" not in deployment.handlers:
            raise Refused(
                ApiCode.NO_HANDLERS, f"`{deployment.name}` has no scheduled() handler", "export one and deploy again"
            )
        crons = deployment.version.crons
        told = cron if cron is not None else crons[0] if crons else "* * * * *"
        slot = self._triggers.now() if time is None else time
        if not 0 <= slot <= LATEST or len(told) > 200:
            raise bad_body("`cron` or the time is longer than any that is")
        await self._audit.note(by, "cron.run", deployment.name, told)
        return await self._triggers.run(deployment.version, told, slot, by_hand=True)

    def _chosen(self, name: str | None, caller: Caller) -> Deployment:
        if name is not None:
            return self._find(name, caller)
        found = [each for each in self._deployer.all(caller.tenant) if "scheduled" in each.handlers]
        if len(found) != 1:
            raise Refused(
                ApiCode.NOT_FOUND, f"{len(found)} workers have a scheduled() handler", "name one: ?worker=hello"
            )
        return found[0]


def _shown(run: Run) -> RunAnswer:
    return RunAnswer(
        cron=run.cron,
        scheduled_at=iso_time(run.slot),
        started_at=iso_time(run.started_at),
        ended_at=None if run.ended_at is None else iso_time(run.ended_at),
        outcome=run.outcome,
        message=run.message,
        by_hand=bool(run.by_hand),
    )
