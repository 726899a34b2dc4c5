"""Messages in the hands of consumers that pull, in PostgreSQL. As in pulled.py, a lease is the number of attempts.

No node has such a message: its lease ends by the clock of the database, and not with a node.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from atoll.bindings.queue.pulled import MESSAGE_BYTES, PullOrder, SettledRows
from atoll.bindings.queue.store import Message

# The node has spent messages for as long as it moves them, within one transaction.
LEASE_SPENT = (
    "UPDATE queue_messages SET lease = $5 WHERE seq IN (SELECT seq FROM queue_messages WHERE queue_id = $1"
    " AND lease IS NULL AND visible_at <= $2 AND attempts >= $3 ORDER BY visible_at, seq LIMIT $4"
    " FOR UPDATE SKIP LOCKED) RETURNING seq"
)
DUE = (
    "SELECT seq, octet_length(body) FROM queue_messages WHERE queue_id = $1 AND lease IS NULL AND visible_at <= $2"
    " ORDER BY visible_at, seq LIMIT $3 FOR UPDATE SKIP LOCKED"
)
HIDE = (
    "UPDATE queue_messages SET attempts = attempts + 1, visible_at = $2 WHERE seq = ANY ($1)"
    " RETURNING seq, id, type, body, sent_at, attempts"
)
HELD = "m.seq = w.seq AND m.attempts = w.attempts AND m.queue_id = $1 AND m.lease IS NULL AND m.visible_at > $2"
DELETE = (
    "DELETE FROM queue_messages m USING unnest($3::bigint[], $4::bigint[]) AS w (seq, attempts)"
    f" WHERE {HELD} RETURNING octet_length(body)"
)
RETRY = (
    "UPDATE queue_messages m SET visible_at = at FROM unnest($3::bigint[], $4::bigint[], $5::bigint[])"
    f" AS w (seq, attempts, at) WHERE {HELD} RETURNING m.seq"
)


async def take(connection: Any, queue_id: int, now: int, wanted: PullOrder) -> list[Message]:
    chosen: list[int] = []
    size = 0
    for seq, length in await connection.fetch(DUE, queue_id, now, wanted.limit):
        size += length
        if chosen and size > wanted.most_bytes:
            break
        chosen.append(seq)
    if not chosen:
        return []
    taken = {row["seq"]: Message(*row.values()) for row in await connection.fetch(HIDE, chosen, now + wanted.hidden_ms)}
    return [taken[seq] for seq in chosen]


async def settle(
    connection: Any,
    queue_id: int,
    now: int,
    done: Sequence[tuple[int, int]],
    again: Sequence[tuple[int, int, int]],
) -> SettledRows:
    gone: list[int] = []
    back: list[int] = []
    if done:
        seqs, attempts = zip(*done, strict=True)
        gone = [row[0] for row in await connection.fetch(DELETE, queue_id, now, seqs, attempts)]
    if again:
        seqs, attempts, times = zip(*again, strict=True)
        back = [row[0] for row in await connection.fetch(RETRY, queue_id, now, seqs, attempts, times)]
    return SettledRows(len(gone) + len(back), sum(gone) + MESSAGE_BYTES * len(gone))
