"""One tenant computes or floods; how much does the p99 of another tenant rise?

A few clients send the victim requests at a steady pace, not as fast as possible: its own load must not dominate the
figure. Each round measures the victim alone and beside each of three tenants. The workers of the first compute all the
time. Those of the second compute until their limit ends them, again and again. The third sends requests as fast as it
can. The benchmark reports medians over the rounds. A measurement is repeated if the host took much of the machine's
time meanwhile.

A fourth neighbour is not a tenant: plain loops of the lowest priority, one per core. They show the machine's own part,
since no scheduler hands over a core at once, and a host takes time from busy cores.

In production, clients are on other machines. Here they share two cores with the node, so the victim's clients run with
real-time priority (as root): their own wait for a core must not be part of the figure. They do the same when the victim
is alone. The noisy tenant's clients run with the lowest priority.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass

from bench.harness import Atoll, BenchError
from bench.host import undisturbed
from bench.report import Options, Row, main

CALM = "export default { fetch() { return new Response('calm'); } }"
BUSY = """export default { fetch() {
  let n = 0;
  for (let i = 0; i < 4e7; i++) n += i % 7;
  return new Response(String(n));
} }"""
BUSY_MS = 500  # CPU time limit; a call takes a tenth of it
ENDLESS = "export default { fetch() { for (;;); } }"  # ended after the usual 50 ms
COMPUTING = 8  # workers of the noisy tenant, of each kind
FLOODING = 64  # connections of the noisy tenant
CLIENTS = 4  # connections of the victim
PACE = 0.005  # seconds between two requests of one client
BAR = 3.0
ALONE = "of a tenant that is alone"
LOOPS = "beside plain loops that are no tenant's"
COMPUTES, ENDED, FLOODS = TENANTS = tuple(f"beside a tenant that {what}" for what in ("computes", "is ended", "floods"))
LITTLE = 0.005  # limit on the host's share: half of the hundredth that a p99 is about


class Client:
    """One kept-alive connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str) -> None:
        self._reader = reader
        self._writer = writer
        self._request = f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()

    @classmethod
    async def connect(cls, port: int, host: str) -> Client:
        return cls(*await asyncio.open_connection("127.0.0.1", port), host)

    async def ask(self) -> int:
        """The status of the answer, after its body is read."""
        self._writer.write(self._request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        await self._reader.readexactly(length)
        return int(head[9:12])

    def close(self) -> None:
        self._writer.close()


async def latencies(port: int, seconds: float) -> list[float]:
    """Latencies of the victim in ms."""
    found: list[float] = []
    until = time.monotonic() + seconds

    async def pace() -> None:
        client = await Client.connect(port, "victim.localhost")
        while time.monotonic() < until:
            began = time.perf_counter()
            if await client.ask() != 200:
                raise BenchError("the victim was refused")
            found.append((time.perf_counter() - began) * 1000)
            await asyncio.sleep(PACE)
        client.close()

    await asyncio.gather(*(pace() for _ in range(CLIENTS)))
    return found


@contextlib.contextmanager
def real_time() -> Iterator[None]:
    """Gives this process real-time priority, if the system allows it."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(1))
    except OSError:
        yield
        return
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


@dataclass(frozen=True)
class Percentiles:
    p50: float
    p90: float
    p99: float


def percentiles(values: list[float]) -> Percentiles:
    cuts = statistics.quantiles(values, n=100)
    return Percentiles(cuts[49], cuts[89], cuts[98])


def medians(rounds: list[Percentiles]) -> Percentiles:
    return Percentiles(*(statistics.median(getattr(one, name) for one in rounds) for name in ("p50", "p90", "p99")))


def in_turn_lua(name: str) -> str:
    """A wrk script that sends requests to the noisy tenant's workers in turn."""
    return f"""
local requests, n = {{}}, 0
init = function()
  for i = 1, {COMPUTING} do requests[i] = wrk.format("GET", "/", {{ Host = "{name}" .. (i - 1) .. ".localhost" }}) end
end
request = function() n = n % {COMPUTING} + 1; return requests[n] end
"""


@contextlib.contextmanager
def noise(port: int, host: str, connections: int, lua: str = "") -> Iterator[None]:
    """Runs wrk at the lowest priority: the figure is about Atoll, not about how the kernel schedules clients."""
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as file:
        file.write(lua)
        file.flush()
        script = ["-s", file.name] if lua else []
        command = ["nice", "-n", "19", "wrk", "-t1", f"-c{connections}", "-d600s", "--timeout", "30s", *script]
        process = subprocess.Popen(
            [*command, "-H", f"Host: {host}", f"http://127.0.0.1:{port}/"],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            time.sleep(1.0)  # until all connections are open and hot workers have spread
            if process.poll() is not None:
                raise BenchError("wrk did not run\nhint: apt install wrk")
            yield
        finally:
            process.terminate()
            process.wait()


@contextlib.contextmanager
def plain_loops() -> Iterator[None]:
    command = ["nice", "-n", "19", "sh", "-c", "while :; do :; done"]
    processes = [subprocess.Popen(command) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def run(options: Options) -> list[Row]:
    found: dict[str, list[Percentiles]] = {what: [] for what in (ALONE, LOOPS, *TENANTS)}
    taken = 0.0
    with Atoll({}) as atoll:
        atoll.make_tenant("noisy")
        atoll.deploy({"victim": CALM})
        atoll.deploy({f"busy{n}": BUSY for n in range(COMPUTING)}, tenant="noisy", limits={"cpu_ms": BUSY_MS})
        atoll.deploy({f"endless{n}": ENDLESS for n in range(COMPUTING)}, tenant="noisy")
        atoll.deploy({"flood": CALM}, tenant="noisy")
        atoll.expect("victim", b"calm")

        def ask() -> Percentiles:
            with real_time():
                return percentiles(asyncio.run(latencies(atoll.port, options.seconds)))

        def measure(what: str) -> None:
            nonlocal taken
            measured, share = undisturbed(ask, LITTLE)
            found[what].append(measured)
            taken = max(taken, share)

        ask()  # a warm-up
        for _ in range(options.rounds):
            measure(ALONE)
            with noise(atoll.port, "busy0.localhost", 2 * COMPUTING, in_turn_lua("busy")):
                measure(COMPUTES)
            measure(ALONE)
            with noise(atoll.port, "endless0.localhost", 2 * COMPUTING, in_turn_lua("endless")):
                measure(ENDED)
            measure(ALONE)
            with noise(atoll.port, "flood.localhost", FLOODING):
                measure(FLOODS)
            with plain_loops():
                measure(LOOPS)
    rows = []
    alone = medians(found[ALONE])
    for where, rounds in found.items():
        beside = medians(rounds)
        rows += [Row(f"{name} {where}", "ms", {"atoll": getattr(beside, name)}) for name in ("p50", "p90", "p99")]
        times = beside.p99 / alone.p99
        if where == LOOPS:
            rows.append(Row("the same p99, relative to its p99 alone: the machine's part", "x", {"atoll": times}))
        elif where != ALONE:
            name = f"the same p99, relative to its p99 alone ({where.removeprefix('beside a tenant that ')})"
            rows.append(Row(name, "x", {"atoll": times}, "within 3", times <= BAR))
    rows.append(Row("share of the machine's time that the host took, at most", "%", {"atoll": 100 * taken}))
    return rows


if __name__ == "__main__":
    main(run)
