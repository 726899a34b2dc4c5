"""Posts a 10 KB body and receives it back: requests per second at 32 connections.

The raw echo only parses the body and answers with a few bytes, which makes it an even higher bar here.
"""

from __future__ import annotations

from contextlib import ExitStack

from bench.harness import Atoll, peers, script
from bench.load import side_by_side
from bench.report import Options, Row, main

SIZE = 10 * 1024
LUA = f'wrk.method = "POST"\nwrk.body = string.rep("x", {SIZE})\n'


def run(options: Options) -> list[Row]:
    workers = {"echo": script("echo")}
    with ExitStack() as stack:
        servers = [stack.enter_context(server) for server in (Atoll(workers), *peers(workers))]
        for server in servers:
            server.expect("echo", b"x" * SIZE, body=b"x" * SIZE)
        loads = side_by_side(servers, "echo", connections=32, seconds=options.seconds, rounds=options.rounds, lua=LUA)
    return [Row("echo of 10 KB, 32 connections", "req/s", {name: load.rate for name, load in loads.items()})]


if __name__ == "__main__":
    main(run)
