"""Versions and deployments: upload without traffic, list, show, split, roll back."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.callers import Scope
from atoll.api.cloudflare import CloudflareRefusal, envelope, page_info, read_v4
from atoll.api.refusals import refuse_many
from atoll.api.routes import Route, caller_of
from atoll.control.checks.body import MAX_VARS
from atoll.control.checks.words import MAX_MESSAGE, MAX_TAG
from atoll.control.cloudflare import views
from atoll.control.cloudflare.beta import find_worker
from atoll.control.cloudflare.drafts import SECRET, BindingTypes, deploy_body
from atoll.control.cloudflare.forms import read_form
from atoll.control.cloudflare.ids import hashed_uuid, version_id
from atoll.control.cloudflare.scripts import SCRIPT, WORKER
from atoll.control.deploy.deployer import Deployer
from atoll.control.deploy.shares import WantedShare
from atoll.control.store.version_rows import VersionSummary
from atoll.control.store.workers import Deployment, WorkerStore

MAX_SHARES = 100
NEWEST = 2**62


class ShareOfVersion(Struct):
    version_id: str
    percentage: float


class WantedDeployment(Struct):
    versions: list[ShareOfVersion]
    strategy: str = "percentage"
    annotations: dict[str, str] | None = None


class VersionPatch(Struct):
    """A copy of a version with other secrets."""

    env: dict[str, dict[str, Any] | None] = {}
    annotations: dict[str, str] | None = None


class VersionsOfScripts:
    def __init__(self, deployer: Deployer, store: WorkerStore, types: BindingTypes, max_body: int) -> None:
        self._deployer = deployer
        self._store = store
        self._types = types
        self._max_body = max_body

    def routes(self) -> list[Route]:
        read, deploy = Scope.READ, Scope.DEPLOY
        versions, deployments = f"{SCRIPT}/versions", f"{SCRIPT}/deployments"
        return [
            Route("GET", versions, self.list, read, "Versions, newest first"),
            Route("POST", versions, self.upload, deploy, "Upload a version that gets no traffic"),
            Route("GET", f"{versions}/{{version}}", self.show, read, "One version"),
            Route("GET", deployments, self.deployments, read, "Deployments, newest first"),
            Route("POST", deployments, self.deploy, deploy, "Give the traffic to one or more versions"),
            Route("GET", f"{deployments}/{{deployment}}", self.deployment, read, "One deployment"),
            Route("PATCH", f"{WORKER}/versions/{{version}}", self.patch, deploy, "Copy a version, with other secrets"),
        ]

    def _find(self, request: Request) -> Deployment:
        return self._deployer.find(request.path_params["script"], caller_of(request))

    def page_of(self, request: Request, worker: Deployment) -> tuple[list[VersionSummary], dict[str, int]]:
        page, size = page_info(request, 100, 100)
        found = self._store.versions(worker.id, NEWEST)
        shown = found[(page - 1) * size : page * size]
        return shown, {"page": page, "per_page": size, "count": len(shown), "total_count": len(found)}

    async def list(self, request: Request) -> Response:
        shown, info = self.page_of(request, self._find(request))
        return envelope({"items": [views.listed_version(row) for row in shown]}, info=info)

    async def show(self, request: Request) -> Response:
        worker = self._find(request)
        wanted = self._named(worker, request.path_params["version"])
        found = await self._deployer.version(worker, wanted, has_code=False)
        return envelope(self._shown(worker, found))

    def _named(self, worker: Deployment, text: str) -> str:
        return self._store.versions(worker.id, limit=1)[0].id if text == "latest" else version_id(text)

    def _shown(self, worker: Deployment, found: Deployment) -> dict[str, Any]:
        host = self._deployer.previews.host(worker, found.version.id, found.version.preview_urls)
        return views.version(found, self._types, bool(host))

    async def upload(self, request: Request) -> Response:
        worker, caller = self._find(request), caller_of(request)
        form = await read_form(request, self._max_body)
        body = deploy_body(form, caller.tenant, worker.name, worker, self._types)
        annotations = form.metadata.get("annotations")
        alias = annotations.get("workers/alias", "") if isinstance(annotations, dict) else ""
        stored = await self._deployer.upload(worker.name, body, caller, alias)
        return envelope(self._shown(self._find(request), stored))

    async def patch(self, request: Request) -> Response:
        worker, wanted = find_worker(self._deployer, request), await read_v4(request, VersionPatch)
        refuse_many("env", wanted.env, MAX_VARS)
        changes: dict[str, str | None] = {}
        for name, each in wanted.env.items():
            text = each.get("text") if each is not None and each.get("type") == SECRET else None
            if each is not None and not isinstance(text, str):
                raise CloudflareRefusal(400, 10021, f"`env.{name[:80]}`: only secrets can be changed in a version")
            changes[name] = text
        if not changes:
            raise CloudflareRefusal(400, 10026, "`env` names no secret")
        notes, base = wanted.annotations or {}, self._named(worker, request.path_params["version"])
        words = notes.get("workers/message", "")[:MAX_MESSAGE], notes.get("workers/tag", "")[:MAX_TAG]
        stored = await self._deployer.upload_secrets(worker.name, base, changes, caller_of(request), *words)
        return envelope(self._shown(self._find(request), stored))

    async def deployments(self, request: Request) -> Response:
        return envelope(views.deployments(self._store.deployments(self._find(request).id, NEWEST, 100)))

    async def deployment(self, request: Request) -> Response:
        wanted = request.path_params["deployment"]
        for entry in self._store.deployments(self._find(request).id, NEWEST, 100):
            if hashed_uuid(entry.id) == wanted:
                return envelope(views.deployment(entry))
        raise CloudflareRefusal(404, 10007, f"there is no deployment {wanted[:80]!r} of this worker")

    async def deploy(self, request: Request) -> Response:
        worker, wanted = self._find(request), await read_v4(request, WantedDeployment)
        refuse_many("versions", wanted.versions, MAX_SHARES)
        shares = [WantedShare(version_id(each.version_id), each.percentage) for each in wanted.versions]
        message = (wanted.annotations or {}).get("workers/message", "")[:MAX_MESSAGE]
        force = request.query_params.get("force") == "true"
        await self._deployer.deploy_versions(worker.name, shares, caller_of(request), message, force)
        [newest] = self._store.deployments(worker.id)
        return envelope(views.deployment(newest))
