"""The promises of an object store, over every implementation."""

from __future__ import annotations

import asyncio
import hashlib
import os
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from atoll.bindings.r2.conditions import EtagTest, OnlyIf
from atoll.bindings.r2.limits import R2Refused
from atoll.bindings.r2.records import RecordedStore
from atoll.bindings.r2.sqlite import SqliteObjects
from atoll.bindings.r2.store import (
    BucketPlace,
    Checksum,
    ContentReader,
    ListQuery,
    NoBucket,
    ObjectMeta,
    ObjectStore,
    R2Bound,
    R2OverQuota,
    R2Usage,
    StoredObject,
)
from atoll.errors import InvalidArgument
from tests.bindings.r2.backends import Backend

ALICE, BOB = BucketPlace("alice", "files"), BucketPlace("bob", "files")
LARGE = bytes(range(256)) * 4096  # a megabyte: in a file


@pytest.fixture(params=["in_files", "in_rclone", "in_atoll", "in_postgres", "in_postgres_and_rclone"])
def backend(request: pytest.FixtureRequest) -> Backend:
    return Backend() if request.param == "in_files" else request.getfixturevalue(request.param)


@pytest.fixture
async def store(tmp_path: Path, backend: Backend) -> AsyncIterator[RecordedStore]:
    made = backend.open(tmp_path)
    await made.create(ALICE, 0)
    await made.create(BOB, 0)
    yield made
    await made.close()


async def put(
    store: ObjectStore, key: bytes, data: bytes, place: BucketPlace = ALICE, **more: OnlyIf
) -> StoredObject | None:
    upload = await store.begin(place, len(data))
    try:
        for first in range(0, len(data), 100_000):
            await upload.write(data[first : first + 100_000])
        return await upload.put(key, ObjectMeta(), **more)
    finally:
        upload.close()


async def read(store: ObjectStore, key: bytes, place: BucketPlace = ALICE, piece: int = 70_000) -> bytes | None:
    opened = await store.open(place, key)
    if opened is None:
        return None
    stored, content = opened
    return await drain(content.reader(0, stored.size), piece)


async def drain(reader: ContentReader, piece: int = 70_000) -> bytes:
    pieces = []
    while data := await reader.read(piece):
        assert len(data) <= piece
        pieces.append(data)
    reader.close()
    return b"".join(pieces)


@pytest.mark.parametrize("size", [0, 1, 65_536, 65_537, 1 << 20])
async def test_content_of_every_size_is_read_as_it_was_stored(store: ObjectStore, size: int) -> None:
    data = LARGE[:size]
    stored = await put(store, b"k", data)
    assert stored is not None and stored.size == size and stored.etag == hashlib.md5(data).hexdigest()
    assert await read(store, b"k") == data
    opened = await store.open(ALICE, b"k")
    assert opened is not None
    reader = opened[1].reader(size // 3, size // 2)
    assert await drain(reader) == data[size // 3 : size // 3 + size // 2]


async def test_tenants_do_not_meet(store: ObjectStore) -> None:
    await put(store, b"k", b"alice's")
    assert await store.head(BOB, b"k") is None and await read(store, b"k", BOB) is None
    assert (await store.list(BOB, ListQuery())).objects == []
    assert await store.delete(BOB, [b"k"]) == 0
    upload_id = await store.create_upload(ALICE, b"m", ObjectMeta())
    for act in (store.abort(BOB, b"m", upload_id), store.complete(BOB, b"m", upload_id, [])):
        with pytest.raises(R2Refused):
            await act
    with pytest.raises(R2Refused):
        await store.parts(BOB, b"m", upload_id, 0, 10)
    assert await store.uploads(BOB, b"", (b"", ""), 10) == []
    assert await read(store, b"k") == b"alice's"


async def test_a_reader_sees_its_version_to_the_end_and_then_its_content_goes(
    store: ObjectStore, backend: Backend, tmp_path: Path
) -> None:
    await put(store, b"k", LARGE)
    opened = await store.open(ALICE, b"k")
    assert opened is not None
    reader = opened[1].reader(0, len(LARGE))
    first = await reader.read(1000)
    await put(store, b"k", b"new")
    await store.delete(ALICE, [b"k"])
    await put(store, b"other", LARGE[1:])
    await backend.has(tmp_path, 2)
    rest = b""
    while data := await reader.read(300_000):
        rest += data
    assert first + rest == LARGE
    reader.close()
    await backend.has(tmp_path, 1)
    assert await read(store, b"other") == LARGE[1:]


async def test_what_is_not_finished_leaves_nothing(store: ObjectStore, backend: Backend, tmp_path: Path) -> None:
    upload = await store.begin(ALICE, len(LARGE))
    await upload.write(LARGE[:500_000])
    assert len(backend.contents(tmp_path)) == 1
    with pytest.raises(InvalidArgument, match="were announced, and 500,000 were received"):
        await upload.put(b"k", ObjectMeta())
    upload.close()
    too_long = await store.begin(ALICE, 10)
    with pytest.raises(InvalidArgument, match="longer than the 10 bytes"):
        await too_long.write(bytes(11))
    too_long.close()
    wrong = await store.begin(ALICE, len(LARGE), Checksum("sha256", "00" * 32))
    await wrong.write(LARGE)
    with pytest.raises(R2Refused, match="did not match"):
        await wrong.put(b"k", ObjectMeta())
    wrong.close()
    refused = await put(store, b"k", LARGE, only_if=OnlyIf(matches=(EtagTest("x"),)))
    assert refused is None
    await backend.has(tmp_path, 0)
    assert (await store.list(ALICE, ListQuery())).objects == []
    assert await store.total("alice") == R2Usage(0, 0)


async def test_of_many_puts_with_a_condition_one_wins(store: ObjectStore) -> None:
    only_if_new = OnlyIf(differs=(EtagTest("*"),))
    done = await asyncio.gather(*(put(store, b"k", b"%d" % i * 40_000, only_if=only_if_new) for i in range(8)))
    [winner] = [each for each in done if each is not None]
    assert await store.head(ALICE, b"k") == winner
    content = await read(store, b"k")
    assert content is not None and hashlib.md5(content).hexdigest() == winner.etag


async def test_quotas_count_what_is_stored_and_what_is_uploaded(store: ObjectStore) -> None:
    store.bound("alice", R2Bound(buckets=2, objects=3, bytes=2_500_000))
    await put(store, b"a", LARGE)
    await put(store, b"b", LARGE)
    with pytest.raises(R2OverQuota, match="bytes in R2, more than its quota of 2,500,000"):
        await put(store, b"c", LARGE)
    with pytest.raises(R2OverQuota):
        await store.begin(ALICE, 2_500_001)
    await put(store, b"a", LARGE)  # in place of the first
    upload_id = await store.create_upload(ALICE, b"m", ObjectMeta())
    part = await store.begin(ALICE, len(LARGE))
    await part.write(LARGE)
    with pytest.raises(R2OverQuota):
        await part.put_part(upload_id, b"m", 1)
    part.close()
    await put(store, b"small", b"")
    with pytest.raises(R2OverQuota, match="4 objects"):
        await put(store, b"one more", b"")
    await put(store, b"c", LARGE, BOB)
    await store.create(BucketPlace("alice", "second"), 0)
    with pytest.raises(R2OverQuota, match="3 buckets"):
        await store.create(BucketPlace("alice", "third"), 0)
    await store.abort(ALICE, b"m", upload_id)
    await store.delete(ALICE, [b"a", b"b", b"small"])
    assert await store.total("alice") == R2Usage(0, 0)


async def test_a_bucket_with_objects_is_dropped_only_by_force(
    store: ObjectStore, backend: Backend, tmp_path: Path
) -> None:
    await put(store, b"k", LARGE)
    upload_id = await store.create_upload(ALICE, b"m", ObjectMeta())
    part = await store.begin(ALICE, 3)
    await part.write(b"abc")
    await part.put_part(upload_id, b"m", 1)
    part.close()
    with pytest.raises(R2Refused, match=r"not empty. \(10008\)"):
        await store.drop(ALICE)
    await store.drop(ALICE, force=True)
    with pytest.raises(NoBucket):
        await store.head(ALICE, b"k")
    assert await store.total("alice") == R2Usage(0, 0)
    await store.create(ALICE, 0)
    assert await store.head(ALICE, b"k") is None
    await backend.has(tmp_path, 0)


@pytest.mark.parametrize("backend", ["in_files"], indirect=True)
async def test_a_list_skips_groups_and_is_fast_among_very_many(store: SqliteObjects) -> None:
    sql = (
        "WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 299999) INSERT INTO objects (bucket,"
        " key, version, size, etag, uploaded, storage_class, checksums, content, part_size, cost, http, custom) SELECT"
        " ?, CAST(printf('d%02d/%07d', i % 3, i) AS BLOB), 'v', 0, 'e', 0, 'Standard', '{}', i, 0, 0, '', '' FROM n"
    )
    number = store._known[ALICE].id
    await store._database.write(lambda connection: connection.execute(sql, (number,)) and None)
    page = await store.list(ALICE, ListQuery(delimiter=b"/"))
    assert page.groups == [b"d00/", b"d01/", b"d02/"] and page.start is None and page.objects == []
    took = []
    for _ in range(5):
        began = time.thread_time(), time.perf_counter()
        page = await store.list(ALICE, ListQuery(start=b"d01/0100000"))
        took.append(time.perf_counter() - began[1])
    assert len(page.objects) == 1000 and page.start is not None
    assert min(took) < 0.1, "without the skipping it is seconds; a busy machine gets some room"
    seen, start = 0, b""
    while True:
        page = await store.list(ALICE, ListQuery(prefix=b"d02/", start=start, limit=1000))
        seen += len(page.objects)
        if page.start is None or seen > 5000:
            break
        start = page.start
    assert seen > 5000


async def test_everything_is_there_after_a_restart(backend: Backend, tmp_path: Path) -> None:
    store = backend.open(tmp_path)
    await store.create(ALICE, 5)
    await put(store, b"small", b"s")
    await put(store, b"large", LARGE)
    upload_id = await store.create_upload(ALICE, b"m", ObjectMeta())
    part = await store.begin(ALICE, len(LARGE))
    await part.write(LARGE)
    facts = await part.put_part(upload_id, b"m", 1)
    part.close()
    await store.close()
    stray = tmp_path / "r2" / "r2-unfinished" / f"{7:016x}"
    stray.write_bytes(b"left by a node that was killed")
    os.utime(stray, (0, 0))
    store = backend.open(tmp_path)
    assert await read(store, b"small") == b"s" and await read(store, b"large") == LARGE
    await store.complete(ALICE, b"m", upload_id, [(1, facts.etag)])
    assert await read(store, b"m") == LARGE
    await backend.has(tmp_path, 2)
    [bucket] = await store.buckets("alice")
    assert (bucket.name, bucket.created_at, bucket.objects) == ("files", 5000, 3)
    assert not stray.exists()
    await store.close()
