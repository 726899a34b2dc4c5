"""Queues in PostgreSQL, consumed by any number of nodes.

A lease is the session of the node that took the message. SKIP LOCKED lets several nodes take messages of one queue at
once, each message one node. `settle` changes only messages that this session still has: if its lease had ended
meanwhile, another node has or had the message, and it is delivered twice rather than lost. Leases of sessions that
have ended are freed by the nodes that live.

Times are those of the database's clock, which is the same for every node.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from atoll.bindings.queue import postgres_pulled
from atoll.bindings.queue.pulled import PullOrder
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
from atoll.errors import StorageFailed
from atoll.postgres.groups import Groups
from atoll.postgres.pool import Postgres
from atoll.postgres.sessions import NodeSession

MESSAGE_BYTES = 128  # bytes that a message counts for besides its body
SEEN_STEP = 600_000  # ms between two records of the time
TRUSTED_LEAP = 86_400_000  # ms that all nodes are assumed to be stopped at most
REMOVED_ROWS = 500  # messages that one step of a purge or a sweep deletes

QUEUE = "SELECT id, tenant, name, paused, retention, dropped, created_at, pull, delay FROM queues"
LEASE = (
    "UPDATE queue_messages m SET lease = $3, attempts = attempts + 1 FROM (SELECT seq FROM queue_messages"
    " WHERE queue_id = $1 AND lease IS NULL AND visible_at <= $2 ORDER BY visible_at, seq LIMIT $4"
    " FOR UPDATE SKIP LOCKED) AS due WHERE m.seq = due.seq"
    " RETURNING m.visible_at, m.seq, id, type, body, sent_at, attempts"
)
INSERT = (
    "INSERT INTO queue_messages (queue_id, id, type, body, sent_at, visible_at)"
    " SELECT $1, i, t, b, $5, $5 + d * 1000 FROM unnest($2::text[], $3::text[], $4::bytea[], $6::bigint[])"
    " AS m (i, t, b, d)"
)
DUE = (
    "SELECT q.id FROM queues q WHERE NOT paused AND EXISTS"
    " (SELECT FROM queue_messages m WHERE m.queue_id = q.id AND lease IS NULL AND visible_at <= $1)"
)


class Send(NamedTuple):
    queue_id: int
    ids: list[str]
    messages: Sequence[NewMessage]
    most: int | None
    now: int


class PostgresQueues:
    def __init__(self, postgres: Postgres, members: NodeSession, clock: Callable[[], float]) -> None:
        self._postgres = postgres
        self._members = members
        self._clock = clock
        self._listeners: list[Callable[[int], None]] = []
        self._bounds: dict[str, int] = {}
        self._tenants: dict[int, str] = {}  # of queues, by id: it never changes
        self._sends = Groups(self._send_all, weigh=_weight)

    def on_change(self, listener: Callable[[int], None]) -> None:
        self._listeners.append(listener)

    def now(self) -> int:
        return int(self._clock() * 1000) + self._members.ahead_ms

    def bound(self, tenant: str, most: int | None) -> None:
        if most is None:
            self._bounds.pop(tenant, None)
        else:
            self._bounds[tenant] = most

    async def total(self, tenant: str) -> int:
        sql = "SELECT coalesce(sum(bytes), 0)::bigint FROM queues WHERE tenant = $1"
        return int(await self._postgres.value(sql, tenant))

    async def look(self) -> None:
        """Free the leases of nodes that have ended, and wake the consumers of queues with messages for them."""
        live = [*await self._members.live(), self._members.session]
        freed = await self._postgres.fetch(
            "UPDATE queue_messages SET lease = NULL WHERE seq IN (SELECT seq FROM queue_messages"
            " WHERE lease IS NOT NULL AND lease <> ALL ($1) LIMIT 10000 FOR UPDATE SKIP LOCKED) RETURNING queue_id",
            live,
        )
        due = await self._postgres.fetch(DUE, self.now())
        for queue_id in {row[0] for row in (*freed, *due)}:
            self._tell(queue_id)

    # Queues

    async def ensure(self, tenant: str, name: str, retention: int = RETENTION) -> Queue:
        found = await self.find(tenant, name)
        if found is None:
            sql = (
                "INSERT INTO queues (tenant, name, retention, created_at) VALUES ($1, $2, $3, $4)"
                " ON CONFLICT DO NOTHING"
            )
            await self._postgres.run(sql, tenant, name, retention, self.now())
            found = await self.find(tenant, name)
        if found is None:
            raise StorageFailed("the queue was deleted at the same moment")
        return found

    async def find(self, tenant: str, name: str) -> Queue | None:
        row = await self._postgres.row(f"{QUEUE} WHERE tenant = $1 AND name = $2", tenant, name)
        return None if row is None else self._know(row)

    async def all(self, tenant: str) -> list[Queue]:
        sql = f'{QUEUE} WHERE tenant = $1 ORDER BY name COLLATE "C"'
        return [self._know(row) for row in await self._postgres.fetch(sql, tenant)]

    async def some(self, limit: int) -> list[Queue]:
        return [self._know(row) for row in await self._postgres.fetch(f"{QUEUE} ORDER BY id LIMIT $1", limit)]

    def _know(self, row: Any) -> Queue:
        queue = Queue(*row.values())
        self._tenants[queue.id] = queue.tenant
        return queue

    async def delete(self, queue_id: int) -> None:
        await self._postgres.run("UPDATE queues SET leaving = true WHERE id = $1", queue_id)
        await self._remove(queue_id, "true")
        await self._change(queue_id, "DELETE FROM queues WHERE id = $1")
        self._tenants.pop(queue_id, None)

    async def pause(self, queue_id: int, paused: bool) -> None:
        await self._change(queue_id, "UPDATE queues SET paused = $2 WHERE id = $1", paused)

    async def retain(self, queue_id: int, retention: int) -> None:
        await self._change(queue_id, "UPDATE queues SET retention = $2 WHERE id = $1", retention)

    async def _change(self, queue_id: int, sql: str, *values: Any) -> None:
        await self._postgres.run(sql, queue_id, *values)
        self._tell(queue_id)

    async def purge(self, queue_id: int) -> int:
        return await self._remove(queue_id, "lease IS NULL")

    async def _remove(self, queue_id: int, which: str) -> int:
        """Delete the present messages in steps."""
        sql = "SELECT coalesce(max(seq), 0) FROM queue_messages WHERE queue_id = $1"
        last = await self._postgres.value(sql, queue_id)
        step = (
            f"DELETE FROM queue_messages WHERE seq IN (SELECT seq FROM queue_messages WHERE queue_id = $1 AND seq <= $2"
            f" AND {which} ORDER BY seq LIMIT {REMOVED_ROWS} FOR UPDATE) RETURNING octet_length(body)"
        )
        removed = 0
        while True:
            async with self._postgres.transaction() as connection:
                await connection.execute("SELECT FROM queues WHERE id = $1 FOR UPDATE", queue_id)
                sizes = [row[0] for row in await connection.fetch(step, queue_id, last)]
                await _grow(connection, queue_id, -sum(sizes) - MESSAGE_BYTES * len(sizes))
            if not sizes:
                return removed
            removed += len(sizes)

    async def depth(self, queue_id: int) -> Depth:
        sql = (
            "SELECT count(*) FILTER (WHERE lease IS NULL AND visible_at <= $1),"
            " count(*) FILTER (WHERE lease IS NULL AND visible_at > $1), count(*) FILTER (WHERE lease IS NOT NULL),"
            " min(sent_at), coalesce((SELECT bytes FROM queues WHERE id = $2), 0)"
            " FROM queue_messages WHERE queue_id = $2"
        )
        row = await self._postgres.row(sql, self.now(), queue_id)
        assert row is not None
        return Depth(*row.values())

    # Messages

    async def send(self, queue_id: int, messages: Sequence[NewMessage]) -> list[str]:
        ids = [secrets.token_hex(16) for _ in messages]
        if queue_id not in self._tenants:
            await self._postgres.fetch("SELECT 1")  # an answer as late as that of any other queue
            row = await self._postgres.row(f"{QUEUE} WHERE id = $1", queue_id)
            if row is None:
                raise NoQueue
            self._know(row)
        most = self._bounds.get(self._tenants[queue_id])
        await self._sends.add(Send(queue_id, ids, messages, most, self.now()))
        self._tell(queue_id)
        return ids

    async def _send_all(self, sends: list[Send]) -> list[BaseException | None]:
        """Sends that wait, in one transaction, in the order of their queues."""
        outcomes: list[BaseException | None] = [None] * len(sends)
        tenants = {send.queue_id: self._tenants.get(send.queue_id, "") for send in sends}
        async with self._postgres.transaction() as connection:
            # All queues of these tenants: their sizes together are what a quota bounds
            sql = (
                "SELECT id, tenant, bytes, leaving, delay FROM queues WHERE id = ANY ($1) OR tenant = ANY ($2)"
                " ORDER BY id FOR UPDATE"
            )
            bounded = list({tenants[send.queue_id] for send in sends if send.most is not None})
            rows = await connection.fetch(sql, list(tenants), bounded)
            known = {row["id"]: row for row in rows}
            used: dict[str, int] = {}
            for row in rows:
                used[row["tenant"]] = used.get(row["tenant"], 0) + row["bytes"]
            grown: dict[int, int] = {}
            accepted: dict[int, list[Send]] = {}
            for i, send in enumerate(sends):
                row = known.get(send.queue_id)
                if row is None or row["leaving"]:
                    outcomes[i] = NoQueue()
                    continue
                size = _weight(send)
                if send.most is not None and used[row["tenant"]] + size > send.most:
                    outcomes[i] = QueueOverQuota(used[row["tenant"]] + size, send.most)
                    continue
                used[row["tenant"]] += size
                grown[send.queue_id] = grown.get(send.queue_id, 0) + size
                accepted.setdefault(send.queue_id, []).append(send)
            for queue_id, some in accepted.items():
                await _insert(connection, queue_id, some, known[queue_id]["delay"])
                await _grow(connection, queue_id, grown[queue_id])
        return outcomes

    async def lease(self, queue_id: int, limit: int) -> list[Message]:
        async with self._postgres.transaction() as connection:  # not repeated: each lease counts an attempt
            rows = await connection.fetch(LEASE, queue_id, self.now(), self._members.session, limit)
        return [Message(*tuple(row)[1:]) for row in sorted(rows, key=lambda row: (row["visible_at"], row["seq"]))]

    async def settle(self, queue_id: int, settlement: Settlement) -> None:
        async with self._postgres.transaction() as connection:
            await _lock(connection, queue_id, settlement.dead_letters)
            await self._settle(connection, queue_id, settlement)
        self._tell(queue_id)
        if settlement.dead and settlement.dead_letters is not None:
            self._tell(settlement.dead_letters)

    async def _settle(self, connection: Any, queue_id: int, settlement: Settlement) -> None:
        done, dead, letters = list(settlement.done), list(settlement.dead), settlement.dead_letters
        if letters is not None and dead:
            await self._move(connection, dead, letters)
        sql = "DELETE FROM queue_messages WHERE seq = ANY ($1) AND lease = $2 RETURNING seq, octet_length(body)"
        gone = await connection.fetch(sql, [*done, *dead], self._members.session)
        await _grow(connection, queue_id, -sum(row[1] + MESSAGE_BYTES for row in gone))
        lost = {row[0] for row in gone} & set(dead)
        if lost and letters is None:
            sql = "UPDATE queues SET dropped = dropped + $2 WHERE id = $1"
            await connection.execute(sql, queue_id, len(lost))
        for taken, waiting in ((0, settlement.again), (1, settlement.untried)):
            if waiting:
                await connection.execute(
                    "UPDATE queue_messages m SET lease = NULL, attempts = attempts - $4, visible_at = at"
                    " FROM unnest($1::bigint[], $2::bigint[]) AS w (seq, at) WHERE m.seq = w.seq AND lease = $3",
                    [seq for seq, _ in waiting],
                    [at for _, at in waiting],
                    self._members.session,
                    taken,
                )

    async def _move(self, connection: Any, dead: list[int], letters: int) -> None:
        sql = (
            "INSERT INTO queue_messages (queue_id, id, type, body, sent_at, visible_at)"
            " SELECT $1, id, type, body, $2, $2 FROM queue_messages WHERE seq = ANY ($3) AND lease = $4 ORDER BY seq"
            " RETURNING octet_length(body)"
        )
        moved = await connection.fetch(sql, letters, self.now(), dead, self._members.session)
        await _grow(connection, letters, sum(row[0] + MESSAGE_BYTES for row in moved))

    # Consumers that pull

    async def set_delay(self, queue_id: int, delay: int) -> None:
        await self._change(queue_id, "UPDATE queues SET delay = $2 WHERE id = $1", delay)

    async def set_pull(self, queue_id: int, pull: str) -> None:
        await self._change(queue_id, "UPDATE queues SET pull = $2 WHERE id = $1", pull)

    async def pull(self, queue_id: int, limit: int, most_bytes: int, hidden_ms: int) -> list[Message]:
        async with self._postgres.transaction() as connection:
            order = PullOrder(limit, most_bytes, hidden_ms)
            return await postgres_pulled.take(connection, queue_id, self.now(), order)

    async def settle_pulled(
        self, queue_id: int, done: Sequence[tuple[int, int]], again: Sequence[tuple[int, int, int]]
    ) -> int:
        async with self._postgres.transaction() as connection:
            await _lock(connection, queue_id)
            sizes = await postgres_pulled.settle(connection, queue_id, self.now(), done, again)
            await _grow(connection, queue_id, -sizes.removed)
        return sizes.settled

    async def bury(self, queue_id: int, attempts: int, limit: int, dead_letters: int | None) -> int:
        async with self._postgres.transaction() as connection:
            await _lock(connection, queue_id, dead_letters)
            values = queue_id, self.now(), attempts, limit, self._members.session
            found = [row[0] for row in await connection.fetch(postgres_pulled.LEASE_SPENT, *values)]
            if found:
                await self._settle(connection, queue_id, Settlement((), (), found, dead_letters))
        if found:
            self._tell(queue_id)
            if dead_letters is not None:
                self._tell(dead_letters)
        return len(found)

    async def due(self, queue_id: int, limit: int) -> list[int]:
        sql = (
            "SELECT visible_at FROM queue_messages WHERE queue_id = $1 AND lease IS NULL"
            " ORDER BY visible_at, seq LIMIT $2"
        )
        return [row[0] for row in await self._postgres.fetch(sql, queue_id, limit)]

    async def peek(self, queue_id: int, after: int, limit: int) -> list[Waiting]:
        sql = (
            "SELECT seq, id, type, body, sent_at, attempts, visible_at, (lease IS NOT NULL)::int FROM queue_messages"
            " WHERE queue_id = $1 AND seq > $2 ORDER BY seq LIMIT $3"
        )
        return [Waiting(*row.values()) for row in await self._postgres.fetch(sql, queue_id, after, limit)]

    async def sweep(self) -> None:
        old = (
            "SELECT q.id FROM queues q WHERE EXISTS (SELECT FROM queue_messages m WHERE m.queue_id = q.id"
            " AND lease IS NULL AND sent_at < $1 - q.retention * 1000)"
        )
        step = (
            "DELETE FROM queue_messages WHERE seq IN (SELECT seq FROM queue_messages WHERE queue_id = $1"
            f" AND lease IS NULL AND sent_at < $2 ORDER BY sent_at LIMIT {REMOVED_ROWS} FOR UPDATE SKIP LOCKED)"
            " RETURNING octet_length(body)"
        )
        now = self.now()
        for row in await self._postgres.fetch(old, now):
            while True:
                async with self._postgres.transaction() as connection:
                    sql = "SELECT retention FROM queues WHERE id = $1 FOR UPDATE"
                    retention = await connection.fetchval(sql, row["id"])
                    if retention is None:
                        break
                    sizes = [each[0] for each in await connection.fetch(step, row["id"], now - retention * 1000)]
                    await _grow(connection, row["id"], -sum(sizes) - MESSAGE_BYTES * len(sizes))
                if len(sizes) < REMOVED_ROWS:
                    break
        seen = (
            "INSERT INTO queue_seen AS s (at) VALUES ($1)"
            " ON CONFLICT (one) DO UPDATE SET at = $1 WHERE abs(s.at - $1) >= $2"
        )
        await self._postgres.run(seen, now, SEEN_STEP)

    async def trusts_clock(self) -> bool:
        at = await self._postgres.value("SELECT at FROM queue_seen")
        return at is not None and self.now() - at < TRUSTED_LEAP

    async def close(self) -> None:
        """Messages that this node has wait again."""
        await self._sends.close()
        try:
            sql = "UPDATE queue_messages SET lease = NULL WHERE lease = $1"
            await self._postgres.run(sql, self._members.session)
        except StorageFailed:
            pass  # other nodes free them

    def _tell(self, queue_id: int) -> None:
        for listener in self._listeners:
            listener(queue_id)


async def _lock(connection: Any, *queue_ids: int | None) -> None:
    """Lock queues in the order of their ids, so that no two transactions wait for each other."""
    ids = [each for each in queue_ids if each is not None]
    await connection.execute("SELECT FROM queues WHERE id = ANY ($1) ORDER BY id FOR UPDATE", ids)


async def _insert(connection: Any, queue_id: int, sends: Sequence[Send], usual: int) -> None:
    for send in sends:
        each = send.messages
        types, bodies = [m.type for m in each], [m.body for m in each]
        delays = [usual if m.delay is None else m.delay for m in each]
        await connection.execute(INSERT, queue_id, send.ids, types, bodies, send.now, delays)


async def _grow(connection: Any, queue_id: int, size: int) -> None:
    if size:
        await connection.execute("UPDATE queues SET bytes = bytes + $2 WHERE id = $1", queue_id, size)


def _weight(send: Send) -> int:
    return sum(len(message.body) + MESSAGE_BYTES for message in send.messages)
