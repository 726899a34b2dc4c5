"""Load from wrk, in interleaved rounds with medians. wrk has one thread, to leave the other cores to the server."""

from __future__ import annotations

import re
import shutil
import statistics
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass

from bench.harness import BenchError, Server

UNITS_MS = {"us": 0.001, "ms": 1.0, "s": 1000.0, "m": 60_000.0}
SIZES = {"B": 1, "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30}


@dataclass(frozen=True)
class Load:
    """The result of one run of wrk."""

    rate: float  # requests per second
    requests: int
    p50_ms: float
    p99_ms: float
    bytes_per_second: float
    refused: int  # answers that are neither 2xx nor 3xx
    broken: int  # connections that failed, broke off or timed out

    @property
    def failures(self) -> str:
        """The failures in words; empty if there are none."""
        parts = {"refused": self.refused, "broken or timed out": self.broken}
        return ", ".join(f"{count} requests {how}" for how, count in parts.items() if count)


def wrk(port: int, host: str, path: str, *, connections: int, seconds: int, lua: str = "") -> Load:
    """Runs wrk once. `lua` is a wrk script for requests other than a plain GET."""
    if shutil.which("wrk") is None:
        raise BenchError("wrk is missing\nhint: apt install wrk")
    command = [
        "wrk",
        "-t1",
        f"-c{connections}",
        f"-d{seconds}s",
        "--latency",
        "--timeout",
        "10s",
        "-H",
        f"Host: {host}",
    ]
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
        if lua:
            file.write(lua)
            file.flush()
            command += ["-s", file.name]
        done = subprocess.run([*command, f"http://127.0.0.1:{port}{path}"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise BenchError(f"wrk failed: {done.stdout}{done.stderr}")
    return parsed(done.stdout)


def parsed(text: str) -> Load:
    """The numbers in wrk's report."""
    rate = re.search(r"Requests/sec:\s+([\d.]+)", text)
    size = re.search(r"Transfer/sec:\s+([\d.]+)([KMG]?B)", text)
    if rate is None or size is None:
        raise BenchError(f"wrk printed no rate:\n{text}")
    requests = re.search(r"(\d+) requests in ", text)
    socket_errors = re.search(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)", text)
    refused = re.search(r"Non-2xx or 3xx responses: (\d+)", text)
    return Load(
        rate=float(rate[1]),
        requests=int(requests[1]) if requests else 0,
        p50_ms=percentile(text, 50),
        p99_ms=percentile(text, 99),
        bytes_per_second=float(size[1]) * SIZES[size[2]],
        refused=int(refused[1]) if refused else 0,
        broken=sum(map(int, socket_errors.groups())) if socket_errors else 0,
    )


def percentile(text: str, rank: int) -> float:
    found = re.search(rf"^\s+{rank}%\s+([\d.]+)(us|ms|s|m) *$", text, re.MULTILINE)
    if found is None:
        raise BenchError(f"wrk printed no {rank}% latency:\n{text}")
    return float(found[1]) * UNITS_MS[found[2]]


def side_by_side(
    servers: Sequence[Server],
    worker: str,
    path: str = "/",
    *,
    connections: int,
    seconds: int,
    rounds: int,
    lua: str = "",
) -> dict[str, Load]:
    """Loads each server in turn, `rounds` times, so that a slow moment of the machine affects all of them."""
    runs: dict[str, list[Load]] = {server.name: [] for server in servers}
    for turn in range(rounds + 1):
        for server in servers:
            port, host = server.address(worker)
            load = wrk(port, host, path, connections=connections, seconds=seconds if turn else 1, lua=lua)
            if load.failures:
                raise BenchError(f"{server.name}, worker {worker}: {load.failures}")
            if turn:  # the first round is a warm-up
                runs[server.name].append(load)
    return {name: median(loads) for name, loads in runs.items()}


def median(loads: Sequence[Load]) -> Load:
    return Load(
        rate=statistics.median(load.rate for load in loads),
        requests=sum(load.requests for load in loads),
        p50_ms=statistics.median(load.p50_ms for load in loads),
        p99_ms=statistics.median(load.p99_ms for load in loads),
        bytes_per_second=statistics.median(load.bytes_per_second for load in loads),
        refused=sum(load.refused for load in loads),
        broken=sum(load.broken for load in loads),
    )
