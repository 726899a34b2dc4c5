"""The data points of a node, in a SQLite file of their own.

Points wait in memory for a moment and are written many at a time. The waiting ones and the stored ones are bounded:
what finds no room among the waiting is refused, and the oldest of a tenant's stored points make room for new ones.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import apsw

from atoll.bindings.analytics_engine.limits import MAX_BLOBS, MAX_DOUBLES
from atoll.db.sqlite import Database, rows
from atoll.errors import AtollError, InvalidArgument, QuotaExceeded

T = TypeVar("T")

MAX_DATASETS = 100  # of one tenant
MAX_WAITING_BYTES = 16 << 20
STEP = 500  # points in one write: bounds how long others wait for the writer
ROW_BYTES = 64  # of a point, besides its contents
SWEEP_SECONDS = 3_600.0
DAY = 86_400
COLUMNS = ["index1", *(f"blob{n + 1}" for n in range(MAX_BLOBS)), *(f"double{n + 1}" for n in range(MAX_DOUBLES))]
INSERT = (
    f"INSERT INTO points (dataset, size, timestamp, {', '.join(COLUMNS)})"
    f" VALUES ({', '.join('?' * (len(COLUMNS) + 3))})"
)
ALL = "SELECT id, tenant, name, points, bytes FROM datasets"
DROP = (
    "DELETE FROM points WHERE id IN"
    " (SELECT id FROM points WHERE dataset = ? AND timestamp < ? ORDER BY timestamp LIMIT ?) RETURNING size"
)
GROW = "UPDATE datasets SET points = points + ?, bytes = bytes + ? WHERE id = ?"


class DataPoint(NamedTuple):
    timestamp: int  # seconds since 1970
    index1: str
    blobs: list[str | None]
    doubles: list[float]


class Dataset:
    __slots__ = ("bytes", "id", "name", "points", "tenant")

    def __init__(self, id: int, tenant: str, name: str, points: int, size: int) -> None:
        self.id, self.tenant, self.name = id, tenant, name
        self.points, self.bytes = points, size


class DataPoints:
    def __init__(self, path: Path, most_bytes: int, days: int) -> None:
        self._database = Database(path, migrations=resources.files("atoll.bindings.analytics_engine") / "migrations")
        self._most_bytes = most_bytes
        self.days = days
        found = self._database.read(lambda connection: rows(connection, Dataset, ALL))
        self._known = {(each.tenant, each.name): each for each in found}
        self._waiting: list[tuple[Any, ...]] = []
        self._waiting_bytes = 0
        self._writing: asyncio.Task[None] | None = None
        self._sweeping = asyncio.ensure_future(self._sweep_often())

    # --- datasets ---

    def find(self, tenant: str, name: str) -> Dataset | None:
        return self._known.get((tenant, name))

    def of_tenant(self, tenant: str) -> list[Dataset]:
        found = (each for each in self._known.values() if each.tenant == tenant)
        return sorted(found, key=lambda each: each.name)

    async def make(self, tenant: str, name: str) -> None:
        if (tenant, name) in self._known:
            return
        if len(self.of_tenant(tenant)) >= MAX_DATASETS:
            raise QuotaExceeded(f"the tenant has {MAX_DATASETS} datasets of Analytics Engine: delete some")

        def act(connection: apsw.Connection) -> int:
            connection.execute("INSERT OR IGNORE INTO datasets (tenant, name) VALUES (?, ?)", (tenant, name))
            sql = "SELECT id FROM datasets WHERE tenant = ? AND name = ?"
            return rows(connection, int, sql, tenant, name)[0]

        id = await self._database.write(act)
        self._known.setdefault((tenant, name), Dataset(id, tenant, name, 0, 0))

    async def delete(self, dataset: Dataset) -> None:
        """With its points."""
        self._known.pop((dataset.tenant, dataset.name), None)
        while await self._drop_oldest(dataset):
            pass

        def act(connection: apsw.Connection) -> None:
            connection.execute("DELETE FROM points WHERE dataset = ?", (dataset.id,))  # written since
            connection.execute("DELETE FROM datasets WHERE id = ?", (dataset.id,))

        await self._database.write(act)

    # --- points ---

    def add(self, tenant: str, name: str, point: DataPoint, size: int) -> None:
        """Write a point soon. `size` is that of its contents."""
        dataset = self._known.get((tenant, name))
        if dataset is None:
            raise InvalidArgument(f"the dataset {name} was deleted: deploy the worker again")
        size += ROW_BYTES
        if self._waiting_bytes + size > MAX_WAITING_BYTES:
            raise QuotaExceeded("too many data points wait to be written on this node")
        self._waiting_bytes += size
        self._waiting.append(
            (dataset, size, point.timestamp, point.index1, *_filled(point.blobs), *_filled(point.doubles))
        )  # fmt: skip
        if self._writing is None:
            self._writing = asyncio.ensure_future(self._write_waiting())

    async def flush(self) -> None:
        """Wait until what was added is stored: queries see it then."""
        while self._writing is not None:
            await asyncio.wait((self._writing,))

    async def _write_waiting(self) -> None:
        try:
            while self._waiting:
                taken, self._waiting = self._waiting[:STEP], self._waiting[STEP:]
                self._waiting_bytes -= sum(size for _, size, *_ in taken)
                await self._write(taken)
        finally:
            self._writing = None

    async def _write(self, taken: list[tuple[Any, ...]]) -> None:
        sums: dict[Dataset, list[int]] = {}
        for dataset, size, *_ in taken:
            assert isinstance(dataset, Dataset) and isinstance(size, int)
            each = sums.setdefault(dataset, [0, 0])
            each[0] += 1
            each[1] += size

        def act(connection: apsw.Connection) -> None:
            connection.executemany(INSERT, ((row[0].id, *row[1:]) for row in taken))
            connection.executemany(GROW, [(points, size, each.id) for each, (points, size) in sums.items()])

        try:
            await self._database.write(act)
        except AtollError:
            return  # the disk fails, and the log says so
        for dataset, (points, size) in sums.items():
            dataset.points += points
            dataset.bytes += size
        for tenant in {each.tenant for each in sums}:
            await self._make_room(tenant)

    async def _make_room(self, tenant: str) -> None:
        while sum(each.bytes for each in self.of_tenant(tenant)) > self._most_bytes:
            largest = max(self.of_tenant(tenant), key=lambda each: each.bytes)
            if not await self._drop_oldest(largest):
                return

    async def _drop_oldest(self, dataset: Dataset) -> int:
        """Delete some of the oldest points of a dataset; returns how many."""
        return await self._drop(dataset, int(time.time()) + DAY)

    async def _drop(self, dataset: Dataset, before: int) -> int:
        """Delete some of its points from before that time; returns how many."""

        def act(connection: apsw.Connection) -> tuple[int, int]:
            sizes = rows(connection, int, DROP, dataset.id, before, STEP)
            gone = len(sizes), sum(sizes)
            connection.execute(GROW, (-gone[0], -gone[1], dataset.id))
            return gone

        points, size = await self._database.write(act)
        dataset.points -= points
        dataset.bytes -= size
        return points

    async def _sweep_often(self) -> None:
        while True:
            try:
                for each in list(self._known.values()):
                    while await self._drop(each, self.oldest):
                        pass
            except AtollError:
                pass  # the disk fails, and the log says so
            await asyncio.sleep(SWEEP_SECONDS)

    @property
    def oldest(self) -> int:
        """Older points are gone, or will be soon."""
        return int(time.time()) - self.days * DAY

    async def search(self, act: Callable[[apsw.Connection], T]) -> T:
        return await self._database.search(act)

    async def close(self) -> None:
        self._sweeping.cancel()
        await self.flush()
        await self._database.close()


def _filled(values: list[str | None] | list[float]) -> list[object]:
    return [*values, *[None] * (20 - len(values))]
