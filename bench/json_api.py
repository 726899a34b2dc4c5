"""A JSON API that reads its URL and a header: requests per second at 32 connections."""

from __future__ import annotations

from contextlib import ExitStack

from bench.harness import Atoll, peers, script
from bench.load import side_by_side
from bench.report import Options, Row, main

PATH = "/api/hello?name=atoll"


def run(options: Options) -> list[Row]:
    workers = {"json": script("json")}
    with ExitStack() as stack:
        servers = [stack.enter_context(server) for server in (Atoll(workers), *peers(workers))]
        for server in servers:
            server.expect("json", b'{"message":"Hello World!","agent":null,"query":"?name=atoll"}', PATH)
        loads = side_by_side(servers, "json", PATH, connections=32, seconds=options.seconds, rounds=options.rounds)
    return [Row("JSON API, 32 connections", "req/s", {name: load.rate for name, load in loads.items()})]


if __name__ == "__main__":
    main(run)
