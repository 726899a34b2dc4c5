"""The rows of a small table of a binding, all in memory.

Memory follows the file: a row is read again after each write of it, on this node or on another one that shares the
database. A write that fails leaves memory as it was.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, Generic, NamedTuple, TypeVar

import apsw

from atoll.db.sqlite import Database, rows
from atoll.db.touched import Touched

R = TypeVar("R", bound=NamedTuple)

AT_ONCE = 100  # rows that are read again before others of the event loop have their turn

Check = Callable[[apsw.Connection], None]


def no_check(connection: apsw.Connection) -> None: ...


class KnownRows(Generic[R]):
    """`shape` has the columns as its fields. The first `keys` of them are the primary key, and the first one of all is
    the tenant. Rows that differ in the last column of the key alone are a group."""

    def __init__(self, database: Database, table: str, shape: type[R], *, keys: int = 2) -> None:
        self._database = database
        self._table = table
        self._shape = shape
        self._keys = keys
        fields: tuple[str, ...] = shape._fields
        self._select = f"SELECT {', '.join(fields)} FROM {table}"
        self._put = f"INSERT OR REPLACE INTO {table} ({', '.join(fields)}) VALUES ({', '.join('?' * len(fields))})"
        self._is = [f"{field} = ?" for field in fields[:keys]]
        self._one = f"{self._select} WHERE {' AND '.join(self._is)}"
        self._groups: dict[tuple[Any, ...], dict[Any, R]] = {}
        for row in database.read(lambda connection: rows(connection, shape, self._select)):
            self._groups.setdefault(row[: keys - 1], {})[row[keys - 1]] = row
        database.listen(self._follow)

    def __iter__(self) -> Iterator[R]:
        """All rows as they are now."""
        return iter([row for group in self._groups.values() for row in group.values()])

    def find(self, *key: str) -> R | None:
        return self._groups.get(key[:-1], {}).get(key[-1])

    def of(self, *group: str) -> list[R]:
        """The rows of a group, sorted."""
        return sorted(self._groups.get(group, {}).values())

    async def put(self, row: R, check: Check = no_check) -> R:
        """Add or replace a row. `check` runs in the transaction of the write, and raises to refuse it."""

        def act(connection: apsw.Connection) -> None:
            check(connection)
            connection.execute(self._put, row)

        await self._database.write(act)
        self._read(row[: self._keys])
        return row

    def most(self, count: int, refused: Exception, *key: str) -> Check:
        """A check for `put` that a new row leaves its group with at most `count` rows."""

        def check(connection: apsw.Connection) -> None:
            found = f"SELECT count(*) FROM {self._table} WHERE {' AND '.join(self._is[:-1])} AND NOT ({self._is[-1]})"
            if connection.execute(found, key).fetchone()[0] >= count:  # type: ignore[index]  # count has a row
                raise refused

        return check

    async def delete(self, *key: str, also: Check = no_check) -> None:
        """Delete a row, or all that begin with a part of the key. `also` runs in the same transaction."""
        where = " AND ".join(self._is[: len(key)])

        def act(connection: apsw.Connection) -> None:
            connection.execute(f"DELETE FROM {self._table} WHERE {where}", key)
            also(connection)

        await self._database.write(act)
        gone = [key]
        if len(key) < self._keys:
            groups = [(group, kept) for group, kept in self._groups.items() if group[: len(key)] == key]
            gone = [(*group, last) for group, kept in groups for last in kept]
        for each in gone:
            self._read(each)

    async def change_all(self, make: Callable[[R], R]) -> None:
        """Replace every row, as it is at that moment. `make` runs on the writer thread."""
        for row in self:
            key = row[: self._keys]

            def act(connection: apsw.Connection, key: tuple[Any, ...] = key) -> None:
                for found in rows(connection, self._shape, self._one, *key):
                    connection.execute(self._put, make(found))

            await self._database.write(act, anyway=True)
            self._read(key)

    def _read(self, key: tuple[Any, ...]) -> None:
        """Take over one row as it is in the file."""
        found = self._database.read(lambda connection: rows(connection, self._shape, self._one, *key))
        group = self._groups.setdefault(key[:-1], {})
        if found:
            group[key[-1]] = found[0]
        else:
            group.pop(key[-1], None)
        if not group:
            del self._groups[key[:-1]]

    async def _follow(self, touched: Touched) -> None:
        for number, (table, *key) in enumerate(touched.rows, 1):
            if table == self._table:
                self._read(tuple(key))
            if number % AT_ONCE == 0:
                await asyncio.sleep(0)
