"""A node that nobody asks: its CPU time, and what 100 workers keep in memory after a load; start to first answer."""

from __future__ import annotations

import statistics
import time

from bench.costs import cpu_seconds
from bench.harness import Atoll, first_answer, pss_of, rss_of
from bench.load import wrk
from bench.many_workers import varied_requests
from bench.mixed import expect_all, named_workers
from bench.report import Options, Row, main

COUNT = 100
LOAD_SECONDS = 15
REST_SECONDS = 30


def start_figures(options: Options) -> list[Row]:
    """A start of a node with one worker: until its answer, and what the processes used and keep."""
    seconds, cpu = [], []
    with Atoll({"hello": named_workers(1)["w0"]}) as server:
        for _ in range(max(options.rounds, 1) * 2 - 1):
            server.stop()
            seconds.append(first_answer(server, "hello", b"w0"))
            cpu.append(cpu_seconds(server.pids()))
            time.sleep(1)  # what it does after the first answer is part of its memory
        alone = pss_of(server.pids())
    middle = statistics.median(seconds)
    return [
        Row("start of a node to the first answer of a worker", "s", {"atoll": middle}, "at most 0.4", middle <= 0.4),
        Row("the same, CPU of all processes", "s", {"atoll": statistics.median(cpu)}),
        Row("a node with one worker, all processes", "MB PSS", {"atoll": alone / 1e6}, "at most 90", alone <= 90e6),
    ]


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
    return [
        Row(f"idle node with {COUNT} loaded workers, CPU", "% of a core", {"atoll": 100 * sum(used) / REST_SECONDS}),
        Row("of that the engines", "% of a core", {"atoll": 100 * used[0] / REST_SECONDS}),
        Row(f"engines with {COUNT} workers loaded, by one request each", "MB RSS", {"atoll": fresh / 1e6}),
        Row(f"the same after {LOAD_SECONDS} s of load", "MB RSS", {"atoll": loaded / 1e6}),
        Row(f"the same {REST_SECONDS} s later", "MB RSS", {"atoll": rested / 1e6}),
        *start_figures(options),
    ]


if __name__ == "__main__":
    main(run)
