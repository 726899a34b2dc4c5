"""One tenant computes or floods, another one's p99 is measured: how much slower than when it is quiet?

The victim is asked by a few clients at a steady pace, not as fast as possible: its own load must not be what is
measured. Each round measures it alone, beside a tenant whose many workers compute all the time, beside one that sends
requests as fast as it can, and alone again.
"""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator

from bench.harness import Atoll, BenchError
from bench.report import Options, Row, main

CALM = "export default { fetch() { return new Response('calm'); } }"
# About 40 ms of CPU time, below the limit of 50.
BUSY = """export default { fetch() {
  let n = 0;
  for (let i = 0; i < 4e7; i++) n += i % 7;
  return new Response(String(n));
} }"""
COMPUTING = 8  # workers of the noisy tenant
FLOODING = 64  # connections of the noisy tenant
CLIENTS = 4  # connections of the victim
PACE = 0.005  # seconds between two requests of one client
BAR = 3.0


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
        """The status of the answer, whose body has been read."""
        self._writer.write(self._request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
        await self._reader.readexactly(length)
        return int(head[9:12])

    def close(self) -> None:
        self._writer.close()


async def latencies(port: int, seconds: float) -> list[float]:
    """In ms, of the victim."""
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


def p99(values: list[float]) -> float:
    return statistics.quantiles(values, n=100)[98]


def computing_lua() -> str:
    """A wrk script that asks one of the computing workers after the other."""
    return f"""
local requests, n = {{}}, 0
init = function()
  for i = 1, {COMPUTING} do requests[i] = wrk.format("GET", "/", {{ Host = "busy" .. (i - 1) .. ".localhost" }}) end
end
request = function() n = n % {COMPUTING} + 1; return requests[n] end
"""


@contextlib.contextmanager
def noise(port: int, host: str, connections: int, lua: str = "") -> Iterator[None]:
    """wrk at the lowest priority: what is measured is Atoll, not how the kernel shares the machine among clients."""
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
            time.sleep(1.0)  # until it has all its connections and hot workers have spread
            if process.poll() is not None:
                raise BenchError("wrk did not run\nhint: apt install wrk")
            yield
        finally:
            process.terminate()
            process.wait()


def run(options: Options) -> list[Row]:
    quiet: list[float] = []
    beside: dict[str, list[float]] = {"computes": [], "floods": []}
    with Atoll({}) as atoll:
        atoll.make_tenant("noisy")
        atoll.deploy({"victim": CALM})
        noisy = {f"busy{n}": BUSY for n in range(COMPUTING)} | {"flood": CALM}
        atoll.deploy(noisy, tenant="noisy")
        atoll.expect("victim", b"calm")

        def measure() -> float:
            return p99(asyncio.run(latencies(atoll.port, options.seconds)))

        measure()  # to warm up
        for _ in range(options.rounds):
            quiet.append(measure())
            with noise(atoll.port, "busy0.localhost", 2 * COMPUTING, computing_lua()):
                beside["computes"].append(measure())
            quiet.append(measure())
            with noise(atoll.port, "flood.localhost", FLOODING):
                beside["floods"].append(measure())
    alone = statistics.median(quiet)
    rows = [Row("p99 of a tenant that is alone", "ms", {"atoll": alone})]
    for what, values in beside.items():
        value = statistics.median(values)
        rows.append(Row(f"p99 beside a tenant that {what}", "ms", {"atoll": value}))
        times = value / alone
        rows.append(Row(f"the same, times its quiet p99 ({what})", "x", {"atoll": times}, "within 3", times <= BAR))
    return rows


if __name__ == "__main__":
    main(run)
