"""Copies of one shared database, over a real PostgreSQL: every write is in the log once, and every copy is the same."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import apsw
import pytest

from atoll.cluster.log import PostgresLog
from atoll.cluster.shared_files import SharedFiles
from atoll.control.store.label_rows import read_labels, write_labels
from atoll.db.shared import LoggedChange, SharedDatabase, StaleWrite
from atoll.db.touched import Touched
from atoll.errors import StartError, StorageAway
from atoll.postgres.pool import Postgres
from tests.eventually import eventually
from tests.postgres_server import opened_database

INSERT = "INSERT INTO tenants (name, created_at, quotas, hosts, egress) VALUES (?, ?, '{}', 'null', '{}')"
WORKER = "INSERT INTO workers (id, name, tenant, created_at, updated_at) VALUES (?, ?, 'default', 0, 0)"
TOKEN = "INSERT INTO tokens (id, hash, name, scopes, created_at) VALUES (?, x'00', ?, '[]', 0)"


class Cluster:
    """Nodes as folders, each with its copy."""

    def __init__(self, pool: Postgres, folder: Path) -> None:
        self.pool = pool
        self.folder = folder
        self.files: dict[str, SharedFiles] = {}

    async def node(self, name: str) -> SharedDatabase:
        (self.folder / name).mkdir(exist_ok=True)
        self.files[name] = SharedFiles(self.pool, self.folder / name)
        return await self.files[name].open("atoll", None)

    async def close(self, name: str) -> None:
        await self.files.pop(name).close()


@pytest.fixture
async def cluster(tmp_path: Path) -> AsyncIterator[Cluster]:
    made = Cluster(await opened_database(), tmp_path)
    yield made
    for name in list(made.files):
        await made.close(name)
    await made.pool.close()


def run(sql: str, *values: Any) -> Callable[[apsw.Connection], None]:
    def act(connection: apsw.Connection) -> None:
        connection.execute(sql, values)

    return act


def contents(database: SharedDatabase, table: str = "tenants") -> list[Any]:
    return database.read(lambda connection: connection.execute(f"SELECT * FROM {table} ORDER BY 1, 2").fetchall())


async def test_a_write_on_one_node_is_on_the_others_after_they_follow(cluster: Cluster) -> None:
    first, second = await cluster.node("1"), await cluster.node("2")
    heard: list[Touched] = []

    async def listen(touched: Touched) -> None:
        heard.append(touched)

    second.listen(listen)
    await first.write(run(INSERT, "acme", 1))
    await second.follow()
    assert contents(first) == contents(second) and len(contents(second)) == 2
    assert [touched.keys for touched in heard] == [{("tenants", "acme")}]
    assert first.position == second.position == 1


async def test_writes_of_all_nodes_at_once_are_all_there_on_each(cluster: Cluster) -> None:
    nodes = [await cluster.node(name) for name in "123"]
    numbers = range(40)
    await asyncio.gather(
        *(node.write(run(TOKEN, f"{place}-{number}", "t")) for place, node in enumerate(nodes) for number in numbers)
    )
    for node in nodes:
        await node.follow()
    found = [contents(node, "tokens") for node in nodes]
    assert found[0] == found[1] == found[2] and len(found[0]) == 3 * 40
    seqs = [row["seq"] for row in await cluster.pool.fetch("SELECT seq FROM changes ORDER BY seq")]
    assert seqs == list(range(1, len(seqs) + 1)), "the numbers have no gaps"


async def test_two_nodes_cannot_change_the_same_row_from_the_same_state(cluster: Cluster) -> None:
    first, second = await cluster.node("1"), await cluster.node("2")
    await first.write(run(WORKER, "w", "shop"))
    await second.follow()
    await first.write(run("UPDATE workers SET updated_at = 1 WHERE id = 'w'"))
    with pytest.raises(StaleWrite, match="another node"):
        await second.write(run("UPDATE workers SET updated_at = 2 WHERE id = 'w'"))
    assert contents(first, "workers") == contents(second, "workers")
    await second.follow()
    await second.write(run("UPDATE workers SET updated_at = 3 WHERE id = 'w'"))


async def test_labels_of_cloudflare_and_sessions_are_on_all_nodes_and_go_with_what_they_belong_to(
    cluster: Cluster,
) -> None:
    first, second = await cluster.node("1"), await cluster.node("2")
    await first.write(run(WORKER, "w", "shop"))
    await first.write(lambda connection: write_labels(connection, "w", "", '{"a":1}'))
    await second.follow()
    await second.write(lambda connection: write_labels(connection, "w", "", '{"a":2}'))
    await second.write(run("INSERT INTO sessions VALUES (x'01ff', 't', 0, 0)"))
    await first.follow()
    assert first.read(lambda connection: read_labels(connection, "w", "")) == '{"a":2}'
    assert contents(first, "sessions") == contents(second, "sessions") == [(b"\x01\xff", "t", 0, 0)]
    await first.write(run("DELETE FROM workers WHERE id = 'w'"))
    await first.write(run("DELETE FROM sessions"))
    await second.follow()
    assert contents(second, "cloudflare_labels") == contents(second, "sessions") == []


async def test_two_nodes_cannot_claim_hosts_from_the_same_state(cluster: Cluster) -> None:
    first, second = await cluster.node("1"), await cluster.node("2")
    for name in ("a", "b"):
        await first.write(run(WORKER, name, name))
    await second.follow()
    await first.write(run("INSERT INTO routes VALUES ('shop.example/*', 'a')"))
    with pytest.raises(StaleWrite):  # the pattern is another one, but the host may belong to another tenant now
        await second.write(run("INSERT INTO routes VALUES ('shop.example/api/*', 'b')"))
    assert len(contents(second, "routes")) == 1


async def test_a_name_that_another_node_took_is_refused_and_not_a_bug(cluster: Cluster) -> None:
    first, second = await cluster.node("1"), await cluster.node("2")
    await first.write(run(WORKER, "w1", "shop"))
    with pytest.raises(StaleWrite):
        await second.write(run(WORKER, "w2", "shop"))
    with pytest.raises(apsw.ConstraintError):  # now it knows
        await second.write(run(WORKER, "w2", "shop"))


async def test_deleting_a_worker_deletes_what_belongs_to_it_everywhere(cluster: Cluster) -> None:
    first, second = await cluster.node("1"), await cluster.node("2")
    version = (
        "INSERT INTO versions (id, worker_id, number, main, format, env, limits, compatibility_date, routes, handlers,"
        " startup_ms, created_at) VALUES ('v', 'w', 1, 'm', 'module', '{}', '{}', '', '[]', '[]', 1, 0)"
    )
    module = "INSERT INTO modules (version_id, position, path, kind, source) VALUES ('v', 0, 'm', 'esm', x'01')"
    for sql in (version, module):
        if sql is version:
            await first.write(run(WORKER, "w", "shop"))
        await first.write(run(sql))
    await second.follow()
    assert len(contents(second, "modules")) == 1
    await second.write(run("INSERT INTO code_caches VALUES ('v', 'm', '13', x'02')"))
    assert second.position == first.position, "code caches belong to a node"
    await first.write(run("DELETE FROM workers WHERE id = 'w'"))
    await second.follow()
    assert all(contents(second, table) == [] for table in ("workers", "versions", "modules", "code_caches"))


class LostAnswer(PostgresLog):
    """Its next append is committed, but the connection is lost before the answer."""

    lost = 0

    async def append(self, after: int, change: LoggedChange) -> int | None:
        seq = await super().append(after, change)
        if self.lost:
            self.lost -= 1
            raise StorageAway("the connection was lost")
        return seq


async def test_a_write_whose_outcome_is_unknown_is_made_once(cluster: Cluster) -> None:
    first, second = await cluster.node("1"), await cluster.node("2")
    log = LostAnswer(cluster.pool, "atoll")
    first._log = log
    log.lost = 1
    await first.write(run(INSERT, "acme", 1))
    await second.follow()
    assert contents(first) == contents(second) and len(contents(first)) == 2
    assert await cluster.pool.value("SELECT count(*) FROM changes") == 1


async def test_a_new_node_starts_from_a_snapshot_and_the_changes_after_it(cluster: Cluster) -> None:
    first = await cluster.node("1")
    await first.write(run(INSERT, "before", 1))
    await cluster.files["1"].snapshot("atoll")
    await cluster.pool.run("DELETE FROM changes")
    await first.write(run(INSERT, "after", 2))
    second = await cluster.node("2")
    assert contents(second) == contents(first) and len(contents(second)) == 3
    await second.write(run(INSERT, "third", 3))
    await first.follow()
    assert contents(second) == contents(first)


async def test_a_node_that_was_away_for_too_long_takes_the_snapshot_at_its_start(cluster: Cluster) -> None:
    await cluster.node("1")
    second = await cluster.node("2")
    await second.write(run(INSERT, "old", 1))
    await cluster.close("1")
    for number in range(3):
        await second.write(run(INSERT, f"new{number}", 1))
    await cluster.files["2"].snapshot("atoll")
    await cluster.pool.run("DELETE FROM changes")
    first = await cluster.node("1")
    assert contents(first) == contents(second)


async def test_a_database_that_has_lost_commits_is_noticed_at_the_start(cluster: Cluster) -> None:
    first = await cluster.node("1")
    await first.write(run(INSERT, "acme", 1))
    await cluster.close("1")
    await cluster.pool.run("DELETE FROM changes")
    await cluster.pool.run("UPDATE stores SET last = 0")
    await cluster.pool.run("UPDATE feed SET head = 0")
    with pytest.raises(StartError, match="lost commits"):
        await cluster.node("1")


async def test_a_node_with_older_tables_changes_nothing(cluster: Cluster) -> None:
    first = await cluster.node("1")
    await cluster.pool.run("UPDATE stores SET schema = 99")
    with pytest.raises(StorageAway, match="newer Atoll"):
        await first.write(run(INSERT, "acme", 1))
    assert len(contents(first)) == 1


async def test_the_memory_of_a_node_counts_as_current_only_once_its_listeners_are_done(cluster: Cluster) -> None:
    first, second = await cluster.node("1"), await cluster.node("2")
    gate = asyncio.Event()

    async def listen(touched: Touched) -> None:
        await gate.wait()

    second.listen(listen)
    await first.write(run(WORKER, "w", "shop"))
    following = asyncio.ensure_future(second.follow())

    async def has_come() -> bool:
        return len(contents(second, "workers")) == 1

    await eventually(has_come, "the change of the other node")
    with pytest.raises(StaleWrite):  # decided by a memory that has not heard of the worker
        await second.write(run("UPDATE workers SET updated_at = 2 WHERE id = 'w'"))
    gate.set()
    await following
    await second.write(run("UPDATE workers SET updated_at = 2 WHERE id = 'w'"))
