"""100 workers, a random one for each request: requests per second at 32 connections."""

from __future__ import annotations

from contextlib import ExitStack

from bench.harness import Atoll, Server, peers
from bench.load import side_by_side
from bench.report import Options, Row, main

COUNT = 100


def named_workers(count: int) -> dict[str, str]:
    """Workers that answer with their own names, so that a wrongly routed request shows."""
    return {f"w{n}": f'export default {{ fetch() {{ return new Response("w{n}"); }} }}' for n in range(count)}


def random_hosts(count: int) -> str:
    """A wrk script that sends each request to a random worker."""
    return f"""
local requests = {{}}
init = function()
  for n = 1, {count} do requests[n] = wrk.format("GET", "/", {{ Host = "w" .. (n - 1) .. ".localhost" }}) end
end
request = function() return requests[math.random({count})] end
"""


def expect_all(server: Server, workers: dict[str, str]) -> None:
    for name in workers:
        server.expect(name, name.encode())


def run(options: Options) -> list[Row]:
    workers = named_workers(COUNT)
    with ExitStack() as stack:
        everyone = (Atoll(workers), *peers(workers, routed=True))
        servers = [stack.enter_context(server) for server in everyone]
        for server in servers:
            expect_all(server, workers)
        loads = side_by_side(
            servers, "w0", connections=32, seconds=options.seconds, rounds=options.rounds, lua=random_hosts(COUNT)
        )
        for server in servers:
            expect_all(server, workers)
    return [Row(f"{COUNT} workers mixed, 32 connections", "req/s", {name: load.rate for name, load in loads.items()})]


if __name__ == "__main__":
    main(run)
