"""The index: a row for each object whose file has something, so that a start need not look at a million files."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import apsw

from atoll.db.sqlite import Database, rows
from atoll.objects.store import PAGE, Alarm, Damaged, ListedObject, NamespaceSize, ObjectKey

STEP = 500  # rows deleted in one transaction

COLUMNS = (
    "namespace, id, sequence, pages, first_page, merged_group, alarm, alarm_sequence, damage, at_ms, restore_to,"
    " restore_asked"
)
GET = f"SELECT {COLUMNS} FROM objects WHERE namespace = ? AND id = ?"
PUT = f"INSERT OR REPLACE INTO objects ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
ALARMS = "SELECT alarm, namespace, id, alarm_sequence FROM objects WHERE alarm IS NOT NULL AND damage IS NULL"
SIZES = "SELECT namespace, count(*) FILTER (WHERE pages > 0), sum(pages), max(merged_group) FROM objects GROUP BY 1"
LIST = "SELECT id, pages FROM objects WHERE namespace = ? AND id > ? AND pages > 0 ORDER BY id LIMIT ?"
DAMAGED = "SELECT namespace, id, damage FROM objects WHERE damage IS NOT NULL ORDER BY 1, 2"
RESTORING = "SELECT namespace, id FROM objects WHERE restore_to IS NOT NULL"
DELETE_SOME = (
    "DELETE FROM objects WHERE (namespace, id) IN"
    " (SELECT namespace, id FROM objects WHERE namespace = ? AND merged_group < ? LIMIT ?)"
)


class ObjectRow(NamedTuple):
    namespace: str
    id: str
    sequence: int = 0
    pages: int = 0
    first_page: int = 0
    merged_group: int = 0
    alarm: int | None = None
    alarm_sequence: int = 0
    damage: str | None = None
    at_ms: int = 0
    restore_to: int | None = None
    restore_asked: int | None = None


class Totals(NamedTuple):
    sizes: dict[str, NamespaceSize]
    last_group: int


class ObjectIndex:
    def __init__(self, path: Path) -> None:
        self._database = Database(path, migrations=resources.files("atoll.objects") / "migrations")

    def get(self, key: ObjectKey) -> ObjectRow:
        """The row of an object, or one with zeros."""
        found = self._database.read(lambda connection: rows(connection, ObjectRow, GET, *key))
        return found[0] if found else ObjectRow(*key)

    async def put(self, changed: Iterable[ObjectRow]) -> None:
        await self._database.write(lambda connection: connection.executemany(PUT, changed))

    async def delete(self, key: ObjectKey) -> None:
        sql = "DELETE FROM objects WHERE namespace = ? AND id = ?"
        await self._database.write(lambda connection: connection.execute(sql, key))

    async def delete_namespace(self, namespace: str, before_group: int) -> None:
        while await self._database.write(partial(_delete_some, namespace, before_group)):
            pass

    async def load(self) -> tuple[list[Alarm], Totals]:
        """All alarms, and sums. Long: one look at every row."""
        return await self._database.search(_load)

    async def list_objects(self, namespace: str, cursor: str, limit: int) -> list[ListedObject]:
        found = await self._database.search(
            lambda connection: rows(connection, ListedObject, LIST, namespace, cursor, limit)
        )
        return [ListedObject(each.id, each.bytes * PAGE) for each in found]

    async def damaged(self) -> list[Damaged]:
        found = await self._database.search(lambda connection: connection.execute(DAMAGED).fetchall())
        return [Damaged(ObjectKey(str(namespace), str(id)), str(words)) for namespace, id, words in found]

    async def restoring(self) -> list[ObjectKey]:
        """Objects that go back before they are opened again."""
        return await self._database.search(lambda connection: rows(connection, ObjectKey, RESTORING))

    async def close(self) -> None:
        await self._database.close()


def _delete_some(namespace: str, before_group: int, connection: apsw.Connection) -> int:
    connection.execute(DELETE_SOME, (namespace, before_group, STEP))
    return connection.changes()


def _load(connection: apsw.Connection) -> tuple[list[Alarm], Totals]:
    alarms = [Alarm(at, ObjectKey(name, id), sequence) for at, name, id, sequence in connection.execute(ALARMS)]
    sums = connection.execute(SIZES).fetchall()
    sizes = {name: NamespaceSize(count, pages * PAGE) for name, count, pages, _ in sums}  # type: ignore[operator,arg-type]
    return alarms, Totals(sizes, max((group for *_, group in sums), default=0))  # type: ignore[type-var,arg-type]
