"""1 to 1,000 workers, a random one for each request: rates, and CPU time per request by process.

Hosts, paths, header sets and connections vary, because a proxy mixes the requests of many clients and tenants. Trust
the CPU times more than the rates: wrk takes a core of its own.

    python -m bench.many_workers [--workers 1,10,100,1000]
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import ExitStack

from bench.costs import in_turn, rows_of
from bench.harness import WORKERD, Atoll, Server, Workerd
from bench.mixed import expect_all, named_workers
from bench.report import Options, Row, main
from bench.varied import HEADER_SETS, lua_table

COUNTS: Sequence[int] = (1, 10, 100, 1_000)
CONNECTIONS = 32
GOALS_US = {100: 45.0, 1_000: 60.0}


def varied_requests(count: int) -> str:
    """A wrk script: for each request a random worker, path and set of headers."""
    sets = ", ".join(map(lua_table, HEADER_SETS))
    return f"""
local sets = {{{sets}}}
local requests = {{}}
init = function()
  for n = 1, {min(count * 4, 4_000)} do
    local headers = {{ Host = "w" .. (n % {count}) .. ".localhost" }}
    for name, value in pairs(sets[n % #sets + 1]) do headers[name] = value end
    requests[n] = wrk.format("GET", "/items/" .. n * 7919 .. "?page=" .. n % 13, headers)
  end
end
request = function() return requests[math.random(#requests)] end
"""


def node_of(count: int, **settings: float) -> Atoll:
    return Atoll(named_workers(count), max_loaded=max(count * 2, 200), idle_seconds=3600, **settings)


def run(options: Options, counts: Sequence[int] = COUNTS) -> list[Row]:
    rows: list[Row] = []
    for count in counts:
        everyone: list[Server] = [node_of(count)]
        if options.before:
            everyone.append(node_of(count).older(options.before))
        if WORKERD.exists() and count <= 100:  # its router has a binding for each worker
            everyone.append(Workerd(named_workers(count), routed=True))
        with ExitStack() as stack:
            for server in everyone:
                stack.enter_context(server)
                expect_all(server, named_workers(count))
            found = in_turn(everyone, "w0", "/", CONNECTIONS, options, varied_requests(count))
        rows += rows_of(f"{count:,} workers, random host, path and headers", found, GOALS_US.get(count))
    return rows


if __name__ == "__main__":
    if "--workers" in sys.argv:
        at = sys.argv.index("--workers")
        COUNTS = tuple(int(each) for each in sys.argv[at + 1].split(","))
        del sys.argv[at : at + 2]
        main(lambda options: run(options, COUNTS))
    else:
        main(run)
