"""What a node knows of the objects that it has, or is about to take. All of it belongs to the event loop."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from atoll.objects.durable import Record
from atoll.objects.shared.appends import OwnedChain
from atoll.objects.shared.rows import Taken
from atoll.objects.store import PAGE, ObjectKey


class OwnedObject:
    """One object."""

    def __init__(self, key: ObjectKey) -> None:
        self.key = key
        self.is_open = False
        self.damage = ""  # why it is refused
        # What is durable, if the node has it
        self.taken: Taken | None = None
        self.chain = OwnedChain(0, 0, 0)
        self.seq = 0
        self.pages = 0
        self.at_ms = 0
        self.alarm_seq = 0
        # What is under way
        self.queued = 0  # the last commit that was handed over
        self.queued_ms = 0
        self.in_flight = 0
        self._quiet: asyncio.Future[None] | None = None
        self.turn = asyncio.Lock()  # held while it is opened, deleted or released
        self.pins = 0
        # Its file
        self.file_born = 0  # 0: there is none that can be used
        self.file_seq = 0
        self.pending: list[Record] = []  # durable, and not in the file
        self.pending_bytes = 0
        self.writing: asyncio.Future[None] | None = None
        # Since chunks were stored
        self.touched: set[int] = set()
        self.logged = 0  # commits
        self.logged_bytes = 0

    def own(self, taken: Taken) -> None:
        self.taken = taken
        self.chain = OwnedChain(taken.born, taken.epoch, taken.seq)
        self.seq = self.queued = taken.seq
        self.pages, self.alarm_seq = taken.pages, taken.alarm_seq
        self.at_ms = self.queued_ms = taken.at_ms

    @property
    def is_busy(self) -> bool:
        return bool(self.is_open or self.in_flight or self.pins or self.pending or self.writing)

    def began(self) -> None:
        self.in_flight += 1

    def ended(self) -> None:
        self.in_flight -= 1
        if not self.in_flight and self._quiet is not None:
            self._quiet.set_result(None)
            self._quiet = None

    async def quiet(self) -> None:
        """Wait until no commit is under way."""
        while self.in_flight:
            if self._quiet is None:
                self._quiet = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._quiet)

    def hold(self, record: Record) -> None:
        """A commit is durable, and is to be written to the file."""
        self.seq, self.pages, self.at_ms = record.sequence, record.pages, max(self.at_ms, record.at_ms)
        if record.sets_alarm:
            self.alarm_seq = record.sequence
        self.pending.append(record)
        self.pending_bytes += record.size
        self.logged += 1
        self.logged_bytes += len(record.numbers) // 4 * PAGE

    def forget_file(self) -> None:
        self.file_born = self.file_seq = 0
        self.pending, self.pending_bytes = [], 0
        self.touched, self.logged, self.logged_bytes = set(), 0, 0


class OwnedTable:
    """The objects in use first, then those that were used last."""

    def __init__(self) -> None:
        self._all: OrderedDict[ObjectKey, OwnedObject] = OrderedDict()

    def get(self, key: ObjectKey) -> OwnedObject | None:
        return self._all.get(key)

    def __len__(self) -> int:
        return len(self._all)

    def every(self) -> list[OwnedObject]:
        return list(self._all.values())

    def of_namespace(self, namespace: str) -> list[OwnedObject]:
        return [each for key, each in self._all.items() if key.namespace == namespace]

    @asynccontextmanager
    async def alone_with(self, key: ObjectKey) -> AsyncIterator[OwnedObject]:
        """An object when nothing of it is under way. Nobody else opens, deletes or releases it meanwhile."""
        found = self._all.get(key)
        if found is None:
            found = self._all[key] = OwnedObject(key)
        found.pins += 1
        try:
            async with found.turn:
                await found.quiet()
                yield found
        finally:
            found.pins -= 1
            if key in self._all:
                self._all.move_to_end(key)
            if found.taken is None and not found.is_busy and not found.damage:
                self.forget(found)

    def forget(self, each: OwnedObject) -> None:
        if self._all.get(each.key) is each:
            del self._all[each.key]
