"""The control plane: deploy to first answer, deploys per second, version switches under load, log queries, live tail.

The switch is measured under full load from wrk while the worker is deployed again and again: no request may be refused
or broken off. The request rate without deploys is shown for comparison.
"""

from __future__ import annotations

import http.client
import json
import statistics
import threading
import time

from bench.cold_start import realistic_worker
from bench.harness import Atoll, BenchError
from bench.load import Load, wrk
from bench.logs import control_figures
from bench.report import Options, Row, main

BUNDLE = 300 * 1024
BUNDLES = 10
SMALL = 60
HELLO = 'export default {{ fetch() {{ return new Response("{0}"); }} }}'


class Client:
    """One kept-alive connection to the node."""

    def __init__(self, server: Atoll) -> None:
        self.connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)

    def deploy(self, name: str, script: str, *, new: bool) -> None:
        method, path = ("POST", "/api/workers") if new else ("PUT", f"/api/workers/{name}")
        body = json.dumps({"name": name, "script": script}).encode()
        self.connection.request(method, path, body, {"Content-Type": "application/json", "Host": "localhost"})
        response = self.connection.getresponse()
        answer = response.read()
        if response.status not in (200, 201):
            raise BenchError(f"the deploy of {name} was refused: {answer[:300]!r}")

    def get(self, name: str) -> bytes:
        self.connection.request("GET", "/", headers={"Host": f"{name}.localhost"})
        return self.connection.getresponse().read()


def bundle(number: int) -> str:
    """About 300 KB of real code, whose answer identifies the bundle."""
    filler, size, part = [], 0, 0
    while size < BUNDLE:
        text = realistic_worker(part).replace("export default", f"const unused{part} =")
        text = f"{{\n{text}\n}}\n"  # in a block of its own, so that names do not clash
        filler.append(text)
        size += len(text)
        part += 1
    return "".join(filler) + HELLO.format(number)


def deploy_to_answer(client: Client) -> float:
    """Milliseconds from sending a bundle to its first correct answer."""
    times = []
    for number in range(BUNDLES):
        script = bundle(number)
        start = time.perf_counter()
        client.deploy("bundle", script, new=number == 0)
        if client.get("bundle") != str(number).encode():
            raise BenchError("the first answer after a deploy was not the new version's")
        times.append((time.perf_counter() - start) * 1000)
    return statistics.median(times)


def small_deploys(client: Client) -> float:
    """Deploys per second of a small worker, one after the other."""
    client.deploy("small", HELLO.format("first"), new=True)
    start = time.perf_counter()
    for number in range(SMALL):
        client.deploy("small", HELLO.format(number), new=False)
    return SMALL / (time.perf_counter() - start)


def switches_under_load(server: Atoll, seconds: int) -> tuple[Load, Load, int]:
    """Load without deploys, load with them, and the number of deploys."""
    port, host = server.address("busy")
    quiet = wrk(port, host, "/", connections=32, seconds=seconds)
    over = threading.Event()
    counts = [0]

    def deploy_again_and_again() -> None:
        client = Client(server)
        while not over.is_set():
            counts[0] += 1
            client.deploy("busy", HELLO.format(f"version {counts[0]}"), new=False)

    thread = threading.Thread(target=deploy_again_and_again)
    thread.start()
    try:
        busy = wrk(port, host, "/", connections=32, seconds=seconds)
    finally:
        over.set()
        thread.join()
    return quiet, busy, counts[0]


def run(options: Options) -> list[Row]:
    with Atoll({"busy": HELLO.format("version 0")}) as server:
        client = Client(server)
        first_answer = deploy_to_answer(client)
        rate = small_deploys(client)
        quiet, busy, switches = switches_under_load(server, options.seconds)
    lost = busy.refused + busy.broken
    return [
        Row("deploy of a 300 KB bundle to its first correct answer", "ms", {"atoll": first_answer}),
        Row("small deploys, one after the other", "1/s", {"atoll": rate}),
        Row("requests without deploys", "1/s", {"atoll": quiet.rate}),
        Row(f"requests during {switches} switches of the version", "1/s", {"atoll": busy.rate}),
        Row("requests lost during the switches", "requests", {"atoll": lost}, bar="0", met=lost == 0),
        *control_figures(options),
    ]


if __name__ == "__main__":
    main(run)
