"""The network: a worker that proxies 1 GB, compared with nginx, and the cost of a small subrequest.

nginx serves the files and is also the proxy to compare with. CPU is that of all processes of the proxy, without the
file server.
"""

from __future__ import annotations

import os
import shutil
import socket
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from bench import sockets
from bench.harness import Atoll, BenchError, Server, fetch, rss_of
from bench.load import wrk
from bench.report import Options, Row, main

SIZE = 1 << 30
WORKERS = {
    "proxy": """export default { fetch(request) {
      return fetch('http://127.0.0.1:PORT' + new URL(request.url).pathname);
    } };""",
    "read": """export default { async fetch(request) {
      const response = await fetch('http://127.0.0.1:PORT' + new URL(request.url).pathname);
      return new Response(await response.text());
    } };""",
    "inner": "export default { fetch() { return fetch('http://hello.localhost/'); } };",
    "hello": "export default { fetch() { return new Response('x'.repeat(100)); } };",
}


class Nginx(Server):
    """nginx in one process: it serves a folder or proxies to a port."""

    name = "nginx"

    def __init__(self, upstream: int = 0) -> None:
        super().__init__({})
        self.upstream = upstream

    def __enter__(self) -> Self:
        if shutil.which("nginx") is None:
            raise BenchError("nginx is missing\nhint: apt install nginx-light")
        folder = Path(self.folder.name)
        os.chmod(folder, 0o755)
        if not self.upstream:
            (folder / "small").write_bytes(b"x" * 100)
            with (folder / "big").open("wb") as file:
                file.truncate(SIZE)
        does = f"root {folder};"
        if self.upstream:
            does = "proxy_pass http://up; proxy_http_version 1.1; proxy_set_header Connection '';"
            does += "proxy_max_temp_file_size 0;"
        upstream = f"upstream up {{ server 127.0.0.1:{self.upstream}; keepalive 64; }}" if self.upstream else ""
        paths = "".join(
            f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        )
        (folder / "nginx.conf").write_text(
            f"daemon off; master_process off; pid {folder}/pid; error_log {folder}/error.log; events {{}}"
            f"http {{ access_log off; sendfile on; keepalive_requests 100000000; {paths} {upstream}"
            f"server {{ listen 127.0.0.1:{self.port}; location / {{ {does} }} }} }}"
        )
        return super().__enter__()

    def command(self) -> list[str]:
        return ["nginx", "-p", self.folder.name, "-c", f"{self.folder.name}/nginx.conf"]


class Reaching(Atoll):
    """Atoll whose workers may connect to this machine."""

    def environment(self) -> dict[str, str]:
        return super().environment() | {"ATOLL_EGRESS_ALLOW": "127.0.0.1"}


def cpu_seconds(server: Server) -> float:
    total = 0.0
    for pid in server.pids():
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def pull(port: int, host: str, path: str) -> int:
    """Reads a response to its end and counts its bytes."""
    with socket.create_connection(("127.0.0.1", port)) as client:
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        buffer = bytearray(1 << 20)
        count = 0
        while read := client.recv_into(buffer):
            count += read
        return count


class Peak:
    """The peak memory of a server during the `with` block."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.most = 0
        self.before = server.rss()
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.watch)

    def watch(self) -> None:
        while not self.over.wait(0.05):
            self.most = max(self.most, sum(map(rss_of, self.server.pids())))

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()

    @property
    def growth_mb(self) -> float:
        return max(0, self.most - self.before) / 1e6


def stream(server: Server, host: str) -> tuple[float, float, float]:
    """1 GB through a proxy: MB per second, CPU seconds, MB of memory growth."""
    fetch(server.port, host, "/small")
    before, began = cpu_seconds(server), time.monotonic()
    with Peak(server) as peak:
        count = pull(server.port, host, "/big")
    if count < SIZE:
        raise BenchError(f"{server.name} sent {count} bytes of {SIZE}")
    return SIZE / 1e6 / (time.monotonic() - began), cpu_seconds(server) - before, peak.growth_mb


def small(server: Server, host: str, path: str, seconds: int) -> tuple[float, float]:
    """Small requests: requests per second, and CPU microseconds per request."""
    wrk(server.port, host, path, connections=32, seconds=1)
    before = cpu_seconds(server)
    load = wrk(server.port, host, path, connections=32, seconds=seconds)
    if load.failures:
        raise BenchError(f"{server.name} {host}: {load.failures}")
    return load.rate, (cpu_seconds(server) - before) / (load.rate * seconds) * 1e6


def run(options: Options) -> list[Row]:
    with ExitStack() as stack:
        files = stack.enter_context(Nginx())
        peer = stack.enter_context(Nginx(files.port))
        workers = {name: source.replace("PORT", str(files.port)) for name, source in WORKERS.items()}
        atoll = stack.enter_context(Reaching(workers, engines=1))
        speed, cpu, growth = stream(atoll, "proxy.localhost")
        peer_speed, peer_cpu, _ = stream(peer, "x")
        rate, cost = small(atoll, "proxy.localhost", "/small", options.seconds)
        read_rate, read_cost = small(atoll, "read.localhost", "/small", options.seconds)
        inner_rate, inner_cost = small(atoll, "inner.localhost", "/", options.seconds)
        _, hello_cost = small(atoll, "hello.localhost", "/", options.seconds)
        peer_rate, peer_cost = small(peer, "x", "/small", options.seconds)
    return [
        Row("1 GB through a proxy worker", "MB/s", {"atoll": speed}, f"nginx {peer_speed:,.0f}"),
        Row("1 GB through a proxy worker, CPU", "s", {"atoll": cpu}, f"nginx {peer_cpu:.2f}"),
        Row("1 GB through a proxy worker, memory growth", "MB RSS", {"atoll": growth}, "under 50", growth < 50),
        Row("small responses through a proxy worker", "req/s", {"atoll": rate}, f"nginx {peer_rate:,.0f}"),
        Row("CPU of a subrequest, beyond hello", "us", {"atoll": cost - hello_cost}, f"nginx {peer_cost:.0f} for all"),
        Row("small responses read by the worker", "req/s", {"atoll": read_rate}),
        Row("CPU of a subrequest that is read, beyond hello", "us", {"atoll": read_cost - hello_cost}),
        Row("subrequests to a worker of the node", "req/s", {"atoll": inner_rate}),
        Row("CPU of a subrequest to a worker of the node, beyond hello", "us", {"atoll": inner_cost - hello_cost}),
        *sockets.rows(options),
    ]


if __name__ == "__main__":
    main(run)
