"""Endpoints of workers: deploy, list, show, delete. What a deploy means is decided in deploy.py."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atoll.config import Settings
from atoll.control.bindings import shown_bindings
from atoll.control.boundary import Route, caller_of, json_answer, media_type, no_content, read_json
from atoll.control.callers import Scope
from atoll.control.check import DeployBody, parse_body
from atoll.control.deploy import Deployer
from atoll.control.upload import MEDIA_TYPE, read_upload
from atoll.control.versions_api import VersionAnswer
from atoll.control.workers import Deployment
from atoll.observe.records import iso_time
from atoll.workers import EgressRules, Limits, QueueConsumer, Switches, TailConsumer


class WorkerAnswer(msgspec.Struct):
    id: str
    name: str
    url: str
    routes: tuple[str, ...]
    env: Mapping[str, Any]
    bindings: list[dict[str, Any]]
    limits: Limits
    isolation: str
    switches: Switches
    egress: EgressRules
    compatibility_date: str
    compatibility_flags: tuple[str, ...]
    crons: tuple[str, ...]
    queue_consumers: tuple[QueueConsumer, ...]
    tail_consumers: tuple[TailConsumer, ...]
    handlers: tuple[str, ...]
    secrets: list[str]  # names
    version: VersionAnswer
    created_at: str
    updated_at: str


class WorkersAnswer(msgspec.Struct):
    workers: list[WorkerAnswer]


class WorkersApi:
    def __init__(self, settings: Settings, deployer: Deployer, url_of: Callable[[str], str]) -> None:
        self._deployer = deployer
        self._url_of = url_of
        self._max_body = settings.script_bytes * 2 + (1 << 20)  # base64 and JSON's escapes make a script longer

    def routes(self) -> list[Route]:
        return [
            Route("GET", "/api/workers", self.list, Scope.READ, "The workers of a tenant", gives=WorkersAnswer),
            Route(
                "POST",
                "/api/workers",
                self.create,
                Scope.DEPLOY,
                "Deploy a new worker",
                takes=DeployBody,
                gives=WorkerAnswer,
                status=201,
            ),
            Route("GET", "/api/workers/{worker}", self.show, Scope.READ, "One worker", gives=WorkerAnswer),
            Route(
                "PUT",
                "/api/workers/{worker}",
                self.update,
                Scope.DEPLOY,
                "Deploy a new version of a worker",
                takes=DeployBody,
                gives=WorkerAnswer,
            ),
            Route("DELETE", "/api/workers/{worker}", self.delete, Scope.DEPLOY, "Remove a worker", status=204),
        ]

    async def list(self, request: Request) -> Response:
        deployments = self._deployer.all(caller_of(request).tenant)
        return json_answer(WorkersAnswer([self.shown(deployment) for deployment in deployments]))

    async def create(self, request: Request) -> Response:
        deployment = await self._deployer.create(await self._body(request), caller_of(request))
        location = {"location": f"/api/workers/{deployment.id}"}
        return json_answer(self.shown(deployment), status=201, headers=location)

    async def show(self, request: Request) -> Response:
        return json_answer(self.shown(self._deployer.find(request.path_params["worker"], caller_of(request))))

    async def update(self, request: Request) -> Response:
        body, caller = await self._body(request), caller_of(request)
        return json_answer(self.shown(await self._deployer.update(request.path_params["worker"], body, caller)))

    async def delete(self, request: Request) -> Response:
        await self._deployer.delete(request.path_params["worker"], caller_of(request))
        return no_content()

    async def _body(self, request: Request) -> DeployBody:
        hint = "see the setting script_bytes"
        if media_type(request) == MEDIA_TYPE:
            return await read_upload(request, self._max_body, hint)
        return parse_body(await read_json(request, self._max_body, hint))

    def shown(self, deployment: Deployment) -> WorkerAnswer:
        version = deployment.version
        return WorkerAnswer(
            id=deployment.id,
            name=deployment.name,
            url=self._url_of(deployment.name),
            routes=deployment.routes,
            env=version.env,
            bindings=shown_bindings(version.grants),
            limits=version.limits,
            isolation=version.isolation.value,
            switches=version.switches,
            egress=version.egress,
            compatibility_date=version.compatibility_date,
            compatibility_flags=version.compatibility_flags,
            crons=version.crons,
            queue_consumers=version.queue_consumers,
            tail_consumers=version.tail_consumers,
            handlers=deployment.handlers,
            secrets=sorted(deployment.secrets),
            version=VersionAnswer(
                id=version.id,
                number=deployment.number,
                created_at=iso_time(version.created_at),
                author=deployment.author,
                startup_time_ms=round(deployment.startup_ms, 3),
                message=deployment.message,
                tag=version.tag,
            ),
            created_at=iso_time(deployment.created_at),
            updated_at=iso_time(deployment.updated_at),
        )
