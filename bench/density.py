"""Density: 1,000 deployed workers, random hosts, at most 200 loaded. All answers are correct and memory is bounded."""

from __future__ import annotations

from bench.harness import Atoll, BenchError
from bench.load import wrk
from bench.mixed import expect_all, named_workers, random_hosts
from bench.report import Options, Row, main

COUNT, LOADED = 1000, 200


def run(options: Options) -> list[Row]:
    workers = named_workers(COUNT)
    sizes = []
    with Atoll(workers, max_loaded=LOADED, idle_seconds=3600) as server:
        expect_all(server, workers)
        for _ in range(options.rounds + 1):
            load = wrk(
                server.port, "w0.localhost", "/", connections=32, seconds=options.seconds * 2, lua=random_hosts(COUNT)
            )
            if load.failures:
                raise BenchError(f"atoll, {COUNT} workers: {load.failures}")
            sizes.append(server.rss())
        expect_all(server, workers)
        loaded = server.pool().get("cached")
    growth = sizes[-1] / sizes[0]  # the first round has filled every cache
    rows = [
        Row("1,000 workers, 200 loaded at most, 32 connections", "req/s", {"atoll": load.rate}),
        Row("the same: memory of all processes", "MB RSS", {"atoll": sizes[-1] / 1e6}),
        Row(
            "the same: memory after all rounds / after the first",
            "x",
            {"atoll": growth},
            bar="under 1.25",
            met=growth < 1.25,
        ),
    ]
    if isinstance(loaded, int):
        rows.append(
            Row(
                "the same: workers loaded at the end",
                "",
                {"atoll": loaded},
                bar=f"at most {LOADED}",
                met=loaded <= LOADED,
            )
        )
    return rows


if __name__ == "__main__":
    main(run)
