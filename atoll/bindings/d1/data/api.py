"""Whole databases over HTTP: export, import, and Time Travel."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import AsyncIterator, Callable
from typing import IO

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Send
from starlette.types import Scope as AsgiScope

from atoll.api.audit import AuditLog
from atoll.api.callers import Scope
from atoll.api.refusals import ApiCode, Refused, bad_body
from atoll.api.routes import HEADERS, Query, Route, caller_of, json_answer, read_shape
from atoll.bindings.d1.data.transfers import Dumped, Transfers, receive
from atoll.bindings.d1.databases import StoredDatabase
from atoll.bindings.d1.ops import D1, QueryFailed
from atoll.errors import InvalidArgument
from atoll.offload.threads import in_thread

MAX_IMPORT = 5 << 30
CHUNK = 256 << 10
SQL_TYPE = "application/sql"
TEXT = {"type": "string"}
TIMESTAMP = Query("timestamp", "seconds since 1970, or a date and time as in RFC 3339; without it: now", TEXT)
POINT = Query("timestamp", "the same as a time", TEXT)
BOOKMARK = Query("bookmark", "the point to go back to", TEXT)


class BookmarkAnswer(msgspec.Struct):
    bookmark: str


class RestoredAnswer(msgspec.Struct):
    bookmark: str
    previous_bookmark: str  # undoes it
    message: str


class ImportAnswer(msgspec.Struct):
    num_queries: int
    rows_read: int
    rows_written: int
    size_after: int
    final_bookmark: str


class FileResponse(StreamingResponse):
    """A file that is closed at the end, also if the client goes before the beginning."""

    def __init__(self, file: IO[bytes], name: str) -> None:
        headers = HEADERS | {"content-disposition": f'attachment; filename="{name}.sql"'}
        super().__init__(_chunks(file), headers=headers, media_type=SQL_TYPE)
        self._file = file

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._file.close()


async def _chunks(file: IO[bytes]) -> AsyncIterator[bytes]:
    while chunk := await in_thread(file.read, CHUNK):
        yield chunk


class D1DataApi:
    def __init__(self, binding: D1, audit: AuditLog, find: Callable[[Request], StoredDatabase]) -> None:
        self._binding = binding
        self._audit = audit
        self._find = find
        self._transfers = Transfers(binding, binding.folder)
        self._busy: set[str] = set()  # databases with a transfer under way
        self._turn = asyncio.Semaphore(4)  # each takes room on the disk

    def routes(self) -> list[Route]:
        read, change = Scope.READ, Scope.DEPLOY
        one = "/api/d1/{database}"
        return [
            Route(
                "POST", f"{one}/export", self.export, change, "A database as SQL text", takes=Dumped, media=SQL_TYPE
            ),
            Route(
                "POST", f"{one}/import", self.load, change, "Run SQL text of any size, all or nothing",
                gives=ImportAnswer, raw=SQL_TYPE,
            ),
            Route(
                "GET", f"{one}/time_travel/bookmark", self.bookmark, read, "The bookmark of a point in time",
                gives=BookmarkAnswer, query=(TIMESTAMP,),
            ),
            Route(
                "POST", f"{one}/time_travel/restore", self.restore, change, "Take a database back in time",
                gives=RestoredAnswer, query=(BOOKMARK, POINT),
            ),
        ]  # fmt: skip

    # Time Travel

    async def bookmark(self, request: Request) -> Response:
        database = self._find(request)
        return json_answer(BookmarkAnswer(await self._point(database, request)))

    async def _point(self, database: StoredDatabase, request: Request) -> str:
        past = self._binding.objects.store.past
        raw = request.query_params.get("timestamp")
        if raw is None:
            return past.current(database.key)
        try:
            return await past.at(database.key, _ms_of(raw))
        except InvalidArgument as error:
            raise bad_body(str(error).replace("this object", "this database"), "ask for a later time") from None

    async def restore(self, request: Request) -> Response:
        database = self._find(request)
        bookmark = request.query_params.get("bookmark")
        if (bookmark is None) == ("timestamp" not in request.query_params):
            raise bad_body("`bookmark` or `timestamp` must be given", "give one of the two")
        wanted = bookmark if bookmark is not None else await self._point(database, request)
        await self._audit.note(caller_of(request), "d1.restore", f"{database.name} {wanted[:60]}")
        try:
            previous = await self._binding.objects.restore(database.key, wanted)
        except InvalidArgument as error:
            words = str(error).replace("this object", "this database")
            raise bad_body(words, "use a bookmark that Time Travel or a session of this database gave") from None
        return json_answer(RestoredAnswer(wanted, previous, f"{database.name} is as it was at {wanted}"))

    # Export and import

    async def export(self, request: Request) -> Response:
        return await self.dump(request, await read_shape(request, Dumped, empty=True))

    async def dump(self, request: Request, wanted: Dumped) -> Response:
        database = self._find(request)
        await self._audit.note(caller_of(request), "d1.export", database.name)
        file = await in_thread(self._transfers.spool)
        try:
            async with self._turn:
                await self._transfers.export(database, wanted, file)
        except QueryFailed as error:
            file.close()
            raise bad_body(f"the database cannot be exported: {error}") from None
        except BaseException:
            file.close()
            raise
        return FileResponse(file, database.name)

    async def load(self, request: Request) -> Response:
        return json_answer(await self.take(request, request.stream()))

    async def take(self, request: Request, chunks: AsyncIterator[bytes]) -> ImportAnswer:
        """Run the SQL text in these chunks. An exception of theirs ends it before it begins."""
        database = self._find(request)
        await self._audit.note(caller_of(request), "d1.import", database.name)
        if database.id in self._busy:
            raise Refused(ApiCode.CONCURRENT, f"an import into {database.name} is in progress", "wait until it ends")
        self._busy.add(database.id)
        try:
            with await in_thread(self._transfers.spool) as file:
                if not await receive(chunks, file, MAX_IMPORT):
                    raise bad_body(f"the file is larger than {MAX_IMPORT >> 30} GB", "import it in parts")
                async with self._turn:
                    result = await self._transfers.load(database, file)
        except QueryFailed as error:
            raise bad_body(f"the import failed: {error}", "nothing was changed: all statements run, or none") from None
        except InvalidArgument as error:
            raise bad_body(f"the import cannot be undone if it fails: {error}") from None
        finally:
            self._busy.discard(database.id)
        bookmark = self._binding.objects.store.past.current(database.key)
        return ImportAnswer(**result, final_bookmark=bookmark)


def _ms_of(raw: str) -> int:
    try:
        if raw.isdecimal() and len(raw) < 12:
            return int(raw) * 1000
        moment = datetime.datetime.fromisoformat(raw.replace(" ", "+"))  # a plus sign in a query is a space
    except ValueError:
        raise bad_body(f"`timestamp` is {raw[:80]!r}", "use 2026-11-18T12:00:00Z, or seconds since 1970") from None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.UTC)
    return int(moment.timestamp() * 1000)
