"""The store of assets: quotas, tenants apart, collection, many files. A real database and a real folder."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import shutil
import threading
import time
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest

from atoll.asset_files.rows import AssetBound, wanted_files
from atoll.asset_files.store import AddedManifest, AssetStore
from atoll.assets.manifest import SentFile, SentManifest, check_job, checked_text, lines_of, text_of
from atoll.assets.rules import AssetRules
from atoll.control.store.asset_rows import load_files
from atoll.db.sqlite import Database
from atoll.errors import InvalidArgument, QuotaExceeded
from tests.assets.sites import packed
from tests.eventually import eventually


class Store:
    def __init__(self, folder: Path) -> None:
        self.now = 1_000_000.0
        self.folder = folder
        self.database = Database(folder / "atoll.db")
        self.assets = AssetStore(self.database, folder, grace_hours=1, clock=lambda: self.now)

    async def add(self, files: dict[str, bytes], tenant: str = "default") -> AddedManifest:
        sent = {path: SentFile(hashlib.sha256(each).hexdigest(), len(each)) for path, each in files.items()}
        return await self.assets.add_manifest(tenant, text_of(SentManifest(sent)).encode())

    async def send(self, *contents: bytes, tenant: str = "default") -> int:
        async def chunks() -> AsyncIterator[bytes]:
            body = packed(contents)
            for at in range(0, len(body), 50_000):
                yield body[at : at + 50_000]

        return (await self.assets.receive(tenant, chunks())).files

    def stored(self, tenant: str = "default") -> int:
        return len(list((self.folder / "static" / tenant).glob("*/*")))

    async def close(self) -> None:
        await self.assets.close()
        await self.database.close()


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    made = Store(tmp_path)
    yield made
    await made.close()


async def test_a_tenant_cannot_claim_a_file_it_never_uploaded(store: Store) -> None:
    files = {"/a": b"secret"}
    await store.add(files, "alice")
    await store.send(b"secret", tenant="alice")
    added = await store.add(files, "mallory")
    assert added.missing == [hashlib.sha256(b"secret").hexdigest()]
    rules = AssetRules(added.id)
    with pytest.raises(Exception, match="was not uploaded"):
        await store.database.search(lambda connection: load_files(connection, "mallory", rules))
    with pytest.raises(Exception, match="there is no manifest"):
        await store.database.search(lambda connection: load_files(connection, "eve", rules))
    with pytest.raises(InvalidArgument, match="no manifest of this tenant"):
        await store.send(b"secret", tenant="eve")
    await store.assets.forget("mallory")
    assert store.stored("alice") == 1


async def test_quotas_are_checked_before_the_first_byte(store: Store) -> None:
    store.assets.bound("default", AssetBound(bytes=10, files=2))
    with pytest.raises(QuotaExceeded, match="11 bytes, more than its quota of 10"):
        await store.add({"/a": b"x" * 11})
    with pytest.raises(QuotaExceeded, match="3 assets, more than its quota of 2"):
        await store.add({"/a": b"x", "/b": b"x", "/c": b"x"})
    assert (await store.add({"/a": b"x" * 10})).missing


async def test_files_that_nothing_names_are_collected_after_the_grace_time(store: Store) -> None:
    await store.add({"/a": b"one", "/b": b"two" * 1000, "/c.txt": b"text " * 1000})
    assert await store.send(b"one", b"two" * 1000, b"text " * 1000) == 3
    assert store.stored() == 5  # with two copies of the text
    assert await store.assets.collect() == 0
    store.now += 3_000
    assert not (await store.add({"/other": b"one"})).missing  # named again: its time starts anew
    store.now += 3_000
    assert await store.assets.collect() == 2
    assert store.stored() == 1
    store.now += 3_000
    assert await store.assets.collect() == 1
    assert store.stored() == 0


async def test_a_manifest_that_lies_about_a_size_is_refused(store: Store) -> None:
    await store.add({"/a": b"one"})
    await store.send(b"one")
    text = f"{hashlib.sha256(b'one').hexdigest()} 4 /a\n".encode()
    with pytest.raises(InvalidArgument, match="has 3 bytes, not 4"):
        await store.assets.add_manifest("default", text)


async def test_twenty_thousand_files_do_not_stall_the_event_loop(store: Store) -> None:
    """Each step of the largest usual deploy runs beside the loop. Others wait for an interpreter lock at most."""
    contents = [b"file %d" % number for number in range(20_000)]
    sent = {f"/folder/file-{n}.txt": SentFile(hashlib.sha256(c).hexdigest(), len(c)) for n, c in enumerate(contents)}
    raw = msgspec.json.encode(SentManifest(sent))
    text, why = checked_text(check_job(raw, {"max_files": 20_000, "max_bytes": 100}))  # in a job process on a node
    assert not why and sum(1 for _ in lines_of(text)) == 20_000
    assert checked_text(check_job(raw, {"max_files": 19_999, "max_bytes": 100}))[1]
    longest, is_over = 0.0, False

    async def watch() -> None:
        nonlocal longest
        while not is_over:
            began = time.monotonic()
            await asyncio.sleep(0)
            longest = max(longest, time.monotonic() - began)
            await asyncio.sleep(0.001)

    gc.collect()
    tracked = len(gc.get_objects())
    watching = asyncio.ensure_future(watch())
    added = await store.assets.add_manifest("default", text)
    assert len(added.missing) == 20_000
    for at in range(0, 20_000, 4_000):
        assert await store.send(*contents[at : at + 4_000]) == 4_000
    rules = AssetRules(added.id)
    files = await store.database.search(lambda connection: load_files(connection, "default", rules))
    wanted = await store.database.search(lambda connection: wanted_files(connection, "default"))
    is_over = True
    await watching
    assert len(wanted) == 20_000 and len(gc.get_objects()) - tracked < 2_000, "collections have nothing to look at"
    assert len(files) == 20_000 and files["/folder/file-7.txt"].size == len(contents[7])
    assert longest < 0.5  # seconds, on a busy machine; usually a few ms


async def test_the_first_two_uploads_after_a_start_do_not_sweep_each_other(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder for incoming files is emptied once, before the first upload, even if a second one comes meanwhile."""
    sweeps, is_sweeping, may_go_on = [], threading.Event(), threading.Event()
    real = shutil.rmtree

    def slow(path: Path, **more: bool) -> None:
        sweeps.append(path)
        is_sweeping.set()
        assert may_go_on.wait(30)
        real(path, **more)

    monkeypatch.setattr(shutil, "rmtree", slow)
    await store.add({"/a": b"a", "/b": b"b"})
    first = asyncio.ensure_future(store.send(b"a"))
    assert await asyncio.to_thread(is_sweeping.wait, 30)
    second = asyncio.ensure_future(store.send(b"b"))

    async def has_a_thread() -> bool:
        return len(store.assets._threads._threads) == 2

    await eventually(has_a_thread, "the thread of the second upload")
    may_go_on.set()
    assert await asyncio.gather(first, second) == [1, 1]
    assert len(sweeps) == 1
