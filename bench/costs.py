"""CPU time per request, by process: what the machine pays, which rates hide when the load generator has a core.

Servers are loaded in turn, in short rounds, and each figure is a median. So a slow minute of the machine meets all of
them, and figures of one run can be compared even while other programs run.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from bench.harness import Atoll, BenchError, Server, peers, runtimes
from bench.load import wrk
from bench.report import Options, Row


@dataclass(frozen=True)
class Cost:
    """One round of one server. Times are microseconds of CPU per request."""

    rate: float  # requests per second
    engines: float  # 0 for a server without engines
    rest: float  # everything else: Python, for Atoll

    @property
    def all(self) -> float:
        return self.engines + self.rest


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


def cost(server: Server, worker: str, path: str, connections: int, seconds: int, lua: str = "") -> Cost:
    """Loads a server once. Call it once before, as a warm-up."""
    engines = server.engines() if isinstance(server, Atoll) else []
    rest = [pid for pid in server.pids() if pid not in engines]
    port, host = server.address(worker)
    before = cpu_seconds(engines), cpu_seconds(rest)
    load = wrk(port, host, path, connections=connections, seconds=seconds, lua=lua)
    after = cpu_seconds(engines), cpu_seconds(rest)
    if load.failures:
        raise BenchError(f"{server.name}, worker {worker}: {load.failures}")
    if load.requests == 0:
        raise BenchError(f"{server.name}, worker {worker}: no request was answered")
    inner, outer = ((b - a) / load.requests * 1e6 for a, b in zip(before, after, strict=True))
    return Cost(load.rate, inner, outer)


def in_turn(
    servers: Sequence[Server], worker: str, path: str, connections: int, options: Options, lua: str = ""
) -> dict[str, Cost]:
    """The median cost of each server, over rounds in turn."""
    found: dict[str, list[Cost]] = {server.name: [] for server in servers}
    for turn in range(options.rounds + 1):
        for server in servers:
            each = cost(server, worker, path, connections, options.seconds if turn else 2, lua)
            if turn:  # the first round is a warm-up
                found[server.name].append(each)
    return {name: median(costs) for name, costs in found.items()}


def median(costs: Sequence[Cost]) -> Cost:
    return Cost(
        statistics.median(each.rate for each in costs),
        statistics.median(each.engines for each in costs),
        statistics.median(each.rest for each in costs),
    )


def rows_of(what: str, found: dict[str, Cost], goal_us: float | None = None) -> list[Row]:
    """The rate, the CPU time of all processes, and that of Atoll's parts."""
    ours = {name: each for name, each in found.items() if name in ("atoll", "before")}
    bar = "" if goal_us is None else f"{goal_us:g} us"
    met = None if goal_us is None else found["atoll"].all <= goal_us
    return [
        Row(what, "req/s", {name: each.rate for name, each in found.items()}),
        Row(f"{what}, CPU", "us/req", {name: each.all for name, each in found.items()}, bar=bar, met=met),
        Row(f"{what}, CPU of engines", "us/req", {name: each.engines for name, each in ours.items()}),
        Row(f"{what}, CPU of Python", "us/req", {name: each.rest for name, each in ours.items()}),
    ]


def compared(
    what: str, worker: str, source: str, wanted: bytes, options: Options, *, path: str = "/",
    body: bytes | None = None, connections: int = 32, lua: str = "", goal_us: float | None = None,
) -> list[Row]:  # fmt: skip
    """The cost of one worker in Atoll, in an older Atoll if the options name one, and in the runtimes beside it."""
    workers = {worker: source}
    with ExitStack() as stack:
        servers: list[Server] = [stack.enter_context(Atoll(workers))]
        if options.before:
            servers.append(stack.enter_context(Atoll(workers).older(options.before)))
        raw = [peer for peer in peers(workers) if peer.name == "raw" and len(wanted) < 100_000]
        servers += [stack.enter_context(server) for server in (*raw, *runtimes(workers))]
        for server in servers:
            server.expect(worker, wanted, path, body=body)
        return rows_of(what, in_turn(servers, worker, path, connections, options, lua), goal_us)
