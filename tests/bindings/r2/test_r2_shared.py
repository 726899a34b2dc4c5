"""R2 of several nodes: what they read, write and remove at the same time, on a real PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from atoll.bindings.r2.conditions import EtagTest, OnlyIf
from atoll.bindings.r2.limits import R2Refused
from atoll.bindings.r2.postgres.store import PostgresObjects, refuse_own_index
from atoll.bindings.r2.sqlite import SqliteObjects
from atoll.bindings.r2.store import BucketPlace, ListQuery, NoBucket, ObjectMeta, R2Bound, R2OverQuota
from atoll.errors import StartError, StorageAway, StorageFailed
from atoll.postgres.pool import Postgres
from tests.bindings.r2.backends import PostgresBackend
from tests.bindings.r2.test_r2_store import ALICE, LARGE, drain, put, read

HOUR = 3600.0
JOIN = (
    "INSERT INTO nodes (session, name, address, release, schema, alone, state, seen, expires, schemas)"
    " VALUES ($1, $1, '', '0.9', 1, false, 'serving', 0, clock_timestamp() + interval '1 hour',"
    " '{\"tables of r2\": 1}')"
)


class Pair:
    """The stores of two nodes."""

    def __init__(self, backend: PostgresBackend, folder: Path) -> None:
        self.postgres: Postgres = backend.postgres
        self.backend = backend
        self.one: PostgresObjects = backend.open(folder / "one", session="one", grace=HOUR)
        self.two: PostgresObjects = backend.open(folder / "two", session="two", grace=HOUR)

    async def count(self, table: str) -> int:
        return int(await self.postgres.value(f"SELECT count(*) FROM {table}"))

    async def is_due(self) -> None:
        await self.postgres.run("UPDATE r2_garbage SET due = clock_timestamp() - interval '1 second'")


@pytest.fixture
async def pair(in_postgres: PostgresBackend, tmp_path: Path) -> AsyncIterator[Pair]:
    made = Pair(in_postgres, tmp_path)
    for session in ("one", "two"):
        await made.postgres.run(JOIN, session)
    await made.one.create(ALICE, 0)
    yield made
    await made.one.close()
    await made.two.close()


async def test_what_one_node_wrote_is_read_by_the_other_at_once(pair: Pair) -> None:
    for size in (0, 10, 65_536, 65_537, len(LARGE)):
        await put(pair.one, b"k", LARGE[:size])
        assert await read(pair.two, b"k") == LARGE[:size]
    await pair.two.delete(ALICE, [b"k"])
    assert await pair.one.head(ALICE, b"k") is None
    upload = await pair.one.create_upload(ALICE, b"m", ObjectMeta())
    parts = []
    for number, store in ((2, pair.one), (1, pair.two)):
        part = await store.begin(ALICE, 6 << 20)
        await part.write(bytes([number]) * (6 << 20))
        parts.append((number, (await part.put_part(upload, b"m", number)).etag))
        part.close()
    await pair.two.complete(ALICE, b"m", upload, parts)
    assert await read(pair.one, b"m", piece=300_000) == bytes([1]) * (6 << 20) + bytes([2]) * (6 << 20)
    opened = await pair.one.open(ALICE, b"m")
    assert opened is not None
    assert await drain(opened[1].reader((6 << 20) - 2, 4)) == b"\1\1\2\2", "over the border of two parts"
    await pair.two.drop(ALICE, force=True)
    for act in (pair.one.head(ALICE, b"k"), pair.one.list(ALICE, ListQuery()), pair.one.begin(ALICE, 1)):
        with pytest.raises(NoBucket):
            await act


async def test_of_puts_on_two_nodes_with_a_condition_one_wins_and_quotas_are_exact(pair: Pair) -> None:
    only_if_new = OnlyIf(differs=(EtagTest("*"),))
    stores = [pair.one, pair.two] * 4
    done = await asyncio.gather(*(put(each, b"k", LARGE[:i], only_if=only_if_new) for i, each in enumerate(stores)))
    [winner] = [each for each in done if each is not None]
    assert await pair.one.head(ALICE, b"k") == winner == await pair.two.head(ALICE, b"k")
    for store in (pair.one, pair.two):
        store.bound("alice", R2Bound(objects=5, buckets=2))
    tries = [put(each, b"q%d" % i, b"x") for i, each in enumerate(stores)]
    ended = await asyncio.gather(*tries, return_exceptions=True)
    assert sum(isinstance(each, R2OverQuota) for each in ended) == 4, "four more fit beside the first"
    assert (await pair.one.total("alice")).objects == 5
    made = await asyncio.gather(
        *(each.create(BucketPlace("alice", f"b{i}"), 0) for i, each in enumerate(stores)), return_exceptions=True
    )
    assert made.count(True) == 1 and sum(isinstance(each, R2OverQuota) for each in made) == 7


async def test_what_another_node_reads_stays_until_it_has_read_it(pair: Pair) -> None:
    await put(pair.one, b"k", LARGE)
    opened = await pair.two.open(ALICE, b"k")
    assert opened is not None
    reader = opened[1].reader(0, len(LARGE))
    first = await reader.read(1000)
    await pair.one.delete(ALICE, [b"k"])
    await pair.one.garbage.round()
    assert await pair.count("r2_pieces") == 1, "it stays for a while, whoever reads it"
    await pair.two.garbage.round()
    await pair.is_due()
    await pair.one.garbage.round()
    assert first + await drain(reader) == LARGE
    await pair.one.garbage.round()
    assert await pair.count("r2_pieces") == 1, "the other node has not said yet that it is done"
    await pair.two.garbage.round()
    await asyncio.gather(pair.one.garbage.round(), pair.two.garbage.round())
    for table in ("r2_pieces", "r2_segments", "r2_garbage", "r2_reading"):
        assert await pair.count(table) == 0, table


async def test_an_upload_of_a_node_that_seems_to_have_ended_cannot_be_stored_and_leaves_nothing(pair: Pair) -> None:
    upload = await pair.two.begin(ALICE, len(LARGE))
    await upload.write(LARGE)
    await upload._complete()  # it is sent, and not committed
    await pair.one.garbage.round()
    assert await pair.count("r2_pieces") == 1, "the node lives"
    await pair.postgres.run("UPDATE nodes SET expires = clock_timestamp() WHERE session = 'two'")
    await pair.one.garbage.round()
    assert await pair.count("r2_pieces") == await pair.count("r2_unfinished") == 0
    with pytest.raises(StorageFailed, match="cut off from the others"):
        await upload.put(b"k", ObjectMeta())
    upload.close()
    assert await pair.one.head(ALICE, b"k") is None
    await pair.two.garbage.round()
    assert await pair.count("r2_pieces") == await pair.count("r2_segments") == 0


async def test_a_dropped_bucket_and_old_uploads_are_removed_by_any_node(pair: Pair) -> None:
    await put(pair.one, b"k", LARGE)
    upload = await pair.one.create_upload(ALICE, b"m", ObjectMeta("http", "custom"))
    part = await pair.one.begin(ALICE, 3)
    await part.write(b"abc")
    await part.put_part(upload, b"m", 1)
    part.close()
    assert (await pair.two.total("alice")).bytes == len(LARGE) + 1 + 3 + 500 + 1 + 4 + 6
    await pair.postgres.run("UPDATE r2_uploads SET created_at = 0")
    await pair.two.garbage.round()
    assert (await pair.two.total("alice")).bytes == len(LARGE) + 1
    with pytest.raises(R2Refused):
        await pair.one.parts(ALICE, b"m", upload, 0, 10)
    await pair.one.drop(ALICE, force=True)
    await pair.two.garbage.round()
    await pair.is_due()
    await pair.two.garbage.round()
    for table in ("r2_pieces", "r2_segments", "r2_garbage", "r2_objects", "r2_uploads", "r2_parts", "r2_dropped"):
        assert await pair.count(table) == 0, table


async def test_while_a_node_runs_that_does_not_share_r2_no_bucket_is_made(pair: Pair) -> None:
    await pair.postgres.run("UPDATE nodes SET schemas = '{}' WHERE session = 'two'")
    with pytest.raises(StorageAway, match=r"0\.9 still runs, which does not share R2"):
        await pair.one.create(BucketPlace("alice", "new"), 0)
    await put(pair.one, b"k", b"in a bucket that was there")


async def test_texts_that_postgresql_cannot_have_find_nothing(pair: Pair) -> None:
    """Attack: a client sends zero bytes where an id or a name is looked up."""
    assert await pair.one.records.credential("a\0b") is None
    assert await pair.one.records.place_of("pub-\0") is None
    assert await pair.one.records.settings_named("a\0", "cors") == []
    assert await pair.one.uploads(ALICE, b"", (b"", "\0"), 10) == []
    for act in (
        pair.one.abort(ALICE, b"k", "\0"),
        pair.one.complete(ALICE, b"k", "\0", []),
        pair.one.parts(ALICE, b"k", "\0", 0, 1),
    ):
        with pytest.raises(R2Refused):
            await act


async def test_a_folder_with_buckets_of_a_node_alone_is_refused(tmp_path: Path) -> None:
    refuse_own_index(tmp_path)
    store = SqliteObjects(tmp_path)
    refuse_own_index(tmp_path)
    await store.create(ALICE, 0)
    await store.close()
    with pytest.raises(StartError, match="1 R2 buckets of this node alone"):
        refuse_own_index(tmp_path)
    (tmp_path / "r2/index.db").write_bytes(b"x" * 4096)
    with pytest.raises(StartError, match="cannot be read"):
        refuse_own_index(tmp_path)
