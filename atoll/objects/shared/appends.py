"""Commits of all objects of a node, appended to PostgreSQL in groups: one statement each, fenced object by object.

While a group is on its way, the next commits gather. Each object of a group is appended if its epoch and number are
those that this node knows, whatever becomes of the others. An object that is not appended has another owner by now, or
was deleted: its commits fail, and so do later ones until it is opened again.

If the statement does not say what became of it, the rows do: the number there tells whether it was committed. It is
repeated if it was not, which is safe for the same reason.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from atoll.errors import StorageAway, StorageFailed
from atoll.objects.durable import Chain, Record
from atoll.objects.shared.bodies import pack_commit
from atoll.objects.shared.rows import Appended, ObjectRows
from atoll.objects.store import SET_ALARM
from atoll.postgres.ownership import WriteOutcome, outcome

log = logging.getLogger("atoll.objects")

MAX_RECORDS: Final = 512  # of one group
MAX_GROUP: Final = 8 << 20  # bytes; a larger record is a group of its own
IN_PLACE: Final = 256 << 10  # bytes that are compressed on the event loop: about a millisecond
PATIENCE: Final = 20.0  # seconds that an unknown outcome is looked for. Objects are reset after 30 s without an answer
PAUSE: Final = 0.2
FENCED: Final = "another node has this object now"
AFTER_FAILED: Final = "a commit before this one could not be stored"


class OwnedChain(Chain):
    """The last durable commit of an object, as its owner knows it."""

    __slots__ = ("born", "epoch", "is_broken")

    def __init__(self, born: int, epoch: int, last: int) -> None:
        super().__init__(last)
        self.born = born
        self.epoch = epoch
        self.is_broken = False  # a commit failed: no later one is stored


class Appends:
    """Implements Durable. `settle` gets whole groups, on the event loop."""

    def __init__(self, rows: ObjectRows, settle: Callable[[list[Record]], None]) -> None:
        self._rows = rows
        self._settle = settle
        self._waiting: deque[Record] = deque()
        self._task: asyncio.Task[None] | None = None
        self.held = 0
        self.groups = 0
        self.fenced = 0  # objects

    def add(self, record: Record) -> None:
        self.held += record.size
        self._waiting.append(record)
        if self._task is None:
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def close(self) -> None:
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        try:
            while self._waiting:
                batch = self._take()
                try:
                    await self._store(_by_object(batch))
                except Exception as error:
                    log.exception("commits of objects cannot be stored")
                    _refuse(batch, StorageFailed(f"the database of this node failed: {type(error).__name__}"))
                self.groups += 1
                for record in batch:
                    self.held -= record.size
                self._settle(batch)
        finally:
            self._task = None

    def _take(self) -> list[Record]:
        batch = [self._waiting.popleft()]
        size = batch[0].size
        while self._waiting and len(batch) < MAX_RECORDS and size + self._waiting[0].size <= MAX_GROUP:
            batch.append(self._waiting.popleft())
            size += batch[-1].size
        return batch

    async def _store(self, runs: list[list[Record]]) -> None:
        if sum(record.size for run in runs for record in run) <= IN_PLACE:
            made = [_appended(run) for run in runs]
        else:
            made = await asyncio.to_thread(lambda: [_appended(run) for run in runs])
        by_born = {each.born: (each, run) for each, run in zip(made, runs, strict=True)}
        until = asyncio.get_running_loop().time() + PATIENCE
        error: StorageFailed | None = None
        while by_born:
            done: set[int] = set()
            try:
                done = await self._rows.append([each for each, _ in by_born.values()])
            except StorageFailed as failed:
                error = failed
            for born in done:
                _stored(by_born.pop(born)[1])
            if by_born:
                await self._find_out(by_born, until, error)

    async def _find_out(
        self, left: dict[int, tuple[Appended, list[Record]]], until: float, error: StorageFailed | None
    ) -> None:
        """Look at what was not appended, or may not have been. What is to be repeated stays in `left`."""
        clock = asyncio.get_running_loop().time
        while True:
            try:
                found = await self._rows.look(list(left))
                break
            except StorageFailed as failed:
                if clock() > until:
                    return self._give_up(left, failed)
                await asyncio.sleep(PAUSE)
        for born, (each, run) in list(left.items()):
            became = outcome(found.get(born), each.epoch, each.before, each.after)
            if became is WriteOutcome.COMMITTED:
                _stored(run)
            elif became is WriteOutcome.FENCED:
                self.fenced += 1
                _refuse(run, StorageFailed(FENCED))
            if became is not WriteOutcome.REPEAT:
                del left[born]
        if left and error is not None and (not isinstance(error, StorageAway) or clock() > until):
            self._give_up(left, error)  # such as a full disk
        elif left:
            await asyncio.sleep(PAUSE)

    def _give_up(self, left: dict[int, tuple[Appended, list[Record]]], error: StorageFailed) -> None:
        for _, run in left.values():
            _refuse(run, error)
        left.clear()


def _chain(record: Record) -> OwnedChain:
    assert isinstance(record.chain, OwnedChain)
    return record.chain


def _by_object(batch: Sequence[Record]) -> list[list[Record]]:
    """The records of each object that continue what is durable. Others get an error."""
    runs: dict[OwnedChain, list[Record]] = {}
    for record in batch:
        if record.error is not None:
            _chain(record).is_broken = True
            continue
        chain = _chain(record)
        run = runs.setdefault(chain, [])
        if chain.is_broken or record.sequence != chain.last + len(run) + 1:
            record.refuse(StorageFailed(AFTER_FAILED))
        else:
            run.append(record)
    return [run for run in runs.values() if run]


def _appended(run: list[Record]) -> Appended:
    chain, last = _chain(run[0]), run[-1]
    alarm_seq, alarm_at = 0, None
    for record in run:
        if record.sets_alarm:
            alarm_seq, alarm_at = record.sequence, record.alarm_ms if record.alarm == SET_ALARM else None
    commits = [(record.sequence, record.pages, pack_commit(record.numbers, record.contents)) for record in run]
    return Appended(
        chain.born, chain.epoch, chain.last, last.sequence, last.pages, last.at_ms, alarm_seq, alarm_at, commits
    )


def _stored(run: list[Record]) -> None:
    _chain(run[0]).last = run[-1].sequence


def _refuse(run: Sequence[Record], error: StorageFailed) -> None:
    for record in run:
        _chain(record).is_broken = True
        if record.error is None:
            record.refuse(error)
