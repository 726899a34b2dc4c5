"""KV in its own SQLite file, so large values neither bloat nor slow down the node's own database.

A row holds its value if that is small. Larger values are in their own table, because SQLite reads whole rows on its way
to a key, those of other keys too. Small values are read on the event loop, large ones by a thread. The ids of
namespaces are in memory. The size of a namespace is kept by triggers of the tables with each write, so checking a quota
does not read the entries.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from importlib import resources
from pathlib import Path
from typing import NamedTuple, TypeAlias

import apsw

from atoll.bindings.kv.store import (
    ANY,
    MAX_NAMESPACES,
    Batch,
    Bound,
    KVOverQuota,
    Listed,
    Namespace,
    NoNamespace,
    Page,
    Size,
    Space,
    StoredValue,
    TooManyNamespaces,
    TooMuch,
    after_prefix,
    over,
)
from atoll.db.sqlite import Database, rows
from atoll.errors import StorageFailed

INLINE_VALUE = 128 * 1024  # a larger value is read by a thread
ROW_VALUE = 4096  # a larger value is not in its row; the same as in migrations/0004_large_values.sql
SCANNED = 4  # a list reads at most this many times its limit of rows, then returns what it has
SWEPT = 500  # rows of one step of a sweep: other writes wait a few ms for it

NAMESPACES = "SELECT id, tenant, name, created_at FROM namespaces"
PUT = (
    "INSERT INTO entries (namespace, key, expires_at, metadata, size, value, large) VALUES (?, ?, ?, ?, ?, ?, ?)"
    " ON CONFLICT (namespace, key) DO UPDATE SET expires_at = excluded.expires_at, metadata = excluded.metadata,"
    " size = excluded.size, value = excluded.value, large = excluded.large"
)
PUT_LARGE = "INSERT INTO large_values (value) VALUES (?)"
LARGE = "(SELECT {} FROM large_values WHERE id = entries.large)"
WHERE = "FROM entries WHERE namespace = ? AND key = ? AND (expires_at IS NULL OR expires_at > ?)"
GET = f"SELECT CASE WHEN size <= ? THEN coalesce({LARGE.format('value')}, value) END, metadata, expires_at {WHERE}"
LENGTH = f"SELECT coalesce({LARGE.format('length(value)')}, length(value)) {WHERE}"
DELETE = "DELETE FROM entries WHERE namespace = ? AND key = ?"
TOTAL = "SELECT coalesce(sum(keys), 0), coalesce(sum(bytes), 0) FROM namespaces WHERE tenant = ?"
LIST = "SELECT key, metadata, expires_at FROM entries WHERE namespace = ? AND key > ? AND key < ? ORDER BY key LIMIT ?"
LIST_FROM = LIST.replace("key > ?", "key >= ?")
LAST = b"\xff"  # after every key

Found: TypeAlias = "list[tuple[bytes | None, str | None, int | None] | None]"  # value None: it is large
Look: TypeAlias = Callable[[apsw.Connection, int], Found]


class NamespaceRow(NamedTuple):
    id: int
    tenant: str
    name: str
    created_at: int


class Room(NamedTuple):
    """What a tenant can add before its usage must be read again. A lower bound: deletes only make more room."""

    bound: Bound
    keys: int
    bytes: int


class SqliteKV:
    def __init__(self, path: Path) -> None:
        folder = resources.files("atoll.bindings.kv") / "migrations"
        self._database = Database(path, migrations=folder)
        self._known: dict[Space, NamespaceRow] = {}
        self._names: dict[str, set[str]] = {}  # by tenant
        for row in self._database.read(lambda connection: rows(connection, NamespaceRow, NAMESPACES)):
            self._know(row)
        self._bounds: dict[str, Bound] = {}  # of tenants that have one
        self._rooms: dict[str, Room] = {}  # by tenant; on the writer thread
        self._dropped: set[int] = set()  # namespaces, since the start; on the writer thread

    def bound(self, tenant: str, bound: Bound) -> None:
        if bound == Bound():
            self._bounds.pop(tenant, None)
        else:
            self._bounds[tenant] = bound

    async def namespaces(self, tenant: str) -> list[Namespace]:
        found = [self._known[Space(tenant, name)] for name in sorted(self._names.get(tenant, ()))]
        return [Namespace(row.name, row.created_at) for row in found]

    async def exists(self, space: Space) -> bool:
        return space in self._known

    async def create(self, space: Space, now: float) -> bool:
        if space in self._known:
            return False
        if len(self._names.get(space.tenant, ())) >= MAX_NAMESPACES:
            raise TooManyNamespaces

        def act(connection: apsw.Connection) -> bool:
            sql = "INSERT INTO namespaces (tenant, name, created_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
            connection.execute(sql, (*space, int(now)))
            return connection.changes() > 0

        is_new = await self._database.write(act)
        sql = f"{NAMESPACES} WHERE tenant = ? AND name = ?"
        [row] = self._database.read(lambda connection: rows(connection, NamespaceRow, sql, *space))
        self._know(row)
        return is_new

    def _know(self, row: NamespaceRow) -> None:
        self._known[Space(row.tenant, row.name)] = row
        self._names.setdefault(row.tenant, set()).add(row.name)

    async def drop(self, space: Space) -> bool:
        if space not in self._known:
            return False
        number = self._id(space)

        def act(connection: apsw.Connection) -> None:
            connection.execute("DELETE FROM namespaces WHERE id = ?", (number,))
            connection.execute("INSERT OR IGNORE INTO dropped (id) VALUES (?)", (number,))
            self._dropped.add(number)

        try:
            await self._database.write(act)
        except StorageFailed:
            self._dropped.discard(number)  # it is still there
            raise
        self._names[space.tenant].discard(space.namespace)
        return self._known.pop(space, None) is not None

    async def measure(self, space: Space) -> Size:
        sql = "SELECT keys, bytes FROM namespaces WHERE id = ?"
        number = self._id(space)
        [size] = self._database.read(lambda connection: rows(connection, Size, sql, number))
        return size

    async def total(self, tenant: str) -> Size:
        return self._database.read(lambda connection: rows(connection, Size, TOTAL, tenant))[0]

    async def get(self, space: Space, keys: Sequence[bytes], now: float, most: int = ANY) -> list[StoredValue | None]:
        number = self._id(space)

        def look(connection: apsw.Connection, largest: int) -> Found:
            if largest == ANY != most:  # large values: their total size is checked before one is read
                lengths = [connection.execute(LENGTH, (number, key, int(now))).fetchone() for key in keys]
                if sum(length for (length,) in filter(None, lengths)) > most:
                    raise TooMuch
            return [connection.execute(GET, (largest, number, key, int(now))).fetchone() for key in keys]

        if len(keys) == 1:
            found = self._database.read(lambda connection: look(connection, INLINE_VALUE))
        else:
            found = self._database.read(lambda connection: _together(connection, look, INLINE_VALUE // len(keys)))
        if any(row is not None and row[0] is None for row in found):
            found = await self._database.search(lambda connection: _together(connection, look, ANY))
        if most < INLINE_VALUE and sum(len(row[0]) for row in found if row is not None and row[0] is not None) > most:
            raise TooMuch
        return [None if row is None or row[0] is None else StoredValue(row[0], row[1], row[2]) for row in found]

    async def put(self, space: Space, entries: Sequence[tuple[bytes, StoredValue]] | Batch) -> None:
        number, bound = self._id(space), self._bounds.get(space.tenant)
        values: Iterable[Row] = (_row(number, key, entry) for key, entry in entries)
        if isinstance(entries, Sequence):
            values = list(values)
            size = sum([row[4] for row in values])
        else:
            size = entries.bytes

        def act(connection: apsw.Connection) -> None:
            if number in self._dropped:  # deleted while this write waited
                raise NoNamespace(space.namespace)
            before = None
            if bound is not None and not self._has_room(space.tenant, bound, len(entries), size):
                [before] = rows(connection, Size, TOTAL, space.tenant)
            if len(entries) == 1:
                connection.execute(PUT, _stored(connection, next(iter(values))))
            else:
                connection.executemany(PUT, (_stored(connection, row) for row in values))
            if bound is not None and before is not None:
                [total] = rows(connection, Size, TOTAL, space.tenant)
                if over(total, bound) and (total.keys > before.keys or total.bytes > before.bytes):
                    raise KVOverQuota(total, bound)
                self._rooms[space.tenant] = _room(bound, total)

        try:
            await self._database.write(act)
        except StorageFailed:
            self._rooms.pop(space.tenant, None)  # the write failed: the counted sizes may be wrong
            raise

    def _has_room(self, tenant: str, bound: Bound, keys: int, size: int) -> bool:
        """Whether the entries certainly fit, without reading the usage. On the writer thread."""
        room = self._rooms.get(tenant)
        if room is None or room.bound is not bound or room.keys < keys or room.bytes < size:
            return False
        self._rooms[tenant] = Room(bound, room.keys - keys, room.bytes - size)
        return True

    async def delete(self, space: Space, keys: Sequence[bytes]) -> None:
        number = self._id(space)

        def act(connection: apsw.Connection) -> None:
            for key in keys:
                connection.execute(DELETE, (number, key))

        await self._database.write(act)

    async def list(self, space: Space, prefix: bytes, after: bytes, limit: int, now: float) -> Page:
        number, end = self._id(space), after_prefix(prefix) or LAST
        sql, start = (LIST, after) if after >= prefix and after else (LIST_FROM, prefix)
        found: list[Listed] = []
        for _ in range(SCANNED):
            wanted = limit + 1 - len(found)
            batch = self._database.read(partial(_listed, sql, number, start, end, wanted))
            found += [listed for listed in batch if listed.expires_at is None or listed.expires_at > now]
            if len(found) > limit:
                return Page(found[:limit], found[limit - 1].key)
            if len(batch) < wanted:
                return Page(found, None)
            sql, start = LIST, batch[-1].key
        return Page(found, start)

    async def sweep(self, before: float) -> int:
        def act(connection: apsw.Connection) -> int:
            sql = (
                "DELETE FROM entries WHERE (namespace, key) IN"
                " (SELECT namespace, key FROM entries WHERE expires_at < ? LIMIT ?)"
            )
            connection.execute(sql, (int(before), SWEPT))
            gone = connection.changes()
            for (number,) in connection.execute("SELECT id FROM dropped LIMIT 1").fetchall():
                sql = (
                    "DELETE FROM entries WHERE namespace = ? AND key IN"
                    " (SELECT key FROM entries WHERE namespace = ? LIMIT ?)"
                )
                connection.execute(sql, (number, number, SWEPT))
                if not connection.changes():
                    connection.execute("DELETE FROM dropped WHERE id = ?", (number,))
                gone += connection.changes()
            return gone

        return await self._database.write(act)

    async def close(self) -> None:
        await self._database.close()

    def _id(self, space: Space) -> int:
        known = self._known.get(space)
        if known is None:
            raise NoNamespace(space.namespace)
        return known.id


def _room(bound: Bound, total: Size) -> Room:
    keys = ANY if bound.keys is None else bound.keys - total.keys
    return Room(bound, keys, ANY if bound.bytes is None else bound.bytes - total.bytes)


def _listed(sql: str, number: int, start: bytes, end: bytes, most: int, connection: apsw.Connection) -> list[Listed]:
    return rows(connection, Listed, sql, number, start, end, most)


Row: TypeAlias = "tuple[int, bytes, int | None, str | None, int, bytes]"


def _stored(connection: apsw.Connection, row: Row) -> tuple[int | bytes | str | None, ...]:
    """A row for the table; a large value is stored in its own table first."""
    value = row[-1]
    if len(value) <= ROW_VALUE:
        return *row, None
    connection.execute(PUT_LARGE, (value,))
    return *row[:-1], b"", connection.last_insert_rowid()


def _row(number: int, key: bytes, entry: StoredValue) -> Row:
    size = len(key) + len(entry.value) + (len(entry.metadata.encode()) if entry.metadata else 0)
    return number, key, entry.expires_at, entry.metadata, size, entry.value


def _together(connection: apsw.Connection, look: Look, largest: int) -> Found:
    """Several lookups in one read transaction."""
    connection.execute("BEGIN")
    try:
        return look(connection, largest)
    finally:
        connection.execute("COMMIT")
