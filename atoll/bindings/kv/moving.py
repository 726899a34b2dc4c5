"""KV for `atoll migrate`. Namespaces that were dropped, and their entries, are left out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from atoll.bindings.kv.sqlite import PUT, PUT_LARGE, ROW_VALUE
from atoll.manifests.moved import MovedPart, MovedTable

FILE = "kv.db"


def put_namespace(connection: Any, row: Sequence[Any]) -> None:
    """Its sizes are kept by triggers, as its entries come."""
    connection.execute("INSERT INTO namespaces (id, tenant, name, created_at) VALUES (?, ?, ?, ?)", row[:4])


def put_entry(connection: Any, row: Sequence[Any]) -> None:
    *facts, value = row
    if len(value) <= ROW_VALUE:
        connection.execute(PUT, (*facts, value, None))
        return
    connection.execute(PUT_LARGE, (value,))
    connection.execute(PUT, (*facts, b"", connection.last_insert_rowid()))


TABLES = (
    MovedTable(
        "namespaces of KV",
        FILE,
        "SELECT id, tenant, name, created_at, keys, bytes FROM namespaces ORDER BY id",
        "SELECT id, tenant, name, created_at, keys, bytes FROM kv_namespaces ORDER BY id",
        "INSERT INTO kv_namespaces (id, tenant, name, created_at, keys, bytes) OVERRIDING SYSTEM VALUE"
        " VALUES ($1, $2, $3, $4, $5, $6)",
        put_namespace,
        "kv_namespaces.id",
    ),
    MovedTable(
        "sizes of tenants in KV",
        FILE,
        "SELECT tenant, sum(keys), sum(bytes) FROM namespaces GROUP BY tenant ORDER BY tenant",
        "SELECT tenant, keys, bytes FROM kv_tenants WHERE tenant IN (SELECT tenant FROM kv_namespaces)"
        ' ORDER BY tenant COLLATE "C"',
        "INSERT INTO kv_tenants (tenant, keys, bytes) VALUES ($1, $2, $3)",
        None,
    ),
    MovedTable(
        "entries of KV",
        FILE,
        "SELECT namespace, key, expires_at, metadata, size,"
        " coalesce((SELECT value FROM large_values WHERE id = large), value) FROM entries"
        " WHERE namespace IN (SELECT id FROM namespaces) ORDER BY namespace, key",
        "SELECT namespace, key, expires_at, metadata, size, value FROM kv_entries"
        " WHERE namespace IN (SELECT id FROM kv_namespaces) ORDER BY namespace, key",
        "INSERT INTO kv_entries (namespace, key, expires_at, metadata, size, value) VALUES ($1, $2, $3, $4, $5, $6)",
        put_entry,
    ),
)
PART = MovedPart(TABLES)
