"""Endpoints of versions: the history of a worker, one version in full, and going back to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atoll.control.bindings import shown_bindings
from atoll.control.boundary import Query, Route, caller_of, json_answer, read_json
from atoll.control.callers import Caller, Scope
from atoll.control.check import bad_body, parse_fields
from atoll.control.check_events import MAX_MESSAGE, checked_words
from atoll.control.deploy import Deployer
from atoll.control.version_rows import sha256
from atoll.control.workers import Deployment, WorkerStore
from atoll.observe.records import iso_time
from atoll.workers import EgressRules, Limits, QueueConsumer, Switches, TailConsumer


class VersionAnswer(msgspec.Struct):
    id: str
    number: int
    created_at: str
    author: str
    startup_time_ms: float
    message: str
    tag: str


class ListedVersion(VersionAnswer):
    active: bool


class VersionsAnswer(msgspec.Struct):
    versions: list[ListedVersion]


class ModuleAnswer(msgspec.Struct):
    path: str
    kind: str
    bytes: int
    sha256: str
    has_source_map: bool


class VersionDetails(ListedVersion):
    main: str
    modules: list[ModuleAnswer]
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


class RollbackBody(msgspec.Struct, forbid_unknown_fields=True):
    """Without a version: the one before the active one."""

    version: str | int = ""
    message: str = ""
    force: bool = False  # though the secrets of then are others


class VersionsApi:
    def __init__(
        self, deployer: Deployer, store: WorkerStore, shown: Callable[[Deployment], object], gives: type
    ) -> None:
        self._deployer = deployer
        self._store = store
        self._shown = shown
        self._gives = gives  # what `shown` makes of a worker

    def routes(self) -> list[Route]:
        worker = "/api/workers/{worker}"
        return [
            Route("GET", f"{worker}/versions", self.list, Scope.READ, "Versions, newest first", gives=VersionsAnswer),
            Route("GET", f"{worker}/versions/{{version}}", self.show, Scope.READ, "One version", gives=VersionDetails),
            Route(
                "POST",
                f"{worker}/versions/{{version}}/activate",
                self.activate,
                Scope.DEPLOY,
                "Answer with this version from now on",
                gives=self._gives,
                query=(Query("force", "Though it had other secrets", {"enum": ["true", "false"]}),),
            ),
            Route(
                "POST",
                f"{worker}/rollback",
                self.rollback,
                Scope.DEPLOY,
                "Answer with an older version again",
                takes=RollbackBody,
                gives=self._gives,
            ),
        ]

    async def list(self, request: Request) -> Response:
        worker = self._worker(request, caller_of(request))
        listed = [
            ListedVersion(
                id=row.id,
                number=row.number,
                created_at=iso_time(row.created_at),
                author=row.author,
                startup_time_ms=round(row.startup_ms, 3),
                message=row.message,
                tag=row.tag,
                active=row.id == worker.version.id,
            )
            for row in self._store.versions(worker.id)
        ]
        return json_answer(VersionsAnswer(listed))

    async def show(self, request: Request) -> Response:
        worker = self._worker(request, caller_of(request))
        found = self._deployer.version(worker, request.path_params["version"])
        return json_answer(self._details(found, is_active=found.version.id == worker.version.id))

    async def activate(self, request: Request) -> Response:
        worker, version = request.path_params["worker"], request.path_params["version"]
        force = request.query_params.get("force", "false")
        if force not in ("true", "false"):
            raise bad_body(f"`force` is {force[:80]!r}", "use true or false")
        found = await self._deployer.activate(worker, version, caller_of(request), force=force == "true")
        return json_answer(self._shown(found))

    async def rollback(self, request: Request) -> Response:
        body = parse_fields(await read_json(request), RollbackBody)
        checked_words("message", body.message, MAX_MESSAGE)
        if body.version == 0:
            raise bad_body("`version` is 0", "use the id or the number of a version: numbers begin with 1")
        worker, caller = request.path_params["worker"], caller_of(request)
        return json_answer(
            self._shown(await self._deployer.activate(worker, str(body.version), caller, body.message, body.force))
        )

    def _worker(self, request: Request, caller: Caller) -> Deployment:
        return self._deployer.find(request.path_params["worker"], caller)

    def _details(self, found: Deployment, *, is_active: bool) -> VersionDetails:
        version = found.version
        sources = {module.path: module.source for module in version.modules}
        return VersionDetails(
            id=version.id,
            number=found.number,
            created_at=iso_time(version.created_at),
            author=found.author,
            startup_time_ms=round(found.startup_ms, 3),
            message=found.message,
            tag=version.tag,
            active=is_active,
            main=version.main,
            modules=[
                ModuleAnswer(row.path, row.kind, row.size, row.sha256 or sha256(sources[row.path]), bool(row.has_map))
                for row in self._store.modules(version.id)
            ],
            routes=found.routes,
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
            handlers=found.handlers,
            secrets=sorted(found.secrets),
        )
