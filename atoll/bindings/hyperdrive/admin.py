"""Hyperdrive over HTTP: the databases of a tenant. Passwords are never shown."""

from __future__ import annotations

from collections.abc import AsyncIterator

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.audit import AuditLog
from atoll.api.callers import Scope
from atoll.api.paging import name_page_of, name_query, page_answer
from atoll.api.refusals import ApiCode, Refused, bad_body
from atoll.api.routes import Route, caller_of, json_answer, no_content, read_shape
from atoll.bindings.hyperdrive.connection_string import read_address
from atoll.bindings.hyperdrive.databases import NamedDatabase, NamedDatabases
from atoll.bindings.hyperdrive.ops import NAME, NAME_HINT
from atoll.clock import iso_time
from atoll.errors import InvalidArgument, QuotaExceeded


class NewNamedDatabase(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    connection_string: str


class ChangedDatabase(msgspec.Struct, forbid_unknown_fields=True):
    connection_string: str


class NamedDatabaseAnswer(msgspec.Struct):
    name: str
    scheme: str
    host: str
    port: int
    user: str
    database: str
    tls: bool
    by_operator: bool
    created_at: str


class NamedDatabasesAnswer(msgspec.Struct, omit_defaults=True):
    databases: list[NamedDatabaseAnswer]
    cursor: str = ""


class HyperdriveApi:
    def __init__(self, databases: NamedDatabases, audit: AuditLog) -> None:
        self._databases = databases
        self._audit = audit

    def routes(self) -> list[Route]:
        read, change, gives = Scope.READ, Scope.DEPLOY, NamedDatabaseAnswer
        all_of_them, one = "/api/hyperdrive", "/api/hyperdrive/{database}"
        return [
            Route(
                "GET", all_of_them, self.list, read, "The Hyperdrive databases of a tenant, by name",
                gives=NamedDatabasesAnswer, query=name_query(),
            ),
            Route(
                "POST", all_of_them, self.create, change, "Name a database", takes=NewNamedDatabase, gives=gives,
                status=201,
            ),
            Route("GET", one, self.get, read, "A database, without its password", gives=gives),
            Route("PUT", one, self.change, change, "Change its connection string", takes=ChangedDatabase, gives=gives),
            Route("DELETE", one, self.delete, change, "Forget a database", status=204),
        ]  # fmt: skip

    def _shown(self, each: NamedDatabase) -> NamedDatabaseAnswer:
        at = self._databases.address(each)
        return NamedDatabaseAnswer(
            each.name, at.scheme, at.host, at.port, at.user, at.database, at.tls, bool(each.by_operator),
            iso_time(each.created_at),
        )  # fmt: skip

    def _find(self, request: Request) -> NamedDatabase:
        name = request.path_params["database"]
        found = self._databases.find(caller_of(request).tenant, name)
        if found is None:
            raise Refused(
                ApiCode.NOT_FOUND, f"there is no database `{name[:80]}`", "GET /api/hyperdrive lists the databases"
            )
        return found

    async def list(self, request: Request) -> Response:
        after, limit = name_page_of(request)
        return await page_answer("databases", self._listed(caller_of(request).tenant, after), limit)

    async def _listed(self, tenant: str, after: str) -> AsyncIterator[tuple[str, NamedDatabaseAnswer]]:
        for each in self._databases.of_tenant(tenant):
            if each.name > after:
                yield each.name, self._shown(each)

    async def create(self, request: Request) -> Response:
        body = await read_shape(request, NewNamedDatabase)
        if not NAME.fullmatch(body.name):
            raise bad_body(f"`name` is {body.name!r:.80}", NAME_HINT)
        if self._databases.find(caller_of(request).tenant, body.name) is not None:
            raise Refused(ApiCode.NAME_TAKEN, f"a database named `{body.name}` already exists")
        await self._audit.note(caller_of(request), "hyperdrive.create", body.name)
        made = await self._put(request, body.name, body.connection_string)
        return json_answer(self._shown(made), status=201, headers={"location": f"/api/hyperdrive/{body.name}"})

    async def _put(self, request: Request, name: str, text: str) -> NamedDatabase:
        caller = caller_of(request)
        try:
            read_address(text)
            return await self._databases.put(caller.tenant, name, text, by_operator=caller.is_operator)
        except InvalidArgument as error:
            raise bad_body(f"`connection_string` cannot be used: {error}", "see docs/bindings/hyperdrive.md") from None
        except QuotaExceeded as error:
            raise Refused(ApiCode.QUOTA, str(error), "delete a database") from None

    async def get(self, request: Request) -> Response:
        return json_answer(self._shown(self._find(request)))

    async def change(self, request: Request) -> Response:
        body = await read_shape(request, ChangedDatabase)
        name = self._find(request).name
        await self._audit.note(caller_of(request), "hyperdrive.change", name)
        return json_answer(self._shown(await self._put(request, name, body.connection_string)))

    async def delete(self, request: Request) -> Response:
        name = self._find(request).name
        await self._audit.note(caller_of(request), "hyperdrive.delete", name)
        await self._databases.delete(caller_of(request).tenant, name)
        return no_content()
