"""Memory: how much all processes grow per loaded idle worker, and what a node with one worker takes."""

from __future__ import annotations

from bench.harness import Atoll, pss_of
from bench.mixed import expect_all, named_workers
from bench.report import Options, Row, main

FIRST, COUNT = 20, 220


def run(options: Options) -> list[Row]:
    del options  # no timed load: only memory is measured
    workers = named_workers(COUNT)
    # The deploy-time check loads each worker too: after the restart, only workers that got a request are loaded.
    with Atoll(workers, idle_seconds=3600, max_loaded=1000, spares=0) as server:
        server.restart()
        empty = server.rss()
        server.expect("w0", b"w0")
        one = pss_of(server.pids())
        expect_all(server, dict(list(workers.items())[:FIRST]))
        few, few_pss = server.rss(), pss_of(server.pids())
        expect_all(server, workers)
        many, many_pss = server.rss(), pss_of(server.pids())
    each = (many - few) / (COUNT - FIRST) / 1e6
    each_pss = (many_pss - few_pss) / (COUNT - FIRST) / 1e6
    return [
        Row("memory per idle loaded worker", "MB RSS", {"atoll": each}, bar="under 3", met=each < 3),
        Row("the same, shared pages in parts", "MB PSS", {"atoll": each_pss}, bar="at most 1.2", met=each_pss <= 1.2),
        Row("memory with no worker loaded, all processes", "MB RSS", {"atoll": empty / 1e6}),
        Row(
            "memory of a node with one loaded worker", "MB PSS", {"atoll": one / 1e6}, bar="at most 90", met=one <= 90e6
        ),
    ]


if __name__ == "__main__":
    main(run)
