"""The cache on disk: bodies of every size, tenants, least recently used, damage, and clock changes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from atoll.bindings.cache.disk import CacheDisk
from atoll.bindings.cache.files import INLINE
from atoll.bindings.cache.freshness import Headers
from atoll.bindings.cache.http_cache import Hit, HttpCache
from atoll.bindings.cache.store import CachePlace

NONE = Headers([])
TENANT_BYTES = 4 << 20


class Clock:
    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


def opened(folder: Path, clock: Clock) -> HttpCache:
    return HttpCache(CacheDisk(folder, TENANT_BYTES), 1 << 20, clock=clock)


@pytest.fixture
async def cache(tmp_path: Path, clock: Clock) -> AsyncIterator[HttpCache]:
    made = opened(tmp_path, clock)
    yield made
    await made.close()


def place(url: str = "http://a/", tenant: str = "alice", name: str = "default") -> CachePlace:
    return CachePlace(tenant, name, url)


async def put(cache: HttpCache, where: CachePlace, body: bytes, request: Headers = NONE, **fields: str) -> bool:
    headers = Headers({"cache-control": "max-age=60", **{k.replace("_", "-"): v for k, v in fields.items()}}.items())
    upload = cache.begin(where, request, 200, headers)
    if upload is None:
        return False
    kept = await upload.write(body) and await upload.finish()
    upload.close()
    return kept


async def body_of(hit: Hit | None) -> bytes | None:
    if hit is None or hit.rest is None:
        return None if hit is None else hit.body
    body = b""
    while piece := await hit.rest.read(100_000):
        body += piece
    hit.rest.close()
    return body


def files(folder: Path) -> list[Path]:
    return list((folder / "bodies").glob("*/*"))


@pytest.mark.parametrize("size", [0, 1, INLINE, INLINE + 1, 1 << 20])
async def test_a_body_of_every_size_comes_back(cache: HttpCache, size: int, tmp_path: Path) -> None:
    body = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    assert await put(cache, place(), body)
    hit = await cache.match(place(), NONE)
    assert hit is not None and hit.status == 200 and hit.headers.get("cf-cache-status") == "HIT"
    assert await body_of(hit) == body
    part = await cache.match(place(), Headers([("range", "bytes=-1")]))
    assert part is not None and await body_of(part) == body[-1:] and part.status == (206 if size else 416)
    assert len(files(tmp_path)) == (size > INLINE)


async def test_an_oversized_or_truncated_body_is_not_cached(cache: HttpCache, tmp_path: Path) -> None:
    assert not await put(cache, place(), bytes((1 << 20) + 1))
    assert not await put(cache, place(), b"12345", content_length="6")
    assert await put(cache, place(), b"12345", content_length="5")
    upload = cache.begin(place("http://broken/"), NONE, 200, NONE)
    assert upload is not None and await upload.write(bytes(INLINE + 1))
    upload.close()
    assert not await upload.write(b"more") and not await upload.finish()
    assert await cache.match(place("http://broken/"), NONE) is None
    assert files(tmp_path) == []


async def test_tenants_and_caches_with_the_same_names_are_separate(cache: HttpCache) -> None:
    for tenant in ("alice", "bob"):
        for name in ("default", "other"):
            await put(cache, place(tenant=tenant, name=name), f"{tenant} {name}".encode())
    assert await cache.delete(place(name="other"))
    assert await body_of(await cache.match(place(), NONE)) == b"alice default"
    assert await cache.match(place(name="other"), NONE) is None
    assert await body_of(await cache.match(place(tenant="bob", name="other"), NONE)) == b"bob other"
    assert [row.name for row in await cache.store.measure("alice")] == ["default"]
    assert await cache.store.clear("bob", "default") and not await cache.store.clear("bob", "default")
    assert await cache.match(place(), NONE) is not None


async def test_a_response_ages_and_expires(cache: HttpCache, clock: Clock) -> None:
    await put(cache, place(), b"x", age="5")
    clock.now += 50
    hit = await cache.match(place(), NONE)
    assert hit is not None and hit.headers.get("age") == "55"
    clock.now += 5
    assert await cache.match(place(), NONE) is None


async def test_after_the_clock_is_set_back_responses_of_unknown_age_are_not_served(
    cache: HttpCache, clock: Clock
) -> None:
    await put(cache, place(), b"x")
    clock.now -= 1000
    assert await cache.match(place(), NONE) is None, "its age is unknown"
    assert await put(cache, place(), b"new")
    assert await body_of(await cache.match(place(), NONE)) == b"new"


async def test_variants_are_kept_apart(cache: HttpCache) -> None:
    german, french = Headers([("accept-language", "de")]), Headers([("accept-language", "fr")])
    await put(cache, place(), b"deutsch", german, vary="Accept-Language")
    await put(cache, place(), b"francais", french, vary="accept-language")
    assert await body_of(await cache.match(place(), german)) == b"deutsch"
    assert await body_of(await cache.match(place(), french)) == b"francais"
    assert await cache.match(place(), NONE) is None
    for i in range(50):
        await put(cache, place(), b"x", Headers([("accept-language", str(i))]), vary="Accept-Language")
    assert await cache.match(place(), german) is None, "the variants of one URL are limited"
    assert await cache.match(place(), Headers([("accept-language", "49")])) is not None


async def test_the_least_recently_used_response_on_disk_is_evicted_first(
    cache: HttpCache, clock: Clock, tmp_path: Path
) -> None:
    big = bytes(1 << 20)
    for url in ("http://1/", "http://2/", "http://3/"):
        assert await put(cache, place(url), big)
    clock.now += 10
    cache.store._touched[1] = int(clock.now)  # the first was used since
    await put(cache, place("http://bob/", tenant="bob"), big)
    assert await put(cache, place("http://4/"), big)
    kept = [url for url in "1234" if await cache.match(place(f"http://{url}/"), NONE) is not None]
    assert kept == ["1", "3", "4"]
    assert await cache.match(place("http://bob/", tenant="bob"), NONE) is not None, "responses of another tenant stay"
    assert len(files(tmp_path)) == 4


async def test_a_restart_keeps_responses_and_removes_leftovers_of_a_crash(tmp_path: Path, clock: Clock) -> None:
    first = opened(tmp_path, clock)
    await put(first, place(), bytes(INLINE + 1))
    await first.close()
    [file] = files(tmp_path)
    stray = file.with_name("00stray")
    stray.write_bytes(b"left by a crash")
    os.utime(stray, (1, 1))
    second = opened(tmp_path, clock)
    await second.store._cleaning
    assert files(tmp_path) == [file]
    assert await body_of(await second.match(place(), NONE)) == bytes(INLINE + 1)
    file.unlink()
    assert await second.match(place(), NONE) is None, "a row without its file is a miss"
    await second.close()


async def test_a_damaged_index_starts_empty(tmp_path: Path, clock: Clock) -> None:
    first = opened(tmp_path, clock)
    for i in range(200):
        await put(first, place(f"http://{i}/"), bytes(1000))
    await first.close()
    index = tmp_path / "cache.db"
    content = bytearray(index.read_bytes())
    content[4096:] = b"\xa5" * (len(content) - 4096)
    index.write_bytes(content)
    second = opened(tmp_path, clock)
    assert await second.match(place("http://1/"), NONE) is None
    assert await put(second, place(), b"x") and await second.match(place(), NONE) is not None
    await second.close()


async def test_a_body_that_is_evicted_is_read_to_its_end(cache: HttpCache) -> None:
    body = bytes(range(256)) * 2000
    await put(cache, place(), body)
    hit = await cache.match(place(), NONE)
    assert hit is not None and hit.rest is not None
    start = await hit.rest.read(1000)
    await cache.delete(place())
    rest = b""
    while piece := await hit.rest.read(1 << 20):
        rest += piece
    hit.rest.close()
    assert start + rest == body


async def test_closing_while_a_thread_reads_lets_it_finish(cache: HttpCache) -> None:
    await put(cache, place(), bytes(500_000))
    hit = await cache.match(place(), NONE)
    assert hit is not None and hit.rest is not None
    reading = asyncio.ensure_future(hit.rest.read(500_000))
    await asyncio.sleep(0)
    hit.rest.close()
    assert await reading == bytes(500_000)
    assert await hit.rest.read(1) == b""
