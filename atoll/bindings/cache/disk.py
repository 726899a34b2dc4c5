"""Cached responses on disk: a SQLite index, which holds small bodies, and a file for each larger body.

The data may be lost: a damaged index is deleted at the start, a file without a row is removed, a row without its file
is a miss. Every tenant has a quota of bytes; above it the least recently used responses are deleted. Times of use are
kept in memory and written from time to time.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
import time
from collections.abc import Sequence
from functools import partial
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import apsw

from atoll.bindings.cache.files import FileReader, FileWriter
from atoll.bindings.cache.freshness import Headers, names_in
from atoll.bindings.cache.hot import Hot
from atoll.bindings.cache.store import MAX_VARIANTS, CachePlace, CacheSize, Kept, Stored
from atoll.db.sqlite import Database, rows

log = logging.getLogger("atoll.bindings")

OVERHEAD = 512  # bytes that a response counts for besides head and body
TOUCHES = 256  # uses that are written together
DROPPED = 200  # responses that one step deletes: other writes must not wait long
EXPIRED = 20  # expired responses that are deleted with every new one


FIND = (
    "SELECT id, vary, status, head, is_manual, stored_at, expires_at, size, body, file FROM responses"
    " WHERE tenant = ? AND cache = ? AND url = ? LIMIT ?"  # sorting would cost more than the rest
)
COSTS = "SELECT tenant, sum(cost) FROM responses GROUP BY tenant"
KNOWN_FILES = "SELECT file FROM responses WHERE file <> ''"
INSERT = (
    "INSERT INTO responses (tenant, cache, url, vary, status, head, is_manual, stored_at, expires_at, used_at, cost,"
    " size, body, file) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)


class CacheDisk:
    def __init__(self, folder: Path, tenant_bytes: int) -> None:
        self._folder = folder / "bodies"
        self._tenant_bytes = tenant_bytes
        self._database = _open(folder)
        self._touched: dict[int, int] = {}
        self._hot = Hot()
        self._used: dict[str, int] = {  # on the writer thread
            str(tenant): int(str(cost))
            for tenant, cost in self._database.read(lambda connection: connection.execute(COSTS).fetchall())
        }
        self._cleaning = asyncio.ensure_future(asyncio.to_thread(self._remove_strays, self._known_files()))

    # Reading

    async def find(self, place: CachePlace) -> list[Stored]:
        found = self._hot.get(place)
        if found is None:
            found = self._database.read(lambda connection: rows(connection, Stored, FIND, *place, MAX_VARIANTS))
            found.sort(key=lambda stored: -stored.id)
            self._hot.put(place, found)
        return found

    def touch(self, number: int) -> None:
        self._touched[number] = int(time.time())
        if len(self._touched) >= TOUCHES:
            touched, self._touched = self._touched, {}
            self._database.post(lambda connection: _note_uses(connection, touched))

    def open(self, stored: Stored, start: int, end: int) -> FileReader:
        return FileReader(os.open(self.path(stored.file), os.O_RDONLY | os.O_CLOEXEC), start, end)

    def path(self, file: str) -> Path:
        return self._folder / file[:2] / file

    async def measure(self, tenant: str, after: str = "", limit: int = 100) -> list[CacheSize]:
        than = ">" if after else ">="  # a name may be empty
        sql = (
            f"SELECT cache, count(*), sum(size) FROM responses WHERE tenant = ? AND cache {than} ? GROUP BY cache"
            " ORDER BY cache LIMIT ?"
        )
        return await self._database.search(lambda connection: rows(connection, CacheSize, sql, tenant, after, limit))

    async def kept(self, tenant: str, cache: str, after: int, limit: int) -> list[Kept]:
        sql = (
            "SELECT id, url, status, size, stored_at, expires_at FROM responses"
            " WHERE tenant = ? AND cache = ? AND id > ? ORDER BY id LIMIT ?"
        )
        return await self._database.search(lambda connection: rows(connection, Kept, sql, tenant, cache, after, limit))

    # Changing

    def create(self) -> FileWriter:
        return FileWriter(self.new_file, self.save, self.unlink_all)

    def new_file(self) -> tuple[str, int]:
        """A file for a body, open for writing: its name and descriptor."""
        name = secrets.token_hex(16)
        path = self.path(name)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return name, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)

    async def save(self, place: CachePlace, stored: Stored) -> None:
        """Store a response in place of the variant it replaces, and evict others if the quota is exceeded."""
        touched, self._touched = self._touched, {}
        cost = stored.size + len(stored.head) + len(place.url) + OVERHEAD

        def act(connection: apsw.Connection) -> list[_Gone]:
            _note_uses(connection, touched)
            gone = self._drop(connection, "tenant = ? AND cache = ? AND url = ? AND vary = ?", (*place, stored.vary))
            values = (*stored[1:7], stored.stored_at, cost, *stored[7:])
            connection.execute(INSERT, (*place, *values))
            self._used[place.tenant] = self._used.get(place.tenant, 0) + cost
            return gone + self._make_room(connection, place, stored.stored_at)

        gone = await self._database.write(act)
        self._hot.drop(place)
        await self._let_go(gone)
        while (
            self._used[place.tenant] > self._tenant_bytes and gone
        ):  # a large response replaces many small ones: more steps
            gone = await self._database.write(lambda connection: self._make_room(connection, place, stored.stored_at))
            await self._let_go(gone)

    async def _drop_some(self, which: str, values: Sequence[str | int]) -> list[_Gone]:
        gone = await self._database.write(lambda connection: self._drop(connection, which, values))
        await self._let_go(gone)
        return gone

    async def remove(self, place: CachePlace) -> bool:
        def act(connection: apsw.Connection) -> tuple[int, list[_Gone]]:
            sql = "SELECT count(*) FROM responses WHERE tenant = ? AND cache = ? AND url = ? AND expires_at > ?"
            [count] = rows(connection, int, sql, *place, int(time.time()))
            return count, self._drop(connection, "tenant = ? AND cache = ? AND url = ?", place)

        count, gone = await self._database.write(act)
        await self._let_go(gone)
        return count > 0

    async def remove_tagged(self, tenant: str, cache: str, tag: str) -> bool:
        sql = (
            "SELECT id, CASE WHEN head LIKE '%cache-tag:%' THEN head ELSE '' END FROM responses"
            " WHERE tenant = ? AND cache = ? AND id > ? ORDER BY id LIMIT ?"
        )
        found, last = False, 0
        while heads := await self._database.search(partial(_heads, sql, tenant, cache, last)):
            last = heads[-1].id
            numbers = [row.id for row in heads if row.head and has_tag(row.head, tag)]
            if numbers:
                which = "id IN (SELECT value FROM json_each(?))"
                found = bool(await self._drop_some(which, (f"[{','.join(map(str, numbers))}]",))) or found
        return found

    async def clear(self, tenant: str, cache: str) -> bool:
        return await self._drop_all("tenant = ? AND cache = ?", (tenant, cache))

    async def forget(self, tenant: str) -> None:
        await self._drop_all("tenant = ?", (tenant,))

    async def _drop_all(self, which: str, values: Sequence[str | int]) -> bool:
        """Delete the present responses in steps; other writes run in between. Responses added meanwhile stay."""
        [last] = await self._database.search(
            lambda connection: rows(connection, int, "SELECT coalesce(max(id), 0) FROM responses")
        )
        some = f"id IN (SELECT id FROM responses WHERE {which} AND id <= ? LIMIT ?)"
        found = False
        while await self._drop_some(some, (*values, last, DROPPED)):
            found = True
        return found

    async def close(self) -> None:
        await self._cleaning
        touched, self._touched = self._touched, {}
        self._database.post(lambda connection: _note_uses(connection, touched))
        await self._database.close()

    # On the writer thread

    def _make_room(self, connection: apsw.Connection, place: CachePlace, now: int) -> list[_Gone]:
        tenant = place.tenant
        sql = "id IN (SELECT id FROM responses WHERE tenant = ? AND expires_at <= ? LIMIT ?)"
        gone = self._drop(connection, sql, (tenant, now, EXPIRED))
        sql = (
            "id IN (SELECT id FROM responses WHERE tenant = ? AND cache = ? AND url = ?"
            " ORDER BY id DESC LIMIT -1 OFFSET ?)"
        )
        gone += self._drop(connection, sql, (*place, MAX_VARIANTS))
        for _ in range(DROPPED):
            if self._used[tenant] <= self._tenant_bytes:
                break
            sql = "id IN (SELECT id FROM responses WHERE tenant = ? ORDER BY used_at, id LIMIT 1)"
            gone += self._drop(connection, sql, (tenant,))
            if not connection.changes():
                self._used[tenant] = 0
        return gone

    def _drop(self, connection: apsw.Connection, which: str, values: Sequence[str | int]) -> list[_Gone]:
        """Delete rows and return them; the caller removes their files."""
        sql = f"DELETE FROM responses WHERE {which} RETURNING tenant, cache, url, cost, file"
        gone = rows(connection, _Gone, sql, *values)
        for row in gone:
            self._used[row.tenant] -= row.cost
        return gone

    # Files

    async def _let_go(self, gone: Sequence[_Gone]) -> None:
        for row in gone:
            self._hot.drop(CachePlace(row.tenant, row.cache, row.url))
        files = [row.file for row in gone if row.file]
        if files:
            await asyncio.to_thread(self.unlink_all, files)

    def unlink_all(self, files: Sequence[str]) -> None:
        for file in files:
            try:
                self.path(file).unlink(missing_ok=True)
            except OSError as error:  # the disk became read-only: the next start cleans up
                log.warning("a file of the cache cannot be removed: %s", error)

    def _known_files(self) -> set[str]:
        return set(self._database.read(lambda connection: rows(connection, str, KNOWN_FILES)))

    def _remove_strays(self, known: set[str]) -> None:
        """Remove files without a row, which a crash left. Files newer than this start are kept."""
        started = time.time()
        try:
            for path in self._folder.glob("*/*"):
                if path.name not in known and path.stat().st_mtime < started - 1:
                    path.unlink(missing_ok=True)
        except OSError as error:
            log.warning("the folder of the cache could not be cleaned up: %s", error)


class _Head(NamedTuple):
    id: int
    head: str


class _Gone(NamedTuple):
    tenant: str
    cache: str
    url: str
    cost: int
    file: str


def _heads(sql: str, tenant: str, cache: str, after: int, connection: apsw.Connection) -> list[_Head]:
    return rows(connection, _Head, sql, tenant, cache, after, DROPPED)


def has_tag(head: str, tag: str) -> bool:
    return tag.lower() in names_in(Headers.parse(head).get("cache-tag"))


def _note_uses(connection: apsw.Connection, touched: dict[int, int]) -> None:
    connection.executemany("UPDATE responses SET used_at = ? WHERE id = ?", [(at, n) for n, at in touched.items()])


def _open(folder: Path) -> Database:
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    path = folder / "cache.db"
    if path.exists() and not _is_sound(path):
        log.warning("%s is damaged and was replaced by an empty one: it is only a cache", path)
        for suffix in ("", "-wal", "-shm"):
            path.with_name(path.name + suffix).unlink(missing_ok=True)
    return Database(path, migrations=resources.files("atoll.bindings.cache") / "migrations", synchronous="NORMAL")


def _is_sound(path: Path) -> bool:
    connection = apsw.Connection(str(path))
    try:
        for sql in (COSTS, KNOWN_FILES):
            connection.execute(sql).fetchall()
    except (apsw.NotADBError, apsw.CorruptError):
        return False
    except apsw.SQLError:
        pass  # it has no tables yet
    finally:
        connection.close()
    return True
