"""A large bucket costs no more than a small one: every query finds its rows by an index, and none sorts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from atoll.bindings.r2 import garbage, multipart, rows, sqlite
from atoll.bindings.r2.rows import list_page
from atoll.bindings.r2.sqlite import SqliteObjects
from atoll.bindings.r2.store import ListQuery
from bench import r2_size
from tests.bindings.r2.test_r2_store import ALICE

COUNT = 20_000
QUERIES = {
    "list": (rows.LIST.format("http", "custom"), 4),
    "find": (rows.FIND, 2),
    "open": (rows.OPEN, 2),
    "segment": (sqlite.SEGMENT, 2),
    "uploads": (sqlite.UPLOADS, 6),
    "parts": (sqlite.PARTS, 3),
    "old uploads": (garbage.OLD_UPLOADS, 2),
    "a file of a killed node": (garbage.KNOWS_FILE, 1),
    "garbage": (garbage.SOME_GARBAGE, 4),
    "part": (multipart.PART, 2),
}


@pytest.fixture
async def index(tmp_path: Path) -> apsw.Connection:
    """The index of a bucket with many objects, filled as bench/r2_size.py does."""
    store = SqliteObjects(tmp_path)
    await store.create(ALICE, 0)
    await store.close()
    connection = apsw.Connection(str(tmp_path / "r2" / "index.db"))
    connection.execute("UPDATE buckets SET name = 'bench'")
    with connection:
        connection.execute(r2_size.FILL_BODIES, (COUNT,))
        connection.execute(r2_size.FILL_OBJECTS, (COUNT,))
    return connection


def plan(connection: apsw.Connection, sql: str, values: int) -> list[str]:
    return [str(row[3]) for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", (1,) * values)]


@pytest.mark.parametrize("name", QUERIES)
def test_a_query_searches_an_index_and_sorts_nothing(index: apsw.Connection, name: str) -> None:
    steps = plan(index, *QUERIES[name])
    assert steps
    for step in steps:
        assert not step.startswith("SCAN") or step == "SCAN CONSTANT ROW", steps
        assert "TEMP B-TREE" not in step, steps


def steps_of(connection: apsw.Connection, act: Callable[[], object]) -> int:
    """How many steps of its virtual machine SQLite takes for an act, in tens."""
    ticks = 0

    def tick() -> bool:
        nonlocal ticks
        ticks += 1
        return False

    connection.set_progress_handler(tick, 10)
    act()
    connection.set_progress_handler(None)
    return ticks


def page_of(connection: apsw.Connection, query: ListQuery) -> tuple[int, int]:
    """How many objects and groups a page has, and its steps."""
    page = list_page(connection, 1, query)
    return len(page.objects) + len(page.groups), steps_of(connection, lambda: list_page(connection, 1, query))


def test_a_page_costs_the_same_everywhere_in_a_bucket(index: apsw.Connection) -> None:
    listed, first = page_of(index, ListQuery())
    assert listed == 1_000 and first < 5_000, "less than fifty steps for each object"
    for query in (ListQuery(start=b"dir-0018/0500"), ListQuery(prefix=b"dir-0019/")):
        listed, last = page_of(index, query)
        assert listed == 1_000 and last < 1.2 * first
    groups, steps = page_of(index, ListQuery(delimiter=b"/"))
    assert groups == 20 and steps < first / 10, "the keys of a group are skipped"


def test_a_start_does_not_look_at_every_object(index: apsw.Connection) -> None:
    """A plan does not show it: the search for a maximum without an index looks like one with it."""
    [(last,)] = index.execute(sqlite.LAST_CONTENT)
    assert last == COUNT
    assert steps_of(index, lambda: index.execute(sqlite.LAST_CONTENT).fetchall()) < 10
