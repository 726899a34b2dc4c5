"""Cron triggers in Cloudflare's API."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.callers import Scope
from atoll.api.cloudflare import ACCOUNT, CloudflareTools, envelope, read_v4
from atoll.api.routes import Route, caller_of
from atoll.bindings.cron.entries import checked
from atoll.manifests.cloudflare_parts import CloudflarePart
from atoll.workers import Version

SCHEDULES = f"{ACCOUNT}/workers/scripts/{{script}}/schedules"


class WantedSchedule(Struct):
    cron: str


class SchedulesApi:
    def __init__(self, tools: CloudflareTools) -> None:
        self._tools = tools

    def routes(self) -> list[Route]:
        return [
            Route("GET", SCHEDULES, self.list, Scope.READ, "The crons of a worker"),
            Route("PUT", SCHEDULES, self.put, Scope.DEPLOY, "Replace the crons of a worker"),
        ]

    async def list(self, request: Request) -> Response:
        return _shown(self._tools.find(request.path_params["script"], caller_of(request)).version)

    async def put(self, request: Request) -> Response:
        crons = checked([each.cron for each in await read_v4(request, list[WantedSchedule])])
        script = request.path_params["script"]
        return _shown((await self._tools.change(caller_of(request), script, {"crons": crons})).version)


def _shown(version: Version) -> Response:
    return envelope({"schedules": [{"cron": cron} for cron in version.triggers.get("crons", ())]})


def routes(binding: Any, tools: CloudflareTools) -> list[Route]:
    return SchedulesApi(tools).routes()


PART = CloudflarePart(routes=routes)
