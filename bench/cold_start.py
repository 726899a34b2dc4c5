"""Cold start: the first request to each of 100 stored workers of which none is loaded, over one kept-alive connection.

Atoll is restarted between deploying and asking. Once with spare isolates, leaving the engines a moment between requests
to prepare the next one; once with the settings a node has by default and no pause, which is what a user meets: some
find a spare, some do not; once with none, so that each request makes an isolate. In the moments between, a warm worker
gets a request every few milliseconds, so that no core falls asleep: waking one takes as long as a cold start.

What making an isolate costs is measured without a node around it, by the engine itself, in CPU time. What was measured
while the host took much of the machine is measured again.
"""

from __future__ import annotations

import json
import socket
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from atoll.engine.process import V8_FLAGS, ensure_snapshot, find_files
from bench.harness import Atoll, BenchError
from bench.host import undisturbed
from bench.report import Options, Row, main

COUNT = 100
PAUSE = 0.05  # seconds; preparing an isolate takes 2-3 ms of CPU time


def realistic_worker(n: int) -> str:
    """A worker of about 20 KB whose first request runs little of it, as bundled workers are."""
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
    """The smallest HTTP client: it sends a line, and reads until the body is there."""

    def __init__(self, server: Atoll) -> None:
        self.socket = socket.create_connection(("127.0.0.1", server.port), 30)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def get(self, name: str) -> float:
        """Milliseconds until the answer of the worker was there."""
        request = f"GET / HTTP/1.1\r\nHost: {name}.localhost\r\n\r\n".encode()
        body = f"worker {name[1:]}".encode()
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
    """The first request to each worker, and the second."""
    workers = {f"c{n}": realistic_worker(n) for n in range(COUNT + 5)}
    with Atoll(workers, idle_seconds=3600, **settings) as server:
        server.restart()
        names = list(workers)
        timed_requests(server, names[:5], pause)  # the engines' own first isolates, and this client's
        time.sleep(0.5)
        return timed_requests(server, names[5:], pause), timed_requests(server, names[5:], pause)


def making() -> list[Row]:
    """The engine's own measure of what it takes to make an isolate."""
    files = find_files()
    with tempfile.TemporaryDirectory(prefix="atoll-bench-") as folder:
        snapshot = ensure_snapshot(files, Path(folder))
        command = [str(files.node), *V8_FLAGS, str(files.main), "rehearse", str(snapshot), str(COUNT)]
        done = subprocess.run(command, capture_output=True, check=False, env={"OPENSSL_CONF": "/dev/null"})
    if done.returncode:
        raise BenchError(f"the engine could not measure itself: {done.stderr.decode(errors='replace')}")
    found = json.loads(done.stdout)
    return [
        Row("an isolate made, CPU", "ms", {"atoll": found["make_us"] / 1000}),
        Row("an isolate made from memory that was prepared, CPU", "ms", {"atoll": found["ready_us"] / 1000}),
        Row("of that its context, CPU", "ms", {"atoll": found["context_us"] / 1000}),
        Row("its first calls, which spares have behind them, CPU", "ms", {"atoll": found["warm_us"] / 1000}),
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
        Row("time of the machine that its host took, at most", "%", {"atoll": 100 * taken}),
        *making(),
    ]


if __name__ == "__main__":
    main(run)
