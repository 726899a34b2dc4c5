"""Queues for `atoll migrate`. A message that a consumer had when its node ended waits again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from atoll.manifests.moved import MovedPart, MovedTable

FILE = "queues.db"
FACTS = "id, tenant, name, {}, retention, dropped, created_at, bytes, pull, delay"
MESSAGE = "seq, queue_id, id, type, body, sent_at, visible_at, attempts"


def put_queue(connection: Any, row: Sequence[Any]) -> None:
    connection.execute(f"INSERT INTO queues ({FACTS.format('paused')}) VALUES ({', '.join('?' * 10)})", row)
    connection.execute("INSERT OR IGNORE INTO queue_ids (id) VALUES (?)", row[:1])


def put_message(connection: Any, row: Sequence[Any]) -> None:
    connection.execute(f"INSERT INTO messages ({MESSAGE}) VALUES ({', '.join('?' * 8)})", row)


def put_seen(connection: Any, row: Sequence[Any]) -> None:
    connection.execute("INSERT INTO seen (at) VALUES (?)", row)


TABLES = (
    MovedTable(
        "queues",
        FILE,
        f"SELECT {FACTS.format('paused')} FROM queues ORDER BY id",
        f"SELECT {FACTS.format('paused::int')} FROM queues WHERE NOT leaving ORDER BY id",
        f"INSERT INTO queues ({FACTS.format('paused')}) OVERRIDING SYSTEM VALUE"
        " VALUES ($1, $2, $3, $4::int::boolean, $5, $6, $7, $8, $9, $10)",
        put_queue,
        "queues.id",
    ),
    MovedTable(
        "messages of queues",
        FILE,
        f"SELECT {MESSAGE} FROM messages ORDER BY seq",
        f"SELECT {MESSAGE} FROM queue_messages WHERE queue_id IN (SELECT id FROM queues WHERE NOT leaving)"
        " ORDER BY seq",
        f"INSERT INTO queue_messages ({MESSAGE}) OVERRIDING SYSTEM VALUE VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        put_message,
        "queue_messages.seq",
    ),
    MovedTable(
        "clock of queues",
        FILE,
        "SELECT max(at) FROM seen HAVING count(*) > 0",
        "SELECT at FROM queue_seen",
        "INSERT INTO queue_seen (at) VALUES ($1)",
        put_seen,
    ),
)
PART = MovedPart(TABLES)
