"""Durable Objects over HTTP: namespaces, objects with what they store, alarms, sockets and SQL."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.audit import AuditLog
from atoll.api.callers import Scope
from atoll.api.paging import page_of, page_query
from atoll.api.refusals import ApiCode, Refused, bad_body
from atoll.api.routes import Route, caller_of, json_answer, no_content, read_shape
from atoll.bindings.durable_object.console import ObjectConsole, SqlRows, StoredKey, StoredState, StoredTable
from atoll.bindings.durable_object.namespaces import ID, ObjectNamespace
from atoll.clock import iso_time
from atoll.objects.store import ObjectKey

if TYPE_CHECKING:
    from atoll.bindings.durable_object.ops import DurableObjects

PAGE = 1_000
MAX_PAGE = 10_000
MAX_BODY = 64 << 10
MAX_ROWS = 1 << 20  # characters
MAX_ALARM = 8_640_000_000_000_000  # ms: the last moment that a Date of JavaScript can be


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


class ObjectStateAnswer(msgspec.Struct):
    id: str
    storage: str  # "sqlite" or "kv"
    bytes: int
    alarm: str | None
    sockets: int  # hibernatable WebSockets
    facets: list[list[str]]  # the names that lead to each
    tables: list[StoredTable]
    keys: list[StoredKey]
    cursor: str | msgspec.UnsetType = msgspec.UNSET  # of the next page of `keys`


class ObjectSocketAnswer(msgspec.Struct):
    number: int
    tags: list[str]
    attachment_bytes: int | None
    responded_at: str | None  # the last automatic response


class ObjectSocketsAnswer(msgspec.Struct, omit_defaults=True):
    sockets: list[ObjectSocketAnswer]
    cursor: str = ""


class WantedAlarm(msgspec.Struct, forbid_unknown_fields=True):
    at: int | None = None  # milliseconds since 1970; None: now


class AlarmAnswer(msgspec.Struct):
    alarm: str | None


class ObjectSql(msgspec.Struct, forbid_unknown_fields=True):
    """`params` are those of the last statement. A list of bytes is a BLOB."""

    sql: str
    params: list[str | int | float | list[int] | None] = []


class ObjectRowsAnswer(msgspec.Struct):
    columns: list[str]
    rows: list[list[Any]]
    rows_read: int
    rows_written: int


class ObjectsApi:
    def __init__(self, binding: DurableObjects, audit: AuditLog, console: ObjectConsole) -> None:
        self._binding = binding
        self._audit = audit
        self._console = console

    def routes(self) -> list[Route]:
        read, change, rows = Scope.READ, Scope.DEPLOY, ObjectRowsAnswer
        some = "/api/objects/{worker}/{class_name}"
        one = some + "/{object_id}"
        return [
            Route("GET", "/api/objects", self.namespaces, read, "Durable Object classes", gives=ObjectClassesAnswer),
            Route("GET", some, self.list, read, "The objects of a class", gives=StoredObjectsAnswer),
            Route(
                "GET", one, self.show, read, "What an object stores: tables, keys, alarm", gives=ObjectStateAnswer,
                query=page_query(),
            ),
            Route("DELETE", one, self.delete, change, "Delete an object", status=204),
            Route(
                "GET", f"{one}/sockets", self.sockets, read, "The hibernatable WebSockets of an object",
                gives=ObjectSocketsAnswer, query=page_query(),
            ),
            Route("PUT", f"{one}/alarm", self.set_alarm, change, "Set the alarm", WantedAlarm, AlarmAnswer),
            Route("DELETE", f"{one}/alarm", self.delete_alarm, change, "Delete the alarm", status=204),
            Route("POST", f"{one}/query", self.query, read, "Run SQL that only reads", ObjectSql, rows),
            Route("POST", f"{one}/execute", self.execute, change, "Run SQL in one transaction", ObjectSql, rows),
        ]  # fmt: skip

    async def namespaces(self, request: Request) -> Response:
        found = self._binding.namespaces.of_tenant(caller_of(request).tenant)
        return json_answer(ObjectClassesAnswer([self._shown(each) for each in found]))

    def _shown(self, each: ObjectNamespace) -> ObjectClassAnswer:
        objects = self._binding.objects
        size, live, sockets = objects.store.size(each.id), objects.count(each.id), objects.sockets(each.id)
        return ObjectClassAnswer(each.worker, each.class_name, each.storage, size.objects, size.bytes, live, sockets)

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

    def _find_one(self, request: Request) -> tuple[ObjectNamespace, str]:
        namespace, id = self._find(request), request.path_params["object_id"]
        if not namespace.owns(id):
            raise Refused(
                ApiCode.NOT_FOUND, f"`{id[:80]}` is not the id of an object of this class", "list the objects for ids"
            )
        return namespace, id

    async def _note(self, request: Request, action: str, namespace: ObjectNamespace, id: str) -> None:
        await self._audit.note(caller_of(request), action, f"{namespace.worker} {namespace.class_name} {id}")

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

    async def show(self, request: Request) -> Response:
        (namespace, id), (offset, limit) = self._find_one(request), page_of(request)
        question = {"what": "state", "offset": offset, "limit": limit}
        state = await self._console.ask(namespace, id, question, StoredState)
        facets = [msgspec.json.decode(row.path) for row in self._binding.namespaces.facets_in(namespace.id, id)]
        cursor = str(state.next) if state.next is not None else msgspec.UNSET
        sockets = self._binding.objects.sockets(namespace.id, id)
        parts = (namespace.storage, state.bytes, _time(state.alarm), sockets, facets, state.tables, state.keys, cursor)
        return json_answer(ObjectStateAnswer(id, *parts))

    async def sockets(self, request: Request) -> Response:
        (namespace, id), (after, limit) = self._find_one(request), page_of(request)
        found = self._binding.objects.list_sockets(ObjectKey(namespace.id, id), after, limit)
        shown = [
            ObjectSocketAnswer(each.number, each.tags, each.attachment_bytes, _time(each.responded_ms))
            for each in found
        ]
        return json_answer(ObjectSocketsAnswer(shown, str(found[-1].number) if len(found) == limit else ""))

    async def set_alarm(self, request: Request) -> Response:
        namespace, id = self._find_one(request)
        at = (await read_shape(request, WantedAlarm)).at
        if at is not None and not 0 < at <= MAX_ALARM:
            raise bad_body(f"`at` is {at}", "use milliseconds since 1970")
        await self._note(request, "object.alarm", namespace, id)
        wanted = at if at is not None else int(time.time() * 1000)
        await self._console.ask(namespace, id, {"what": "alarm", "at": wanted}, dict)
        return json_answer(AlarmAnswer(_time(wanted)))

    async def delete_alarm(self, request: Request) -> Response:
        namespace, id = self._find_one(request)
        await self._note(request, "object.alarm", namespace, id)
        await self._console.ask(namespace, id, {"what": "alarm", "at": None}, dict)
        return no_content()

    async def query(self, request: Request) -> Response:
        return await self._run(request, writes=False)

    async def execute(self, request: Request) -> Response:
        return await self._run(request, writes=True)

    async def _run(self, request: Request, *, writes: bool) -> Response:
        namespace, id = self._find_one(request)
        body = await read_shape(request, ObjectSql, limit=MAX_BODY)
        if writes:
            await self._note(request, "object.execute", namespace, id)
        question = {"what": "sql", "sql": body.sql, "params": body.params, "write": writes, "most": MAX_ROWS}
        return json_answer(await self._console.ask(namespace, id, question, SqlRows))

    async def delete(self, request: Request) -> Response:
        namespace, id = self._find_one(request)
        await self._note(request, "object.delete", namespace, id)
        await self._binding.delete(namespace, id)
        return no_content()


def _time(ms: float | None) -> str | None:
    return iso_time(ms) if ms is not None else None
