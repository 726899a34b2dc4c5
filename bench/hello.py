"""Hello World: requests per second at 32 connections, and the median latency at one."""

from __future__ import annotations

from contextlib import ExitStack

from bench.harness import Atoll, peers, script
from bench.load import side_by_side
from bench.report import Options, Row, main


def run(options: Options) -> list[Row]:
    workers = {"hello": script("hello")}
    with ExitStack() as stack:
        servers = [stack.enter_context(server) for server in (Atoll(workers), *peers(workers))]
        for server in servers:
            server.expect("hello", b"Hello World!")
        busy = side_by_side(servers, "hello", connections=32, seconds=options.seconds, rounds=options.rounds)
        calm = side_by_side(servers, "hello", connections=1, seconds=options.seconds, rounds=options.rounds)
    rates = {name: load.rate for name, load in busy.items()}
    p50s = {name: load.p50_ms for name, load in calm.items()}
    enough = rates["atoll"] >= 0.35 * rates["raw"] and rates["atoll"] >= 2 * rates.get("workerd", 0)
    return [
        Row("hello, 32 connections", "req/s", rates, bar="0.35 x raw and 2 x workerd", met=enough),
        Row("hello, 32 connections, p99", "ms", {name: load.p99_ms for name, load in busy.items()}),
        Row("hello, 1 connection, p50", "ms", p50s, bar="raw + 0.4", met=p50s["atoll"] <= p50s["raw"] + 0.4),
    ]


if __name__ == "__main__":
    main(run)
