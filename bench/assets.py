"""Static assets of 1 KB, 100 KB and 10 MB, beside nginx on the same files: requests and MB per second, and memory.

The bar for small files is measured with many files, many hosts and the headers of browsers, because one request that
is repeated says little. nginx (apt install nginx-light) runs one process with sendfile and without logs, and keeps its
files open.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import random
import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.harness import Atoll, BenchError, Server
from bench.load import side_by_side, wrk
from bench.report import Options, Row, main
from bench.web import cpu_seconds

FILES = {"/1k.bin": 1 << 10, "/100k.bin": 100 << 10, "/10m.bin": 10 << 20}
SITES = ["site", *(f"site{n}" for n in range(1, 8))]
MANY = [f"/assets/{kind}/part-{n:03}.{kind}" for n in range(250) for kind in ("js", "css", "svg", "woff2")]
BROWSERS = (
    {
        "User-Agent": "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0",
        "Accept": "text/css,*/*;q=0.1",
        "Accept-Language": "en-US,en;q=0.5",
        "Accept-Encoding": "gzip, deflate, br, zstd",
        "Sec-Fetch-Dest": "style",
        "Sec-Fetch-Mode": "no-cors",
        "Sec-Fetch-Site": "same-origin",
    },
    {
        "User-Agent": "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/537.36 Chrome/139.0 Safari/537.36",
        "Accept": "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8",
        "Accept-Encoding": "gzip, deflate, br",
        "Accept-Language": "de-DE,de;q=0.9",
        "Cookie": "theme=dark; session=0123456789abcdef0123456789abcdef",
        "Sec-Fetch-Dest": "image",
    },
    {"User-Agent": "curl/8.14.1", "Accept": "*/*"},
)
CONFIG = """
daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log; worker_processes 1; user root;
events {{ worker_connections 1024; }}
http {{
  access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000; open_file_cache max=4000;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  server {{ listen 127.0.0.1:{port}; root {folder}/site; }}
}}
"""


class Nginx(Server):
    name = "nginx"

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__({})
        self.files = files

    def command(self) -> list[str]:
        found = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
        if found is None:
            raise BenchError("nginx is missing\nhint: apt install nginx-light")
        folder = Path(self.folder.name)
        folder.chmod(0o755)
        (folder / "site").mkdir(exist_ok=True)
        for path, content in self.files.items():
            place = folder / "site" / path[1:]
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(content)
        (folder / "nginx.conf").write_text(CONFIG.format(folder=folder, port=self.port))
        return [found, "-p", str(folder), "-c", str(folder / "nginx.conf")]


class Site(Atoll):
    """Atoll with the same files on several hosts, and no worker."""

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__({})
        self.files = files

    def deploy(self, workers: Any, *, tenant: str = "", **fields: Any) -> None:
        sent = {path: {"hash": hashlib.sha256(c).hexdigest(), "size": len(c)} for path, c in self.files.items()}
        found = self._ask("POST", "/api/assets/manifests", json.dumps({"files": sent}).encode())
        parts = [hashlib.sha256(c).digest() + len(c).to_bytes(8) + c for c in self.files.values()]
        self._ask("PUT", "/api/assets/files", b"".join(parts))
        for name in SITES:
            self.post("/api/workers", {"name": name, "assets": {"manifest": found["manifest"]}})

    def _ask(self, method: str, path: str, body: bytes) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        answer = response.read()
        connection.close()
        if response.status != 200:
            raise BenchError(f"atoll refused the assets: {response.status} {answer[:500]!r}")
        return json.loads(answer)


def many_requests() -> str:
    """A script for wrk: all files, hosts and browsers in one order that no part of a server can foresee."""
    order = [(path, SITES[n % len(SITES)], n) for n, path in enumerate(MANY * 4)]
    random.Random(1).shuffle(order)
    heads = [
        f"GET {path} HTTP/1.1\r\nHost: {host}.localhost\r\n"
        + "".join(f"{name}: {value}\r\n" for name, value in BROWSERS[n % len(BROWSERS)].items())
        for path, host, n in order
    ]
    listed = ",\n".join(json.dumps(head + "\r\n") for head in heads)
    return f"""
local requests, at = {{ {listed} }}, 0
function request()
  at = at % #requests + 1
  return requests[at]
end
"""


def cpu_per_request(server: Server, seconds: int) -> float:
    """CPU time of the process that answers, in us: a busy machine affects it less than requests per second."""
    port, host = server.address("site")
    pids = server.pids()[:1] if isinstance(server, Site) else server.pids()  # nginx has a master and one worker
    before = cpu_seconds(pids)
    load = wrk(port, host, "/", connections=32, seconds=seconds, lua=many_requests())
    return (cpu_seconds(pids) - before) / (load.rate * seconds) * 1e6


def run(options: Options) -> list[Row]:
    files = {path: os.urandom(size) for path, size in FILES.items()} | {path: os.urandom(1 << 10) for path in MANY}
    rows = []
    with ExitStack() as stack:
        site = stack.enter_context(Site(files))
        servers: list[Server] = [site, stack.enter_context(Nginx(files))]
        for path, content in files.items():
            for server in servers:
                server.expect("site", content, path)
        before = site.rss()
        loads = side_by_side(
            servers, "site", connections=32, seconds=options.seconds, rounds=options.rounds, lua=many_requests()
        )
        rates = {name: load.rate for name, load in loads.items()}
        met = rates["atoll"] >= 0.5 * rates["nginx"]
        what = f"assets of 1 KB, {len(MANY):,} files on {len(SITES)} hosts, 32 connections"
        rows.append(Row(what, "req/s", rates, f"0.5 x nginx ({rates['nginx']:,.0f})", met))
        costs = {server.name: cpu_per_request(server, options.seconds) for server in servers}
        bar = f"2 x nginx ({costs['nginx']:.1f})"
        rows.append(Row("the same: CPU per request", "us", costs, bar, costs["atoll"] <= 2 * costs["nginx"]))
        for path, size in FILES.items():
            loads = side_by_side(servers, "site", path, connections=32, seconds=options.seconds, rounds=options.rounds)
            rates = {name: load.rate for name, load in loads.items()}
            if size <= 1 << 10:
                met = rates["atoll"] >= 0.5 * rates["nginx"]
                bar = f"0.5 x nginx ({rates['nginx']:,.0f})"
                rows.append(Row("asset of 1 KB, always the same, 32 connections", "req/s", rates, bar, met))
                continue
            speeds = {name: rate * size / 1e6 for name, rate in rates.items()}
            is_large = size > 1 << 20
            met_or_none = speeds["atoll"] >= 0.9 * speeds["nginx"] if is_large else None
            what = f"asset of {'10 MB' if is_large else '100 KB'}, 32 connections"
            bar = f"{'0.9 x ' if is_large else ''}nginx ({speeds['nginx']:,.0f})"
            rows.append(Row(what, "MB/s", speeds, bar, met_or_none))
        grown = (site.rss() - before) / 1e6
        rows.append(Row("growth of memory over these runs", "MB", {"atoll": grown}, "at most 32", grown <= 32))
    return rows


if __name__ == "__main__":
    main(run)
