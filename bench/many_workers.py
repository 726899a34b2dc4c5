"""1 to 1,000 workers, a random one for each request: rates, and CPU time per request by process.

Hosts, paths, header sets and connections vary, because a proxy mixes the requests of many clients and tenants. Trust
the CPU times more than the rates: wrk takes a core of its own.

    python -m bench.many_workers [--workers 1,10,100,1000]
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from bench.harness import Atoll, BenchError, Server, peers
from bench.load import wrk
from bench.mixed import expect_all, named_workers
from bench.report import Options, Row, main

COUNTS: Sequence[int] = (1, 10, 100, 1_000)
CONNECTIONS = 32
WARM_UP_SECONDS = 2


def varied_requests(count: int) -> str:
    """A wrk script: for each request a random worker, path and set of headers."""
    headers = [
        {"User-Agent": "curl/8.5.0", "Accept": "*/*"},
        {
            "User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
            "Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
            "Accept-Language": "en-US,en;q=0.5",
            "Accept-Encoding": "gzip, deflate, br, zstd",
            "Cookie": "session=0123456789abcdef; theme=dark",
        },
        {"User-Agent": "okhttp/4.12.0", "Accept": "application/json", "Authorization": "Bearer 0123456789abcdef"},
    ]
    sets = ", ".join(
        "{" + ", ".join(f"[{json.dumps(k)}] = {json.dumps(v)}" for k, v in each.items()) + "}" for each in headers
    )
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


def cpu_seconds(pids: Sequence[int]) -> float:
    """CPU time that the processes have used, in nanosecond resolution, threads that ended not counted."""
    total = 0
    for pid in pids:
        for task in Path(f"/proc/{pid}/task").glob("*/schedstat"):
            try:
                total += int(task.read_text().split()[0])
            except OSError:  # the thread ended
                continue
    return total / 1e9


def measured(server: Server, count: int, options: Options, *, connections: int = CONNECTIONS) -> dict[str, float]:
    """Requests per second, and microseconds of CPU per request: of everything, of engines, of the rest."""
    engines = server.engines() if isinstance(server, Atoll) else []
    rest = [pid for pid in server.pids() if pid not in engines]
    lua = varied_requests(count)
    port, host = server.address("w0")
    wrk(port, host, "/", connections=connections, seconds=WARM_UP_SECONDS, lua=lua)
    before = cpu_seconds(engines), cpu_seconds(rest)
    load = wrk(port, host, "/", connections=connections, seconds=options.seconds * options.rounds, lua=lua)
    after = cpu_seconds(engines), cpu_seconds(rest)
    if load.failures:
        raise BenchError(f"{server.name}, {count} workers: {load.failures}")
    calls = load.rate * options.seconds * options.rounds
    inner, outer = ((b - a) / calls * 1e6 for a, b in zip(before, after, strict=True))
    return {"rate": load.rate, "all": inner + outer, "engines": inner, "python": outer}


def run(options: Options, counts: Sequence[int] = COUNTS) -> list[Row]:
    rows: list[Row] = []
    for count in counts:
        workers = named_workers(count)
        found: dict[str, dict[str, float]] = {}
        with ExitStack() as stack:
            everyone = (Atoll(workers, max_loaded=max(count * 2, 200), idle_seconds=3600), *peers(workers, routed=True))
            for server in everyone:
                if server.name == "raw" or (server.name == "workerd" and count > 100):
                    continue  # a raw echo has no workers, and workerd's router has a binding for each
                stack.enter_context(server)
                expect_all(server, workers)
                found[server.name] = measured(server, count, options)
        what = f"{count:,} workers, random host, path and headers"
        rows.append(Row(what, "req/s", {name: each["rate"] for name, each in found.items()}))
        rows.append(Row(f"{what}, CPU", "us/req", {name: each["all"] for name, each in found.items()}))
        for part in ("engines", "python"):
            rows.append(Row(f"{what}, CPU of {part}", "us/req", {"atoll": found["atoll"][part]}))
    return rows


if __name__ == "__main__":
    if "--workers" in sys.argv:
        at = sys.argv.index("--workers")
        COUNTS = tuple(int(each) for each in sys.argv[at + 1].split(","))
        del sys.argv[at : at + 2]
        main(lambda options: run(options, COUNTS))
    else:
        main(run)
