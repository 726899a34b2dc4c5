"""Where messages wait: one SQLite file, nothing acknowledged is ever lost.

A message is stored before its sender is told so. A consumer leases messages, which counts an attempt, and settles
them: taken ones are deleted, others wait again or go to the dead-letter queue, all in one transaction. A lease is
only worth something while the process lives: when the file is opened, whatever was leased waits again, so a message is
delivered at least once.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import apsw

from atoll.db.sqlite import Database, rows

RETENTION = 4 * 86_400  # seconds, unless a queue says otherwise
SWEEP_ROWS = 1_000  # messages one sweep deletes at most, so that no write waits long for it


class Queue(NamedTuple):
    id: int
    tenant: str
    name: str
    paused: bool
    retention: int
    dropped: int
    created_at: int


class NewMessage(NamedTuple):
    type: str
    body: bytes
    delay: int  # seconds


class Message(NamedTuple):
    seq: int
    id: str
    type: str
    body: bytes
    sent_at: int
    attempts: int


class Depth(NamedTuple):
    """What waits in a queue. `oldest_at` is when its oldest message was sent."""

    waiting: int
    delayed: int
    leased: int
    oldest_at: int | None


class Settlement(NamedTuple):
    """What became of leased messages."""

    done: Sequence[int]  # seq
    again: Sequence[tuple[int, int]]  # seq, visible_at
    dead: Sequence[int]  # seq
    dead_letters: int | None = None  # id of the queue that catches the dead; None: they are dropped and counted


_QUEUE = "SELECT id, tenant, name, paused, retention, dropped, created_at FROM queues"


class QueueStore:
    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._database = Database(path, migrations=resources.files("atoll.bindings.queue") / "migrations")
        self._clock = clock
        self._listeners: list[Callable[[int], None]] = []  # told the id of a queue that changed
        self._database.post(lambda c: _execute(c, "UPDATE messages SET leased = 0 WHERE leased = 1"))

    def on_change(self, listener: Callable[[int], None]) -> None:
        self._listeners.append(listener)

    def now(self) -> int:
        return int(self._clock() * 1000)

    # Queues

    async def ensure(self, tenant: str, name: str, retention: int = RETENTION) -> Queue:
        """The queue of that name, made if there is none."""
        now = self.now()

        def act(connection: apsw.Connection) -> Queue:
            _execute(
                connection,
                "INSERT INTO queues (tenant, name, retention, created_at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
                tenant, name, retention, now,
            )  # fmt: skip
            return rows(connection, _queue, f"{_QUEUE} WHERE tenant = ? AND name = ?", tenant, name)[0]

        return await self._database.write(act)

    def find(self, tenant: str, name: str) -> Queue | None:
        found = self._database.read(lambda c: rows(c, _queue, f"{_QUEUE} WHERE tenant = ? AND name = ?", tenant, name))
        return found[0] if found else None

    def get(self, queue_id: int) -> Queue | None:
        found = self._database.read(lambda c: rows(c, _queue, f"{_QUEUE} WHERE id = ?", queue_id))
        return found[0] if found else None

    def all(self, tenant: str) -> list[Queue]:
        return self._database.read(lambda c: rows(c, _queue, f"{_QUEUE} WHERE tenant = ? ORDER BY name", tenant))

    async def delete(self, queue_id: int) -> None:
        await self._write(queue_id, "DELETE FROM queues WHERE id = ?", queue_id)

    async def pause(self, queue_id: int, paused: bool) -> None:
        await self._write(queue_id, "UPDATE queues SET paused = ? WHERE id = ?", int(paused), queue_id)

    async def purge(self, queue_id: int) -> int:
        """Delete every message that no consumer has; returns how many."""

        def act(connection: apsw.Connection) -> int:
            _execute(connection, "DELETE FROM messages WHERE queue_id = ? AND leased = 0", queue_id)
            return connection.changes()

        return await self._database.write(act)

    def depth(self, queue_id: int) -> Depth:
        sql = (
            "SELECT count(*) FILTER (WHERE leased = 0 AND visible_at <= ?1),"
            " count(*) FILTER (WHERE leased = 0 AND visible_at > ?1), count(*) FILTER (WHERE leased = 1), min(sent_at)"
            " FROM messages WHERE queue_id = ?2"
        )
        return self._database.read(lambda c: rows(c, Depth, sql, self.now(), queue_id))[0]

    # Messages

    async def send(self, queue_id: int, messages: Sequence[NewMessage]) -> list[str]:
        """Store messages; returns their ids once they are safe."""
        now = self.now()
        ids = [secrets.token_hex(16) for _ in messages]
        values = [
            (queue_id, number, message.type, message.body, now, now + message.delay * 1000)
            for number, message in zip(ids, messages, strict=True)
        ]

        def act(connection: apsw.Connection) -> None:
            connection.executemany(
                "INSERT INTO messages (queue_id, id, type, body, sent_at, visible_at) VALUES (?, ?, ?, ?, ?, ?)", values
            )

        await self._database.write(act)
        self._tell(queue_id)
        return ids

    async def lease(self, queue_id: int, limit: int) -> list[Message]:
        """Take up to `limit` messages that are due, oldest first; each counts an attempt."""
        now = self.now()

        def act(connection: apsw.Connection) -> list[Message]:
            taken = rows(
                connection,
                Message,
                "SELECT seq, id, type, body, sent_at, attempts + 1 FROM messages"
                " WHERE queue_id = ? AND leased = 0 AND visible_at <= ? ORDER BY visible_at, seq LIMIT ?",
                queue_id, now, limit,
            )  # fmt: skip
            connection.executemany(
                "UPDATE messages SET leased = 1, attempts = attempts + 1 WHERE seq = ?", [(m.seq,) for m in taken]
            )
            return taken

        return await self._database.write(act)

    async def settle(self, queue_id: int, settlement: Settlement) -> None:
        """Put down what became of leased messages."""
        now = self.now()

        def act(connection: apsw.Connection) -> None:
            if settlement.dead_letters is not None:
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

        await self._database.write(act)
        self._tell(queue_id)
        if settlement.dead and settlement.dead_letters is not None:
            self._tell(settlement.dead_letters)

    def due(self, queue_id: int, limit: int) -> list[int]:
        """When each of the next messages becomes due, in ms since 1970, those that are due first; at most `limit`."""
        sql = "SELECT visible_at FROM messages WHERE queue_id = ? AND leased = 0 ORDER BY visible_at LIMIT ?"
        return self._database.read(lambda c: rows(c, int, sql, queue_id, limit))

    async def sweep(self) -> None:
        """Delete messages that have waited longer than their queue keeps them."""
        now = self.now()

        def act(connection: apsw.Connection) -> None:
            _execute(
                connection,
                "DELETE FROM messages WHERE seq IN (SELECT seq FROM messages JOIN queues ON queues.id = queue_id"
                " WHERE leased = 0 AND sent_at < ? - retention * 1000 LIMIT ?)",
                now, SWEEP_ROWS,
            )  # fmt: skip

        await self._database.write(act)

    async def close(self) -> None:
        await self._database.close()

    async def _write(self, queue_id: int, sql: str, *values: str | int) -> None:
        await self._database.write(lambda connection: _execute(connection, sql, *values))
        self._tell(queue_id)

    def _tell(self, queue_id: int) -> None:
        for listener in self._listeners:
            listener(queue_id)


def _queue(*columns: str | int) -> Queue:
    queue = Queue(*columns)  # type: ignore[arg-type]  # the table is STRICT
    return queue._replace(paused=bool(queue.paused))


def _execute(connection: apsw.Connection, sql: str, *values: str | int) -> None:
    connection.execute(sql, values)
