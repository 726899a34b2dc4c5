"""D1 below /client/v4: databases, queries, Time Travel, export and import.

wrangler sends a file for an import to a link, and reads an export from one. These links prove themselves. The upload
runs the import, once its MD5 is right: all statements or none. So the answer to `ingest` is known at once.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import AsyncIterator
from typing import Annotated, Any

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.callers import Caller, Scope
from atoll.api.cloudflare import ACCOUNT, V4, CloudflareRefusal, CloudflareTools, envelope, paged, read_v4
from atoll.api.large import read_large
from atoll.api.routes import HEADERS, Route, caller_of
from atoll.api.signatures import Signer
from atoll.api.work import CALLER
from atoll.bindings.d1.admin import MAX_ANSWER, MAX_BODY
from atoll.bindings.d1.data.api import D1DataApi
from atoll.bindings.d1.data.transfers import Dumped
from atoll.bindings.d1.databases import StoredDatabase
from atoll.bindings.d1.ops import D1, NAME, NAME_HINT, QueryFailed
from atoll.clock import iso_time

NO_DATABASE, TAKEN, QUERY = 7404, 7502, 7500
LINK_SECONDS = 3600
MAX_RESULTS = 1_000  # imports whose results are remembered
MAX_BATCH = 100
NULL = b"null"
EXPORT, IMPORT = "d1 export", "d1 import"


class WantedDatabase(Struct):
    name: str


class SentQuery(Struct):
    sql: str
    params: list[str | bool | int | float | list[int] | None] | None = None


class SentQueries(Struct):
    """One query, or several in `batch`."""

    sql: str | None = None
    params: list[str | bool | int | float | list[int] | None] | None = None
    batch: Annotated[list[SentQuery], msgspec.Meta(max_length=MAX_BATCH)] | None = None


class DecodedQuery(Struct):
    """A query whose values were checked."""

    sql: msgspec.Raw = msgspec.Raw(b'""')
    params: msgspec.Raw = msgspec.Raw(b"null")


class DecodedQueries(DecodedQuery):
    batch: list[DecodedQuery] | None = None


class D1Results(Struct):
    result: list[msgspec.Raw]


class WantedExport(Struct):
    dump_options: dict[str, Any] | None = None


class WantedImport(Struct):
    action: str
    etag: str = ""
    filename: str = ""


class CloudflareD1:
    def __init__(self, binding: D1, tools: CloudflareTools) -> None:
        self._binding = binding
        self._audit = tools.audit
        self._data = D1DataApi(binding, tools.audit, self._find)
        self._links = Signer()
        self._results: OrderedDict[tuple[str, str], dict[str, Any]] = OrderedDict()  # by database and name of the file

    def routes(self) -> list[Route]:
        read, change = Scope.READ, Scope.DEPLOY
        many, one = f"{ACCOUNT}/d1/database", f"{ACCOUNT}/d1/database/{{database}}"
        link = f"{V4}/d1-files/{{file}}"
        return [
            Route("GET", many, self.list, read, "The databases of an account"),
            Route("POST", many, self.create, change, "Create a database"),
            Route("GET", one, self.show, read, "A database, by UUID or name"),
            Route("DELETE", one, self.delete, change, "Delete a database"),
            Route("POST", f"{one}/query", self.query, change, "Run SQL"),
            Route("POST", f"{one}/raw", self.raw, change, "Run SQL, with rows as arrays"),
            Route("POST", f"{one}/export", self.export, change, "A link to a database as SQL text"),
            Route("POST", f"{one}/import", self.load, change, "A link for SQL text, and what became of it"),
            Route("GET", f"{one}/time_travel/bookmark", self.bookmark, read, "The bookmark of a point in time"),
            Route("POST", f"{one}/time_travel/restore", self.restore, change, "Take a database back in time"),
            Route("GET", link, self.download, Scope.PUBLIC, "The file of an export; the link is its proof"),
            Route("PUT", link, self.upload, Scope.PUBLIC, "The file of an import; the link is its proof"),
        ]

    def _find(self, request: Request) -> StoredDatabase:
        name = request.path_params["database"]
        found = self._binding.databases.find(caller_of(request).tenant, name)
        if found is None:
            raise CloudflareRefusal(404, NO_DATABASE, f"The database {name[:80]} could not be found")
        return found

    def _shown(self, each: StoredDatabase) -> dict[str, Any]:
        size = self._binding.objects.store.size(each.id).bytes
        facts = {"uuid": each.id, "name": each.name, "created_at": iso_time(each.created_at * 1000)}
        return facts | {"version": "production", "file_size": size, "num_tables": 0}

    async def list(self, request: Request) -> Response:
        name = request.query_params.get("name")
        found = self._binding.databases.of_tenant(caller_of(request).tenant)
        return await paged(request, [each for each in found if name is None or each.name == name], self._shown)

    async def create(self, request: Request) -> Response:
        name, caller = (await read_v4(request, WantedDatabase)).name, caller_of(request)
        if not NAME.fullmatch(name):
            raise CloudflareRefusal(400, 7400, f"`name` is {name!r:.80}", NAME_HINT)
        await self._audit.note(caller, "d1.create", name)
        made = await self._binding.databases.create(caller.tenant, name)
        if made is None:
            raise CloudflareRefusal(400, TAKEN, f"a database named `{name}` already exists")
        return envelope(self._shown(made))

    async def show(self, request: Request) -> Response:
        return envelope(self._shown(self._find(request)))

    async def delete(self, request: Request) -> Response:
        database = self._find(request)
        await self._audit.note(caller_of(request), "d1.delete", database.name)
        await self._binding.databases.delete(database, self._binding.objects)
        return envelope(None)

    async def query(self, request: Request) -> Response:
        return await self._run(request, objects=True)

    async def raw(self, request: Request) -> Response:
        return await self._run(request, objects=False)

    async def _run(self, request: Request, *, objects: bool) -> Response:
        database = self._find(request)
        sent = await read_large(request, SentQueries, DecodedQueries, MAX_BODY, declared=False)
        queries: list[DecodedQuery] = sent.batch if sent.batch is not None else [sent]
        await self._audit.note(caller_of(request), "d1.query", database.name)
        results: list[msgspec.Raw] = []
        size = 0
        for each in queries:
            sql = each.sql if bytes(each.sql) != NULL else ""
            params = each.params if bytes(each.params) != NULL else []
            query = {"script": sql, "params": params, "objects": objects, "most": MAX_ANSWER}
            try:
                answer = await self._binding.ask(database, msgspec.json.encode(query))
            except QueryFailed as error:
                raise CloudflareRefusal(400, QUERY, str(error)) from None
            results += msgspec.json.decode(answer, type=D1Results).result
            size += len(answer)
            if size > 2 * MAX_ANSWER:
                text = f"the answers are larger than {2 * MAX_ANSWER >> 20} MB together: send fewer queries at once"
                raise CloudflareRefusal(400, QUERY, text)
        return envelope(results)

    # Time Travel

    async def bookmark(self, request: Request) -> Response:
        return envelope(msgspec.json.decode((await self._data.bookmark(request)).body))

    async def restore(self, request: Request) -> Response:
        return envelope(msgspec.json.decode((await self._data.restore(request)).body))

    # Export and import

    async def export(self, request: Request) -> Response:
        database, options = self._find(request), (await read_v4(request, WantedExport)).dump_options or {}
        known = {name: options[name] for name in Dumped.__struct_fields__ if name in options}
        try:
            msgspec.convert(known, Dumped)
        except msgspec.ValidationError as error:
            raise CloudflareRefusal(400, 7400, f"`dump_options` does not fit: {error}") from None
        link = self._link(request, EXPORT, database, options=known)
        result = {"filename": f"{database.name}.sql", "signed_url": link}
        return envelope({**self._done(database, "export"), "result": result})

    async def load(self, request: Request) -> Response:
        database, wanted = self._find(request), await read_v4(request, WantedImport)
        if wanted.action == "init":
            if not wanted.etag or len(wanted.etag) > 64:
                raise CloudflareRefusal(400, 7400, "`etag` is not the MD5 of a file")
            name = f"{wanted.etag}.sql"
            link = self._link(request, IMPORT, database, etag=wanted.etag)
            return envelope({**self._done(database, "import"), "filename": name, "upload_url": link})
        result = self._results.get((database.id, wanted.filename))
        if result is None and wanted.action == "poll" and self._results:
            result = next(
                (found for (owner, _), found in reversed(self._results.items()) if owner == database.id), None
            )
        if result is None:
            raise CloudflareRefusal(404, 7400, f"no file {wanted.filename[:80]!r} was imported")
        return envelope({**self._done(database, "import"), "result": result})

    def _done(self, database: StoredDatabase, kind: str) -> dict[str, Any]:
        at = self._binding.objects.store.past.current(database.key)
        return {"status": "complete", "success": True, "type": kind, "at_bookmark": at, "messages": [], "errors": []}

    def _link(self, request: Request, purpose: str, database: StoredDatabase, **claims: object) -> str:
        token = self._links.sign(purpose, LINK_SECONDS, tenant=database.tenant, database=database.id, **claims)
        secure = request.headers.get("x-forwarded-proto") == "https" or request.url.scheme == "https"
        return f"{'https' if secure else 'http'}://{request.headers['host']}{V4}/d1-files/{token}"

    def _claims(self, request: Request, purpose: str) -> dict[str, Any]:
        claims = self._links.check(purpose, request.path_params["file"])
        found = self._binding.databases.find(claims["tenant"], claims["database"]) if claims is not None else None
        if claims is None or found is None:
            raise CloudflareRefusal(403, 10000, "the link is not valid, or not any more")
        request.scope[CALLER] = Caller("link", claims["tenant"], frozenset({Scope.DEPLOY}))
        request.path_params["database"] = claims["database"]
        return claims

    async def download(self, request: Request) -> Response:
        claims = self._claims(request, EXPORT)
        return await self._data.dump(request, msgspec.convert(claims["options"], Dumped))

    async def upload(self, request: Request) -> Response:
        claims = self._claims(request, IMPORT)
        etag, digest = claims["etag"], hashlib.md5(usedforsecurity=False)

        async def checked() -> AsyncIterator[bytes]:
            async for chunk in request.stream():
                digest.update(chunk)
                yield chunk
            if digest.hexdigest() != etag:
                raise CloudflareRefusal(400, 7400, "the MD5 of the file is not the one that was announced")

        answer = await self._data.take(request, checked())
        meta = {"duration": 0, "changes": 0, "last_row_id": 0, "changed_db": True} | {
            name: getattr(answer, name) for name in ("rows_read", "rows_written", "size_after")
        }
        result = {"num_queries": answer.num_queries, "final_bookmark": answer.final_bookmark, "meta": meta}
        self._results[claims["database"], f"{etag}.sql"] = result
        while len(self._results) > MAX_RESULTS:
            self._results.popitem(last=False)
        return Response(b"", headers=HEADERS | {"etag": f'"{etag}"'})
