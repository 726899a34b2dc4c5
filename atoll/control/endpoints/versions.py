"""Endpoints of versions: the history of a worker, one version in full, uploads without traffic, and rollback."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.bodies import read_json
from atoll.api.callers import Caller, Scope
from atoll.api.paging import page_of, page_query
from atoll.api.refusals import bad_body
from atoll.api.routes import Query, Route, caller_of, json_answer, no_content
from atoll.clock import iso_time
from atoll.config import Settings
from atoll.control.checks.bindings import shown_bindings
from atoll.control.checks.body import DeployBody, parse_fields
from atoll.control.checks.extended import entries_of, with_entries
from atoll.control.checks.words import MAX_MESSAGE, MAX_TAG, checked_words
from atoll.control.deploy.deployer import Deployer
from atoll.control.deploy.pages import AssetsAnswer, shown_assets
from atoll.control.deploy.upload import max_body, read_deploy
from atoll.control.store.workers import Deployment, WorkerStore
from atoll.workers import EgressRules, Limits, Switches

NEWEST = 2**62  # above every number


class VersionAnswer(msgspec.Struct):
    id: str
    number: int
    created_at: str
    author: str
    startup_time_ms: float
    message: str
    tag: str


class ListedVersion(VersionAnswer):
    active: bool  # it is part of the current deployment
    percentage: float  # of the traffic
    preview_url: str  # "": it has none
    alias_urls: list[str]  # of the aliases that lead to it


class VersionsAnswer(msgspec.Struct, omit_defaults=True):
    versions: list[ListedVersion]
    cursor: str = ""


class ModuleAnswer(msgspec.Struct):
    path: str
    kind: str
    bytes: int
    sha256: str
    has_source_map: bool


@with_entries
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
    handlers: tuple[str, ...]
    secrets: list[str]  # names
    preview_urls: bool
    assets: AssetsAnswer | None


class RollbackBody(msgspec.Struct, forbid_unknown_fields=True):
    """A rollback. Without `version`: to the version before the active one."""

    version: str | int = ""
    message: str = ""
    force: bool = False  # even if secrets have changed since


class SecretsBody(msgspec.Struct, forbid_unknown_fields=True):
    """Secrets to change in a copy of a version. null deletes one."""

    secrets: dict[str, str | None]
    message: str = ""
    tag: str = ""


class VersionsApi:
    def __init__(
        self,
        settings: Settings,
        deployer: Deployer,
        store: WorkerStore,
        at: Callable[[str], str],
        shown: Callable[[Deployment], object],
        gives: type,
    ) -> None:
        self._deployer = deployer
        self._store = store
        self._at = at
        self._max_body = max_body(settings)
        self._shown = shown
        self._gives = gives  # turns a worker into its shape

    def routes(self) -> list[Route]:
        worker = "/api/workers/{worker}"
        return [*self._uploads(worker), *self._past(worker)]

    def _uploads(self, worker: str) -> list[Route]:
        """New versions, which get no traffic."""
        return [
            Route(
                "POST",
                f"{worker}/versions",
                self.upload,
                Scope.DEPLOY,
                "Store a new version that gets no traffic",
                takes=DeployBody,
                gives=VersionDetails,
                status=201,
                query=(Query("alias", "A name for the host of its preview", {"type": "string"}),),
            ),
            Route(
                "POST",
                f"{worker}/versions/{{version}}/secrets",
                self.upload_secrets,
                Scope.DEPLOY,
                "Store a copy of this version with other secrets, which gets no traffic",
                takes=SecretsBody,
                gives=VersionDetails,
                status=201,
            ),
        ]

    def _past(self, worker: str) -> list[Route]:
        return [
            Route(
                "GET",
                f"{worker}/versions",
                self.list,
                Scope.READ,
                "Versions, newest first",
                gives=VersionsAnswer,
                query=page_query(),
            ),
            Route(
                "DELETE",
                f"{worker}/aliases/{{alias}}",
                self.drop_alias,
                Scope.DEPLOY,
                "Delete the alias of a preview",
                status=204,
            ),
            Route("GET", f"{worker}/versions/{{version}}", self.show, Scope.READ, "One version", gives=VersionDetails),
            Route(
                "POST",
                f"{worker}/versions/{{version}}/activate",
                self.activate,
                Scope.DEPLOY,
                "Make this version the active one",
                gives=self._gives,
                query=(Query("force", "Even if secrets have changed since", {"enum": ["true", "false"]}),),
            ),
            Route(
                "POST",
                f"{worker}/rollback",
                self.rollback,
                Scope.DEPLOY,
                "Roll back to an older version",
                takes=RollbackBody,
                gives=self._gives,
            ),
        ]

    async def list(self, request: Request) -> Response:
        worker = self._worker(request, caller_of(request))
        before, limit = page_of(request)
        found = self._store.versions(worker.id, before or NEWEST, limit + 1)
        shares, aliases = self._percentages(worker), self._deployer.previews.alias_hosts(worker)
        listed = [
            ListedVersion(
                id=row.id,
                number=row.number,
                created_at=iso_time(row.created_at),
                author=row.author,
                startup_time_ms=round(row.startup_ms, 3),
                message=row.message,
                tag=row.tag,
                active=row.id in shares,
                percentage=shares.get(row.id, 0),
                preview_url=self._preview_url(worker, row.id, bool(row.preview_urls)),
                alias_urls=[f"{self._at(host)}/" for host in aliases.get(row.id, ())],
            )
            for row in found[:limit]
        ]
        return json_answer(VersionsAnswer(listed, str(listed[-1].number) if len(found) > limit else ""))

    async def show(self, request: Request) -> Response:
        worker = self._worker(request, caller_of(request))
        found = await self._deployer.version(worker, request.path_params["version"], has_code=False)
        return json_answer(await self._details(worker, found))

    async def upload(self, request: Request) -> Response:
        body, caller = await read_deploy(request, self._max_body, "see the setting script_bytes"), caller_of(request)
        alias = request.query_params.get("alias", "")
        stored = await self._deployer.upload(request.path_params["worker"], body, caller, alias)
        return await self._stored(self._worker(request, caller), stored)

    async def upload_secrets(self, request: Request) -> Response:
        body, caller = (
            parse_fields(await read_json(request, hint="send fewer at once"), SecretsBody),
            caller_of(request),
        )
        if not body.secrets:
            raise bad_body("`secrets` is empty", 'send {"secrets": {"NAME": "value"}}; null deletes a secret')
        checked_words("message", body.message, MAX_MESSAGE)
        checked_words("tag", body.tag, MAX_TAG)
        worker, version = request.path_params["worker"], request.path_params["version"]
        words = body.message, body.tag
        stored = await self._deployer.upload_secrets(worker, version, body.secrets, caller, *words)
        return await self._stored(self._worker(request, caller), stored)

    async def _stored(self, worker: Deployment, stored: Deployment) -> Response:
        location = {"location": f"/api/workers/{stored.id}/versions/{stored.version.id}"}
        return json_answer(await self._details(worker, stored), status=201, headers=location)

    async def drop_alias(self, request: Request) -> Response:
        alias, caller = request.path_params["alias"], caller_of(request)
        await self._deployer.drop_alias(request.path_params["worker"], alias, caller)
        return no_content()

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

    def _percentages(self, worker: Deployment) -> dict[str, float]:
        """The share of each version that is part of the current deployment."""
        shares = self._deployer.traffic(worker.id)
        return {share.deployment.version.id: share.hundredths / 100 for share in shares}

    def _preview_url(self, worker: Deployment, version_id: str, preview_urls: bool) -> str:
        host = self._deployer.previews.host(worker, version_id, preview_urls)
        return f"{self._at(host)}/" if host else ""

    async def _details(self, worker: Deployment, found: Deployment) -> VersionDetails:
        version, shares = found.version, self._percentages(worker)
        aliases = self._deployer.previews.alias_hosts(worker)
        modules = await self._store.modules(version.id)
        return VersionDetails(
            id=version.id,
            number=found.number,
            created_at=iso_time(version.created_at),
            author=found.author,
            startup_time_ms=round(found.startup_ms, 3),
            message=found.message,
            tag=version.tag,
            active=version.id in shares,
            percentage=shares.get(version.id, 0),
            preview_url=self._preview_url(worker, version.id, version.preview_urls),
            alias_urls=[f"{self._at(host)}/" for host in aliases.get(version.id, ())],
            main=version.main,
            modules=[ModuleAnswer(row.path, row.kind, row.size, row.sha256, bool(row.has_map)) for row in modules],
            **fields_of(found),
        )


def fields_of(deployment: Deployment) -> dict[str, Any]:
    """What a deploy can set, as it is in this version: the part that answers about workers and versions share."""
    version = deployment.version
    fields = {
        "routes": deployment.routes,
        "env": version.env,
        "bindings": shown_bindings(version.grants),
        "limits": version.limits,
        "isolation": version.isolation.value,
        "switches": version.switches,
        "egress": version.egress,
        "compatibility_date": version.compatibility_date,
        "compatibility_flags": version.compatibility_flags,
        "handlers": deployment.handlers,
        "secrets": sorted(deployment.secrets),
        "preview_urls": version.preview_urls,
        **entries_of(version),
    }
    return dict(fields, assets=shown_assets(version))
