"""Many writers, one thread: an acknowledged write is stored, and a failing write affects no other."""

from __future__ import annotations

import asyncio
import logging
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from pathlib import Path

import apsw
import pytest

from atoll.db.sqlite import MAX_BATCH, Database, DatabaseClosed, rows
from atoll.errors import StartError


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    opened = Database(tmp_path / "test.db")
    await opened.write(lambda c: run(c, "CREATE TABLE t (n INTEGER UNIQUE) STRICT"))
    yield opened
    await opened.close()


def run(connection: apsw.Connection, sql: str) -> None:
    connection.execute(sql)


def insert(number: int) -> object:
    def act(connection: apsw.Connection) -> int:
        connection.execute("INSERT INTO t VALUES (?)", (number,))
        return number

    return act


def numbers(database: Database) -> list[int]:
    return database.read(lambda c: rows(c, int, "SELECT n FROM t ORDER BY n"))


async def test_a_write_returns_its_result_and_is_visible_to_reads(database: Database) -> None:
    assert await database.write(insert(7)) == 7
    assert numbers(database) == [7]


async def test_the_tables_are_safe_against_power_cuts_and_wrong_references(database: Database) -> None:
    def pragmas(connection: apsw.Connection) -> list[object]:
        return [connection.pragma(name) for name in ("journal_mode", "synchronous", "foreign_keys")]

    assert await database.write(pragmas) == ["wal", 2, 1]


async def test_a_failing_write_does_not_undo_its_neighbours(database: Database) -> None:
    def broken(connection: apsw.Connection) -> None:
        connection.execute("INSERT INTO t VALUES (1000)")
        raise ValueError("mine alone")

    wanted = [insert(1), broken, insert(1), insert(2)]
    first, second, third, fourth = await asyncio.gather(*map(database.write, wanted), return_exceptions=True)
    assert (first, fourth) == (1, 2)
    assert isinstance(second, ValueError) and isinstance(third, apsw.ConstraintError)
    assert numbers(database) == [1, 2]


async def test_waiting_writes_share_one_transaction(database: Database) -> None:
    hold, held = threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def slow(connection: apsw.Connection) -> None:
        loop.call_soon_threadsafe(held.set)
        assert hold.wait(10)

    commits: list[int] = []
    database._writer.set_commit_hook(lambda: bool(commits.append(1)))
    first = asyncio.ensure_future(database.write(slow))
    await held.wait()
    rest = [asyncio.ensure_future(database.write(insert(i))) for i in range(MAX_BATCH + 10)]
    await asyncio.sleep(0)
    hold.set()
    await asyncio.gather(first, *rest)
    assert len(commits) == 3  # the slow one, a full batch, the remaining ten
    database._writer.set_commit_hook(None)
    assert numbers(database) == list(range(MAX_BATCH + 10))


async def test_a_failed_transaction_fails_all_its_writes(database: Database) -> None:
    def spoil(connection: apsw.Connection) -> None:
        connection.execute("ROLLBACK")

    outcomes = await asyncio.gather(
        database.write(insert(1)), database.write(spoil), database.write(insert(2)), return_exceptions=True
    )
    assert all(isinstance(outcome, apsw.Error) for outcome in outcomes)
    assert numbers(database) == []
    await database.write(insert(3))
    assert numbers(database) == [3]


async def test_a_cancelled_caller_does_not_stop_its_write(database: Database) -> None:
    task = asyncio.ensure_future(database.write(insert(1)))
    await asyncio.sleep(0)
    task.cancel()
    await database.write(insert(2))
    assert numbers(database) == [1, 2]


async def test_closing_finishes_waiting_writes_and_refuses_new_ones(tmp_path: Path) -> None:
    database = Database(tmp_path / "test.db")
    await database.write(lambda c: run(c, "CREATE TABLE t (n INTEGER UNIQUE) STRICT"))
    waiting = [asyncio.ensure_future(database.write(insert(i))) for i in range(20)]
    await asyncio.sleep(0)
    await asyncio.gather(database.close(), database.close())
    assert [await write for write in waiting] == list(range(20))
    with pytest.raises(DatabaseClosed):
        await database.write(insert(99))
    database.post(lambda c: None)
    assert os.listdir(tmp_path) == ["test.db"]  # the log is merged into the file
    again = Database(tmp_path / "test.db")
    assert numbers(again) == list(range(20))
    await again.close()


async def test_a_posted_write_that_fails_is_logged(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR)
    database.post(lambda c: run(c, "INSERT INTO nowhere VALUES (1)"))
    database.post(lambda c: run(c, "INSERT INTO t VALUES (1)"))
    await database.write(insert(2))
    assert numbers(database) == [1, 2]
    assert "no such table: nowhere" in caplog.text


async def test_reads_continue_during_a_write(database: Database) -> None:
    await database.write(insert(1))
    hold, held = threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def slow(connection: apsw.Connection) -> None:
        connection.execute("INSERT INTO t VALUES (2)")
        loop.call_soon_threadsafe(held.set)
        assert hold.wait(10)

    write = asyncio.ensure_future(database.write(slow))
    await held.wait()
    assert numbers(database) == [1]
    hold.set()
    await write
    assert numbers(database) == [1, 2]


async def test_only_the_owner_can_read_the_database_files(tmp_path: Path) -> None:
    """The folder itself may be open to everyone, such as an existing volume."""
    opened = Database(tmp_path / "atoll.db")
    await opened.write(lambda connection: connection.execute("CREATE TABLE t (a)"))
    modes = [os.stat(tmp_path / name).st_mode & 0o777 for name in os.listdir(tmp_path)]
    await opened.close()
    assert modes == [0o600] * 3


async def test_a_file_that_is_not_a_database_is_refused_with_a_hint(tmp_path: Path) -> None:
    (tmp_path / "test.db").write_bytes(b"not a database at all, but long enough to look at" * 100)
    with pytest.raises(StartError, match="is not a database") as error:
        Database(tmp_path / "test.db")
    assert "restore" in error.value.hint and "move the file away" in error.value.hint
    with pytest.raises(StartError, match="cannot be opened"):
        Database(tmp_path / "missing" / "test.db")


KILLED_WHILE_WRITING = """
import asyncio, os, sys
from pathlib import Path
from atoll.db.sqlite import Database

async def main():
    database = Database(Path(sys.argv[1]))
    await database.write(lambda c: c.execute("CREATE TABLE t (n INTEGER UNIQUE) STRICT") and None)
    for n in range(10_000):
        await database.write(lambda c: c.execute("INSERT INTO t VALUES (?)", (n,)) and None)
        print(n, flush=True)

asyncio.run(main())
"""


def acknowledged_before_the_kill(path: Path) -> int:
    """The last number that the child reported as written before it was killed."""
    told = -1
    with subprocess.Popen([sys.executable, "-c", KILLED_WHILE_WRITING, str(path)], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        for line in child.stdout:
            told = int(line)
            if told == 30:
                child.kill()
    return told


async def test_acknowledged_writes_survive_a_kill(tmp_path: Path) -> None:
    told = acknowledged_before_the_kill(tmp_path / "test.db")
    database = Database(tmp_path / "test.db")
    kept = numbers(database)
    await database.close()
    assert told >= 30 and kept == list(range(len(kept))) and len(kept) > told
