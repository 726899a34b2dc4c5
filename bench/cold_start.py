"""Cold start: the first request to each of 100 stored workers that are not loaded, over one kept-alive connection.

The node restarts between the deploys and the requests. There are three variants. With spare isolates, a pause between
requests lets the engines prepare the next spare. With the default settings and no pause, some requests find a spare and
some do not: this is what users see. Without spares, each request creates an isolate. During the pauses a warm worker
receives a request every few milliseconds to keep the cores awake: waking a core takes as long as a cold start.

The engine itself measures the cost of creating an isolate, in CPU time and without a node. A measurement is repeated if
the host took much of the machine's time meanwhile.
"""

from __future__ import annotations

import json
import socket
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from atoll.engine.process.engine_process import V8_FLAGS, ensure_snapshot, find_files
from bench.harness import Atoll, BenchError
from bench.host import undisturbed
from bench.report import Options, Row, main

COUNT = 100
PAUSE = 0.05  # seconds; preparing an isolate takes 2-3 ms of CPU time


def realistic_worker(n: int) -> str:
    """A worker of about 20 KB whose first request runs little of it, like most bundled workers."""
    routes = "\n".join(
        f"function route{r}(url) {{ return Response.json({{ route: {r}, worker: {n}, path: url.pathname, "
        f"query: [...url.searchParams], words: 'some text that a page would have' }}); }}"
        for r in range(120)
    )
    table = ", ".join(f'"/r{r}": route{r}' for r in range(120))
    return f"""{routes}
const routes = {{ {table} }};
export default {{
  fetch(request) {{
    const url = new URL(request.url);
    return routes[url.pathname]?.(url) ?? new Response("worker {n}");
  }},
}};
"""


class Client:
    """The smallest HTTP client: it sends a request and reads until the body is complete."""

    def __init__(self, server: Atoll) -> None:
        self.socket = socket.create_connection(("127.0.0.1", server.port), 30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def get(self, name: str, body: bytes = b"") -> float:
        """Milliseconds until the worker's answer arrived: by default its number."""
        request = f"GET / HTTP/1.1\r\nHost: {name}.localhost\r\n\r\n".encode()
        body = body or f"worker {name[1:]}".encode()
        start = time.perf_counter()
        self.socket.sendall(request)
        answer = b""
        while not answer.endswith(b"\r\n\r\n" + body):
            received = self.socket.recv(65536)
            answer += received
            if not received or b" 200 OK" not in answer[:20]:
                raise BenchError(f"{name} answered {answer[:200]!r}")
        return (time.perf_counter() - start) * 1000


def timed_requests(server: Atoll, names: list[str], pause: float) -> list[float]:
    """Milliseconds of one request to each worker."""
    client = Client(server)
    times = []
    for name in names:
        until = time.perf_counter() + pause
        while time.perf_counter() < until:
            client.get("c0")
            time.sleep(0.003)
        times.append(client.get(name))
    client.socket.close()
    return times


def measure(pause: float, **settings: float) -> tuple[list[float], list[float]]:
    """Times of the first and the second request to each worker."""
    workers = {f"c{n}": realistic_worker(n) for n in range(COUNT + 5)}
    with Atoll(workers, idle_seconds=3600, **settings) as server:
        server.restart()
        names = list(workers)
        timed_requests(server, names[:5], pause)  # warms up the engines' own first isolates and this client
        time.sleep(0.5)
        return timed_requests(server, names[5:], pause), timed_requests(server, names[5:], pause)


def making() -> list[Row]:
    """The engine's own measurement of the cost of creating an isolate."""
    files = find_files()
    with tempfile.TemporaryDirectory(prefix="atoll-bench-") as folder:
        snapshot = ensure_snapshot(files, Path(folder))
        command = [str(files.node), *V8_FLAGS, str(files.main), "rehearse", str(snapshot), str(COUNT)]
        done = subprocess.run(command, capture_output=True, check=False, env={"OPENSSL_CONF": "/dev/null"})
    if done.returncode:
        raise BenchError(f"the engine could not measure itself: {done.stderr.decode(errors='replace')}")
    found = json.loads(done.stdout)
    return [
        Row("creating an isolate, CPU", "ms", {"atoll": found["make_us"] / 1000}),
        Row("creating its context (part of the above), CPU", "ms", {"atoll": found["context_us"] / 1000}),
        Row("its first calls (spares have made them already), CPU", "ms", {"atoll": found["warm_us"] / 1000}),
    ]


def run(options: Options) -> list[Row]:
    del options  # a worker is cold only once
    (spare, warm), spare_share = undisturbed(lambda: measure(PAUSE, spares=4))
    (usual, _), usual_share = undisturbed(lambda: measure(0))
    (scratch, _), scratch_share = undisturbed(lambda: measure(0, spares=0))
    taken = max(spare_share, usual_share, scratch_share)
    medians = statistics.median(spare), statistics.median(scratch)
    met = statistics.median(usual)
    return [
        Row("cold start with a spare ready, median", "ms", {"atoll": medians[0]}, bar="under 2", met=medians[0] < 2),
        Row("cold start with a spare ready, p99", "ms", {"atoll": statistics.quantiles(spare, n=100)[98]}),
        Row(
            "cold starts with no pause between them, default settings, median", "ms", {"atoll": met}, "under 5", met < 5
        ),
        Row(
            "cold starts with no pause between them, default settings, p99",
            "ms",
            {"atoll": statistics.quantiles(usual, n=100)[98]},
        ),
        Row("cold start without spares, median", "ms", {"atoll": medians[1]}, bar="under 5", met=medians[1] < 5),
        Row("cold start without spares, p99", "ms", {"atoll": statistics.quantiles(scratch, n=100)[98]}),
        Row("the second request of the same client, median", "ms", {"atoll": statistics.median(warm)}),
        Row("share of the machine's time that the host took, at most", "%", {"atoll": 100 * taken}),
        *making(),
    ]


if __name__ == "__main__":
    main(run)
