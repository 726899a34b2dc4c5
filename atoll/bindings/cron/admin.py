"""Cron triggers over HTTP: next runs, past runs, and a manual run."""

from __future__ import annotations

from itertools import islice

import msgspec
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

from atoll.api.admin import AdminTools, DeployedWorker
from atoll.api.callers import Caller, Scope
from atoll.api.paging import page_of, page_query
from atoll.api.refusals import ApiCode, Refused, bad_body
from atoll.api.routes import HEADERS, Query, Route, caller_of, json_answer, read_shape
from atoll.bindings.cron.clock import CronTriggers
from atoll.bindings.cron.history import Run
from atoll.clock import iso_time

LATEST = 253_402_300_799_000  # the last ms of the year 9999


class RunAnswer(msgspec.Struct):
    cron: str
    scheduled_at: str
    started_at: str
    ended_at: str | None
    outcome: str  # running, ok, interrupted, or an outcome of the logs
    message: str
    by_hand: bool


class CronAnswer(msgspec.Struct):
    cron: str
    next_run: str | None


class CronsAnswer(msgspec.Struct, omit_defaults=True):
    crons: list[CronAnswer]
    runs: list[RunAnswer]  # newest first; the last 100 are kept
    cursor: str = ""  # for more runs


class WantedRun(msgspec.Struct, forbid_unknown_fields=True):
    """`cron` is passed to the handler; the default is the worker's first. `scheduled_time` is ms since 1970."""

    cron: str | None = None
    scheduled_time: int | None = None


class RanAnswer(msgspec.Struct):
    outcome: str
    message: str


class CronsApi:
    def __init__(self, tools: AdminTools, triggers: CronTriggers) -> None:
        self._workers_of = tools.workers_of
        self._find = tools.find_worker
        self._audit = tools.audit
        self._triggers = triggers

    def routes(self) -> list[Route]:
        path = "/api/workers/{worker}/crons"
        text = {"type": "string"}
        queries = (
            Query("worker", "The worker; may be left out if only one has a scheduled handler", text),
            Query("cron", "The `cron` that is passed to the handler", text),
            Query("time", "The `scheduledTime` that is passed to the handler, in ms since 1970", text),
        )
        return [
            Route(
                "GET", path, self.show, Scope.READ, "Cron triggers of a worker and their runs", gives=CronsAnswer,
                query=page_query(),
            ),
            Route(
                "POST", f"{path}/run", self.run, Scope.DEPLOY, "Run the scheduled handler now", takes=WantedRun,
                gives=RanAnswer,
            ),
            Route(
                "GET", "/cdn-cgi/handler/scheduled", self.run_as_miniflare, Scope.DEPLOY,
                "Run a scheduled handler; the response is its outcome in plain text", query=queries, media="text/plain",
            ),
        ]  # fmt: skip

    async def show(self, request: Request) -> Response:
        deployment = self._find(request.path_params["worker"], caller_of(request))
        crons = []
        for cron in deployment.version.triggers.get("crons", ()):
            following = self._triggers.next_run(cron)
            crons.append(CronAnswer(cron, None if following is None else iso_time(following)))
        before, limit = page_of(request)
        found = [run for run in await self._triggers.history.runs(deployment.id) if not before or run.id < before]
        cursor = str(found[limit - 1].id) if len(found) > limit else ""
        return json_answer(CronsAnswer(crons, [_shown(run) for run in found[:limit]], cursor))

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

    async def _run(self, deployment: DeployedWorker, cron: str | None, time: int | None, by: Caller) -> tuple[str, str]:
        if "scheduled" not in deployment.handlers:
            raise Refused(
                ApiCode.NO_HANDLERS,
                f"`{deployment.name}` has no scheduled() handler",
                "export the handler and deploy again",
            )
        crons = deployment.version.triggers.get("crons", ())
        told = cron if cron is not None else crons[0] if crons else "* * * * *"
        slot = self._triggers.now() if time is None else time
        if not 0 <= slot <= LATEST or len(told) > 200:
            raise bad_body("`cron` or the time is too long")
        await self._audit.note(by, "cron.run", deployment.name, told)
        return await self._triggers.run(deployment.version, told, slot, by_hand=True)

    def _chosen(self, name: str | None, caller: Caller) -> DeployedWorker:
        if name is not None:
            return self._find(name, caller)
        workers = self._workers_of(caller.tenant)
        found = list(islice((each for each in workers if "scheduled" in each.handlers), 2))
        if len(found) != 1:
            raise Refused(
                ApiCode.NOT_FOUND,
                f"{'several workers have' if found else 'no worker has'} a scheduled() handler",
                "name one: ?worker=hello",
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
