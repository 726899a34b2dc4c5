"""Workers: upload and deploy, list, show, delete. Scripts, services and workers are three views of the same thing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from atoll.api.callers import Scope
from atoll.api.cloudflare import ACCOUNT, CloudflareRefusal, envelope, paged, read_v4
from atoll.api.refusals import ApiCode, Refused
from atoll.api.routes import Route, caller_of
from atoll.control.checks.body import DeployBody
from atoll.control.cloudflare import views
from atoll.control.cloudflare.changes import Changes
from atoll.control.cloudflare.drafts import BindingTypes, deploy_body
from atoll.control.cloudflare.forms import read_form
from atoll.control.deploy.deployer import Deployer
from atoll.control.store.workers import Deployment
from atoll.manifests.cloudflare_parts import Uploading
from atoll.public_address import PublicAddress

SCRIPT = f"{ACCOUNT}/workers/scripts/{{script}}"
SERVICE = f"{ACCOUNT}/workers/services/{{script}}"
WORKER = f"{ACCOUNT}/workers/workers/{{script}}"


class ScriptsApi:
    def __init__(
        self,
        deployer: Deployer,
        changes: Changes,
        types: BindingTypes,
        max_body: int,
        address: Callable[[], PublicAddress],
    ) -> None:
        self._deployer = deployer
        self._types = types
        self._max_body = max_body
        self._address = address
        self._changes = changes

    def routes(self) -> list[Route]:
        read, deploy, scripts = Scope.READ, Scope.DEPLOY, f"{ACCOUNT}/workers/scripts"
        return [
            Route("GET", scripts, self.list, read, "The workers of an account"),
            Route("PUT", SCRIPT, self.put, deploy, "Upload a worker and give it all traffic"),
            Route("DELETE", SCRIPT, self.delete, deploy, "Delete a worker"),
            Route("GET", f"{SCRIPT}/settings", self.settings, read, "The bindings and settings of a worker"),
            Route("GET", f"{SCRIPT}/script-settings", self.script_settings, read, "Settings without a version"),
            Route("PATCH", f"{SCRIPT}/script-settings", self.patch, deploy, "Change settings without a version"),
            Route("GET", f"{SCRIPT}/subdomain", self.subdomain, read, "The own host of a worker"),
            Route("POST", f"{SCRIPT}/subdomain", self.set_subdomain, deploy, "The own host of a worker: always on"),
            Route("GET", SERVICE, self.service, read, "A worker, as a service"),
            Route("DELETE", SERVICE, self.delete, deploy, "Delete a worker"),
        ]

    def _find(self, request: Request, code: int = 10007) -> Deployment:
        name = request.path_params["script"]
        try:
            return self._deployer.find(name, caller_of(request))
        except Refused as error:
            if error.reason is not ApiCode.NO_WORKER:
                raise
            raise CloudflareRefusal(404, code, f"there is no worker {name[:80]!r} in this account") from None

    async def list(self, request: Request) -> Response:
        return await paged(request, self._deployer.all(caller_of(request).tenant), views.script)

    async def put(self, request: Request) -> Response:
        caller, name = caller_of(request), request.path_params["script"]
        form = await read_form(request, self._max_body)
        current = self._deployer.named(name)
        mine = current if current is not None and current.version.tenant == caller.tenant else None
        body: DeployBody = deploy_body(form, caller.tenant, name, mine, self._types)
        if mine is not None:
            found = await self._deployer.update(name, body, caller)
        else:
            body.name = name
            found = await self._deployer.create(body, caller)
        return envelope(views.script(found))

    async def delete(self, request: Request) -> Response:
        found = self._find(request)
        await self._deployer.delete(found.name, caller_of(request))
        return envelope({"id": found.name})

    async def settings(self, request: Request) -> Response:
        return envelope(views.settings(self._find(request), self._types))

    async def script_settings(self, request: Request) -> Response:
        return envelope({"logpush": False, "tags": [], **views.facts(self._find(request).version)})

    async def patch(self, request: Request) -> Response:
        """Only what bindings read of it is kept; observability is always on, and logs are not pushed."""
        found, metadata = self._find(request), await read_v4(request, dict[str, Any])
        given = {name: value for name, value in metadata.items() if name in views.facts(found.version)}
        fields = (
            self._types.metadata(Uploading(caller_of(request).tenant, found.name, given, found.version))
            if given
            else {}
        )
        found = await self._changes.make(caller_of(request), found.name, fields)
        return envelope({"logpush": False, "tags": [], **views.facts(found.version)})

    async def subdomain(self, request: Request) -> Response:
        return envelope(views.subdomain(self._find(request), self._deployer, self._address()))

    async def set_subdomain(self, request: Request) -> Response:
        await read_v4(request, dict[str, Any])
        return await self.subdomain(request)

    async def service(self, request: Request) -> Response:
        return envelope(views.service(self._find(request, 10090)))
