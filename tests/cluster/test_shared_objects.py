"""The storage of objects that nodes share, with two of them on a real PostgreSQL."""

from __future__ import annotations

import asyncio
import os
import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import asyncpg
import pytest

from atoll.errors import StartError, StorageAway, StorageFailed
from atoll.objects.shared import kept_alone
from atoll.objects.shared.store import SharedObjects
from atoll.objects.store import PAGE, SET_ALARM, Commit, Elsewhere, ObjectKey
from atoll.postgres.pool import Postgres
from tests.postgres_server import fresh_database, opened_database

from atoll.cluster.nodes import Membership  # isort: skip

CUT = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
CUT += " AND application_name = 'atoll' AND datname = current_database()"
KEY = ObjectKey("ab" * 16, "cd" * 32)


class Pair:
    """Two nodes, each with a pool, a row among nodes and a storage of its own."""

    def __init__(self) -> None:
        self.pools: list[Postgres] = []
        self.members: list[Membership] = []
        self.stores: list[SharedObjects] = []
        self.url = ""

    async def add(self, folder: Path) -> None:
        pool = Postgres(self.url)
        await pool.open()
        name = f"node{len(self.pools)}"
        members = Membership(pool, name=name, address=name, release="1", alone=False)
        await members.join(secrets.token_hex(8), 0)
        self.pools.append(pool)
        self.members.append(members)
        self.stores.append(await SharedObjects.start(pool, members, folder / name))


@pytest.fixture
async def pair(tmp_path: Path) -> AsyncIterator[Pair]:
    made = Pair()
    first = await opened_database()
    made.url = first._address
    for _ in range(2):
        await made.add(tmp_path)
    yield made
    for store, pool in zip(made.stores, made.pools, strict=True):
        await store.stop()
        await pool.close()
    await first.close()


def commit(store: SharedObjects, sequence: int, content: bytes, pages: int = 1, **more: int) -> asyncio.Future[None]:
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def settle(error: Exception | None) -> None:
        done.set_result(None) if error is None else done.set_exception(error)

    numbers = pages.to_bytes(4, "little")
    store.commit(KEY, Commit(sequence, pages, numbers, content.ljust(PAGE, b"\0"), **more), settle)
    return done


async def read(store: SharedObjects) -> tuple[int, bytes]:
    """The number of the last commit, and the last page."""
    opened = await store.open(KEY)
    try:
        return opened.sequence, os.pread(opened.fd, PAGE, max(opened.pages - 1, 0) * PAGE).rstrip(b"\0")
    finally:
        os.close(opened.fd)


async def end_lease(pair: Pair, node: int) -> None:
    await pair.pools[node].run("UPDATE nodes SET expires = now() WHERE session = $1", pair.members[node].session)


async def test_an_object_is_taken_only_when_its_owner_is_gone_and_nothing_of_it_is_stored_afterwards(
    pair: Pair,
) -> None:
    first, second = pair.stores
    assert await read(first) == (0, b"")
    await commit(first, 1, b"one")
    with pytest.raises(Elsewhere):
        await second.open(KEY)
    await end_lease(pair, 0)
    assert await read(second) == (1, b"one")
    late = commit(first, 2, b"late")
    with pytest.raises(StorageFailed, match="another node"):
        await late
    await commit(second, 2, b"two")
    with pytest.raises(StorageAway):
        await first.open(KEY)
    assert first.counts()["fenced"] == 1
    first.close(KEY)
    second.close(KEY)
    assert await second.release(KEY)
    await pair.members[0].leave()
    await pair.members[0].join(pair.members[0].session, 0)
    assert await read(first) == (2, b"two"), "its old file was brought up to date"


async def test_commits_that_came_after_a_fenced_one_fail_too(pair: Pair) -> None:
    first, second = pair.stores
    await read(first)
    await end_lease(pair, 0)
    await read(second)
    found = await asyncio.gather(*(commit(first, n, b"x") for n in (1, 2, 3)), return_exceptions=True)
    assert all(isinstance(each, StorageFailed) for each in found)
    assert await read(second) == (0, b"")


async def test_connections_that_are_cut_lose_no_commit_and_store_none_twice(pair: Pair) -> None:
    first, second = pair.stores
    await read(first)
    cutter = await asyncpg.connect(pair.url)
    for sequence in range(1, 21):
        done = commit(first, sequence, b"%d" % sequence)
        if sequence % 2:
            await asyncio.sleep(0)  # it is on its way
            await cutter.fetch(CUT)
        await done  # it is found out what became of it
        for members in pair.members:
            await members.renew(0)
    await cutter.close()
    rows = await pair.pools[1].fetch("SELECT seq FROM object_log ORDER BY seq")
    assert [row["seq"] for row in rows] == list(range(1, 21))
    first.close(KEY)
    assert await first.release(KEY)
    assert await read(second) == (20, b"20")


async def test_alarms_of_a_lost_node_are_taken_by_another_one(pair: Pair) -> None:
    first, second = pair.stores
    await read(first)
    await commit(first, 1, b"x", alarm=SET_ALARM, alarm_ms=1_000)
    await second.look()
    assert second.next_alarm() is None
    await end_lease(pair, 0)
    await second.look()
    [alarm] = second.due_alarms(2_000, 10)
    assert (alarm.key, alarm.at_ms, alarm.sequence) == (KEY, 1_000, 1)
    await second.clear_alarm(alarm)
    await second.look()
    assert second.next_alarm() is None


async def test_a_deleted_object_begins_anew_on_whatever_node(pair: Pair) -> None:
    first, second = pair.stores
    await read(first)
    await commit(first, 1, b"old")
    first.close(KEY)
    await first.delete(KEY)
    assert await read(second) == (0, b"")
    await commit(second, 1, b"new")
    assert [each.id for each in await first.list_objects(KEY.namespace, "", 10)] == [KEY.id]
    second.close(KEY)
    await second.delete_namespace(KEY.namespace)
    assert await first.list_objects(KEY.namespace, "", 10) == []
    assert await pair.pools[0].value("SELECT count(*) FROM object_log") == 0


async def test_objects_are_on_one_disk_or_in_postgresql_and_never_in_both(pair: Pair) -> None:
    await read(pair.stores[0])
    with pytest.raises(StartError, match="only_node"):
        await kept_alone.keep(pair.pools[0], "alone")
    empty = Postgres((await fresh_database()).url)
    await empty.open()
    try:
        await kept_alone.keep(empty, "alone")
        with pytest.raises(StartError, match="the node alone alone"):
            await kept_alone.refuse_kept(empty)
        await kept_alone.stop_keeping(empty, "alone")
        await kept_alone.refuse_kept(empty)
    finally:
        await empty.close()
