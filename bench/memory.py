"""Memory: how much the resident size of all processes grows per loaded idle worker."""

from __future__ import annotations

from bench.harness import Atoll
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
        expect_all(server, dict(list(workers.items())[:FIRST]))
        few = server.rss()
        expect_all(server, workers)
        many = server.rss()
    each = (many - few) / (COUNT - FIRST) / 1e6
    return [
        Row("memory per idle loaded worker", "MB RSS", {"atoll": each}, bar="under 3", met=each < 3),
        Row("memory with no worker loaded, all processes", "MB RSS", {"atoll": empty / 1e6}),
    ]


if __name__ == "__main__":
    main(run)
