"""Migrations run once, in order, completely or not at all, and never backward."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest

from atoll.db.migrate import migrate, migrations, user_version
from atoll.db.sqlite import Database, rows
from atoll.errors import StartError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "migrations"
    folder.mkdir()
    (folder / "0001_first.sql").write_text("CREATE TABLE a (x); INSERT INTO a VALUES (1);")
    (folder / "0002_second.sql").write_text("INSERT INTO a VALUES (2);")
    return folder


def test_each_is_applied_once_and_in_order(folder: Path) -> None:
    connection = apsw.Connection(":memory:")
    assert migrate(connection, Path("test.db"), folder) == 2
    assert migrate(connection, Path("test.db"), folder) == 2
    (folder / "0003_third.sql").write_text("INSERT INTO a VALUES (3)")
    assert migrate(connection, Path("test.db"), folder) == 3
    assert rows(connection, int, "SELECT x FROM a") == [1, 2, 3]
    connection.close()


def test_a_failed_migration_leaves_no_changes(folder: Path) -> None:
    (folder / "0002_second.sql").write_text("INSERT INTO a VALUES (2); INSERT INTO missing VALUES (1);")
    connection = apsw.Connection(":memory:")
    with pytest.raises(apsw.SQLError):
        migrate(connection, Path("test.db"), folder)
    assert user_version(connection) == 1
    assert rows(connection, int, "SELECT x FROM a") == [1]
    connection.close()


async def test_a_database_of_a_newer_atoll_is_refused(tmp_path: Path) -> None:
    database = Database(tmp_path / "atoll.db")
    await database.write(lambda c: c.pragma("user_version", 999) and None)
    await database.close()
    with pytest.raises(StartError, match=r"newer Atoll.*999") as error:
        Database(tmp_path / "atoll.db")
    assert "--data" in error.value.hint


def test_migrations_are_numbered_without_gaps() -> None:
    assert [number for number, _ in migrations()] == list(range(1, len(migrations()) + 1))
