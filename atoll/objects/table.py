"""What is known of objects that are open or have something in the journal: what is durable, and what is merged.

All of it belongs to the event loop. The index has the rest of the objects.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

from atoll.objects.alarms import Alarms
from atoll.objects.durable import (
    CLEAR_ALARM,
    COMMIT,
    DELETE,
    LAST_PART,
    NO_RESTORE,
    RESTORE,
    Chain,
    Record,
)
from atoll.objects.files import Base
from atoll.objects.history import HistoryReach
from atoll.objects.index import ObjectIndex, ObjectRow
from atoll.objects.store import PAGE, SET_ALARM, Alarm, NamespaceSize, ObjectKey


class Restore(NamedTuple):
    """An object goes back to the commit `to` before it is opened again."""

    to: int
    asked: int  # the last commit when it was asked for


class ObjectState:
    """One object."""

    def __init__(self, row: ObjectRow) -> None:
        self.key = ObjectKey(row.namespace, row.id)
        self.row = row  # what is in the file, and synced
        # What is durable
        self.sequence = row.sequence
        self.pages = row.pages
        self.alarm_sequence = row.alarm_sequence
        self.damage = row.damage
        self.at_ms = row.at_ms  # of the last commit
        self.restore = Restore(row.restore_to, row.restore_asked or 0) if row.restore_to is not None else None
        self.pending: list[Record] = []  # not merged yet
        self.pending_bytes = 0
        self.is_deleted = False  # by a pending record: its file is still there
        # What is under way
        self.queued = row.sequence  # the last commit that was added to the journal
        self.queued_ms = row.at_ms
        self.chain = Chain(row.sequence)
        self.in_flight = 0
        self._quiet: asyncio.Future[None] | None = None
        self.turn = asyncio.Lock()  # held while it is opened or deleted
        self.pins = 0  # of those who wait for the turn
        # Its history (keeping.py)
        self.kept: HistoryReach | None = None  # how far it goes; None: not known
        self.marks: set[int] = set()  # commits that a bookmark was given out for
        self.is_replayed = False  # pending commits are from the journal: their pages may be in the file already
        self.is_unsure = False  # steps of its history were being stored
        self.is_opening = False  # its commits are being put into the file
        self.merging: asyncio.Future[None] | None = None  # set while the merger does that
        # While it is in use
        self.is_open = False
        self.merged = row.sequence

    @property
    def base(self) -> Base:
        return Base(self.row.pages, self.row.first_page)

    @property
    def is_idle(self) -> bool:
        return not (self.is_open or self.in_flight or self.pending or self.pins)

    def began(self) -> None:
        self.in_flight += 1

    def ended(self) -> None:
        self.in_flight -= 1
        if not self.in_flight and self._quiet is not None:
            self._quiet.set_result(None)
            self._quiet = None

    async def quiet(self) -> None:
        """Wait until nothing is under way."""
        while self.in_flight:
            if self._quiet is None:
                self._quiet = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._quiet)

    def restart(self) -> None:
        """The next commit continues what is durable, whatever was added before."""
        self.queued = self.chain.last = self.sequence
        self.queued_ms = self.at_ms


class ObjectTable:
    def __init__(self, index: ObjectIndex, alarms: Alarms, sizes: dict[str, NamespaceSize]) -> None:
        self._index = index
        self._alarms = alarms
        self._sizes = sizes
        self._states: dict[ObjectKey, ObjectState] = {}
        self.dirty: dict[ObjectKey, ObjectState] = {}  # with something to merge, in the order in which it came
        self.unlisted: dict[str, set[str]] = {}  # objects that the index does not list yet
        self.pending_bytes = 0
        self._in_segment: Counter[int] = Counter()  # pending records
        self.newest_segment = 0

    def get(self, key: ObjectKey) -> ObjectState | None:
        return self._states.get(key)

    def state(self, key: ObjectKey) -> ObjectState:
        """The state of an object; from the index if it is not in memory."""
        state = self._states.get(key)
        if state is None:
            state = self._states[key] = ObjectState(self._index.get(key))
        return state

    @asynccontextmanager
    async def alone_with(self, key: ObjectKey) -> AsyncIterator[ObjectState]:
        """An object when nothing of it is under way. Nobody else opens or deletes it meanwhile."""
        state = self.state(key)
        state.pins += 1
        try:
            async with state.turn:
                await state.quiet()
                yield state
        finally:
            state.pins -= 1
            self.forget_if_idle(state)

    def every(self) -> list[ObjectState]:
        return list(self._states.values())

    def of_namespace(self, namespace: str) -> list[ObjectState]:
        return [state for key, state in self._states.items() if key.namespace == namespace]

    def forget_if_idle(self, state: ObjectState) -> None:
        if state.is_idle and self._states.get(state.key) is state:
            del self._states[state.key]

    @property
    def is_empty(self) -> bool:
        """Whether no object has stored anything."""
        return not any(size.objects for size in self._sizes.values())

    def size(self, namespace: str) -> NamespaceSize:
        return self._sizes.get(namespace, NamespaceSize(0, 0))

    # A record is durable

    def apply(self, state: ObjectState, record: Record) -> bool:
        """Returns whether an alarm changed."""
        if record.kind == COMMIT:
            self._resize(state, record.pages)
            state.sequence, state.at_ms = record.sequence, max(state.at_ms, record.at_ms)
            if record.part == LAST_PART:
                state.restore = None
        elif record.kind == RESTORE:
            is_wanted = record.sequence != NO_RESTORE
            state.restore = Restore(record.sequence, record.alarm_ms) if is_wanted else None
        elif record.kind == DELETE:
            self._resize(state, 0)
            state.sequence, state.is_deleted, state.damage, state.restore = 0, True, None, None
        self._hold(state, record)
        return self._apply_alarm(state, record)

    def _apply_alarm(self, state: ObjectState, record: Record) -> bool:
        is_set = record.sets_alarm and record.alarm == SET_ALARM
        alarm = self._alarms.get(state.key)
        if record.sets_alarm:
            state.alarm_sequence = record.sequence
        if is_set:
            self._alarms.set(Alarm(record.alarm_ms, state.key, record.sequence))
        elif record.sets_alarm or record.kind == DELETE or _clears(record, alarm):
            self._alarms.delete(state.key)
        return is_set or self._alarms.get(state.key) is not alarm

    def _resize(self, state: ObjectState, pages: int) -> None:
        namespace = state.key.namespace
        have = self.size(namespace)
        objects = have.objects + (pages > 0) - (state.pages > 0)
        self._sizes[namespace] = NamespaceSize(objects, have.bytes + (pages - state.pages) * PAGE)
        state.pages = pages
        self._note_listed(state)

    def _hold(self, state: ObjectState, record: Record) -> None:
        state.pending.append(record)
        size = PAGE * (1 + len(record.numbers) // 4)
        state.pending_bytes += size
        self.pending_bytes += size
        self.dirty.setdefault(state.key, state)
        self.hold_segment(record)

    def hold_segment(self, record: Record) -> None:
        self._in_segment[record.segment] += 1
        self.newest_segment = max(self.newest_segment, record.segment)

    # Records are merged

    def snapshot(self, state: ObjectState) -> ObjectRow:
        """What the index will say once all pending records are merged, but for the checksum."""
        alarm = self._alarms.get(state.key)
        at_ms = alarm.at_ms if alarm is not None else None
        group = state.pending[-1].group
        restore = state.restore if state.restore is not None else (None, None)
        known = state.alarm_sequence, state.damage, state.at_ms, *restore
        return ObjectRow(*state.key, state.sequence, state.pages, 0, group, at_ms, *known)

    def merged(self, state: ObjectState, count: int, row: ObjectRow) -> None:
        """The first `count` pending records are in the file and in the index."""
        state.row = row
        state.merged = max(state.merged, row.sequence)
        self.let_go(state, count)
        self._note_listed(state)

    def deleted(self, state: ObjectState) -> None:
        """The file is gone: of what is pending, only records after the deletion count."""
        count = max((at for at, record in enumerate(state.pending, 1) if record.kind == DELETE), default=0)
        state.row = ObjectRow(*state.key)
        state.is_deleted = False
        state.kept, state.is_replayed = None, False
        self.let_go(state, count)
        self._note_listed(state)

    def namespace_deleted(self, namespace: str) -> None:
        for state in self.of_namespace(namespace):
            self.let_go(state, len(state.pending))
            del self._states[state.key]
        self._sizes.pop(namespace, None)
        self.unlisted.pop(namespace, None)
        self._alarms.delete_namespace(namespace)

    def _note_listed(self, state: ObjectState) -> None:
        """The index lists objects whose file has something."""
        namespace, id = state.key
        if state.pages and not state.row.pages:
            self.unlisted.setdefault(namespace, set()).add(id)
        elif names := self.unlisted.get(namespace):
            names.discard(id)
            if not names:
                del self.unlisted[namespace]

    def let_go(self, state: ObjectState, count: int) -> None:
        for record in state.pending[:count]:
            self.release_segment(record)
        del state.pending[:count]
        left = sum(PAGE * (1 + len(record.numbers) // 4) for record in state.pending)
        self.pending_bytes -= state.pending_bytes - left
        state.pending_bytes = left
        self.dirty.pop(state.key, None)
        if state.pending:
            self.dirty[state.key] = state

    def release_segment(self, record: Record) -> None:
        self._in_segment[record.segment] -= 1
        if not self._in_segment[record.segment]:
            del self._in_segment[record.segment]

    @property
    def oldest_segment(self) -> int:
        """The first one that is needed. The newest one is still written to."""
        return min(self._in_segment, default=self.newest_segment)


def _clears(record: Record, alarm: Alarm | None) -> bool:
    return record.kind == CLEAR_ALARM and alarm is not None and alarm.sequence == record.sequence
