"""A node that nobody asks: its CPU time, and what 100 workers keep in memory after a load; start to first answer."""

from __future__ import annotations

import time

from bench.costs import cpu_seconds
from bench.harness import Atoll, rss_of
from bench.load import wrk
from bench.many_workers import varied_requests
from bench.mixed import expect_all, named_workers
from bench.report import Options, Row, main

COUNT = 100
LOAD_SECONDS = 15
REST_SECONDS = 30


def run(options: Options) -> list[Row]:
    workers = named_workers(COUNT)
    with Atoll(workers, idle_seconds=3600, max_loaded=400) as server:
        expect_all(server, workers)
        port, host = server.address("w0")
        fresh = sum(map(rss_of, server.engines()))
        wrk(port, host, "/", connections=32, seconds=LOAD_SECONDS, lua=varied_requests(COUNT))
        loaded = sum(map(rss_of, server.engines()))
        time.sleep(REST_SECONDS)
        rested = sum(map(rss_of, server.engines()))
        engines = server.engines()
        rest = [pid for pid in server.pids() if pid not in engines]
        before = cpu_seconds(engines), cpu_seconds(rest)
        time.sleep(REST_SECONDS)
        used = [b - a for a, b in zip(before, (cpu_seconds(engines), cpu_seconds(rest)), strict=True)]
    starts = []
    for _ in range(max(options.rounds, 1) * 2 - 1):
        with Atoll({"hello": workers["w0"]}) as server:
            server.stop()
            began = time.monotonic()
            server.start()
            server.expect("hello", b"w0")
            starts.append(time.monotonic() - began)
            alone = server.rss()
    starts.sort()
    return [
        Row(f"idle node with {COUNT} loaded workers, CPU", "% of a core", {"atoll": 100 * sum(used) / REST_SECONDS}),
        Row("of that the engines", "% of a core", {"atoll": 100 * used[0] / REST_SECONDS}),
        Row(f"engines with {COUNT} workers loaded, by one request each", "MB RSS", {"atoll": fresh / 1e6}),
        Row(f"the same after {LOAD_SECONDS} s of load", "MB RSS", {"atoll": loaded / 1e6}),
        Row(f"the same {REST_SECONDS} s later", "MB RSS", {"atoll": rested / 1e6}),
        Row("start of a node to the first answer of a worker, median", "s", {"atoll": starts[len(starts) // 2]}),
        Row("a node with one worker, all processes", "MB RSS", {"atoll": alone / 1e6}),
    ]


if __name__ == "__main__":
    main(run)
