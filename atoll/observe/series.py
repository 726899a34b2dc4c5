"""Counts of calls over time, so that the dashboard has charts without another program.

Every FINE seconds a look at the meter's counters gives what was counted since the last one: nothing is done per call.
Points of 10 seconds stay in memory for an hour. Points of a minute are stored for a day and points of 15 minutes for
30 days, in `series.db`; the open minute and quarter are stored when the node stops. A point exists only where there
were calls.

Workers that share the meter's last set of counters (setting `metrics_workers`) are part of the node's series only.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Final, NamedTuple

import apsw
import msgspec

from atoll.clock import SteadyClock
from atoll.db.sqlite import Database, each_row
from atoll.errors import StorageFailed
from atoll.observe.meter import Meter, Tally
from atoll.observe.series_points import StepCounts, point_of, since

log = logging.getLogger("atoll.series")

SERIES_FILE: Final = "series.db"
FINE: Final = 10  # seconds
FINE_KEPT: Final = 360
COARSE, COARSE_KEPT = 120, 30
STEPS: Final = {60: 86_400, 900: 30 * 86_400}  # stored steps, and how long each is kept, in seconds
TURN: Final = 20  # tallies looked at before other tasks get a turn
ROWS: Final = 100  # written in one go
DELETED: Final = 500  # rows deleted in one go
MAX_ROWS: Final = 20_000  # read for one answer
MAX_WARM: Final = 60_000  # rows read at the start
MAX_FINE: Final = 300_000  # points of 10 seconds in memory, about 150 bytes each; above it the oldest subject goes

NODE: Final = "n"
DECODER = msgspec.msgpack.Decoder(StepCounts)


class SeriesKey(NamedTuple):
    subject: str
    version: str


class SeriesStep(NamedTuple):
    at: int
    version: str
    point: StepCounts


class _Stored(NamedTuple):
    subject: str
    at: int
    version: str
    data: bytes


class _Row(NamedTuple):
    at: int
    version: str
    data: bytes


def of_worker(worker_id: str) -> str:
    return f"w:{worker_id}"


def of_tenant(name: str) -> str:
    return f"t:{name}"


class SeriesStore:
    """Made on the event loop. `worker_id` finds the id of a worker by its name."""

    def __init__(
        self,
        folder: Path,
        meter: Meter,
        worker_id: Callable[[str], str],
        clock: Callable[[], float] | None = None,
    ) -> None:
        migrations = resources.files("atoll.observe") / "series_migrations"
        self._database = Database(folder / SERIES_FILE, migrations=migrations, synchronous="NORMAL")
        self.meter = meter
        self._worker_id = worker_id
        self._clock = clock or SteadyClock()
        self._seen: dict[tuple[str, str], tuple[Tally, StepCounts]] = {}  # at the last look
        self._began = 0  # points of memory from before are of a minute each
        self._fine: dict[str, deque[tuple[int, str, bytes]]] = {}  # by subject
        self._fine_count = 0
        self._coarse: dict[str, dict[int, StepCounts]] = {}  # by subject of a worker, and the begin of a step
        self._open: dict[int, tuple[int, dict[SeriesKey, StepCounts]]] = {step: (0, {}) for step in STEPS}
        self._task: asyncio.Task[None] | None = None
        self._looking = asyncio.Lock()

    @classmethod
    def begin(cls, folder: Path, meter: Meter, worker_id: Callable[[str], str], undo: AsyncExitStack) -> SeriesStore:
        """A store that collects until `undo` is closed."""
        store = cls(folder, meter, worker_id)
        undo.push_async_callback(store.close)
        store.start()
        return store

    def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._work())

    async def close(self) -> None:
        """Store what is open. The meter's last counts are part of it."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            await self.look()
            for step, (at, points) in self._open.items():
                await self._store(step, at, points)
        await self._database.close()

    # Collecting

    async def _work(self) -> None:
        await self._trim()
        await self.warm()
        while True:
            now = self._clock()
            await asyncio.sleep(FINE - now % FINE)
            await self.look()

    async def warm(self) -> None:
        """Continue the last hour of before a restart."""
        self._began = int(self._clock()) // FINE * FINE
        begin = self._began - FINE * FINE_KEPT
        sql = "SELECT subject, at, version, data FROM series INDEXED BY series_by_age WHERE step = 60 AND at >= ?"
        try:
            found = await self._database.search(lambda c: list(each_row(c, _Stored, f"{sql} LIMIT {MAX_WARM}", begin)))
        except StorageFailed as error:
            log.error("the charts of the last hour cannot be read: %s", error)
            return
        for number, row in enumerate(found):
            self._fine.setdefault(row.subject, deque()).append((row.at, row.version, row.data))
            if row.subject.startswith("w:"):
                self._add_coarse(row.subject, row.at, DECODER.decode(row.data))
            if number % TURN == TURN - 1:
                await asyncio.sleep(0)
        self._fine_count += len(found)

    async def look(self) -> None:
        """Take what was counted since the last look. It belongs to the step that has just ended."""
        async with self._looking:
            at = int(self._clock() - FINE / 2) // FINE * FINE
            closed = self._turn_over(at)
            tallies = self.meter.each()
            here: set[tuple[str, str]] = set()
            for number, tally in enumerate(tallies):
                here.add((tally.worker, tally.version))
                self._take(tally, at)
                if number % TURN == TURN - 1:
                    await asyncio.sleep(0)
            for gone in self._seen.keys() - here:
                del self._seen[gone]
        for step, begin, points in closed:
            await self._store(step, begin, points)
        if any(step == 900 for step, _, _ in closed):
            await self._trim()

    def _turn_over(self, at: int) -> list[tuple[int, int, dict[SeriesKey, StepCounts]]]:
        """Close the minutes and quarters that are over."""
        closed = []
        for step, (begin, points) in self._open.items():
            if at // step * step != begin:
                if points:
                    closed.append((step, begin, points))
                self._open[step] = at // step * step, {}
        return closed

    def _take(self, tally: Tally, at: int) -> None:
        name = tally.worker, tally.version
        now = point_of(tally)
        before = self._seen.get(name)
        point = since(now, before[1] if before is not None and before[0] is tally else StepCounts({}))
        self._seen[name] = tally, now
        if not point.counts and not point.assets:
            return
        self._add(SeriesKey(NODE, ""), at, point)
        if tally.tenant:  # the shared set has none
            self._add(SeriesKey(of_tenant(tally.tenant), ""), at, point)
            worker_id = self._worker_id(tally.worker)
            if worker_id:
                self._add(SeriesKey(of_worker(worker_id), tally.version), at, point)

    def _add(self, key: SeriesKey, at: int, point: StepCounts) -> None:
        points = self._fine.get(key.subject)
        if points is None:
            points = self._fine[key.subject] = deque()
        points.append((at, key.version, msgspec.msgpack.encode(point)))
        self._fine_count += 1
        while points and points[0][0] <= at - FINE * FINE_KEPT:
            points.popleft()
            self._fine_count -= 1
        while self._fine_count > MAX_FINE:
            oldest = next(iter(self._fine))
            self._fine_count -= len(self._fine.pop(oldest))
            self._coarse.pop(oldest, None)
        if key.subject.startswith("w:"):
            self._add_coarse(key.subject, at, point)
        for _, opened in self._open.values():
            whole = opened.get(key)
            if whole is None:
                whole = opened[key] = StepCounts({})
            whole.add(point)

    def _add_coarse(self, subject: str, at: int, point: StepCounts) -> None:
        steps = self._coarse.setdefault(subject, {})
        begin = at // COARSE * COARSE
        if begin not in steps:
            steps[begin] = StepCounts({})
            for old in [each for each in steps if each <= begin - COARSE * COARSE_KEPT]:
                del steps[old]
        steps[begin].add(point)

    # Storing

    async def _store(self, step: int, at: int, points: Mapping[SeriesKey, StepCounts]) -> None:
        rows = [(step, key.subject, at, key.version, point) for key, point in points.items()]
        for first in range(0, len(rows), ROWS):
            some = rows[first : first + ROWS]
            try:
                await self._database.write(partial(insert, rows=some))
            except StorageFailed as error:
                log.error("%d points of charts could not be stored: %s", len(some), error)

    async def _trim(self) -> None:
        """Delete points that are too old, in steps. Of subjects without calls for an hour also from memory."""
        now = int(self._clock())
        try:
            for step, kept in STEPS.items():
                act = partial(_delete, step=step, before=now - kept)
                while await self._database.write(act) == DELETED:
                    pass  # the writer runs other writes in between
        except StorageFailed as error:
            log.error("old points of charts could not be deleted: %s", error)
        for subject in [key for key, points in self._fine.items() if points[-1][0] <= now - FINE * FINE_KEPT]:
            self._fine_count -= len(self._fine.pop(subject))
            self._coarse.pop(subject, None)

    # Reading

    async def find(self, subject: str, begin: int, end: int, step: int) -> list[SeriesStep]:
        """Points of a subject from `begin` to `end`, of each version, in steps of a multiple of a stored step."""
        if step < 60:
            begin = max(begin, self._began)
            points = [each for each in self._fine.get(subject, ()) if begin <= each[0] < end]
            return merged(((at, version, DECODER.decode(data)) for at, version, data in points), step)
        stored = 900 if step % 900 == 0 else 60
        rows = await self._database.search(lambda c: _read(c, stored, subject, begin, end, step))
        at, opened = self._open[stored]
        late = [(at, key.version, point) for key, point in opened.items() if key.subject == subject]
        return merged([*rows, *(each for each in late if begin <= at < end)], step)

    def last_hour(self, worker_id: str) -> list[SeriesStep]:
        """The last hour of a worker in steps of COARSE seconds. Kept ready, since a page asks it of every worker."""
        begin = (int(self._clock()) // COARSE - COARSE_KEPT + 1) * COARSE
        steps = self._coarse.get(of_worker(worker_id), {})
        return [SeriesStep(at, "", point) for at, point in steps.items() if at >= begin]


def merged(points: Iterable[tuple[int, str, StepCounts]], step: int) -> list[SeriesStep]:
    """Points in steps of `step` seconds, by time."""
    whole: dict[tuple[int, str], StepCounts] = {}
    for at, version, point in points:
        place = at // step * step, version
        if place not in whole:
            whole[place] = StepCounts({})
        whole[place].add(point)
    return [SeriesStep(at, version, point) for (at, version), point in sorted(whole.items(), key=lambda each: each[0])]


def insert(connection: apsw.Connection, rows: list[tuple[int, str, int, str, StepCounts]]) -> None:
    """Add points. After a restart a part of the same step may be stored already."""
    for step, subject, at, version, point in rows:
        where = (step, subject, at, version)
        sql = "SELECT data FROM series WHERE step = ? AND subject = ? AND at = ? AND version = ?"
        before = connection.execute(sql, where).fetchone()
        whole = StepCounts({})
        whole.add(point)
        if before is not None:
            whole.add(DECODER.decode(before[0]))
        connection.execute(
            "INSERT OR REPLACE INTO series VALUES (?, ?, ?, ?, ?)", (*where, msgspec.msgpack.encode(whole))
        )


def _delete(connection: apsw.Connection, step: int, before: int) -> int:
    sql = (
        "DELETE FROM series WHERE (step, subject, at, version) IN"
        " (SELECT step, subject, at, version FROM series INDEXED BY series_by_age WHERE step = ? AND at < ? LIMIT ?)"
    )
    connection.execute(sql, (step, before, DELETED))
    return connection.changes()


def _read(
    connection: apsw.Connection, stored: int, subject: str, begin: int, end: int, step: int
) -> list[tuple[int, str, StepCounts]]:
    sql = "SELECT at, version, data FROM series WHERE step = ? AND subject = ? AND at >= ? AND at < ? LIMIT ?"
    rows = each_row(connection, _Row, sql, stored, subject, begin, end, MAX_ROWS)
    return [(found.at, found.version, found.point) for found in merged(_decoded(rows), step)]


def _decoded(rows: Iterable[_Row]) -> Iterator[tuple[int, str, StepCounts]]:
    for row in rows:
        yield row.at, row.version, DECODER.decode(row.data)
