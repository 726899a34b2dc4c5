"""A node with 5,000 workers: neither lists nor metrics make a quiet tenant wait, and lists are given in pages."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from atoll.api.cloudflare import account_id
from tests.stalls.stage import BUSY_WAIT_MS, Stage, Watching

WORKERS = 5_000
ROUNDS = 3  # as in test_stalls.py


SOURCES = {  # of the rows that are copied, and the columns that become others in each copy
    "workers": ("workers WHERE name = ?", {"id", "name", "active_version"}),
    "versions": ("versions WHERE worker_id = (SELECT id FROM workers WHERE name = ?)", {"id", "worker_id"}),
    "modules": ("modules WHERE version_id = (SELECT active_version FROM workers WHERE name = ?)", {"version_id"}),
}


def multiply(data: Path, name: str, count: int) -> None:
    """Copy a worker in the database of a node that is stopped."""
    database = sqlite3.connect(data / "atoll.db")
    numbers = f"WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < {count:d})"
    with database:
        for table, (source, changed) in SOURCES.items():
            columns = [row[1] for row in database.execute(f"PRAGMA table_info({table})")]
            values = [f"{column} || '-' || n" if column in changed else column for column in columns]
            into = f"INSERT INTO {table} ({', '.join(columns)})"
            database.execute(
                f"{into} {numbers} SELECT {', '.join(values)} FROM numbers, (SELECT * FROM {source})", [name]
            )
    database.close()


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    stage = Stage(tmp_path_factory.mktemp("many"))
    stage.deploy("copied", "export default { fetch() { return new Response('copied'); } };", env={"A": "x" * 300})
    assert stage.node.stop() == 0
    multiply(stage.node.folder / "data", "copied", WORKERS)
    stage.node.start()
    for number in range(1, 200):  # so many have series of their own
        assert stage.node.get(f"copied-{number}").text == "copied"
    yield stage
    stage.close()


ACCOUNT = f"/client/v4/accounts/{account_id('mallory')}"
PATHS = [
    "/api/workers", "/api/workers?limit=1000", "/api/routes?limit=1000", "/metrics", "/", "/api/overview?limit=1000",
    f"{ACCOUNT}/workers/scripts?per_page=1000", f"{ACCOUNT}/workers/workers?per_page=1000&page=5",
    f"{ACCOUNT}/workers/domains",
]  # fmt: skip


@pytest.mark.parametrize("path", PATHS)
def test_with_5_000_workers_nobody_waits_for(path: str, stage: Stage) -> None:
    headers = {} if path in ("/metrics", "/") else {"Authorization": f"Bearer {stage.token}"}
    for _ in range(ROUNDS):
        with Watching(stage.node) as watching:
            for _ in range(3):
                assert stage.ask("GET", path, None, headers).status == 200
            stall = watching.end()
        assert stall.memory_mb <= 64
        if stall.wait_ms <= BUSY_WAIT_MS:
            return
    pytest.fail(f"the quiet tenant waited {stall.wait_ms:.0f} ms")


def test_a_list_is_given_in_pages_that_hold_all_of_it_once(stage: Stage) -> None:
    names: list[str] = []
    cursor = ""
    while True:
        page = stage.control("GET", f"/api/workers?limit=999{cursor}").json
        assert len(page["workers"]) <= 999
        names += [worker["name"] for worker in page["workers"]]
        if "cursor" not in page:
            break
        cursor = f"&cursor={page['cursor']}"
    assert len(names) == WORKERS + 1 and names == sorted(set(names))
    assert len(stage.control("GET", "/api/workers").json["workers"]) == 100
    assert stage.control("GET", "/api/workers?limit=1001").status == 400
