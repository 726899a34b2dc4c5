"""Endpoints of workers: deploy, list, show, delete. deploy/deployer.py does the work of a deploy."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.callers import Scope
from atoll.api.paging import name_page_of, name_query, page_answer
from atoll.api.routes import Route, caller_of, json_answer, no_content
from atoll.clock import iso_time
from atoll.config import Settings
from atoll.control.checks.body import DeployBody
from atoll.control.checks.extended import with_entries
from atoll.control.deploy.deployer import Deployer
from atoll.control.deploy.pages import AssetsAnswer
from atoll.control.deploy.upload import max_body, read_deploy
from atoll.control.endpoints.deployments import ShareAnswer, shares_shown
from atoll.control.endpoints.versions import VersionAnswer, fields_of
from atoll.control.store.workers import Deployment
from atoll.workers import EgressRules, Limits, Switches


@with_entries
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
    handlers: tuple[str, ...]
    secrets: list[str]  # names
    assets: AssetsAnswer | None
    preview_urls: bool
    version: VersionAnswer  # the active one; with a split, the one with the largest share
    traffic: list[ShareAnswer]
    created_at: str
    updated_at: str


class WorkersAnswer(msgspec.Struct, omit_defaults=True):
    workers: list[WorkerAnswer]
    cursor: str = ""


class WorkersApi:
    def __init__(self, settings: Settings, deployer: Deployer, url_of: Callable[[str], str]) -> None:
        self._deployer = deployer
        self._url_of = url_of
        self._max_body = max_body(settings)

    def routes(self) -> list[Route]:
        return [
            Route(
                "GET",
                "/api/workers",
                self.list,
                Scope.READ,
                "The workers of a tenant, by name",
                gives=WorkersAnswer,
                query=name_query(),
            ),
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
            Route("DELETE", "/api/workers/{worker}", self.delete, Scope.DEPLOY, "Delete a worker", status=204),
        ]

    async def list(self, request: Request) -> Response:
        after, limit = name_page_of(request)
        return await page_answer("workers", self._listed(caller_of(request).tenant, after), limit)

    async def _listed(self, tenant: str, after: str) -> AsyncIterator[tuple[str, WorkerAnswer]]:
        for deployment in self._deployer.after(tenant, after):
            yield deployment.name, self.shown(deployment)

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
        return await read_deploy(request, self._max_body, "see the setting script_bytes")

    def shown(self, deployment: Deployment) -> WorkerAnswer:
        version = deployment.version
        return WorkerAnswer(
            id=deployment.id,
            name=deployment.name,
            url=self._url_of(deployment.name),
            **fields_of(deployment),
            version=VersionAnswer(
                id=version.id,
                number=deployment.number,
                created_at=iso_time(version.created_at),
                author=deployment.author,
                startup_time_ms=round(deployment.startup_ms, 3),
                message=deployment.message,
                tag=version.tag,
            ),
            traffic=shares_shown(self._deployer.traffic(deployment.id)),
            created_at=iso_time(deployment.created_at),
            updated_at=iso_time(deployment.updated_at),
        )
