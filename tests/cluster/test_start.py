"""Starts that must not succeed say why, and what to do. And what two nodes may not both do, one of them does."""

from __future__ import annotations

import asyncio
import os
import secrets
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import asyncpg
import pytest

from atoll.bindings.cron.postgres import PostgresCronHistory
from atoll.bindings.queue.postgres import PostgresQueues
from atoll.bindings.queue.store import NewMessage, Settlement
from atoll.cluster.nodes import Membership
from atoll.errors import StartError
from atoll.postgres.pool import Postgres
from tests import databases
from tests.databases import PASSWORD
from tests.debian import require
from tests.postgres_server import Place, fresh_database, opened_database
from tests.running import COMMAND, Atoll, free_port


def say(folder: Path, store: str, *flags: str) -> str:
    """What `atoll serve` says before it ends with an error."""
    command = [*COMMAND, f"--data={folder}", f"--port={free_port()}", "--engines=1", *flags]
    ran = subprocess.run(
        command, capture_output=True, text=True, timeout=60, env={**os.environ, "ATOLL_STORE": store}, check=False
    )
    assert ran.returncode == 1, ran.stderr
    assert "hint:" in ran.stderr and "Traceback" not in ran.stderr, ran.stderr
    assert PASSWORD not in ran.stderr and quote(PASSWORD, safe="") not in ran.stderr
    return ran.stderr


async def test_a_database_that_cannot_be_used_is_explained_without_its_password(tmp_path: Path) -> None:
    place = await fresh_database()
    secret = quote(PASSWORD, safe="")
    unreachable = f"postgresql://ada:{secret}@127.0.0.1:{free_port()}/x"
    assert "cannot be reached" in await asyncio.to_thread(say, tmp_path / "a", unreachable)
    wrong = place.url.replace("ada:", "ada:no")
    assert "refuses the user" in await asyncio.to_thread(say, tmp_path / "b", wrong)
    gone = place.url.replace(place.database, "gone")
    assert "no such database" in await asyncio.to_thread(say, tmp_path / "c", gone)
    shown = f"postgresql://127.0.0.1/x?password={secret}"
    assert "would be shown" in await asyncio.to_thread(say, tmp_path / "e", shown)


async def run(place: Place, sql: str) -> None:
    connection = await asyncpg.connect(place.url)
    try:
        await connection.execute(sql)
    finally:
        await connection.close()


async def opening(place: Place) -> str:
    with pytest.raises(StartError) as failed:
        await Postgres(place.url).open()
    assert failed.value.hint
    return str(failed.value)


async def test_a_read_only_database_is_refused() -> None:
    place = await fresh_database()
    await run(place, f"ALTER DATABASE {place.database} SET default_transaction_read_only = on")
    assert "read-only" in await opening(place)


@contextmanager
def pooled(place: Place, *, passes: str) -> Iterator[Place]:
    """The same database through a real PgBouncer. `passes`: parameters of a start that it lets through, and drops."""
    program = require("pgbouncer", "pgbouncer", "/usr/sbin/pgbouncer")
    with databases.server_folder("pgbouncer") as folder:
        port = free_port()
        server = f"host=127.0.0.1 port={place.port} dbname={place.database} user=ada password='{PASSWORD}'"
        (folder / "pgbouncer.ini").write_text(
            f"[databases]\n{place.database} = {server}\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n"
            f"auth_type = any\npool_mode = transaction\nunix_socket_dir =\nlogfile = {folder}/log\n"
            f"ignore_startup_parameters = {passes}\n"
        )
        databases.own(folder, "postgres")
        with databases.running("postgres", program, str(folder / "pgbouncer.ini")):
            databases.wait(port)
            yield Place(f"postgresql://ada:x@127.0.0.1:{port}/{place.database}", port, place.database)


@pytest.mark.parametrize("passes", ["extra_float_digits", "search_path,atoll.direct"])
async def test_a_connection_pooler_in_between_is_found_and_named(passes: str) -> None:
    with pooled(await fresh_database(), passes=passes) as place:
        assert "connection pooler" in await opening(place)


async def test_tables_of_a_newer_release_are_refused_and_not_changed(tmp_path: Path) -> None:
    pool = await opened_database("r2")
    await pool.run("UPDATE migrations SET number = 99, oldest = 99 WHERE part = 'r2'")
    said = await asyncio.to_thread(say, tmp_path, pool._address)
    assert "belongs to a newer Atoll (the tables of r2 need 99" in said
    assert await pool.value("SELECT count(*) FROM nodes") == 0
    await pool.close()


async def test_a_folder_of_one_kind_of_node_is_not_used_by_the_other(tmp_path: Path) -> None:
    place = await fresh_database()
    (tmp_path / "own").mkdir()
    (tmp_path / "own/atoll.db").touch()
    assert "without PostgreSQL" in await asyncio.to_thread(say, tmp_path / "own", place.url)
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared/shared-atoll.db").touch()
    assert "store is not set" in await asyncio.to_thread(say, tmp_path / "shared", "sqlite")


async def test_a_node_with_another_root_key_or_beside_an_only_node_does_not_join(tmp_path: Path) -> None:
    place = await fresh_database()
    first = Atoll(tmp_path / "first", store=place.url, engines=1, spares=0, only_node="on")
    await asyncio.to_thread(first.start)
    try:
        data = tmp_path / "second"
        assert "root key" in await asyncio.to_thread(say, data, place.url)
        (data / "root-key").write_bytes((first.folder / "data/root-key").read_bytes())
        assert "only_node on" in await asyncio.to_thread(say, data, place.url)
        made = first.control("GET", "/api/d1")
        assert made.status == 200, made.text
    finally:
        await asyncio.to_thread(first.stop)


async def test_a_node_with_shared_data_is_not_replaced_but_drained(tmp_path: Path) -> None:
    place = await fresh_database()
    said = await asyncio.to_thread(say, tmp_path / "new", place.url, "--replace")
    assert "--replace does not work" in said and "atoll nodes drain" in said
    assert not (tmp_path / "new").exists(), "it is refused before anything is made"


def member(pool: Postgres, name: str, *, alone: bool = False) -> Membership:
    return Membership(pool, name=name, address="127.0.0.1:1", release="0", alone=alone)


async def test_two_nodes_cannot_have_one_name_and_a_lease_ends_by_the_clock_of_the_database() -> None:
    pool = await opened_database()
    first, second = member(pool, "a"), member(pool, "a")
    await first.join("1", 0)
    with pytest.raises(StartError, match="named a is running"):
        await second.join("2", 0)
    await pool.run("UPDATE nodes SET expires = clock_timestamp() - interval '1 second'")
    assert await first.renew(0) is None, "its lease had ended"
    await second.join("2", 0)
    assert await second.live() == ["2"] and await second.renew(0) == ""
    with pytest.raises(StartError, match="only_node"):
        await member(pool, "b", alone=True).join("3", 0)
    await pool.close()


class Two:
    """Sessions of two nodes, of which some live."""

    def __init__(self, alive: set[str]) -> None:
        self.session = secrets.token_hex(4)
        self.ahead_ms = 0
        self._alive = alive
        alive.add(self.session)

    async def live(self) -> list[str]:
        return list(self._alive)


async def test_one_of_two_nodes_starts_a_slot() -> None:
    pool, alive = await opened_database("cron"), set[str]()
    nodes = [PostgresCronHistory(pool, Two(alive), time.time) for _ in range(2)]
    for slot in range(20):
        started = await asyncio.gather(*(node.begin("w", "* * * * *", slot, by_hand=False) for node in nodes))
        assert sorted(number is None for number in started) == [False, True]
    assert len(await nodes[0].runs("w")) == 20
    await pool.close()


async def test_a_message_of_a_lost_node_is_delivered_by_another_and_the_lost_one_settles_nothing() -> None:
    pool, alive = await opened_database("queue"), set[str]()
    lost, lives = Two(alive), Two(alive)
    first, second = PostgresQueues(pool, lost, time.time), PostgresQueues(pool, lives, time.time)
    told: list[int] = []
    second.on_change(told.append)
    queue = await first.ensure("alice", "jobs")
    await first.send(queue.id, [NewMessage("text", b"%d" % i, 0) for i in range(100)])
    taken = await asyncio.gather(*(store.lease(queue.id, 10) for store in (first, second) for _ in range(5)))
    seqs = [message.seq for batch in taken for message in batch]
    assert len(seqs) == len(set(seqs)) == 100, "no message went to two"
    await second.look()
    assert await second.lease(queue.id, 100) == []
    alive.discard(lost.session)
    await second.look()
    assert told == [queue.id]
    again = await second.lease(queue.id, 100)
    assert len(again) == 50 and {message.attempts for message in again} == {2}
    await first.settle(queue.id, Settlement([message.seq for message in again], [], []))
    assert (await second.depth(queue.id)).leased == 100, "the lost node has nothing to settle"
    await pool.close()
