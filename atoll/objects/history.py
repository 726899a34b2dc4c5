"""The past of objects: a database with the steps that undo commits (undo.py), bounded by age and size.

A step is durable before the pages that it keeps are overwritten in the file of the object. It is kept for some days,
and for less time if an object or the node has too much of it: the oldest steps go first.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence
from functools import partial
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import apsw

from atoll.db.sqlite import Database, rows
from atoll.objects.faults import storage_failed
from atoll.objects.journal import sync_folder
from atoll.objects.store import ObjectKey
from atoll.objects.undo import Pages

MB = 1 << 20
DAY_MS = 86_400_000
TRUSTED = "history.trusted"
OVERHEAD = 200  # bytes of a step besides its data
SOME = 500  # steps deleted in one transaction

FIND = "SELECT number, last, last_at, is_point, bytes FROM histories WHERE namespace = ? AND id = ?"
PUT = "INSERT OR REPLACE INTO undo VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
ADD = "INSERT INTO histories (namespace, id, last, last_at, is_point, bytes) VALUES (?, ?, 0, 0, 1, 0)"
OLDEST = (
    "SELECT object, last FROM undo WHERE {where} AND part = 0 AND object NOT IN (SELECT value FROM json_each(?))"
    " ORDER BY last_at, object, last LIMIT ?"
)
SIZE = "SELECT total(length(data)) FROM undo WHERE object = ? AND last = ?"
STEPS = "SELECT last, part, first, pages FROM undo WHERE object = ? AND last > ? ORDER BY last DESC, part"
COLUMNS = "SELECT first, first_at, pages, is_point, last_at FROM undo"


class HistoryBounds(NamedTuple):
    days: float = 30.0  # 0: there is no history
    object_bytes: int = 256 * MB
    node_bytes: int = 10_000 * MB


class HistoryReach(NamedTuple):
    """How far the history of an object goes."""

    number: int
    last: int
    last_at: int
    is_point: int
    bytes: int


class Point(NamedTuple):
    """The state after a commit."""

    sequence: int
    at_ms: int
    pages: int
    is_point: int
    until_ms: int  # when a commit after it came


class StepPart(NamedTuple):
    last: int
    part: int
    first: int
    pages: int


class History:
    def __init__(self, path: Path, bounds: HistoryBounds) -> None:
        self.bounds = bounds
        self._mark = path.with_name(TRUSTED)
        self.is_trusted = self._mark.exists() or not path.exists()  # at the start
        self._database = Database(path, migrations=resources.files("atoll.objects") / "history_migrations")
        sql = "SELECT ifnull(sum(bytes), 0) FROM histories"
        self.bytes: int = self._database.read(lambda c: c.execute(sql).get)
        self._is_marked = self._mark.exists()
        self._looked = 0.0  # when steps were last looked for that are too old

    @property
    def is_on(self) -> bool:
        return self.bounds.days > 0

    async def close(self) -> None:
        await self._database.close()

    def trust(self) -> None:
        """Nothing is in the file of an object that cannot be undone. Slow, as is `distrust`."""
        if not self._is_marked:
            self._is_marked = True
            self._mark.touch(0o600)
            sync_folder(self._mark.parent)

    def distrust(self) -> None:
        """Files get pages from now on that cannot be undone. It holds for the next start too."""
        try:
            self._mark.unlink(missing_ok=True)
            sync_folder(self._mark.parent)
        except OSError as error:
            raise storage_failed(error, self._mark) from None

    # Making it longer

    async def kept(self, keys: Sequence[ObjectKey]) -> list[HistoryReach | None]:
        return await self._database.search(lambda connection: [_find(connection, key) for key in keys])

    async def put(self, parts: Sequence[Pages]) -> None:
        """Store pieces of steps. A step counts when its last piece is there."""
        self.bytes += await self._database.write(partial(_put, parts))

    async def cut(self, key: ObjectKey, last: int, reaches: int) -> None:
        """Delete steps behind the commit `last`, and all if what is left does not reach the commit `reaches`."""
        self.bytes += await self._database.write(partial(_cut, key, last, reaches))

    async def delete(self, key: ObjectKey) -> None:
        self.bytes += await self._database.write(partial(_delete, key))

    async def delete_namespace(self, namespace: str) -> None:
        sql = "SELECT id FROM histories WHERE namespace = ? LIMIT ?"
        while True:
            found = await self._database.search(lambda c: c.execute(sql, (namespace, SOME)).fetchall())
            if not found:
                return
            for (id,) in found:
                await self.delete(ObjectKey(namespace, str(id)))

    async def trim(self, spared: Collection[ObjectKey]) -> None:
        """Delete what is too old or too much, except of objects that are about to go back."""
        now = time.time()
        if self.bytes > self.bounds.node_bytes:
            while self.bytes > self.bounds.node_bytes * 0.9 and await self._delete_oldest("1", spared):
                pass
        if now - self._looked > 60:
            self._looked = now
            before = int(now * 1000 - self.bounds.days * DAY_MS)
            while await self._delete_oldest(f"last_at < {before}", spared):
                pass

    async def _delete_oldest(self, where: str, spared: Collection[ObjectKey]) -> bool:
        freed = await self._database.write(partial(_delete_oldest, where, list(spared)))
        self.bytes -= freed
        return freed > 0

    # Looking back. All of it is about steps that end at or before `last`, the last commit in the file.

    async def point(self, key: ObjectKey, sequence: int) -> Point | None:
        """The state after a commit, if it is the beginning of a step."""
        sql = f"{COLUMNS} WHERE object = ? AND last > ? AND part = 0 ORDER BY last LIMIT 1"
        found = await self._ask(key, sql, sequence)
        return found if found is not None and found.sequence == sequence and found.is_point else None

    async def point_at(self, key: ObjectKey, at_ms: int) -> Point | None:
        """The last state at that time."""
        sql = f"{COLUMNS} WHERE object = ? AND first_at <= ? AND (first_at > 0 OR first = 0)"
        sql += " AND is_point AND part = 0 ORDER BY last DESC LIMIT 1"
        return await self._ask(key, sql, at_ms)

    async def before_restore(self, key: ObjectKey, asked: int) -> Point | None:
        sql = f"{COLUMNS} WHERE object = ? AND undoes = ? AND part = 0 ORDER BY last LIMIT 1"
        return await self._ask(key, sql, asked)

    async def oldest(self, key: ObjectKey) -> Point | None:
        return await self._ask(key, f"{COLUMNS} WHERE object = ? AND last > ? AND part = 0 ORDER BY last LIMIT 1", -1)

    async def _ask(self, key: ObjectKey, sql: str, value: int) -> Point | None:
        def act(connection: apsw.Connection) -> Point | None:
            kept = _find(connection, key)
            found = rows(connection, Point, sql, kept.number, value) if kept is not None else []
            return found[0] if found else None

        return await self._database.search(act)

    async def steps(self, key: ObjectKey, after: int) -> tuple[int, list[StepPart]]:
        """The pieces of all steps that end behind a commit, the newest first, and the number to read them with."""

        def act(connection: apsw.Connection) -> tuple[int, list[StepPart]]:
            kept = _find(connection, key)
            return (kept.number, rows(connection, StepPart, STEPS, kept.number, after)) if kept is not None else (0, [])

        return await self._database.search(act)

    async def data(self, number: int, part: StepPart) -> bytes:
        sql = "SELECT data FROM undo WHERE object = ? AND last = ? AND part = ?"
        found = await self._database.search(lambda c: c.execute(sql, (number, part.last, part.part)).get)
        return found if isinstance(found, bytes) else b""


def _find(connection: apsw.Connection, key: ObjectKey) -> HistoryReach | None:
    found = rows(connection, HistoryReach, FIND, *key)
    return found[0] if found else None


def _put(parts: Iterable[Pages], connection: apsw.Connection) -> int:
    """Returns by how many bytes the history has grown."""
    grown = 0
    for each in parts:
        kept = _find(connection, each.key)
        if kept is None:
            connection.execute(ADD, each.key)
            kept = _find(connection, each.key)
            assert kept is not None
        step, number = each.step, kept.number
        size = kept.bytes
        if each.data is None or (each.part == 0 and kept.last != step.first):  # the past before this step is lost
            connection.execute("DELETE FROM undo WHERE object = ?", (number,))
            size = 0
        if each.data is not None:
            about = step.first, step.first_at, step.last_at, each.pages, int(step.is_point), step.undoes
            connection.execute(PUT, (number, step.last, each.part, *about, each.data))
            size += len(each.data) + (0 if each.part else OVERHEAD)
            if size > each.most and each.is_last:
                size -= _delete_some(connection, number, size - each.most * 9 // 10, step.last)
        if each.is_last:
            sql = "UPDATE histories SET last = ?, last_at = ?, is_point = ?, bytes = ? WHERE number = ?"
            connection.execute(sql, (step.last, step.last_at, int(step.ends_at_point), size, number))
        else:
            connection.execute("UPDATE histories SET bytes = ? WHERE number = ?", (size, number))
        grown += size - kept.bytes
    return grown


def _delete_some(connection: apsw.Connection, number: int, wanted: int, before: int) -> int:
    """Delete the oldest steps of an object that have so many bytes together. Returns how many they had."""
    sql = "SELECT last, sum(length(data)) + ? FROM undo WHERE object = ? AND last < ? GROUP BY last ORDER BY last"
    freed, last = 0, -1
    for last, size in connection.execute(sql, (OVERHEAD, number, before)):  # noqa: B007 (used below)
        freed += size
        if freed >= wanted:
            break
    connection.execute("DELETE FROM undo WHERE object = ? AND last <= ?", (number, last))
    return freed


def _size(connection: apsw.Connection, number: int) -> int:
    sql = "SELECT total(length(data)) + ? * count(*) FILTER (WHERE part = 0) FROM undo WHERE object = ?"
    return int(connection.execute(sql, (OVERHEAD, number)).get)


def _cut(key: ObjectKey, last: int, reaches: int, connection: apsw.Connection) -> int:
    kept = _find(connection, key)
    if kept is None:
        return 0
    sql = "SELECT is_point FROM undo WHERE object = ? AND last > ? AND part = 0 ORDER BY last LIMIT 1"
    behind = connection.execute(sql, (kept.number, last)).fetchall()
    connection.execute("DELETE FROM undo WHERE object = ? AND last > ?", (kept.number, last))
    sql = "SELECT last, last_at FROM undo WHERE object = ? ORDER BY last DESC LIMIT 1"
    left = connection.execute(sql, (kept.number,)).fetchall()
    ends_at, at_ms = left[0] if left else (kept.last if kept.last <= last else -1, kept.last_at)
    if ends_at < reaches:  # type: ignore[operator]
        connection.execute("DELETE FROM undo WHERE object = ?", (kept.number,))
        connection.execute("DELETE FROM histories WHERE number = ?", (kept.number,))
        return -kept.bytes
    size = _size(connection, kept.number)
    is_point = behind[0][0] if behind else kept.is_point
    sql = "UPDATE histories SET last = ?, last_at = ?, is_point = ?, bytes = ? WHERE number = ?"
    connection.execute(sql, (ends_at, at_ms, is_point, size, kept.number))
    return size - kept.bytes


def _delete(key: ObjectKey, connection: apsw.Connection) -> int:
    kept = _find(connection, key)
    if kept is None:
        return 0
    connection.execute("DELETE FROM undo WHERE object = ?", (kept.number,))
    connection.execute("DELETE FROM histories WHERE number = ?", (kept.number,))
    return -kept.bytes


def _delete_oldest(where: str, spared: Sequence[ObjectKey], connection: apsw.Connection) -> int:
    """Returns the bytes of the steps that were deleted."""
    numbers = [kept.number for key in spared if (kept := _find(connection, key)) is not None]
    found = connection.execute(OLDEST.format(where=where), (str(numbers), SOME)).fetchall()
    freed = 0
    for number, last in found:
        size = int(connection.execute(SIZE, (number, last)).get) + OVERHEAD
        connection.execute("DELETE FROM undo WHERE object = ? AND last = ?", (number, last))
        connection.execute("UPDATE histories SET bytes = bytes - ? WHERE number = ?", (size, number))
        freed += size
    return freed
