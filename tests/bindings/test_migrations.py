"""Database files of an older Atoll are migrated with all their data."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import apsw

from atoll.bindings.kv.sqlite import SqliteKV
from atoll.bindings.kv.store import Size, Space, StoredValue
from atoll.bindings.queue.sqlite import SqliteQueues


def old_file(path: Path, package: str, *statements: str) -> None:
    """A database with some data as the first migration alone leaves it."""
    first = next(f for f in (resources.files(package) / "migrations").iterdir() if f.name.startswith("0001"))
    connection = apsw.Connection(str(path))
    connection.execute(first.read_text("utf-8"))
    for statement in (*statements, "PRAGMA user_version = 1"):
        connection.execute(statement)
    connection.close()


async def test_a_migration_counts_the_sizes_of_namespaces(tmp_path: Path) -> None:
    old_file(
        tmp_path / "kv.db",
        "atoll.bindings.kv",
        "INSERT INTO namespaces (id, tenant, name, created_at) VALUES (1, 'alice', 'a', 0), (2, 'alice', 'b', 0)",
        "INSERT INTO entries (namespace, key, size, value) VALUES (1, x'61', 3, x'616161'), (1, x'62', 1, x'61')",
    )
    store = SqliteKV(tmp_path / "kv.db")
    space = Space("alice", "a")
    assert await store.measure(space) == Size(2, 6) and await store.measure(Space("alice", "b")) == Size(0, 0)
    await store.put(space, [(b"a", StoredValue(b"1"))])
    await store.delete(space, [b"b"])
    assert await store.total("alice") == Size(1, 2)
    await store.close()


async def test_a_migration_moves_large_values_to_their_own_table(tmp_path: Path) -> None:
    sizes = (0, 1, 4096, 4097, 200_000)
    old_file(
        tmp_path / "kv.db",
        "atoll.bindings.kv",
        "INSERT INTO namespaces (id, tenant, name, created_at) VALUES (1, 'alice', 'a', 0)",
        *(
            f"INSERT INTO entries (namespace, key, size, value) VALUES (1, x'6{number}', {size}, zeroblob({size}))"
            for number, size in enumerate(sizes)
        ),
    )
    store = SqliteKV(tmp_path / "kv.db")
    space = Space("alice", "a")
    found = await store.get(space, [bytes([0x60 + number]) for number in range(len(sizes))], 0)
    assert found == [StoredValue(bytes(size)) for size in sizes]
    assert await store.measure(space) == Size(5, sum(sizes) + 5)
    await store.close()
    connection = apsw.Connection(str(tmp_path / "kv.db"))
    assert connection.execute("SELECT max(length(value)) FROM entries").fetchall() == [(4096,)]
    connection.close()


async def test_a_migration_keeps_queue_ids_and_new_queues_get_others(tmp_path: Path) -> None:
    old_file(
        tmp_path / "queues.db",
        "atoll.bindings.queue",
        "INSERT INTO queues (id, tenant, name, retention, created_at) VALUES (7, 'alice', 'jobs', 60, 0)",
        "INSERT INTO messages (queue_id, id, type, body, sent_at, visible_at) VALUES (7, 'x', 'text', x'61', 0, 0)",
    )
    store = SqliteQueues(tmp_path / "queues.db")
    assert await store.total("alice") == 129
    [message] = await store.lease(7, 10)
    assert message.body == b"a"
    assert (await store.ensure("alice", "jobs")).id == 7 and (await store.ensure("alice", "more")).id == 8
    await store.close()
