"""The web platform from inside: the cost of one API call, and 100 MB through a worker that passes it on unread.

A worker does a thing n times in one request. The cost of one is the time of that request minus the time of an empty
one. The shortest of a few rounds counts, because a busy machine only adds time.
"""

from __future__ import annotations

import hashlib
import http.client
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import ExitStack

from bench.harness import Atoll, Server, peers, script
from bench.report import Options, Row, main

TIMES = 20_000
UPLOAD = 100_000_000
HASHES = 40
LIMITS = {"cpu_ms": 30_000}


class Client:
    """One kept connection to a worker."""

    def __init__(self, server: Server) -> None:
        port, self.host = server.address("web")
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def get(self, path: str) -> bytes:
        self.connection.request("GET", path, headers={"Host": self.host, "Accept": "*/*"})
        return self.connection.getresponse().read()

    def seconds(self, path: str) -> float:
        start = time.perf_counter()
        self.get(path)
        return time.perf_counter() - start


def fastest(rounds: int, measure: Callable[[], float]) -> float:
    return min(measure() for _ in range(rounds))


def microseconds(client: Client, path: str, times: int, rounds: int) -> float:
    """The cost of one of `times` repetitions."""
    empty = fastest(5, lambda: client.seconds(f"{path}?n=0"))
    full = fastest(rounds + 1, lambda: client.seconds(f"{path}?n={times}"))  # the first call compiles
    return max(full - empty, 0.0) / times * 1e6


def added(client: Client, path: str, base: str, rounds: int) -> float:
    """Additional microseconds of a request to `path` over one to `base`: medians, taken in turn."""
    taken: dict[str, list[float]] = {path: [], base: []}
    for _ in range(1000 * rounds):
        for name, times in taken.items():
            times.append(client.seconds(name))
    medians = {name: sorted(times)[len(times) // 2] for name, times in taken.items()}
    return (medians[path] - medians[base]) * 1e6


def cpu_seconds(pids: Iterable[int]) -> float:
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/stat") as stat:
            fields = stat.read().rpartition(")")[2].split()
        total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")


def upload(server: Server, size: int) -> float:
    """Seconds for a body of `size` bytes to reach the worker and return."""
    port, host = server.address("web")
    block = bytes(1 << 18)
    with socket.create_connection(("127.0.0.1", port), timeout=60) as client:

        def send() -> None:
            head = f"POST /identity HTTP/1.1\r\nHost: {host}\r\nContent-Length: {size}\r\nConnection: close\r\n\r\n"
            client.sendall(head.encode())
            for start in range(0, size, len(block)):
                client.sendall(block[: size - start])

        start = time.perf_counter()
        sender = threading.Thread(target=send)
        sender.start()
        buffer = bytearray(1 << 20)
        received = 0
        while count := client.recv_into(buffer):
            received += count
        sender.join()
        if received < size:
            raise OSError(f"{server.name} sent back {received} of {size} bytes")
        return time.perf_counter() - start


def throughput(server: Server, rounds: int) -> dict[str, float]:
    """MB per second of wall time, and per second of CPU time of the engines and of the whole process tree."""
    upload(server, 1_000_000)
    parts = {"tree": server.pids()} | ({"engine": server.engines()} if isinstance(server, Atoll) else {})
    before = {name: cpu_seconds(pids) for name, pids in parts.items()}
    best = fastest(rounds, lambda: upload(server, UPLOAD))
    megabytes = UPLOAD * rounds / 1e6
    used = {name: max(cpu_seconds(pids) - before[name], 0.01) for name, pids in parts.items()}
    return {"wall": UPLOAD / best / 1e6} | {name: megabytes / seconds for name, seconds in used.items()}


def native_hash(rounds: int) -> float:
    """Microseconds that OpenSSL, called from Python, takes for SHA-256 of 1 MB."""
    data = bytes(1 << 20)

    def measure() -> float:
        start = time.perf_counter()
        for _ in range(HASHES):
            hashlib.sha256(data).digest()
        return (time.perf_counter() - start) / HASHES * 1e6

    return fastest(rounds + 1, measure)


def measured(server: Server, rounds: int) -> dict[str, float]:
    client = Client(server)
    found = {
        "new URL(request.url)": microseconds(client, "/url", TIMES, rounds),
        "new Headers of three, and get": microseconds(client, "/headers", TIMES, rounds),
        "request.headers.get": microseconds(client, "/get", TIMES, rounds),
        "Response.json beyond hello": added(client, "/json", "/hello", rounds),
    }
    if client.get("/sha256?n=1") == b"done":
        found["SHA-256 of 1 MB"] = microseconds(client, "/sha256", HASHES, rounds)
    client.connection.close()
    for name, value in throughput(server, rounds).items():
        found[f"100 MB identity, per {name} second"] = value
    return found


# Targets: the most (us) or the least (MB/s).
MOST = {
    "new URL(request.url)": 2.0,
    "new Headers of three, and get": 1.0,
    "request.headers.get": 1.0,
    "Response.json beyond hello": 10.0,
}
LEAST = {"100 MB identity, per tree second": 400.0}  # of all processes together, so that no cost is left out


def row(what: str, values: dict[str, float]) -> Row:
    ours = values["atoll"]
    if what in MOST:
        return Row(what, "us", values, f"under {MOST[what]:g}", ours < MOST[what])
    if what in LEAST:
        return Row(what, "MB/s", values, f"{LEAST[what]:g} or more", ours >= LEAST[what])
    return Row(what, "MB/s" if "MB identity" in what else "us", values)


def run(options: Options) -> list[Row]:
    source = {"web": script("web")}
    results: dict[str, dict[str, float]] = {}
    with ExitStack() as stack:
        ours = stack.enter_context(Atoll({}, engines=1))
        ours.deploy(source, limits=LIMITS)
        others = [stack.enter_context(peer) for peer in peers(source) if peer.name != "raw"]
        for server in [ours, *others]:
            for what, value in measured(server, options.rounds).items():
                results.setdefault(what, {})[server.name] = value
    rows = [row(what, values) for what, values in results.items() if "atoll" in values]
    if "SHA-256 of 1 MB" in results:
        ratio = results["SHA-256 of 1 MB"]["atoll"] / native_hash(options.rounds)
        rows.append(
            Row("SHA-256 of 1 MB, relative to OpenSSL alone", "x", {"atoll": ratio}, "within 1.3", ratio <= 1.3)
        )
    return rows


if __name__ == "__main__":
    main(run)
