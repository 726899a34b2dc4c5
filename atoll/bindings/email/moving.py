"""The counts of sent email for `atoll migrate`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from atoll.manifests.moved import MovedPart, MovedTable


def put_count(connection: Any, row: Sequence[Any]) -> None:
    connection.execute("INSERT INTO sent (tenant, day, recipients) VALUES (?, ?, ?)", row)


TABLES = (
    MovedTable(
        "counts of email",
        "email.db",
        "SELECT tenant, day, recipients FROM sent ORDER BY tenant, day",
        'SELECT tenant, day, recipients FROM email_sent ORDER BY tenant COLLATE "C", day',
        "INSERT INTO email_sent (tenant, day, recipients) VALUES ($1, $2, $3)",
        put_count,
    ),
)
PART = MovedPart(TABLES)
