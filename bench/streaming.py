"""A response of 1 MB streamed in 64 chunks under backpressure: MB per second over 8 connections.

The raw echo does not stream, so only workerd is compared.
"""

from __future__ import annotations

from contextlib import ExitStack

from bench.harness import Atoll, peers, script
from bench.load import side_by_side
from bench.report import Options, Row, main

SIZE = 1 << 20


def run(options: Options) -> list[Row]:
    workers = {"stream": script("stream")}
    with ExitStack() as stack:
        streaming = [Atoll(workers), *[peer for peer in peers(workers) if peer.name != "raw"]]
        servers = [stack.enter_context(server) for server in streaming]
        for server in servers:
            server.expect("stream", b"." * SIZE)
        loads = side_by_side(servers, "stream", connections=8, seconds=options.seconds, rounds=options.rounds)
    rates = {name: load.rate * SIZE / 1e6 for name, load in loads.items()}
    return [Row("streamed 1 MB bodies, 8 connections", "MB/s", rates)]


if __name__ == "__main__":
    main(run)
