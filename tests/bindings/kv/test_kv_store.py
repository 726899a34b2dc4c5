"""The contract of every KV store. Another backend is one more entry of BACKENDS."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import apsw
import pytest

from atoll.bindings.kv import ops, postgres, sqlite
from atoll.bindings.kv.ops import KV, SWEPT_AFTER
from atoll.bindings.kv.postgres import PostgresKV
from atoll.bindings.kv.sqlite import INLINE_VALUE, SqliteKV
from atoll.bindings.kv.store import (
    Bound,
    KVOverQuota,
    KVStore,
    NoNamespace,
    Size,
    Space,
    StoredValue,
    TooManyNamespaces,
    TooMuch,
)
from atoll.clock import ClockWatch
from tests.eventually import eventually
from tests.postgres_server import opened_database

ALICE = Space("alice", "things")
BOB = Space("bob", "things")
NOW = 1_800_000_000.0


@asynccontextmanager
async def in_sqlite(folder: Path) -> AsyncIterator[KVStore]:
    yield SqliteKV(folder / "kv.db")


@asynccontextmanager
async def in_postgres(folder: Path) -> AsyncIterator[KVStore]:
    pool = await opened_database("kv")
    yield PostgresKV(pool)
    await pool.close()


BACKENDS: dict[str, Callable[[Path], AbstractAsyncContextManager[KVStore]]] = {
    "sqlite": in_sqlite,
    "postgres": in_postgres,
}


@pytest.fixture(params=BACKENDS)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[KVStore]:
    async with BACKENDS[request.param](tmp_path) as made:
        for space in (ALICE, BOB):
            assert await made.create(space, NOW)
        yield made
        await made.close()


async def value(store: KVStore, space: Space, key: bytes, now: float = NOW) -> bytes | None:
    [entry] = await store.get(space, [key], now)
    return None if entry is None else entry.value


async def names(store: KVStore, prefix: bytes = b"", after: bytes = b"", now: float = NOW) -> list[bytes]:
    return [listed.key for listed in (await store.list(ALICE, prefix, after, 1000, now)).keys]


async def test_a_value_is_stored_until_it_is_deleted(store: KVStore) -> None:
    entry = StoredValue(b"value", '{"a":1}', int(NOW) + 60)
    await store.put(ALICE, [(b"key", entry)])
    assert await store.get(ALICE, [b"key", b"other"], NOW) == [entry, None]
    await store.put(ALICE, [(b"key", StoredValue(b"")), (b"second", StoredValue(b"2"))])
    assert await store.get(ALICE, [b"key"], NOW) == [StoredValue(b"", None, None)]
    await store.delete(ALICE, [b"key", b"never was"])
    assert await store.get(ALICE, [b"key", b"second"], NOW) == [None, StoredValue(b"2")]


@pytest.mark.parametrize("size", [0, 1, INLINE_VALUE, INLINE_VALUE + 1, 25 << 20])
async def test_values_of_every_size_are_read_completely(store: KVStore, size: int) -> None:
    content = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    await store.put(ALICE, [(b"key", StoredValue(content, "null"))])
    assert await store.get(ALICE, [b"key"], NOW) == [StoredValue(content, "null")]
    assert await store.get(ALICE, [b"none", b"key"], NOW) == [None, StoredValue(content, "null")]


@pytest.mark.parametrize("size", [10, INLINE_VALUE, 1 << 20])
async def test_a_value_larger_than_the_readers_limit_is_not_read(store: KVStore, size: int) -> None:
    await store.put(ALICE, [(b"a", StoredValue(bytes(size), "null")), (b"b", StoredValue(bytes(size)))])
    await store.put(ALICE, [(b"gone", StoredValue(bytes(size), None, int(NOW)))])
    everything = await store.get(ALICE, [b"a", b"gone", b"b"], NOW, 2 * size)
    assert [entry and len(entry.value) for entry in everything] == [size, None, size]
    with pytest.raises(TooMuch):
        await store.get(ALICE, [b"a", b"b"], NOW, 2 * size - 1)
    with pytest.raises(TooMuch):
        await store.get(ALICE, [b"a"] * 3, NOW, 2 * size)


async def test_two_tenants_with_the_same_names_are_separate(store: KVStore) -> None:
    await store.put(ALICE, [(b"key", StoredValue(b"alice's"))])
    await store.put(BOB, [(b"key", StoredValue(b"bob's"))])
    assert await value(store, ALICE, b"key") == b"alice's"
    await store.delete(ALICE, [b"key"])
    assert await value(store, BOB, b"key") == b"bob's"
    assert await names(store) == []
    await store.drop(ALICE)
    assert await value(store, BOB, b"key") == b"bob's"
    assert [namespace.name for namespace in await store.namespaces("bob")] == ["things"]
    assert await store.namespaces("alice") == []


async def test_an_entry_is_invisible_from_its_expiration_on_and_swept_later(store: KVStore) -> None:
    end = int(NOW) + 60
    await store.put(ALICE, [(b"a", StoredValue(b"1", None, end)), (b"b", StoredValue(b"2"))])
    assert await value(store, ALICE, b"a", end - 0.1) == b"1" and await names(store, now=end - 0.1) == [b"a", b"b"]
    assert await value(store, ALICE, b"a", end) is None and await names(store, now=end) == [b"b"]
    assert await store.sweep(end) == 0
    assert await value(store, ALICE, b"a", end - 1) == b"1", "it is visible again once the clock is corrected"
    assert await store.sweep(end + 1) == 1
    assert await value(store, ALICE, b"a", end - 1) is None
    assert await value(store, ALICE, b"b", end) == b"2"


async def test_keys_are_listed_by_their_bytes(store: KVStore) -> None:
    keys = ["a", "ab", "b", "B", "é", "ab\x00", "\U0001f600", "ﬀ", "a/b", "~"]
    await store.put(ALICE, [(key.encode(), StoredValue(b"")) for key in keys])
    ordered = sorted(key.encode() for key in keys)
    assert await names(store) == ordered
    assert await names(store, b"a") == [key for key in ordered if key.startswith(b"a")]
    assert await names(store, "\U0001f600".encode()) == ["\U0001f600".encode()]
    assert await names(store, b"ab", after=b"a") == [b"ab", b"ab\x00"], (
        "a cursor before the prefix starts at the prefix"
    )
    assert await names(store, b"a", after=b"b") == []


@pytest.mark.parametrize("limit", [1, 3, 10, 11])
async def test_pages_add_up_to_the_complete_list(store: KVStore, limit: int) -> None:
    keys = [b"%02d" % i for i in range(10)]
    await store.put(ALICE, [(key, StoredValue(b"", f'"{i}"', int(NOW) + i + 60)) for i, key in enumerate(keys)])
    seen, after = [], b""
    while True:
        page = await store.list(ALICE, b"", after, limit, NOW)
        assert len(page.keys) <= limit
        seen += page.keys
        if page.after is None:
            break
        after = page.after
    assert [listed.key for listed in seen] == keys
    assert [(listed.metadata, listed.expires_at) for listed in seen[:2]] == [('"0"', NOW + 60), ('"1"', NOW + 61)]


async def test_a_list_does_not_scan_all_expired_keys(store: KVStore) -> None:
    await store.put(ALICE, [(b"%03d" % i, StoredValue(b"", None, int(NOW))) for i in range(100)])
    await store.put(ALICE, [(b"z", StoredValue(b""))])
    page, pages = await store.list(ALICE, b"", b"", 2, NOW), 1
    assert page.keys == [] and page.after is not None
    while page.after is not None:
        page, pages = await store.list(ALICE, b"", page.after, 2, NOW), pages + 1
    assert [listed.key for listed in page.keys] == [b"z"] and pages > 5


async def test_a_recreated_namespace_is_empty(store: KVStore) -> None:
    await store.put(ALICE, [(b"%d" % i, StoredValue(b"x" * 10)) for i in range(1200)])
    assert await store.measure(ALICE) == (1200, 12_000 + 3_690)
    assert await store.drop(ALICE) and not await store.drop(ALICE)
    for act in (
        store.get(ALICE, [b"1"], NOW),
        store.put(ALICE, [(b"1", StoredValue(b""))]),
        store.delete(ALICE, [b"1"]),
    ):
        with pytest.raises(NoNamespace):
            await act
    assert await store.create(ALICE, NOW) and not await store.create(ALICE, NOW)
    assert await names(store) == []
    await store.put(ALICE, [(b"new", StoredValue(b"new"))])
    while await store.sweep(NOW):
        pass
    assert await names(store) == [b"new"]


async def test_sizes_are_counted_with_every_write(store: KVStore) -> None:
    await store.create(Space("alice", "more"), NOW)
    await store.put(
        ALICE, [(b"a", StoredValue(b"12345")), (b"b", StoredValue(b"1", None, int(NOW))), (b"a", StoredValue(b"123"))]
    )
    await store.put(Space("alice", "more"), [(b"a", StoredValue(b"1234567"))])
    assert await store.measure(ALICE) == Size(2, 6) and await store.total("alice") == Size(3, 14)
    await store.delete(ALICE, [b"a", b"a", b"never was"])
    assert await store.measure(ALICE) == Size(1, 2)
    assert await store.sweep(NOW + 1) == 1
    assert await store.measure(ALICE) == Size(0, 0) and await store.measure(BOB) == Size(0, 0)
    await store.drop(Space("alice", "more"))
    assert await store.total("alice") == Size(0, 0) == await store.total("nobody")


async def test_a_tenant_cannot_exceed_its_storage_limit(store: KVStore) -> None:
    await store.create(Space("alice", "more"), NOW)
    store.bound("alice", Bound(keys=3, bytes=100))
    await store.put(ALICE, [(b"a", StoredValue(bytes(59)))])
    with pytest.raises(KVOverQuota, match="102 bytes in KV, more than its quota of 100"):
        await store.put(Space("alice", "more"), [(b"b", StoredValue(b"")), (b"c", StoredValue(bytes(40)))])
    assert await store.measure(Space("alice", "more")) == Size(0, 0), "all or nothing"
    await store.put(ALICE, [(b"a", StoredValue(bytes(95)))])
    with pytest.raises(KVOverQuota, match="4 keys in KV, more than its quota of 3"):
        await store.put(ALICE, [(b"%d" % i, StoredValue(b"")) for i in range(3)])
    await store.put(BOB, [(b"%d" % i, StoredValue(bytes(100))) for i in range(10)])
    store.bound("alice", Bound(bytes=50))
    await store.put(ALICE, [(b"a", StoredValue(bytes(90)))])  # smaller than before, but still over the limit
    with pytest.raises(KVOverQuota):
        await store.put(ALICE, [(b"a", StoredValue(bytes(91)))])
    await store.delete(ALICE, [b"a"])
    await store.put(ALICE, [(b"%d" % i, StoredValue(b"")) for i in range(5)])
    store.bound("alice", Bound())
    await store.put(ALICE, [(b"a", StoredValue(bytes(1000)))])


async def test_keys_and_metadata_count_as_well_as_values(store: KVStore) -> None:
    await store.put(ALICE, [(b"key", StoredValue(b"value", '"\u00e9"'))])
    assert await store.measure(ALICE) == Size(1, 3 + 5 + 4)
    await store.put(ALICE, [(b"key", StoredValue(b"other", '"longer"'))])
    assert await store.measure(ALICE) == Size(1, 3 + 5 + 8)
    await store.put(ALICE, [(b"key", StoredValue(b"other"))])
    assert await store.measure(ALICE) == Size(1, 3 + 5)
    store.bound("alice", Bound(bytes=100))
    with pytest.raises(KVOverQuota):
        await store.put(ALICE, [(b"k" * 93, StoredValue(b""))])
    with pytest.raises(KVOverQuota):
        await store.put(ALICE, [(b"k", StoredValue(b"", f'"{"m" * 90}"'))])
    await store.delete(ALICE, [b"key"])
    assert await store.total("alice") == Size(0, 0)


async def test_the_storage_limit_is_exact_after_any_sequence_of_writes(store: KVStore) -> None:
    """Many small writes, with overwritten and deleted ones: small errors in the sum would add up."""
    store.bound("alice", Bound(bytes=1_000))
    for number in range(400):
        await store.put(ALICE, [(b"%02d" % (number % 40), StoredValue(bytes(number % 23)))])
        if number % 7 == 0:
            await store.delete(ALICE, [b"%02d" % (number % 40)])
    await asyncio.gather(*(store.put(ALICE, [(b"fill%02d" % i, StoredValue(b"x" * 4))]) for i in range(20)))
    total = await store.total("alice")
    left = 1_000 - total.bytes
    assert left > 1
    with pytest.raises(KVOverQuota):
        await store.put(ALICE, [(b"l", StoredValue(bytes(left)))])
    await store.put(ALICE, [(b"l", StoredValue(bytes(left - 1)))])
    assert (await store.total("alice")).bytes == 1_000


async def test_the_number_of_namespaces_of_a_tenant_is_limited(store: KVStore, monkeypatch: pytest.MonkeyPatch) -> None:
    for backend in (sqlite, postgres):
        monkeypatch.setattr(backend, "MAX_NAMESPACES", 2)
    assert await store.create(Space("alice", "second"), NOW)
    with pytest.raises(TooManyNamespaces, match=r"^403 "):
        await store.create(Space("alice", "third"), NOW)
    assert not await store.create(ALICE, NOW), "an existing namespace does not count again"
    assert await store.create(Space("bob", "second"), NOW)
    await store.drop(ALICE)
    assert await store.create(Space("alice", "third"), NOW)


async def test_a_write_to_a_namespace_deleted_meanwhile_is_refused(store: KVStore) -> None:
    dropped, put = asyncio.gather(store.drop(ALICE)), asyncio.gather(store.put(ALICE, [(b"a", StoredValue(b""))]))
    assert await dropped == [True]
    with pytest.raises(NoNamespace):
        await put
    await store.create(ALICE, NOW)
    assert await names(store) == []


async def test_everything_survives_a_restart(tmp_path: Path) -> None:
    first = SqliteKV(tmp_path / "kv.db")
    await first.create(ALICE, NOW)
    await first.put(ALICE, [(b"key", StoredValue(b"value"))])
    await first.close()
    second = SqliteKV(tmp_path / "kv.db")
    assert await second.namespaces("alice") == [("things", int(NOW))]
    assert await value(second, ALICE, b"key") == b"value"
    await second.close()


async def test_a_sweep_keeps_entries_that_expired_within_the_hour(tmp_path: Path) -> None:
    now = NOW
    kv = KV(SqliteKV(tmp_path / "kv.db"), clock=lambda: now)
    await kv.prepare(*ALICE)
    await kv.store.put(ALICE, [(b"%04d" % i, StoredValue(b"", None, int(NOW) + 60)) for i in range(1200)])
    now += 60 + SWEPT_AFTER - 1
    await kv.sweep()
    assert (await kv.store.measure(ALICE)).keys == 1200
    now += 2
    await kv.sweep()
    assert (await kv.store.measure(ALICE)).keys == 0
    await kv.close()


async def test_in_the_first_hour_only_deleted_namespaces_are_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ops, "SWEEP_SECONDS", 0.01)
    kv = KV(SqliteKV(tmp_path / "kv.db"), clock=lambda: NOW)  # this clock may be years ahead
    for space in (ALICE, BOB):
        await kv.prepare(*space)
        await kv.store.put(space, [(b"a", StoredValue(b"", None, 1000))])
    await kv.store.drop(BOB)
    database = apsw.Connection(str(tmp_path / "kv.db"), flags=apsw.SQLITE_OPEN_READONLY)

    async def is_swept() -> bool:
        return database.execute("SELECT count(*) FROM dropped").fetchall() == [(0,)]

    await eventually(is_swept, "a sweep")
    assert (await kv.store.measure(ALICE)).keys == 1
    database.close()
    await kv.close()


def test_a_clock_change_is_detected() -> None:
    wall, steady = 1000.0, 5.0
    watch = ClockWatch(lambda: wall, lambda: steady)
    wall, steady = 1060.0, 65.0
    assert watch.leap() == 0
    wall, steady = 1060.0 - 7200, 66.0
    assert watch.leap() == -7201
    wall, steady = wall + 1, 67.0
    assert watch.leap() == 0


async def test_large_values_of_one_tenant_do_not_slow_lookups_of_another(store: KVStore) -> None:
    few = [(b"k%d" % number, StoredValue(b"v")) for number in range(50)]
    await store.put(BOB, few)
    for number in range(20):
        await store.put(ALICE, [(b"k%d" % number, StoredValue(bytes(4_000_000)))])
    began = time.thread_time()
    for key, _ in few:
        assert await value(store, BOB, key) == b"v"
    assert time.thread_time() - began < 0.05, "large values in the same table would make this a thousand times slower"


async def test_a_value_that_grows_and_shrinks_leaves_no_rows_behind(tmp_path: Path) -> None:
    store = SqliteKV(tmp_path / "kv.db")
    await store.create(ALICE, NOW)
    small, large = StoredValue(b"s" * 4096), StoredValue(b"l" * 4097)
    for entry in (small, large, large, small, large):
        await store.put(ALICE, [(b"key", entry), (b"other", large)])
        assert await store.get(ALICE, [b"key", b"other"], NOW) == [entry, large]
        assert await store.measure(ALICE) == Size(2, len(b"keyother") + len(entry.value) + 4097)
    await store.put(ALICE, [(b"late", large._replace(expires_at=int(NOW)))])
    await store.delete(ALICE, [b"key"])
    await store.sweep(NOW + 1)
    database = apsw.Connection(str(tmp_path / "kv.db"), flags=apsw.SQLITE_OPEN_READONLY)
    assert database.execute("SELECT value FROM large_values").fetchall() == [(b"l" * 4097,)], (
        "only the value of `other`"
    )
    await store.drop(ALICE)
    await store.sweep(0)
    assert database.execute("SELECT count(*) FROM large_values").fetchall() == [(0,)]
    database.close()
    await store.close()
