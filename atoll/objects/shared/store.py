"""Durable Objects of a node among others: PostgreSQL has their commits, the disk of the node is a cache.

An object is opened by taking it (rows.py): from then on this node alone may write it. Its file is made from what the
database has, or brought up to date if it is still there. A commit is durable once PostgreSQL has it (appends.py).

Whether this node may answer for its objects is a matter of its lease (postgres/ownership.py). When that has ended,
`on_lost` is called, and nothing can be opened until it holds again.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final, Protocol

from atoll.clock import seconds_up
from atoll.errors import InvalidArgument, StorageAway, StorageFailed
from atoll.objects.alarms import Alarms
from atoll.objects.checks import CROWDED, MAX_HELD, MAX_PAGES, check_commit
from atoll.objects.durable import COMMIT, Record
from atoll.objects.faults import storage_failed
from atoll.objects.shared.appends import Appends
from atoll.objects.shared.cache_writer import CacheWriter
from atoll.objects.shared.cached_files import CachedFiles
from atoll.objects.shared.kept_alone import prepare, refuse_kept
from atoll.objects.shared.no_past import NoPast
from atoll.objects.shared.owned import OwnedObject, OwnedTable
from atoll.objects.shared.rows import ObjectRows, Taken
from atoll.objects.shared.sizes import KnownSizes
from atoll.objects.store import (
    PAGE,
    SET_ALARM,
    Alarm,
    Commit,
    Damaged,
    Done,
    InvalidCommit,
    ListedObject,
    NamespaceSize,
    ObjectDamaged,
    ObjectKey,
    Opened,
    check_key,
)
from atoll.postgres.ownership import Lease
from atoll.postgres.pool import Postgres

log = logging.getLogger("atoll.objects")

FOLDER: Final = "object-cache"
MAX_IDLE: Final = 10_000  # objects that this node keeps although nobody uses them
MAX_IDLE_BYTES: Final = 4 << 30  # of their files
AHEAD_MS: Final = 2_500  # alarms of lost nodes are taken so long before they are due: more than between two looks
MANY: Final = 200
TOO_MUCH: Final = "too many commits of objects wait for the database of this node"
NO_LEASE: Final = "this node has lost contact with the others, and may not have Durable Objects at this moment"


class NodeLease(Protocol):
    """This node among others (cluster/nodes.py)."""

    session: str
    lease: Lease


class SharedObjects:
    """Implements ObjectStorage. `start` makes it."""

    def __init__(self, postgres: Postgres, node: NodeLease, files: CachedFiles) -> None:
        self._node = node
        self.rows = ObjectRows(postgres)
        self._appends = Appends(self.rows, self._settle)
        self._writer = CacheWriter(self.rows, files)
        self._writer.on_written = self._on_written
        self._table = OwnedTable()
        self._alarms = Alarms()
        self._sizes = KnownSizes(self.rows)
        self._looking: asyncio.Task[None] | None = None
        self._lapse = 0  # grows whenever nothing that was open may answer any more
        self.past = NoPast(self._table)
        self.on_merged: Callable[[ObjectKey, int], None] = lambda key, sequence: None
        self.on_alarms: Callable[[], None] = lambda: None
        self.on_lost: Callable[[], None] = lambda: None
        self.is_wanted: Callable[[ObjectKey], bool] = lambda key: False
        node.lease.on_lapse = self._lapsed
        self._timer = asyncio.get_running_loop().call_later(1.0, self._watch)
        self.taken = self.lapses = 0

    @classmethod
    async def start(cls, postgres: Postgres, node: NodeLease, data: Path) -> SharedObjects:
        """The node has joined. Raises StartError."""
        await prepare(postgres)
        await refuse_kept(postgres)
        files = CachedFiles(data / FOLDER)
        await asyncio.to_thread(files.empty)
        store = cls(postgres, node, files)
        await store.look()
        return store

    async def stop(self) -> None:
        """Finish what is under way, and let other nodes have every object."""
        self._timer.cancel()
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
        await self._appends.close()
        await self._writer.close()
        try:
            await self.rows.release_all(self._node.session)
        except StorageFailed as error:
            log.warning("the objects of this node are free for others when its lease has ended: %s", error)

    # The lease

    @property
    def shared(self) -> SharedObjects:
        return self

    def holds(self) -> bool:
        return self._node.lease.holds(seconds_up())

    def _watch(self) -> None:
        """Notice that the lease has ended, at that moment."""
        left = self._node.lease.until - seconds_up()
        if left <= 0:
            self._lapsed()
        self._timer = asyncio.get_running_loop().call_later(max(left, 0.1), self._watch)

    def _lapsed(self) -> None:
        if any(each.is_open for each in self._table.every()):
            self.lapses += 1
            log.error("this node could not renew its lease: its objects are reset, others may take them")
        self._lapse += 1
        self.on_lost()

    # Objects in use

    async def open(self, key: ObjectKey) -> Opened:
        check_key(key)
        async with self._table.alone_with(key) as each:
            if each.damage:
                raise ObjectDamaged(each.damage)
            if not self.holds():
                raise StorageAway(NO_LEASE)
            lapse = self._lapse
            await self._writer.write(each)
            had, taken = each.taken, await self.rows.take(key, self._node.session)
            self.taken += had is None or had.born != taken.born
            self._own(each, taken)
            try:
                await self._writer.bring(each, taken)
                if lapse != self._lapse:  # another node may have taken it since
                    raise StorageAway(NO_LEASE)
                fd = await self._writer.run(self._writer.files.open, taken.born)
            except ObjectDamaged as error:
                log.error("object %s of namespace %s is refused: %s", key.id, key.namespace, error)
                raise
            except OSError as error:
                raise storage_failed(error, self._writer.files.folder) from None
            each.is_open = True
            return Opened(fd, taken.pages, taken.seq, taken.alarm_ms)

    def _own(self, each: OwnedObject, taken: Taken) -> None:
        each.own(taken)
        self._note_alarm(each.key, taken)

    def _note_alarm(self, key: ObjectKey, taken: Taken) -> None:
        alarm = Alarm(taken.alarm_ms, key, taken.alarm_seq)
        known = self._alarms.get(key)
        if taken.alarm_at is None:
            self._alarms.delete(key)
        elif known != alarm:  # one that is known may be under way
            self._alarms.set(alarm)

    def close(self, key: ObjectKey) -> None:
        each = self._table.get(key)
        if each is not None:
            each.is_open = False
            if not each.seq and not each.in_flight and each.taken is not None:
                asyncio.get_running_loop().create_task(self._forget_empty(key))

    async def _forget_empty(self, key: ObjectKey) -> None:
        async with self._table.alone_with(key) as each:
            if each.is_open or each.seq or each.taken is None:
                return
            taken, each.taken = each.taken, None
            self._writer.drop(each)
            await self._writer.run(self._writer.files.remove, taken.born)
            try:
                await self.rows.forget_empty(taken)
            except StorageFailed:
                pass  # a row that says nothing

    def commit(self, key: ObjectKey, commit: Commit, done: Done) -> None:
        each = self._table.get(key)
        if each is None or not each.is_open:
            raise InvalidCommit("a commit of an object that is not open")
        check_commit(commit, each.queued, MAX_PAGES)
        record = Record(COMMIT, key, commit.sequence, commit.pages, bytes(commit.numbers), commit.contents)
        record.alarm, record.alarm_ms = commit.alarm, commit.alarm_ms
        record.chain, record.done = each.chain, done
        record.at_ms = each.queued_ms = max(int(time.time() * 1000), each.queued_ms)
        if self.held + record.size > MAX_HELD:
            record.refuse(StorageFailed(TOO_MUCH))
        each.queued = commit.sequence
        each.began()
        self._appends.add(record)

    def merged(self, key: ObjectKey) -> int:
        each = self._table.get(key)
        return each.file_seq if each is not None else 0

    async def merge(self, key: ObjectKey) -> None:
        if (each := self._table.get(key)) is not None:
            await self._writer.write(each)

    @property
    def held(self) -> int:
        return self._appends.held + self._writer.held

    @property
    def is_crowded(self) -> bool:
        return self.held > CROWDED

    def _settle(self, batch: list[Record]) -> None:
        """A group is durable, or was refused."""
        alarms_changed = False
        for record in batch:
            each = self._table.get(record.key)
            if record.error is None and each is not None and record.chain is each.chain:
                self._sizes.resize(each.key.namespace, each.pages, record.pages)
                each.hold(record)
                self._writer.add(each, record.size)
                if record.sets_alarm:
                    self._apply_alarm(record)
                    alarms_changed = True
        for record in batch:
            try:
                assert record.done is not None
                record.done(record.error)
            except Exception:
                log.exception("what waited for a commit of an object failed")
            if (each := self._table.get(record.key)) is not None:
                each.ended()
        if alarms_changed:
            self.on_alarms()

    def _apply_alarm(self, record: Record) -> None:
        if record.alarm == SET_ALARM:
            self._alarms.set(Alarm(record.alarm_ms, record.key, record.sequence))
        else:
            self._alarms.delete(record.key)

    def _on_written(self, key: ObjectKey, sequence: int) -> None:
        each = self._table.get(key)
        if each is not None and each.is_open:
            self.on_merged(key, sequence)

    # Looks, after each renewal of the lease

    async def begin_look(self) -> None:
        """Look without holding up the next renewal."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.get_running_loop().create_task(self._look_safely())

    async def _look_safely(self) -> None:
        try:
            await self.look()
        except StorageFailed as error:
            log.debug("a look at the objects of all nodes failed: %s", error)
        except Exception:
            log.exception("a look at the objects of all nodes failed")

    async def look(self) -> None:
        """Take alarms of lost nodes, let others have what nobody uses here, and see how much there is."""
        if not self.holds():
            return
        me, until_ms = self._node.session, int(time.time() * 1000) + AHEAD_MS
        for key, taken in await self.rows.take_due(me, until_ms, MANY):
            self._note_alarm(key, taken)
        for alarm in await self.rows.due(me, until_ms, MANY):
            each = self._table.get(alarm.key)
            is_known = each is not None and each.taken is not None and each.alarm_seq >= alarm.sequence
            if not is_known and self._alarms.get(alarm.key) != alarm:
                self._alarms.set(alarm)
        self.on_alarms()
        await self._release_idle()
        await self._sizes.look()

    async def _release_idle(self) -> None:
        idle = [each for each in self._table.every() if each.taken is not None and not each.is_busy and not each.damage]
        idle = [each for each in idle if not self.is_wanted(each.key)]
        bytes = sum(each.pages for each in idle) * PAGE
        count = len(idle)
        some: list[Taken] = []
        for each in idle:
            if count <= MAX_IDLE and bytes <= MAX_IDLE_BYTES:
                break
            count, bytes = count - 1, bytes - each.pages * PAGE
            assert each.taken is not None
            some.append(each.taken)
            self._table.forget(each)
            self._alarms.delete(each.key)
        if some:
            await self._writer.run(self._writer.files.remove, *(taken.born for taken in some))
            await self.rows.release(some, self._node.session)

    async def release(self, key: ObjectKey) -> bool:
        """Let another node have an object that is not open here. False if it is."""
        async with self._table.alone_with(key) as each:
            if each.is_open:
                return False
            await self._writer.write(each)
            taken = each.taken
            if taken is None:
                taken = await self.rows.take(key, self._node.session)
            each.taken = None
            self._alarms.delete(key)
            self._writer.drop(each)
            await self._writer.run(self._writer.files.remove, taken.born)
            await self.rows.release([taken], self._node.session)
            return True

    def moved(self, key: ObjectKey) -> None:
        """Another node has an object: its alarm is delivered there."""
        self._alarms.delete(key)

    # Alarms

    def next_alarm(self) -> int | None:
        return self._alarms.next() if self.holds() else None  # a look says when it holds again

    def due_alarms(self, now_ms: int, limit: int) -> list[Alarm]:
        return self._alarms.due(now_ms, limit) if self.holds() else []

    def retry_alarm(self, alarm: Alarm, at_ms: int) -> None:
        self._alarms.retry(alarm, at_ms)
        self.on_alarms()

    async def clear_alarm(self, alarm: Alarm) -> None:
        if self._alarms.get(alarm.key) == alarm:
            await self.rows.clear_alarm(alarm, self._node.session)
            if self._alarms.get(alarm.key) == alarm:
                self._alarms.delete(alarm.key)

    # Everything else

    async def copy(self, source: ObjectKey, target: ObjectKey | None) -> None:
        raise InvalidArgument("nodes that share Durable Objects cannot copy one yet")

    async def delete(self, key: ObjectKey) -> None:
        check_key(key)
        async with self._table.alone_with(key) as each:
            if each.is_open:
                raise ValueError("an object that is open cannot be deleted")
            taken = await self.rows.take(key, self._node.session)
            self._alarms.delete(key)
            self._writer.drop(each)
            each.taken = None
            await self._writer.run(self._writer.files.remove, taken.born)
            if not await self.rows.delete(taken.born, taken.epoch):
                raise StorageAway("another node has taken this object")
            self._sizes.resize(key.namespace, each.pages, 0)
            each.pages = each.seq = 0

    async def delete_namespace(self, namespace: str) -> None:
        of_it = self._table.of_namespace(namespace)
        if any(each.is_open for each in of_it):
            raise ValueError("a namespace with open objects cannot be deleted")
        for each in of_it:
            await each.quiet()
        await self.rows.delete_namespace(namespace)
        self._alarms.delete_namespace(namespace)
        for each in of_it:
            self._writer.drop(each)
            if each.taken is not None:
                await self._writer.run(self._writer.files.remove, each.taken.born)
            self._table.forget(each)
        self._sizes.forget(namespace)

    async def list_objects(self, namespace: str, cursor: str, limit: int) -> list[ListedObject]:
        found = await self.rows.list_objects(namespace, cursor, limit)
        return [ListedObject(each.id, each.bytes * PAGE) for each in found]

    def size(self, namespace: str) -> NamespaceSize:
        return self._sizes.get(namespace)

    async def damaged(self) -> list[Damaged]:
        return [Damaged(each.key, each.damage) for each in self._table.every() if each.damage]

    def counts(self) -> dict[str, int]:
        return {
            "taken": self.taken,
            "fenced": self._appends.fenced,
            "lapsed": self.lapses,
            "folded": self._writer.folds,
        }
