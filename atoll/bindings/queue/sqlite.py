"""Queues in their own SQLite file.

A lease is a mark on the row that ends with the process: when the file is opened, leased messages become available
again. Messages from the future mean that the clock was set back while the node was stopped. All messages are then moved
back by the same amount, so a delay of a minute does not become a year.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Sequence
from importlib import resources
from itertools import islice
from pathlib import Path

import apsw

from atoll.bindings.queue import pulled
from atoll.bindings.queue.store import (
    RETENTION,
    Depth,
    Message,
    NewMessage,
    NoQueue,
    Queue,
    QueueOverQuota,
    Settlement,
    Waiting,
)
from atoll.clock import SteadyClock
from atoll.db.sqlite import Database, rows
from atoll.errors import StorageFailed

log = logging.getLogger("atoll.queues")

MESSAGE_BYTES = 128  # bytes that a message counts for besides its body, as in migrations/0003_bytes.sql
SIZE = f"coalesce(sum(length(body) + {MESSAGE_BYTES}), 0)"
SEEN_STEP = 600_000  # ms between two records of the time
TRUSTED_LEAP = 86_400_000  # ms that a node is assumed to be stopped at most
REMOVED_ROWS = 500  # messages that one step of a purge deletes, for the same reason as below
SWEEP_ROWS = 1_000  # messages that one step of a sweep deletes, so that no write waits long for it

INSERT = "INSERT INTO messages (queue_id, id, type, body, sent_at, visible_at) VALUES (?, ?, ?, ?, ?, ?)"
TOTAL = "SELECT coalesce(sum(bytes), 0) FROM queues WHERE tenant = ?"
GROW = "UPDATE queues SET bytes = bytes + ? WHERE id = ?"
_QUEUE = "SELECT id, tenant, name, paused, retention, dropped, created_at, pull, delay FROM queues"


class SqliteQueues:
    def __init__(self, path: Path, *, clock: Callable[[], float] | None = None) -> None:
        self._database = Database(path, migrations=resources.files("atoll.bindings.queue") / "migrations")
        self._clock = clock or SteadyClock()
        self._listeners: list[Callable[[int], None]] = []  # called with the id of a queue that changed
        self._known: dict[tuple[str, str], Queue] = {}  # by tenant and name: no other process changes the file
        self._keys: dict[int, tuple[str, str]] = {}  # the same by the id of a queue
        self._names: dict[str, set[str]] = {}  # of queues, by tenant
        for queue in self._database.read(lambda c: rows(c, _queue, _QUEUE)):
            self._know(queue)
        self._bounds: dict[str, int] = {}  # quotas in bytes, by tenant that has one
        self._rooms: dict[str, tuple[int, int]] = {}  # a tenant's quota, and what certainly fits; on the writer thread
        self._leased: set[int] = set()  # leased messages: their seq
        self._leaving: set[int] = set()  # queues that are being deleted
        self._is_ready = False  # whether stale leases, of the last process or of a failed write, are undone

    def on_change(self, listener: Callable[[int], None]) -> None:
        self._listeners.append(listener)

    def now(self) -> int:
        return int(self._clock() * 1000)

    def bound(self, tenant: str, most: int | None) -> None:
        if most is None:
            self._bounds.pop(tenant, None)
        else:
            self._bounds[tenant] = most

    async def total(self, tenant: str) -> int:
        return self._database.read(lambda c: rows(c, int, TOTAL, tenant))[0]

    async def _get_ready(self) -> None:
        """Undo stale leases and correct future times, on first use. If the disk fails, the next caller retries."""
        now = self.now()

        def act(connection: apsw.Connection) -> None:
            marked = rows(connection, int, "SELECT seq FROM messages WHERE leased = 1")
            lost = [(seq,) for seq in marked if seq not in self._leased]
            connection.executemany("UPDATE messages SET leased = 0 WHERE seq = ?", lost)
            sql = "SELECT max((SELECT max(sent_at) FROM messages WHERE queue_id = queues.id)) FROM queues"
            [newest] = rows(connection, lambda at: at, sql)
            ahead = (newest or 0) - now
            if ahead > 0:
                log.warning("the clock was set back: the newest message is from %.1f s ahead", ahead / 1000)
                _execute(connection, "UPDATE messages SET sent_at = sent_at - ?1, visible_at = visible_at - ?1", ahead)

        if not self._is_ready:
            await self._database.write(act)
            self._is_ready = True

    # Queues

    async def ensure(self, tenant: str, name: str, retention: int = RETENTION) -> Queue:
        now = self.now()

        def act(connection: apsw.Connection) -> Queue:
            _execute(connection, "DELETE FROM queue_ids")  # SQLite remembers the last id
            _execute(connection, "INSERT INTO queue_ids DEFAULT VALUES")
            _execute(
                connection,
                "INSERT INTO queues (id, tenant, name, retention, created_at) VALUES (?, ?, ?, ?, ?)"
                " ON CONFLICT DO NOTHING",
                connection.last_insert_rowid(), tenant, name, retention, now,
            )  # fmt: skip
            return rows(connection, _queue, f"{_QUEUE} WHERE tenant = ? AND name = ?", tenant, name)[0]

        known = self._known.get((tenant, name))
        if known is None:
            known = await self._database.write(act)
            self._know(known)
        return known

    async def find(self, tenant: str, name: str) -> Queue | None:
        return self._known.get((tenant, name))

    async def all(self, tenant: str) -> list[Queue]:
        return [self._known[tenant, name] for name in sorted(self._names.get(tenant, ()))]

    async def some(self, limit: int) -> list[Queue]:
        return [self._known[key] for key in islice(self._keys.values(), limit)]

    async def delete(self, queue_id: int) -> None:
        self._leaving.add(queue_id)  # from here on no message is accepted
        try:
            await self._remove(queue_id, "queue_id = ? AND seq <= ?")
            await self._write(queue_id, "DELETE FROM queues WHERE id = ?", queue_id)
        finally:
            self._leaving.discard(queue_id)

    async def pause(self, queue_id: int, paused: bool) -> None:
        await self._write(queue_id, "UPDATE queues SET paused = ? WHERE id = ?", int(paused), queue_id)

    async def retain(self, queue_id: int, retention: int) -> None:
        await self._write(queue_id, "UPDATE queues SET retention = ? WHERE id = ?", retention, queue_id)

    async def purge(self, queue_id: int) -> int:
        return await self._remove(queue_id, "queue_id = ? AND seq <= ? AND leased = 0")

    async def _remove(self, queue_id: int, which: str) -> int:
        """Delete the present messages in steps; other writes run in between."""
        sql = "SELECT coalesce(max(seq), 0) FROM messages WHERE queue_id = ?"
        [last] = await self._database.search(lambda c: rows(c, int, sql, queue_id))
        step = (
            f"DELETE FROM messages WHERE seq IN (SELECT seq FROM messages WHERE {which} LIMIT ?) RETURNING length(body)"
        )

        def act(connection: apsw.Connection) -> int:
            sizes = rows(connection, int, step, queue_id, last, REMOVED_ROWS)
            _execute(connection, GROW, -sum(sizes) - MESSAGE_BYTES * len(sizes), queue_id)
            return len(sizes)

        removed = 0
        while count := await self._database.write(act):
            removed += count
        return removed

    async def depth(self, queue_id: int) -> Depth:
        sql = (
            "SELECT count(*) FILTER (WHERE leased = 0 AND visible_at <= ?1),"
            " count(*) FILTER (WHERE leased = 0 AND visible_at > ?1), count(*) FILTER (WHERE leased = 1), min(sent_at),"
            " (SELECT coalesce(sum(bytes), 0) FROM queues WHERE id = ?2) FROM messages WHERE queue_id = ?2"
        )
        now = self.now()
        return (await self._database.search(lambda c: rows(c, Depth, sql, now, queue_id)))[0]

    # Messages

    async def send(self, queue_id: int, messages: Sequence[NewMessage]) -> list[str]:
        now = self.now()
        ids = [secrets.token_hex(16) for _ in messages]
        known = self._known.get(self._keys.get(queue_id, ("", "")))
        usual = known.delay if known is not None else 0
        values = [
            (queue_id, number, message.type, message.body, now, now + 1000 * _delay(message, usual))
            for number, message in zip(ids, messages, strict=True)
        ]

        tenant, _ = self._keys.get(queue_id, ("", ""))
        most = self._bounds.get(tenant)
        size = sum(len(message.body) + MESSAGE_BYTES for message in messages)

        def act(connection: apsw.Connection) -> None:
            if queue_id in self._leaving:
                raise NoQueue
            if most is not None:
                self._find_room(connection, tenant, most, size)
            try:
                if len(values) == 1:
                    connection.execute(INSERT, values[0])
                else:
                    connection.executemany(INSERT, values)
            except apsw.ConstraintError:  # the queue was deleted while this write waited
                raise NoQueue from None
            _execute(connection, GROW, size, queue_id)

        try:
            await self._database.write(act)
        except StorageFailed:
            self._rooms.pop(tenant, None)  # the write failed: the counted sizes may be wrong
            raise
        self._tell(queue_id)
        return ids

    def _find_room(self, connection: apsw.Connection, tenant: str, most: int, size: int) -> None:
        """Count new messages against the quota. The total is read only when it may exceed the quota."""
        bound, left = self._rooms.get(tenant, (most, 0))
        if bound != most or left < size:
            [total] = rows(connection, int, TOTAL, tenant)
            if total + size > most:
                raise QueueOverQuota(total + size, most)
            left = most - total
        self._rooms[tenant] = (most, left - size)

    async def lease(self, queue_id: int, limit: int) -> list[Message]:
        await self._get_ready()
        now = self.now()
        taken: list[Message] = []

        def act(connection: apsw.Connection) -> None:
            taken[:] = rows(
                connection,
                Message,
                "SELECT seq, id, type, body, sent_at, attempts + 1 FROM messages"
                " WHERE queue_id = ? AND leased = 0 AND visible_at <= ? ORDER BY visible_at, seq LIMIT ?",
                queue_id, now, limit,
            )  # fmt: skip
            connection.executemany(
                "UPDATE messages SET leased = 1, attempts = attempts + 1 WHERE seq = ?", [(m.seq,) for m in taken]
            )
            self._leased.update(message.seq for message in taken)

        try:
            await self._database.write(act)
        except StorageFailed:  # the write may or may not be on disk: its leases are stale and must be undone
            self._leased.difference_update(message.seq for message in taken)
            self._is_ready = False
            raise
        return taken

    async def settle(self, queue_id: int, settlement: Settlement) -> None:
        now = self.now()

        def act(connection: apsw.Connection) -> None:
            _execute(connection, GROW, -_size(connection, (*settlement.done, *settlement.dead)), queue_id)
            if settlement.dead_letters is not None:
                _execute(connection, GROW, _size(connection, settlement.dead), settlement.dead_letters)
                connection.executemany(
                    "INSERT INTO messages (queue_id, id, type, body, sent_at, visible_at)"
                    " SELECT ?, id, type, body, ?, ? FROM messages WHERE seq = ?",
                    [(settlement.dead_letters, now, now, seq) for seq in settlement.dead],
                )
            elif settlement.dead:
                dropped = len(settlement.dead)
                _execute(connection, "UPDATE queues SET dropped = dropped + ? WHERE id = ?", dropped, queue_id)
            connection.executemany(
                "DELETE FROM messages WHERE seq = ?", [(seq,) for seq in (*settlement.done, *settlement.dead)]
            )
            connection.executemany(
                "UPDATE messages SET leased = 0, visible_at = ? WHERE seq = ?",
                [(visible_at, seq) for seq, visible_at in settlement.again],
            )
            connection.executemany(
                "UPDATE messages SET leased = 0, attempts = attempts - 1, visible_at = ? WHERE seq = ?",
                [(visible_at, seq) for seq, visible_at in settlement.untried],
            )

        await self._database.write(act)
        waiting = (seq for seq, _ in (*settlement.again, *settlement.untried))
        self._leased.difference_update(settlement.done, settlement.dead, waiting)
        if settlement.dead and settlement.dead_letters is None:
            self._refresh(queue_id)
        self._tell(queue_id)
        if settlement.dead and settlement.dead_letters is not None:
            self._tell(settlement.dead_letters)

    # Consumers that pull

    async def set_delay(self, queue_id: int, delay: int) -> None:
        await self._write(queue_id, "UPDATE queues SET delay = ? WHERE id = ?", delay, queue_id)

    async def set_pull(self, queue_id: int, pull: str) -> None:
        await self._write(queue_id, "UPDATE queues SET pull = ? WHERE id = ?", pull, queue_id)

    async def pull(self, queue_id: int, limit: int, most_bytes: int, hidden_ms: int) -> list[Message]:
        await self._get_ready()
        return await self._database.write(
            lambda c: pulled.take(c, queue_id, self.now(), pulled.PullOrder(limit, most_bytes, hidden_ms))
        )

    async def settle_pulled(
        self, queue_id: int, done: Sequence[tuple[int, int]], again: Sequence[tuple[int, int, int]]
    ) -> int:
        def act(connection: apsw.Connection) -> int:
            sizes = pulled.settle(connection, queue_id, self.now(), done, again)
            _execute(connection, GROW, -sizes.removed, queue_id)
            return sizes.settled

        return await self._database.write(act)

    async def bury(self, queue_id: int, attempts: int, limit: int, dead_letters: int | None) -> int:
        await self._get_ready()
        now = self.now()
        found = self._database.read(lambda c: rows(c, int, pulled.SPENT, queue_id, now, attempts, limit))
        if found:
            await self.settle(queue_id, Settlement((), (), found, dead_letters))
        return len(found)

    async def due(self, queue_id: int, limit: int) -> list[int]:
        await self._get_ready()
        sql = "SELECT visible_at FROM messages WHERE queue_id = ? AND leased = 0 ORDER BY visible_at LIMIT ?"
        return self._database.read(lambda c: rows(c, int, sql, queue_id, limit))

    async def peek(self, queue_id: int, after: int, limit: int) -> list[Waiting]:
        sql = (
            "SELECT seq, id, type, body, sent_at, attempts, visible_at, leased FROM messages"
            " WHERE queue_id = ? AND seq > ? ORDER BY seq LIMIT ?"
        )
        return await self._database.search(lambda c: rows(c, Waiting, sql, queue_id, after, limit))

    async def sweep(self) -> None:
        now = self.now()

        def act(connection: apsw.Connection) -> int:
            swept = connection.execute(
                "DELETE FROM messages WHERE seq IN (SELECT seq FROM messages JOIN queues ON queues.id = queue_id"
                f" WHERE leased = 0 AND sent_at < ? - retention * 1000 LIMIT ?)"
                f" RETURNING -length(body) - {MESSAGE_BYTES}, queue_id",
                (now, SWEEP_ROWS),
            ).fetchall()
            connection.executemany(GROW, swept)
            if not any(abs(now - at) < SEEN_STEP for at in rows(connection, int, "SELECT at FROM seen")):
                _execute(connection, "DELETE FROM seen")
                _execute(connection, "INSERT INTO seen (at) VALUES (?)", now)
            return len(swept)

        while await self._database.write(act) == SWEEP_ROWS:
            pass  # other writes run in between

    async def trusts_clock(self) -> bool:
        now = self.now()
        return any(now - at < TRUSTED_LEAP for at in self._database.read(lambda c: rows(c, int, "SELECT at FROM seen")))

    async def close(self) -> None:
        await self._database.close()

    async def _write(self, queue_id: int, sql: str, *values: str | int) -> None:
        await self._database.write(lambda connection: _execute(connection, sql, *values))
        self._refresh(queue_id)
        self._tell(queue_id)

    def _refresh(self, queue_id: int) -> None:
        """Refresh the entry of a queue in memory, or remove it."""
        key = self._keys.pop(queue_id, None)
        if key is not None:
            del self._known[key]
            self._names[key[0]].discard(key[1])
        for queue in self._database.read(lambda c: rows(c, _queue, f"{_QUEUE} WHERE id = ?", queue_id)):
            self._know(queue)

    def _know(self, queue: Queue) -> None:
        self._known[queue.tenant, queue.name] = queue
        self._keys[queue.id] = queue.tenant, queue.name
        self._names.setdefault(queue.tenant, set()).add(queue.name)

    def _tell(self, queue_id: int) -> None:
        for listener in self._listeners:
            listener(queue_id)


def _delay(message: NewMessage, usual: int) -> int:
    return usual if message.delay is None else message.delay


def _queue(*columns: str | int) -> Queue:
    queue = Queue(*columns)  # type: ignore[arg-type]  # the table is STRICT
    return queue._replace(paused=bool(queue.paused))


def _size(connection: apsw.Connection, messages: Sequence[int]) -> int:
    """The bytes that messages count for, by their seq."""
    sql = f"SELECT {SIZE} FROM messages WHERE seq IN (SELECT value FROM json_each(?))"
    return rows(connection, int, sql, f"[{','.join(map(str, messages))}]")[0]


def _execute(connection: apsw.Connection, sql: str, *values: str | int) -> None:
    connection.execute(sql, values)
