"""Endpoints of secrets: names can be read, values only written. A change makes a new version, active at once.
versions.py has the endpoint that makes one without traffic."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.bodies import read_json
from atoll.api.callers import Scope
from atoll.api.paging import name_page_of, name_query
from atoll.api.routes import Route, caller_of, json_answer, no_content
from atoll.clock import iso_time
from atoll.control.checks.body import parse_fields
from atoll.control.deploy.deployer import Deployer
from atoll.control.store.workers import Deployment, WorkerStore


class NewSecret(msgspec.Struct, forbid_unknown_fields=True):
    value: str  # at most 5 KB, like every variable


class SecretAnswer(msgspec.Struct):
    name: str
    updated_at: str


class SecretsAnswer(msgspec.Struct, omit_defaults=True):
    secrets: list[SecretAnswer]
    cursor: str = ""


class ChangedSecret(msgspec.Struct):
    name: str
    version_id: str  # the new version, which is active
    version_number: int


class RotatedKey(msgspec.Struct):
    key_id: int
    secrets: int  # secrets that were sealed again


class SecretsApi:
    def __init__(self, deployer: Deployer, store: WorkerStore) -> None:
        self._deployer = deployer
        self._store = store

    def routes(self) -> list[Route]:
        secrets, one = "/api/workers/{worker}/secrets", "/api/workers/{worker}/secrets/{name}"
        return [
            Route("GET", secrets, self.list, Scope.READ, "Names of secrets", gives=SecretsAnswer, query=name_query()),
            Route(
                "GET",
                "/api/workers/{worker}/versions/{version}/secrets",
                self.list_of_version,
                Scope.READ,
                "Names of a version's secrets",
                gives=SecretsAnswer,
                query=name_query(),
            ),
            Route("PUT", one, self.put, Scope.DEPLOY, "Set a secret", takes=NewSecret, gives=ChangedSecret),
            Route("DELETE", one, self.delete, Scope.DEPLOY, "Delete a secret", status=204),
            Route(
                "POST",
                "/api/secrets/rotate-key",
                self.rotate_key,
                Scope.ADMIN,
                "Seal all secrets of the node with a new root key",
                gives=RotatedKey,
                is_node=True,
            ),
        ]

    async def list(self, request: Request) -> Response:
        return self._listed(request, self._worker(request).version.id)

    async def list_of_version(self, request: Request) -> Response:
        worker = self._worker(request)
        reference = self._deployer.reference(worker, request.path_params["version"])
        found = await self._deployer.version(worker, reference, has_code=False)
        return self._listed(request, found.version.id)

    def _worker(self, request: Request) -> Deployment:
        return self._deployer.find(request.path_params["worker"], caller_of(request))

    def _listed(self, request: Request, version_id: str) -> Response:
        after, limit = name_page_of(request)
        found = [each for each in self._store.secrets(version_id) if each.name > after]
        shown = [SecretAnswer(each.name, iso_time(each.created_at)) for each in found[:limit]]
        return json_answer(SecretsAnswer(shown, shown[-1].name if len(found) > limit else ""))

    async def put(self, request: Request) -> Response:
        value = parse_fields(await read_json(request), NewSecret).value
        worker, name = request.path_params["worker"], request.path_params["name"]
        changed = await self._deployer.put_secret(worker, name, value, caller_of(request))
        return json_answer(ChangedSecret(name, changed.version.id, changed.number))

    async def delete(self, request: Request) -> Response:
        worker, name = request.path_params["worker"], request.path_params["name"]
        await self._deployer.delete_secret(worker, name, caller_of(request))
        return no_content()

    async def rotate_key(self, request: Request) -> Response:
        key_id, count = await self._deployer.rotate_key(caller_of(request))
        return json_answer(RotatedKey(key_id, count))
