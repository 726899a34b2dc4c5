"""Messages in the hands of consumers that pull, in SQLite.

A pulled message stays in its queue and is hidden until its lease ends. The lease is its number of attempts: once the
message was given out again, the first consumer can no longer settle it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import apsw

from atoll.bindings.queue.store import Message
from atoll.db.sqlite import rows

MESSAGE_BYTES = 128  # as in sqlite.py
SPENT = (
    "SELECT seq FROM messages WHERE queue_id = ? AND leased = 0 AND visible_at <= ? AND attempts >= ?"
    " ORDER BY visible_at, seq LIMIT ?"
)
DUE = (
    "SELECT seq, length(body) FROM messages WHERE queue_id = ? AND leased = 0 AND visible_at <= ?"
    " ORDER BY visible_at, seq LIMIT ?"
)
HELD = "seq = ? AND attempts = ? AND queue_id = ? AND leased = 0 AND visible_at > ?"


class PullOrder(NamedTuple):
    limit: int
    most_bytes: int
    hidden_ms: int


class SettledRows(NamedTuple):
    settled: int
    removed: int  # bytes


def take(connection: apsw.Connection, queue_id: int, now: int, wanted: PullOrder) -> list[Message]:
    chosen: list[int] = []
    size = 0
    for seq, length in rows(connection, lambda *row: row, DUE, queue_id, now, wanted.limit):
        size += length
        if chosen and size > wanted.most_bytes:
            break
        chosen.append(seq)
    hide = (
        "UPDATE messages SET attempts = attempts + 1, visible_at = ? WHERE seq = ?"
        " RETURNING seq, id, type, body, sent_at, attempts"
    )
    return [each for seq in chosen for each in rows(connection, Message, hide, now + wanted.hidden_ms, seq)]


def settle(
    connection: apsw.Connection,
    queue_id: int,
    now: int,
    done: Sequence[tuple[int, int]],
    again: Sequence[tuple[int, int, int]],
) -> SettledRows:
    delete = f"DELETE FROM messages WHERE {HELD} RETURNING length(body)"
    retry = f"UPDATE messages SET visible_at = ? WHERE {HELD} RETURNING seq"
    gone = [size for seq, attempts in done for size in rows(connection, int, delete, seq, attempts, queue_id, now)]
    back = [
        found
        for seq, attempts, visible_at in again
        for found in rows(connection, int, retry, visible_at, seq, attempts, queue_id, now)
    ]
    return SettledRows(len(gone) + len(back), sum(gone) + MESSAGE_BYTES * len(gone))
