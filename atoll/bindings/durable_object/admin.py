"""Durable Objects over HTTP: namespaces, their objects, and the deletion of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.audit import AuditLog
from atoll.api.callers import Scope
from atoll.api.refusals import ApiCode, Refused, bad_body
from atoll.api.routes import Route, caller_of, json_answer, no_content
from atoll.bindings.durable_object.namespaces import ID, ObjectNamespace

if TYPE_CHECKING:
    from atoll.bindings.durable_object.ops import DurableObjects

PAGE = 1_000
MAX_PAGE = 10_000


class ObjectClassAnswer(msgspec.Struct):
    worker: str
    class_name: str
    storage: str  # "sqlite", or "kv" for a class made with new_classes
    objects: int  # that store something
    bytes: int
    live: int  # in use now
    sockets: int  # hibernatable WebSockets


class ObjectClassesAnswer(msgspec.Struct):
    namespaces: list[ObjectClassAnswer]


class StoredObjectAnswer(msgspec.Struct):
    id: str
    bytes: int
    sockets: int  # hibernatable WebSockets


class StoredObjectsAnswer(msgspec.Struct, omit_defaults=True):
    objects: list[StoredObjectAnswer]
    cursor: str = ""


class ObjectsApi:
    def __init__(self, binding: DurableObjects, audit: AuditLog) -> None:
        self._binding = binding
        self._audit = audit

    def routes(self) -> list[Route]:
        one = "/api/objects/{worker}/{class_name}"
        return [
            Route(
                "GET", "/api/objects", self.namespaces, Scope.READ, "Durable Object classes", gives=ObjectClassesAnswer
            ),
            Route("GET", one, self.list, Scope.READ, "The objects of a class", gives=StoredObjectsAnswer),
            Route("DELETE", one + "/{object_id}", self.delete, Scope.DEPLOY, "Delete an object", status=204),
        ]

    async def namespaces(self, request: Request) -> Response:
        found = self._binding.namespaces.of_tenant(caller_of(request).tenant)
        return json_answer(ObjectClassesAnswer([self._shown(each) for each in found]))

    def _shown(self, each: ObjectNamespace) -> ObjectClassAnswer:
        objects, storage = self._binding.objects, "sqlite" if each.is_sql else "kv"
        size, live, sockets = objects.store.size(each.id), objects.count(each.id), objects.sockets(each.id)
        return ObjectClassAnswer(each.worker, each.class_name, storage, size.objects, size.bytes, live, sockets)

    def _find(self, request: Request) -> ObjectNamespace:
        worker, name = request.path_params["worker"], request.path_params["class_name"]
        found = self._binding.namespaces.find(caller_of(request).tenant, worker, name)
        if found is None:
            raise Refused(
                ApiCode.NOT_FOUND,
                f"there is no Durable Object class `{name[:80]}` of `{worker[:80]}`",
                "GET /api/objects lists the classes",
            )
        return found

    async def list(self, request: Request) -> Response:
        namespace = self._find(request)
        cursor, limit = request.query_params.get("cursor", ""), request.query_params.get("limit", str(PAGE))
        if cursor and not ID.fullmatch(cursor):
            raise bad_body("`cursor` is not the id of an object", "send the cursor of the last answer")
        if not limit.isascii() or not limit.isdigit() or not 1 <= int(limit) <= MAX_PAGE:
            raise bad_body(f"`limit` is {limit[:20]!r}", f"use a number from 1 to {MAX_PAGE}")
        found = await self._binding.objects.store.list_objects(namespace.id, cursor, int(limit))
        after = found[-1].id if len(found) == int(limit) else ""
        sockets, facets = self._binding.objects.sockets, self._binding.namespaces.facet_ids(namespace.id)
        stored = [each for each in found if each.id not in facets]
        shown = [StoredObjectAnswer(each.id, each.bytes, sockets(namespace.id, each.id)) for each in stored]
        return json_answer(StoredObjectsAnswer(shown, after))

    async def delete(self, request: Request) -> Response:
        namespace, id = self._find(request), request.path_params["object_id"]
        if not namespace.owns(id):
            raise Refused(
                ApiCode.NOT_FOUND, f"`{id[:80]}` is not the id of an object of this class", "list the objects for ids"
            )
        await self._audit.note(caller_of(request), "object.delete", f"{namespace.worker} {namespace.class_name} {id}")
        await self._binding.delete(namespace, id)
        return no_content()
