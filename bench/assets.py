"""Static assets of 1 KB, 100 KB and 10 MB, beside nginx on the same files: requests and MB per second, and memory.

nginx (apt install nginx-light) runs one process with sendfile and without logs.
"""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import shutil
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.harness import Atoll, BenchError, Server
from bench.load import side_by_side
from bench.report import Options, Row, main

FILES = {"/1k.bin": 1 << 10, "/100k.bin": 100 << 10, "/10m.bin": 10 << 20}
CONFIG = """
daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log; worker_processes 1; user root;
events {{ worker_connections 1024; }}
http {{
  access_log off; sendfile on; tcp_nopush on; keepalive_requests 1000000; open_file_cache max=100;
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
            (folder / "site" / path[1:]).write_bytes(content)
        (folder / "nginx.conf").write_text(CONFIG.format(folder=folder, port=self.port))
        return [found, "-p", str(folder), "-c", str(folder / "nginx.conf")]


class Site(Atoll):
    """Atoll with a site of files and no worker."""

    def __init__(self, files: dict[str, bytes]) -> None:
        super().__init__({})
        self.files = files

    def deploy(self, workers: Any, *, tenant: str = "", **fields: Any) -> None:
        sent = {path: {"hash": hashlib.sha256(c).hexdigest(), "size": len(c)} for path, c in self.files.items()}
        found = self._ask("POST", "/api/assets/manifests", json.dumps({"files": sent}).encode())
        parts = [hashlib.sha256(c).digest() + len(c).to_bytes(8) + c for c in self.files.values()]
        self._ask("PUT", "/api/assets/files", b"".join(parts))
        self.post("/api/workers", {"name": "site", "assets": {"manifest": found["manifest"]}})

    def _ask(self, method: str, path: str, body: bytes) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        connection.request(method, path, body, {"Content-Type": "application/json"})
        response = connection.getresponse()
        answer = response.read()
        connection.close()
        if response.status != 200:
            raise BenchError(f"atoll refused the assets: {response.status} {answer[:500]!r}")
        return json.loads(answer)


def run(options: Options) -> list[Row]:
    files = {path: os.urandom(size) for path, size in FILES.items()}
    rows = []
    with ExitStack() as stack:
        site = stack.enter_context(Site(files))
        servers: list[Server] = [site, stack.enter_context(Nginx(files))]
        for path, content in files.items():
            for server in servers:
                server.expect("site", content, path)
        before = site.rss()
        for path, size in FILES.items():
            loads = side_by_side(servers, "site", path, connections=32, seconds=options.seconds, rounds=options.rounds)
            rates = {name: load.rate for name, load in loads.items()}
            if size <= 1 << 10:
                met = rates["atoll"] >= 0.5 * rates["nginx"]
                bar = f"0.5 x nginx ({rates['nginx']:,.0f})"
                rows.append(Row("asset of 1 KB, 32 connections", "req/s", rates, bar, met))
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
