"""GET /api/damage: Durable Objects and databases that this node refuses, since what is stored of them is damaged."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.callers import Scope
from atoll.api.routes import Route, json_answer
from atoll.bindings.services import Objects
from atoll.objects.store import Damaged

MOST = 1_000


class DamagedAnswer(msgspec.Struct, omit_defaults=True):
    namespace: str  # empty, like `id`, if all objects are refused
    id: str
    words: str
    tenant: str = ""
    worker: str = ""
    class_name: str = ""


class DamageAnswer(msgspec.Struct):
    objects: list[DamagedAnswer]


class DamageApi:
    def __init__(self, objects: Objects) -> None:
        self._objects = objects

    def routes(self) -> list[Route]:
        summary = "Objects that are refused because they are damaged"
        return [Route("GET", "/api/damage", self.show, Scope.READ, summary, gives=DamageAnswer, is_node=True)]

    async def show(self, request: Request) -> Response:
        found = await self._objects.store.damaged()
        return json_answer(DamageAnswer([self._shown(each) for each in found[:MOST]]))

    def _shown(self, damaged: Damaged) -> DamagedAnswer:
        answer = DamagedAnswer(*damaged.key, damaged.words)
        if (known := self._objects.resolve(damaged.key)) is not None:
            target, version = known
            answer.tenant, answer.worker, answer.class_name = version.tenant, version.worker_name, target.class_name
        return answer
