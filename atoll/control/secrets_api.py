"""Endpoints of secrets: names can be read, values can only be written. A change is a new version, live at once."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atoll.control.boundary import Route, caller_of, json_answer, no_content, read_json
from atoll.control.callers import Scope
from atoll.control.check import parse_fields
from atoll.control.deploy import Deployer
from atoll.control.workers import WorkerStore
from atoll.observe.records import iso_time


class NewSecret(msgspec.Struct, forbid_unknown_fields=True):
    value: str  # of no more than 5 KB, as every variable


class SecretAnswer(msgspec.Struct):
    name: str
    updated_at: str


class SecretsAnswer(msgspec.Struct):
    secrets: list[SecretAnswer]


class ChangedSecret(msgspec.Struct):
    name: str
    version_id: str  # the version that has it, live from now on
    version_number: int


class RotatedKey(msgspec.Struct):
    key_id: int
    secrets: int  # that were sealed anew


class SecretsApi:
    def __init__(self, deployer: Deployer, store: WorkerStore) -> None:
        self._deployer = deployer
        self._store = store

    def routes(self) -> list[Route]:
        secrets, one = "/api/workers/{worker}/secrets", "/api/workers/{worker}/secrets/{name}"
        return [
            Route("GET", secrets, self.list, Scope.READ, "Names of secrets", gives=SecretsAnswer),
            Route("PUT", one, self.put, Scope.DEPLOY, "Set a secret", takes=NewSecret, gives=ChangedSecret),
            Route("DELETE", one, self.delete, Scope.DEPLOY, "Take a secret away", status=204),
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
        worker = self._deployer.find(request.path_params["worker"], caller_of(request))
        stored = self._store.secrets(worker.version.id)
        return json_answer(SecretsAnswer([SecretAnswer(each.name, iso_time(each.created_at)) for each in stored]))

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
