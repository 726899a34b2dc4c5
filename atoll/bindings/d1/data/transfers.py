"""Exports and imports of whole databases, as SQL text of any size.

Both go through a file without a name, so a slow client holds no database. While one is under way the database refuses
queries, as on Cloudflare. The SQL runs in the engine; Python carries pieces of text.

An import is many commits, and all or nothing: before the first one the database is told to go back to where it is, and
that wish is taken back after the last one. Whatever ends the import in between, a crash included, undoes it.
"""

from __future__ import annotations

import codecs
import tempfile
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import IO, Any

import msgspec

from atoll.bindings.d1.databases import StoredDatabase
from atoll.bindings.d1.ops import D1, QueryFailed
from atoll.offload.threads import in_thread

PIECE = 512 << 10  # bytes of an import in one step


class Dumped(msgspec.Struct, forbid_unknown_fields=True):
    """What of a database is exported."""

    tables: list[str] = []  # only these
    no_schema: bool = False
    no_data: bool = False


class Transfers:
    def __init__(self, binding: D1, folder: Path) -> None:
        self._binding = binding
        self._folder = folder

    def spool(self) -> IO[bytes]:
        """A file to write to and then read from. It is gone when it is closed."""
        return tempfile.TemporaryFile(dir=self._folder)

    async def export(self, database: StoredDatabase, wanted: Dumped, into: IO[bytes]) -> None:
        """Write a database as SQL. QueryFailed if it cannot be exported."""
        options = {"tables": wanted.tables, "schema": not wanted.no_schema, "data": not wanted.no_data}
        session, begin = uuid.uuid4().hex, True
        while True:
            step = {"kind": "export", "session": session, "begin": begin, "options": options}
            answer = await self._step(database, step)
            await in_thread(into.write, memoryview(answer)[1:])
            if answer[:1] == b".":
                break
            begin = False
        await in_thread(into.seek, 0)

    async def load(self, database: StoredDatabase, file: IO[bytes]) -> dict[str, Any]:
        """Run the SQL of a file, all or nothing. QueryFailed if it cannot be run."""
        objects, key = self._binding.objects, database.key
        before = objects.store.past.current(key)
        undo = await objects.store.past.ask(key, before)
        session = uuid.uuid4().hex
        try:
            result = await self._load(database, file, session)
            await objects.store.past.ask(key, undo)
        except BaseException:
            await objects.restore(key, before)
            raise
        await self._step(database, {"kind": "import", "session": session, "isOver": True})
        return result

    async def _load(self, database: StoredDatabase, file: IO[bytes], session: str) -> dict[str, Any]:
        decoder = codecs.getincrementaldecoder("utf-8-sig")()
        begin, is_last = True, False
        while not is_last:
            raw = await in_thread(file.read, PIECE)
            is_last = not raw
            try:
                piece = decoder.decode(raw, final=is_last)
            except UnicodeDecodeError:
                raise QueryFailed("the file is not UTF-8") from None
            step = {"kind": "import", "session": session, "begin": begin, "piece": piece, "isLast": is_last}
            answer = await self._step(database, step)
            begin = False
        found: dict[str, Any] = msgspec.json.decode(answer[1:])
        return found

    async def _step(self, database: StoredDatabase, step: dict[str, Any]) -> bytes:
        return await self._binding.ask(database, msgspec.json.encode({"transfer": step}))


async def receive(chunks: AsyncIterator[bytes], file: IO[bytes], most: int) -> bool:
    """Write what comes into a file. False if it is more than `most`."""
    size = 0
    async for chunk in chunks:
        size += len(chunk)
        if size > most:
            return False
        await in_thread(file.write, chunk)
    await in_thread(file.seek, 0)
    return True
