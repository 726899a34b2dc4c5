"""The contract of every response store. Another backend is one more entry of BACKENDS."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from atoll.bindings.cache.disk import CacheDisk
from atoll.bindings.cache.store import MAX_VARIANTS, CachePlace, CacheStore, Stored

BACKENDS: dict[str, Callable[[Path, int], CacheStore]] = {"disk": CacheDisk}
TENANT_BYTES = 1 << 20
NOW = 1_800_000_000
PLACE = CachePlace("alice", "default", "http://a/")


@pytest.fixture(params=BACKENDS)
async def store(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[CacheStore]:
    made = BACKENDS[request.param](tmp_path, TENANT_BYTES)
    yield made
    await made.close()


async def save(
    store: CacheStore, place: CachePlace, *pieces: bytes, vary: str = "[]", at: int = NOW, head: str = "a: b\r\n"
) -> None:
    writer = store.create()
    for piece in pieces:
        await writer.write(piece)
    await writer.save(place, Stored(0, vary, 200, head, False, at, at + 60, 0, None, ""))
    writer.close()


async def body_of(store: CacheStore, stored: Stored) -> bytes:
    if stored.body is not None:
        return stored.body
    reader, body = store.open(stored, 0, stored.size), b""
    while piece := await reader.read(50_000):
        body += piece
    reader.close()
    return body


@pytest.mark.parametrize("count", [0, 1, 3, 100])
async def test_a_response_is_read_as_it_was_saved(store: CacheStore, count: int) -> None:
    pieces = [bytes([i]) * 5000 for i in range(count)]
    await save(store, PLACE, *pieces)
    [stored] = await store.find(PLACE)
    assert (stored.status, stored.head, stored.stored_at, stored.size) == (200, "a: b\r\n", NOW, 5000 * count)
    assert await body_of(store, stored) == b"".join(pieces)
    if stored.body is None:
        part = store.open(stored, 4999, 5001)
        assert await part.read(100) == b"\x00\x01" and await part.read(100) == b""
        part.close()


async def test_a_response_closed_before_the_save_is_not_stored(store: CacheStore) -> None:
    writer = store.create()
    await writer.write(bytes(200_000))
    writer.close()
    assert await store.find(PLACE) == [] and await store.measure("alice") == []


async def test_a_new_response_replaces_its_variant(store: CacheStore) -> None:
    await save(store, PLACE, b"old")
    await save(store, PLACE, b"new")
    await save(store, PLACE, b"other", vary='[["a",null]]')
    assert [stored.body for stored in await store.find(PLACE)] == [b"other", b"new"], "the newest first"
    for i in range(MAX_VARIANTS + 5):
        await save(store, PLACE, b"x", vary=f'[["a","{i}"]]')
    assert len(await store.find(PLACE)) == MAX_VARIANTS


async def test_tenants_and_caches_are_separate(store: CacheStore) -> None:
    places = [PLACE, PLACE._replace(tenant="bob"), PLACE._replace(cache="other")]
    for place in places:
        await save(store, place, repr(place).encode())
    assert [stored.body for place in places for stored in await store.find(place)] == [repr(p).encode() for p in places]
    assert await store.measure("alice") == [
        ("default", 1, len(repr(places[0]))),
        ("other", 1, len(repr(places[2]))),
    ]
    assert await store.clear("alice", "default") and not await store.clear("alice", "default")
    assert await store.remove(places[2]) is True and await store.find(places[2]) == []
    await save(store, places[2], b"long ago", at=1000)
    assert await store.remove(places[2]) is False, "it has expired"
    await store.forget("alice")
    assert await store.measure("alice") == [] and len(await store.find(places[1])) == 1


async def test_a_changed_response_is_not_served_from_memory(store: CacheStore) -> None:
    places = [PLACE._replace(url=f"http://{i}/") for i in range(5)]
    for place in places:
        await save(store, place, b"old", at=4_000_000_000)
        assert [stored.body for stored in await store.find(place) * 2] == [b"old"] * 2
    await save(store, places[0], b"new", at=4_000_000_000)
    assert [stored.body for stored in await store.find(places[0])] == [b"new"]
    await store.remove(places[1])
    assert await store.find(places[1]) == []
    await save(store, places[2], bytes(TENANT_BYTES - 1000), at=4_000_000_001)
    assert [await store.find(place) for place in places[3:]] == [[], []], "there is no room for them"
    await store.clear("alice", "default")
    assert [await store.find(place) for place in places] == [[]] * 5


async def test_responses_are_deleted_by_tag(store: CacheStore) -> None:
    tags = ["red, Blue", "blue", "bluegreen", "red"]
    for i, tag in enumerate(tags):
        await save(store, PLACE._replace(url=f"http://{i}/"), b"x", head=f"cache-tag: {tag}\r\n")
    await save(store, PLACE._replace(tenant="bob"), b"x", head="cache-tag: blue\r\n")
    assert await store.remove_tagged("alice", "default", "blue") and not await store.remove_tagged(
        "alice", "default", "blue"
    )
    assert [kept.url for kept in await store.kept("alice", "default", 0, 9)] == ["http://2/", "http://3/"]
    assert len(await store.find(PLACE._replace(tenant="bob"))) == 1


async def test_a_cache_is_listed_in_pages(store: CacheStore) -> None:
    for i in range(5):
        await save(store, PLACE._replace(url=f"http://{i}/"), b"x" * i)
    first = await store.kept("alice", "default", 0, 3)
    rest = await store.kept("alice", "default", first[-1].id, 3)
    assert [(kept.url, kept.size, kept.status) for kept in first + rest] == [(f"http://{i}/", i, 200) for i in range(5)]
    assert await store.kept("bob", "default", 0, 3) == []


async def test_the_least_recently_used_response_is_evicted_at_the_size_limit(store: CacheStore) -> None:
    large = bytes(TENANT_BYTES // 3)
    places = [PLACE._replace(url=f"http://{i}/") for i in range(4)]
    await save(store, PLACE._replace(tenant="bob"), large)
    for i, place in enumerate(places):
        await save(store, place, large, at=4_000_000_000 + i)
    kept = [len(await store.find(place)) for place in places]
    assert kept == [0, 0, 1, 1]
    assert len(await store.find(PLACE._replace(tenant="bob"))) == 1
