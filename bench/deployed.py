"""Many deployed workers that hardly anybody calls: deploys among them, Python's memory for them, the start of a node
with them, and the first and second request to each of some.

One worker of 20 KB is deployed over the API. The others are copies of its rows, made while the node is stopped, so they
are stored as deploys store them and have its code cache. 100,000 small ones are made in the same way, for the start.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from pathlib import Path

import apsw

from bench.cold_start import Client, realistic_worker
from bench.control import HELLO
from bench.control import Client as ControlClient
from bench.costs import cpu_seconds
from bench.harness import Atoll, first_answer, pss_of
from bench.report import Options, Row, main

DEPLOYED = 5_000
STORED = 100_000
DEPLOYS = 60
CALLED = 300
KEYS = {"workers": "id", "versions": "worker_id", "modules": "version_id", "code_caches": "version_id"}


def copy_workers(server: Atoll, count: int) -> None:
    """Make copies of the first worker, named c1, c2 and so on. The node must be stopped."""
    connection = apsw.Connection(str(Path(server.folder.name) / "data" / "atoll.db"))
    (worker,) = connection.execute("SELECT id, active_version FROM workers WHERE name = 'c0'").fetchall()
    with connection:
        connection.execute("PRAGMA defer_foreign_keys = on")
        connection.execute("CREATE TEMP TABLE numbers AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n"
                           f" WHERE i < {count}) SELECT i FROM n")  # fmt: skip
        changed = {"id": ("workers", "versions"), "worker_id": (), "version_id": (), "active_version": (), "name": ()}
        for table, key in KEYS.items():
            names = [name for _, name, *_ in connection.execute(f"PRAGMA table_info({table})")]
            values = [
                f"{table}.{name}"
                if name not in changed or (name == "name" and table != "workers")
                else "'c' || i"
                if name == "name"
                else f"{table}.{name} || '_' || i"
                for name in names
            ]
            wanted = worker[1] if key == "version_id" else worker[0]
            connection.execute(
                f"INSERT INTO {table} ({', '.join(names)}) SELECT {', '.join(values)} FROM numbers, {table}"
                f" WHERE {table}.{key} = ?",
                (wanted,),
            )
    connection.close()


def deploys(server: Atoll, name: str) -> tuple[float, float]:
    """Milliseconds of a small deploy, and CPU milliseconds of Python for it: medians."""
    client, node = ControlClient(server), server.pids()[:1]
    client.deploy(name, HELLO.format("first"), new=True)
    times = []
    before = cpu_seconds(node)
    for number in range(DEPLOYS):
        began = time.perf_counter()
        client.deploy(name, HELLO.format(number), new=False)
        times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times), (cpu_seconds(node) - before) / DEPLOYS * 1000


def first_requests(server: Atoll, names: Sequence[str]) -> tuple[list[float], list[float]]:
    """Milliseconds of the first request to each worker, without a pause, and of the second one right after it."""
    client = Client(server)
    first = [client.get(name, b"worker 0") for name in names[: len(names) // 2]]
    second = []
    for name in names[len(names) // 2 :]:
        client.get(name, b"worker 0")
        second.append(client.get(name, b"worker 0"))
    client.socket.close()
    return first, second


def run(options: Options) -> list[Row]:
    del options  # a worker is cold only once
    rows = []
    with Atoll({"c0": realistic_worker(0)}, idle_seconds=3600) as server:
        alone, alone_cpu = deploys(server, "alone")
        server.stop()
        first_answer(server, "c0", b"worker 0")
        node = pss_of(server.pids()[:1])
        server.stop()
        copy_workers(server, DEPLOYED)
        seconds = first_answer(server, "c0", b"worker 0")
        each = (pss_of(server.pids()[:1]) - node) / DEPLOYED
        names = [f"c{n}" for n in range(DEPLOYED - CALLED, DEPLOYED)]
        time.sleep(1)
        first, second = first_requests(server, names)
        among, among_cpu = deploys(server, "among")
        rows += [
            Row("deploy of a small worker to an empty node, median", "ms", {"atoll": alone}, "at most 3", alone <= 3),
            Row("the same, CPU of Python", "ms", {"atoll": alone_cpu}),
            Row(f"deploy of a small worker among {DEPLOYED:,}, median", "ms", {"atoll": among}),
            Row("the same, CPU of Python", "ms", {"atoll": among_cpu}),
            Row("Python's memory per deployed worker of 20 KB", "KB PSS", {"atoll": each / 1e3}, "under 2", each < 2e3),
            Row(f"start of a node with {DEPLOYED:,} workers to the first answer", "s", {"atoll": seconds}),
            Row("request to another unloaded worker, no pause, median", "ms", {"atoll": statistics.median(first)},
                "under 3", statistics.median(first) < 3),
            Row("the same, p99", "ms", {"atoll": statistics.quantiles(first, n=100)[98]}),
            Row("the second request, right after the first", "ms", {"atoll": statistics.median(second)}),
        ]  # fmt: skip
    with Atoll({"c0": HELLO.format("worker 0")}, idle_seconds=3600) as server:
        server.stop()
        copy_workers(server, STORED)
        seconds = first_answer(server, "c0", b"worker 0")
        size = pss_of(server.pids()[:1])
    rows.append(Row(f"start of a node with {STORED:,} workers to the first answer", "s", {"atoll": seconds}, "5",
                    seconds <= 5))  # fmt: skip
    rows.append(Row(f"Python's memory with {STORED:,} small workers", "MB PSS", {"atoll": size / 1e6}))
    return rows


if __name__ == "__main__":
    main(run)
