"""Exports and imports of whole databases, as SQL text of any size.

Both go through a file without a name, so a slow client holds no database. While one is under way the database refuses
queries, as on Cloudflare. The SQL runs in the engine; Python carries pieces of text.

An import is many commits, and all or nothing: before the first one the database is told to go back to where it is, and
that wish is taken back after the last one. Whatever ends the import in between, a crash included, undoes it.

One statement changes 32 MB at most, and an index of a large table is more. If an import fails at one, it is undone and
done again with each index made together with its table.
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
STEPS = 4  # after which its pages are merged: the engine keeps them in memory until then
TOO_MUCH = ("SQLITE_FULL", "SQLITE_NOMEM")  # in the words of an error: perhaps an index of a large table


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
        try:
            return await self._try_to_load(database, file, scans=False)
        except QueryFailed as failed:
            if not any(each in str(failed) for each in TOO_MUCH):
                raise
        await in_thread(file.seek, 0)
        return await self._try_to_load(database, file, scans=True)

    async def _try_to_load(self, database: StoredDatabase, file: IO[bytes], *, scans: bool) -> dict[str, Any]:
        objects, key = self._binding.objects, database.key
        before = objects.store.past.current(key)
        undo = await objects.store.past.ask(key, before)
        session = uuid.uuid4().hex
        try:
            if scans:
                await self._feed(database, file, session, begin=True, scans=True)
                await in_thread(file.seek, 0)
            answer = await self._feed(database, file, session, begin=not scans)
            result: dict[str, Any] = msgspec.json.decode(answer[1:])
            await objects.store.past.ask(key, undo)
        except BaseException:
            await objects.restore(key, before)
            raise
        await self._step(database, {"kind": "import", "session": session, "isOver": True})
        return result

    async def _feed(
        self, database: StoredDatabase, file: IO[bytes], session: str, *, begin: bool, scans: bool = False
    ) -> bytes:
        """Give a database the text of a file, piece by piece. The last answer."""
        decoder = codecs.getincrementaldecoder("utf-8-sig")()
        answer, is_last, steps = b"", False, 0
        while not is_last:
            raw = await in_thread(file.read, PIECE)
            is_last = not raw
            try:
                piece = decoder.decode(raw, final=is_last)
            except UnicodeDecodeError:
                raise QueryFailed("the file is not UTF-8") from None
            step = {"kind": "import", "session": session, "begin": begin, "piece": piece, "isLast": is_last}
            answer = await self._step(database, {**step, "scans": scans})
            begin, steps = False, steps + 1
            if steps % STEPS == 0 and not scans:
                await self._binding.objects.store.merge(database.key)
        return answer

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
