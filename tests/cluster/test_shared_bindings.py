"""Small databases of bindings that nodes share, over a real PostgreSQL."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from atoll.bindings.email.faults import EmailFault
from atoll.bindings.email.postgres import PostgresSentCounts
from atoll.bindings.mtls_certificate.certificates import ClientCertificates
from atoll.bindings.secrets_store_secret import stores as limits
from atoll.bindings.secrets_store_secret.stores import SecretsStores, StoreGone
from atoll.cluster.nodes import Membership
from atoll.cluster.shared_files import SharedFiles
from atoll.cluster.taking_over import take_over
from atoll.control.store.vault import Vault
from atoll.db.shared import SharedDatabase, StaleWrite
from atoll.errors import QuotaExceeded, StartError, StorageAway
from atoll.manifests.every import shared_files
from atoll.postgres.pool import Postgres
from tests.certificates import make_authority, make_certificate, require_openssl
from tests.postgres_server import opened_database

STORES = "secrets_stores"


class SmallNodes:
    """Nodes as folders, each with its copies of the small databases."""

    def __init__(self, pool: Postgres, folder: Path) -> None:
        self.pool = pool
        self.folder = folder
        self.all: list[SharedFiles] = []
        (folder / "key").mkdir()
        self.vault = Vault(folder / "key", None)

    async def database(self, name: str = STORES) -> SharedDatabase:
        folder = self.folder / str(len(self.all))
        folder.mkdir()
        self.all.append(SharedFiles(self.pool, folder))
        return await self.all[-1].open(name, shared_files()[name])

    async def stores(self) -> tuple[SecretsStores, SharedDatabase]:
        database = await self.database()
        return SecretsStores(database, self.vault), database


@pytest.fixture
async def small(tmp_path: Path) -> AsyncIterator[SmallNodes]:
    made = SmallNodes(await opened_database("email"), tmp_path)
    yield made
    for files in made.all:
        await files.close()
    await made.pool.close()


def shown(stores: SecretsStores, name: str = "key") -> str | None:
    found = stores.find("acme", "team", name)
    return None if found is None else stores.value(found)


async def test_a_secret_that_one_node_puts_changes_and_deletes_is_the_same_on_the_other(small: SmallNodes) -> None:
    first, one = await small.stores()
    second, two = await small.stores()
    await first.make_store("acme", "team")
    await first.put("acme", "team", "key", "swordfish", "")
    assert shown(first) == "swordfish" and shown(second) is None
    await two.follow()
    assert shown(second) == "swordfish"
    await second.put("acme", "team", "key", "mackerel", "")
    await one.follow()
    assert shown(first) == "mackerel"
    await first.seal_anew()
    await two.follow()
    assert shown(second) == "mackerel"
    await second.delete("acme", "team", "key")
    await one.follow()
    assert shown(first) is None and first.has_store("acme", "team")
    assert second.find("other", "team", "key") is None


async def test_a_node_that_starts_later_has_all_secrets(small: SmallNodes) -> None:
    first, _ = await small.stores()
    await first.make_store("acme", "team")
    await first.put("acme", "team", "key", "swordfish", "")
    late, _ = await small.stores()
    assert shown(late) == "swordfish"


async def test_no_secret_is_left_in_a_store_that_another_node_deletes(small: SmallNodes) -> None:
    first, _ = await small.stores()
    second, two = await small.stores()
    await first.make_store("acme", "team")
    await two.follow()
    await first.delete_store("acme", "team")
    with pytest.raises((StoreGone, StaleWrite)):  # this node has not heard of it yet
        await second.put("acme", "team", "key", "swordfish", "")
    await two.follow()
    assert shown(second) is None and not second.has_store("acme", "team")
    assert two.read(lambda connection: connection.execute("SELECT * FROM secrets").fetchall()) == []


async def test_two_nodes_together_keep_to_the_limit_of_a_tenant(
    small: SmallNodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "MAX_STORES", 3)
    nodes = [await small.stores() for _ in range(2)]

    async def make(node: int, number: int) -> bool:
        while True:
            try:
                await nodes[node][0].make_store("acme", f"{node}-{number}")
                return True
            except StaleWrite:
                await nodes[node][1].follow()
            except QuotaExceeded:
                return False

    made = await asyncio.gather(*(make(node, number) for node in (0, 1) for number in range(4)))
    assert sum(made) == 3
    for stores, database in nodes:
        await database.follow()
        assert len(stores.stores_of("acme")) == 3


async def test_a_write_that_fails_leaves_memory_as_it_was(small: SmallNodes) -> None:
    stores, _ = await small.stores()
    await stores.make_store("acme", "team")
    await stores.put("acme", "team", "key", "old", "")
    older = Membership(small.pool, name="old", address="127.0.0.1:1", release="0", alone=False)
    await older.join("session", 0)  # its row names no schemas, as that of a release that did not share this
    with pytest.raises(StorageAway, match="upgrade it"):
        await stores.put("acme", "team", "key", "new", "")
    with pytest.raises(StorageAway):
        await stores.delete_store("acme", "team")
    assert shown(stores) == "old"
    await older.leave()
    await stores.put("acme", "team", "key", "new", "")
    assert shown(stores) == "new"


async def test_a_certificate_of_one_node_is_presented_by_the_other(small: SmallNodes, tmp_path: Path) -> None:
    require_openssl()
    make_certificate(tmp_path / "made", "shop", "shop.example", authority=make_authority(tmp_path))
    certificate, key = ((tmp_path / f"made/shop.{end}").read_text() for end in ("pem", "key"))
    one, two = await small.database("mtls_certificates"), await small.database("mtls_certificates")
    first, second = (ClientCertificates(each, small.vault, "") for each in (one, two))
    await first.add("acme", "shop", certificate, key)
    await two.follow()
    found = second.find("acme", "shop")
    assert found is not None
    assert (await second.identity(found)).context is not None
    await second.delete(found)
    await one.follow()
    assert first.of_tenant("acme") == []


async def test_all_nodes_together_send_as_many_emails_as_a_tenant_may(small: SmallNodes) -> None:
    nodes = [PostgresSentCounts(small.pool) for _ in range(3)]
    for counts in nodes:
        counts.bound("acme", 20)

    async def spend(counts: PostgresSentCounts) -> int:
        try:
            await counts.spend("acme", 3)
            return 3
        except EmailFault:
            return 0

    sent = sum(await asyncio.gather(*(spend(nodes[number % 3]) for number in range(12))))
    assert sent == 18 == await nodes[0].today("acme")
    await nodes[1].spend("acme", 2)
    with pytest.raises(EmailFault, match="20"):
        await nodes[2].spend("acme", 1)
    assert await nodes[0].today("other") == 0
    await nodes[0].forget("acme")
    assert await nodes[1].today("acme") == 0


async def test_what_an_only_node_had_in_a_file_is_shared_after_an_upgrade(small: SmallNodes) -> None:
    old = small.folder / "secrets_stores.db"
    alone = SecretsStores(old, small.vault)
    await alone.make_store("acme", "team")
    await alone.put("acme", "team", "key", "swordfish", "")
    await alone.close()
    database = await small.database()
    await take_over(database, old, shared_files()[STORES])
    assert not old.exists() and (small.folder / "secrets_stores.db.moved").exists()
    assert shown(SecretsStores(database, small.vault)) == "swordfish"
    second, _ = await small.stores()
    assert shown(second) == "swordfish"


async def test_a_file_that_would_mix_with_what_nodes_share_is_refused(small: SmallNodes) -> None:
    old = small.folder / "secrets_stores.db"
    alone = SecretsStores(old, small.vault)
    await alone.make_store("acme", "mine")
    await alone.close()
    stores, database = await small.stores()
    await stores.make_store("acme", "ours")
    with pytest.raises(StartError, match="share other data"):
        await take_over(database, old, shared_files()[STORES])
    assert old.exists() and [each.name for each in stores.stores_of("acme")] == ["ours"]
