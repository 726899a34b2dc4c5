"""D1 over HTTP: the databases of a tenant, and queries."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.audit import AuditLog
from atoll.api.callers import Scope
from atoll.api.large import read_large
from atoll.api.paging import name_page_of, name_query, page_answer
from atoll.api.refusals import ApiCode, Refused, bad_body
from atoll.api.routes import HEADERS, Route, caller_of, json_answer, no_content, read_shape
from atoll.bindings.d1.data.api import D1DataApi
from atoll.bindings.d1.databases import StoredDatabase
from atoll.bindings.d1.ops import D1, NAME, NAME_HINT, QueryFailed
from atoll.clock import iso_time

MAX_BODY = 4 << 20
MAX_ANSWER = 8 << 20  # characters


class NewDatabase(msgspec.Struct, forbid_unknown_fields=True):
    name: str


class DatabaseAnswer(msgspec.Struct):
    uuid: str
    name: str
    created_at: str
    file_size: int


class DatabasesAnswer(msgspec.Struct, omit_defaults=True):
    databases: list[DatabaseAnswer]
    cursor: str = ""


class WantedQuery(msgspec.Struct, forbid_unknown_fields=True):
    """`params` are those of one statement; without them `sql` may have several. A list of bytes is a BLOB."""

    sql: str
    params: list[str | bool | int | float | list[int] | None] = []


class RawQuery(msgspec.Struct):
    """A WantedQuery whose values were checked."""

    sql: msgspec.Raw
    params: msgspec.Raw = msgspec.Raw(b"[]")


class StatementAnswer(msgspec.Struct):
    results: list[dict[str, Any]]
    success: bool
    meta: dict[str, Any]


class QueryAnswer(msgspec.Struct):
    result: list[StatementAnswer]


class RawRows(msgspec.Struct):
    columns: list[str]
    rows: list[list[Any]]


class RawStatementAnswer(msgspec.Struct):
    results: RawRows
    success: bool
    meta: dict[str, Any]


class RawAnswer(msgspec.Struct):
    result: list[RawStatementAnswer]


class D1Api:
    def __init__(self, binding: D1, audit: AuditLog) -> None:
        self._binding = binding
        self._audit = audit
        self._data = D1DataApi(binding, audit, self._find)

    def routes(self) -> list[Route]:
        read, change = Scope.READ, Scope.DEPLOY
        one, takes = "/api/d1/{database}", WantedQuery
        return [
            Route(
                "GET", "/api/d1", self.list, read, "The databases of a tenant, by name", gives=DatabasesAnswer,
                query=name_query(),
            ),
            Route(
                "POST", "/api/d1", self.create, change, "Create a database", takes=NewDatabase, gives=DatabaseAnswer,
                status=201,
            ),
            Route("GET", one, self.get, read, "A database, by name or UUID", gives=DatabaseAnswer),
            Route("DELETE", one, self.delete, change, "Delete a database and all that it stores", status=204),
            Route("POST", f"{one}/query", self.query, change, "Run SQL in one transaction", takes, QueryAnswer),
            Route("POST", f"{one}/read", self.read, read, "Run SQL that only reads, rows as arrays", takes, RawAnswer),
            Route("POST", f"{one}/raw", self.raw, change, "The same, with rows as arrays", takes, RawAnswer),
            *self._data.routes(),
        ]  # fmt: skip

    def _shown(self, each: StoredDatabase) -> DatabaseAnswer:
        size = self._binding.objects.store.size(each.id).bytes
        return DatabaseAnswer(each.id, each.name, iso_time(each.created_at * 1000), size)

    def _find(self, request: Request) -> StoredDatabase:
        name = request.path_params["database"]
        found = self._binding.databases.find(caller_of(request).tenant, name)
        if found is None:
            raise Refused(ApiCode.NOT_FOUND, f"there is no database `{name[:80]}`", "GET /api/d1 lists the databases")
        return found

    async def list(self, request: Request) -> Response:
        after, limit = name_page_of(request)
        return await page_answer("databases", self._listed(caller_of(request).tenant, after), limit)

    async def _listed(self, tenant: str, after: str) -> AsyncIterator[tuple[str, DatabaseAnswer]]:
        for each in self._binding.databases.of_tenant(tenant):
            if each.name > after:
                yield each.name, self._shown(each)

    async def create(self, request: Request) -> Response:
        name = (await read_shape(request, NewDatabase)).name
        if not NAME.fullmatch(name):
            raise bad_body(f"`name` is {name!r:.80}", NAME_HINT)
        caller = caller_of(request)
        taken = Refused(ApiCode.NAME_TAKEN, f"a database named `{name}` already exists")
        if self._binding.databases.named(caller.tenant, name) is not None:
            raise taken
        await self._audit.note(caller, "d1.create", name)
        made = await self._binding.databases.create(caller.tenant, name)
        if made is None:
            raise taken
        return json_answer(self._shown(made), status=201, headers={"location": f"/api/d1/{name}"})

    async def get(self, request: Request) -> Response:
        return json_answer(self._shown(self._find(request)))

    async def delete(self, request: Request) -> Response:
        database = self._find(request)
        await self._audit.note(caller_of(request), "d1.delete", database.name)
        await self._binding.databases.delete(database, self._binding.objects)
        return no_content()

    async def query(self, request: Request) -> Response:
        return await self._run(request, objects=True)

    async def raw(self, request: Request) -> Response:
        return await self._run(request, objects=False)

    async def read(self, request: Request) -> Response:
        return await self._run(request, objects=False, reads=True)

    async def _run(self, request: Request, *, objects: bool, reads: bool = False) -> Response:
        database = self._find(request)
        body = await read_large(request, WantedQuery, RawQuery, MAX_BODY)
        if not reads:
            await self._audit.note(caller_of(request), "d1.query", database.name)
        query = {"script": body.sql, "params": body.params, "objects": objects, "reads": reads, "most": MAX_ANSWER}
        try:
            answer = await self._binding.ask(database, msgspec.json.encode(query))
        except QueryFailed as error:
            raise bad_body(f"the query failed: {error}", "nothing was changed: all statements run, or none") from None
        return Response(answer + b"\n", headers=HEADERS | {"content-type": "application/json"})
