"""The cost of limits and sandbox: hello world on a normal node and on one with unconfined, unmeasured engines.

The machine is never quiet. So the benchmark counts requests per second of CPU time of all processes, in many short
turns, and compares each turn with the one beside it: a disturbance of seconds affects both. The result is the median of
the pairs, and the quartiles show its spread.
"""

from __future__ import annotations

import statistics
import sys

from bench.harness import Atoll, Server, script
from bench.load import wrk
from bench.report import Options, Row, main
from bench.web import cpu_seconds

CONNECTIONS = 32


class Bare(Atoll):
    """A node without sandbox, whose engines measure no time (bench/bare.py)."""

    name = "bare"

    def command(self) -> list[str]:
        return [sys.executable, "-m", "bench.bare", *super().command()[1:], "--sandbox", "off"]


def per_cpu_second(server: Server, seconds: int) -> float:
    port, host = server.address("hello")
    pids = server.pids()
    before = cpu_seconds(pids)
    load = wrk(port, host, "/", connections=CONNECTIONS, seconds=seconds)
    return load.rate * seconds / max(cpu_seconds(pids) - before, 0.01)


def run(options: Options) -> list[Row]:
    workers = {"hello": script("hello")}
    # One engine each: on a busy machine a hot worker spreads to a second engine, and two engines share no batches.
    with Atoll(workers, engines=1) as full, Bare(workers, engines=1) as bare:
        for server in (full, bare):
            server.expect("hello", b"Hello World!")
            per_cpu_second(server, 1)  # a warm-up
        ratios = []
        for turn in range(2 * options.rounds * options.seconds):
            pair = (full, bare) if turn % 2 else (bare, full)
            rates = {server.name: per_cpu_second(server, 1) for server in pair}
            ratios.append(rates["atoll"] / rates["bare"])
    lower, ratio, upper = statistics.quantiles(ratios, n=4)
    what = "hello with limits and sandbox, relative to without, per CPU second"
    return [
        Row(what, "x", {"atoll": ratio}, bar="0.95 or more", met=ratio >= 0.95),
        Row("the same, lower quartile of the pairs", "x", {"atoll": lower}),
        Row("the same, upper quartile of the pairs", "x", {"atoll": upper}),
    ]


if __name__ == "__main__":
    main(run)
