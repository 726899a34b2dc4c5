"""The contents of static assets on several nodes, over a real PostgreSQL: fetched on demand, checked, deleted once."""

from __future__ import annotations

import asyncio
import hashlib
import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from atoll.asset_files.store import AddedManifest, AssetStore
from atoll.assets.manifest import SentFile, SentManifest, text_of
from atoll.cluster.nodes import Membership
from atoll.cluster.shared_files import SharedFiles
from atoll.db.shared import SharedDatabase
from atoll.errors import StorageAway, StorageFailed
from atoll.postgres.pool import Postgres
from tests.assets.sites import packed
from tests.postgres_server import opened_database

TEXT = b"body { color: red } " * 500
LARGE = os.urandom(3 << 20) + b"end"


class AssetNode:
    def __init__(self, folder: Path, pool: Postgres, files: SharedFiles, database: SharedDatabase) -> None:
        self.folder = folder
        self.files = files
        self.database = database
        self.now = 1_000_000.0
        self.assets = AssetStore(database, folder, grace_hours=1, clock=lambda: self.now, postgres=pool)

    async def add(self, files: dict[str, bytes], tenant: str = "default") -> AddedManifest:
        sent = {path: SentFile(hashlib.sha256(each).hexdigest(), len(each)) for path, each in files.items()}
        return await self.assets.add_manifest(tenant, text_of(SentManifest(sent)).encode())

    async def send(self, *contents: bytes, cut: int = 0, tenant: str = "default") -> int:
        async def chunks() -> AsyncIterator[bytes]:
            body = packed(contents)
            yield body[: len(body) - cut]

        return (await self.assets.receive(tenant, chunks())).files

    def place(self, content: bytes, tenant: str = "default") -> str:
        return self.assets.places.of(tenant, hashlib.sha256(content).hexdigest())

    def has(self, content: bytes) -> bool:
        return os.path.exists(self.place(content))

    def unfinished(self) -> list[str]:
        return os.listdir(self.assets.places.incoming)

    async def bring(self, content: bytes, ending: str = "", tenant: str = "default") -> bytes:
        bring = self.assets.bring
        assert bring is not None
        place = self.place(content, tenant) + ending
        await bring(tenant, place)
        return await asyncio.to_thread(Path(place).read_bytes)

    async def close(self) -> None:
        await self.assets.close()
        await self.files.close()


class AssetNodes:
    def __init__(self, folder: Path, pool: Postgres) -> None:
        self.folder = folder
        self.pool = pool
        self.all: list[AssetNode] = []

    async def add(self) -> AssetNode:
        folder = self.folder / str(len(self.all))
        folder.mkdir()
        files = SharedFiles(self.pool, folder)
        self.all.append(AssetNode(folder, self.pool, files, await files.open("atoll", None)))
        return self.all[-1]

    async def contents(self) -> int:
        return int(await self.pool.value("SELECT count(*) FROM asset_contents WHERE coding = ''"))


@pytest.fixture
async def asset_nodes(tmp_path: Path) -> AsyncIterator[AssetNodes]:
    made = AssetNodes(tmp_path, await opened_database("assets"))
    yield made
    for node in made.all:
        await node.close()
    await made.pool.close()


async def test_a_file_that_one_node_received_is_fetched_by_another_with_its_compressed_copies(
    asset_nodes: AssetNodes,
) -> None:
    first, second = await asset_nodes.add(), await asset_nodes.add()
    await first.add({"/a.css": TEXT, "/large.bin": LARGE, "/empty": b""})
    assert await first.send(TEXT, LARGE, b"") == 3
    assert not second.has(TEXT)
    assert await second.bring(TEXT) == TEXT and await second.bring(LARGE) == LARGE
    for ending in (".gz", ".br"):
        own = await asyncio.to_thread(Path(first.place(TEXT) + ending).read_bytes)
        assert await second.bring(TEXT, ending) == own
    assert await second.bring(b"") == b""
    assert second.unfinished() == []


async def test_an_upload_that_breaks_off_on_one_node_goes_on_at_another(asset_nodes: AssetNodes) -> None:
    first, second = await asset_nodes.add(), await asset_nodes.add()
    added = await first.add({"/a.css": TEXT, "/large.bin": LARGE})
    assert len(added.missing) == 2
    with pytest.raises(Exception, match="ends inside a file"):
        await first.send(TEXT, LARGE, cut=100)
    assert (await second.add({"/a.css": TEXT, "/large.bin": LARGE})).missing == [hashlib.sha256(LARGE).hexdigest()]
    assert await second.send(LARGE) == 1
    assert (await first.add({"/a.css": TEXT, "/large.bin": LARGE})).missing == []
    assert await second.bring(TEXT) == TEXT and await first.bring(LARGE) == LARGE


async def test_many_who_want_one_file_at_once_cause_one_fetch(
    asset_nodes: AssetNodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = await asset_nodes.add(), await asset_nodes.add()
    await first.add({"/large.bin": LARGE})
    await first.send(LARGE)
    asked: list[str] = []
    value = Postgres.value

    async def counting(self: Postgres, sql: str, *values: object) -> object:
        asked.append(sql)
        return await value(self, sql, *values)

    monkeypatch.setattr(Postgres, "value", counting)
    assert await asyncio.gather(*(second.bring(LARGE) for _ in range(20))) == [LARGE] * 20
    assert len([sql for sql in asked if "asset_pieces" in sql]) == 4  # 3 MB and a bit


async def test_a_damaged_content_is_never_kept(asset_nodes: AssetNodes) -> None:
    first, second = await asset_nodes.add(), await asset_nodes.add()
    await first.add({"/large.bin": LARGE})
    await first.send(LARGE)
    await asset_nodes.pool.run("UPDATE asset_pieces SET body = overlay(body PLACING 'x'::bytea FROM 7) WHERE part = 1")
    with pytest.raises(StorageFailed, match="damaged"):
        await second.bring(LARGE)
    assert not second.has(LARGE) and second.unfinished() == []
    await asset_nodes.pool.run("DELETE FROM asset_pieces WHERE part = 2")
    with pytest.raises(StorageFailed, match="damaged"):
        await second.bring(LARGE)


async def test_the_first_upload_of_a_node_does_not_sweep_a_file_that_is_being_fetched(
    asset_nodes: AssetNodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = await asset_nodes.add(), await asset_nodes.add()
    await first.add({"/large.bin": LARGE})
    await first.send(LARGE)
    is_fetching, go_on = asyncio.Event(), asyncio.Event()
    value = Postgres.value

    async def waiting(self: Postgres, sql: str, *values: object) -> object:
        if "asset_pieces" in sql and values[1] == 2:
            is_fetching.set()
            await go_on.wait()
        return await value(self, sql, *values)

    monkeypatch.setattr(Postgres, "value", waiting)
    fetching = asyncio.ensure_future(second.bring(LARGE))
    await is_fetching.wait()
    await second.add({"/a.css": TEXT})
    assert await second.send(TEXT) == 1
    go_on.set()
    assert await fetching == LARGE


async def test_files_of_one_tenant_are_not_fetched_for_another(asset_nodes: AssetNodes) -> None:
    first, second = await asset_nodes.add(), await asset_nodes.add()
    await first.add({"/a.css": TEXT}, "alice")
    await first.send(TEXT, tenant="alice")
    with pytest.raises(StorageFailed):
        await second.bring(TEXT, tenant="mallory")
    assert (await second.add({"/a.css": TEXT}, "mallory")).missing == [hashlib.sha256(TEXT).hexdigest()]
    await second.assets.forget("alice")
    assert await asset_nodes.contents() == 0


async def test_two_nodes_that_receive_the_same_file_at_once_store_it_once(asset_nodes: AssetNodes) -> None:
    nodes = [await asset_nodes.add() for _ in range(3)]
    await asyncio.gather(*(node.add({"/a.css": TEXT, "/large.bin": LARGE}) for node in nodes))
    await asyncio.gather(*(node.send(TEXT, LARGE) for node in nodes))
    assert await asset_nodes.contents() == 2
    late = await asset_nodes.add()
    assert await late.bring(LARGE) == LARGE
    sizes = "SELECT gzip, br FROM asset_files WHERE gzip > 0"
    [(gzip, br)] = late.database.read(lambda connection: connection.execute(sizes).fetchall())
    assert (len(await late.bring(TEXT, ".gz")), len(await late.bring(TEXT, ".br"))) == (gzip, br)


async def test_what_no_version_names_is_deleted_once_and_on_every_node(asset_nodes: AssetNodes) -> None:
    first, second = await asset_nodes.add(), await asset_nodes.add()
    await first.add({"/old.css": TEXT})
    await first.send(TEXT)
    await second.bring(TEXT)
    for node in (first, second):
        node.now += 7_200
    await second.add({"/large.bin": LARGE})
    await second.send(LARGE)
    for node in (second, first):
        shared = node.assets._shared
        assert shared is not None
        await node.assets.collect_shared(shared, seconds=0)
    shared = second.assets._shared
    assert shared is not None
    await second.assets.collect_shared(shared, seconds=0)
    assert await asset_nodes.contents() == 1
    assert not first.has(TEXT) and not second.has(TEXT)
    assert await first.bring(LARGE) == LARGE, "the newer one is kept"


async def test_a_content_that_is_put_again_is_not_deleted_by_a_decision_made_before(asset_nodes: AssetNodes) -> None:
    first, second = await asset_nodes.add(), await asset_nodes.add()
    await first.add({"/a.css": TEXT})
    await first.send(TEXT)
    first.now += 7_200
    await first.assets.collect()
    shared = first.assets._shared
    assert shared is not None
    pages = [page async for page in shared.old(0)]
    await second.add({"/a.css": TEXT})
    await second.send(TEXT)
    assert [await shared.delete(page) for page in pages] == [0]
    assert await first.bring(TEXT) == TEXT


async def test_files_that_postgresql_lacks_come_back_from_a_node_that_has_them(asset_nodes: AssetNodes) -> None:
    first, second = await asset_nodes.add(), await asset_nodes.add()
    await first.add({"/a.css": TEXT})
    await first.send(TEXT)
    await asset_nodes.pool.run("DELETE FROM asset_contents")
    with pytest.raises(StorageFailed, match="does not have"):
        await second.bring(TEXT)
    shared = first.assets._shared
    assert shared is not None
    await first.assets.collect_shared(shared)
    assert await second.bring(TEXT) == TEXT and await second.bring(TEXT, ".gz")


async def test_an_older_node_that_does_not_share_assets_stops_uploads_until_it_is_upgraded(
    asset_nodes: AssetNodes,
) -> None:
    first = await asset_nodes.add()
    old = Membership(asset_nodes.pool, name="old", address="127.0.0.1:1", release="0.0", alone=False)
    old.schemas = {"atoll": first.database.schema}
    await old.join("session", 0)
    await first.add({"/a.css": TEXT})
    with pytest.raises(StorageAway, match="upgrade it"):
        await first.send(TEXT)
    assert await asset_nodes.contents() == 0
    await old.leave()
    assert await first.send(TEXT) == 1


async def test_a_folder_that_was_lost_is_filled_again(asset_nodes: AssetNodes) -> None:
    first = await asset_nodes.add()
    await first.add({"/a.css": TEXT})
    await first.send(TEXT)
    await asyncio.to_thread(shutil.rmtree, first.folder / "static")
    assert await first.bring(TEXT) == TEXT
