"""Secrets of a worker. A change makes a new version, which is active at once."""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.callers import Caller, Scope
from atoll.api.cloudflare import CloudflareRefusal, envelope, read_v4
from atoll.api.refusals import ApiCode, Refused, refuse_many
from atoll.api.routes import Route, caller_of
from atoll.control.checks.body import MAX_VARS
from atoll.control.cloudflare.scripts import SCRIPT
from atoll.control.deploy.deployer import Deployer
from atoll.control.store.workers import Deployment, WorkerStore

TYPE = "secret_text"


class WantedSecret(Struct):
    name: str
    text: str
    type: str = TYPE


class WantedSecrets(Struct):
    secrets: dict[str, dict[str, Any] | None]


class SecretsOfScripts:
    def __init__(self, deployer: Deployer, store: WorkerStore) -> None:
        self._deployer = deployer
        self._store = store

    def routes(self) -> list[Route]:
        many, one = f"{SCRIPT}/secrets", f"{SCRIPT}/secrets/{{name:path}}"
        return [
            Route("GET", many, self.list, Scope.READ, "Names of secrets"),
            Route("PUT", many, self.put, Scope.DEPLOY, "Set a secret"),
            Route("PATCH", f"{SCRIPT}/secrets-bulk", self.patch, Scope.DEPLOY, "Set and delete secrets"),
            Route("GET", one, self.show, Scope.READ, "The name of a secret"),
            Route("DELETE", one, self.delete, Scope.DEPLOY, "Delete a secret"),
        ]

    def _find(self, request: Request) -> Deployment:
        return self._deployer.find(request.path_params["script"], caller_of(request))

    async def list(self, request: Request) -> Response:
        return envelope([_shown(name) for name in sorted(self._find(request).secrets)])

    async def show(self, request: Request) -> Response:
        name = request.path_params["name"]
        if name not in self._find(request).secrets:
            raise no_secret(name)
        return envelope(_shown(name))

    async def put(self, request: Request) -> Response:
        wanted, found = await read_v4(request, WantedSecret), self._find(request)
        if wanted.type != TYPE:
            raise CloudflareRefusal(400, 10021, f"secrets of the type {wanted.type[:80]!r} are not part of Atoll")
        await self._change(found, {wanted.name: wanted.text}, caller_of(request))
        return envelope(_shown(wanted.name))

    async def delete(self, request: Request) -> Response:
        name, found = request.path_params["name"], self._find(request)
        if name not in found.secrets:
            raise no_secret(name)
        await self._change(found, {name: None}, caller_of(request))
        return envelope(None)

    async def patch(self, request: Request) -> Response:
        wanted, found = (await read_v4(request, WantedSecrets)).secrets, self._find(request)
        refuse_many("secrets", wanted, MAX_VARS)
        changes: dict[str, str | None] = {}
        for name, each in wanted.items():
            text = each.get("text") if each is not None else None
            if each is not None and not isinstance(text, str):
                raise CloudflareRefusal(400, 10026, f"the secret `{name[:80]}` has no `text`")
            if each is None and name not in found.secrets:
                continue  # a merge patch may delete what is not there
            changes[name] = text
        if changes:
            found = await self._change(found, changes, caller_of(request))
        return envelope([_shown(name) for name in sorted(found.secrets)])

    async def _change(self, found: Deployment, changes: dict[str, str | None], caller: Caller) -> Deployment:
        """One new version with all changes, on top of the active one, and all traffic for it."""
        self._refuse_newer(found)
        if len(changes) == 1:
            [(name, value)] = changes.items()
            if value is None:
                return await self._deployer.delete_secret(found.name, name, caller)
            return await self._deployer.put_secret(found.name, name, value, caller)
        stored = await self._deployer.upload_secrets(found.name, found.version.id, changes, caller)
        return await self._deployer.activate(found.name, stored.version.id, caller, force=True)

    def _refuse_newer(self, found: Deployment) -> None:
        """A version that was uploaded and is not deployed would be overtaken without a word."""
        [newest] = self._store.versions(found.id, limit=1)
        if self._deployer.is_split(found.version.tenant, found.name):
            raise Refused(
                ApiCode.TRAFFIC_SPLIT, f"the traffic of `{found.name}` is split between versions",
                "use `wrangler versions secret put`",
            )  # fmt: skip
        if newest.id != found.version.id and newest.number > found.number:
            text = f"the latest version of `{found.name}` is not deployed"
            raise CloudflareRefusal(409, 10215, text, "use `wrangler versions secret put`, or deploy it first")


def no_secret(name: str) -> CloudflareRefusal:
    return CloudflareRefusal(404, 10056, f"there is no secret `{name[:80]}`")


def _shown(name: str) -> dict[str, str]:
    return {"name": name, "type": TYPE}
