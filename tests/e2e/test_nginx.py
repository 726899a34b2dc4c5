"""The nginx of deploy/nginx, run for real: it hands on who the client is, and bodies as they come."""

from __future__ import annotations

import http.client
import json
import os
import shutil
import socket
import ssl
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from websockets.asyncio.client import connect

from tests.certificates import make_authority, make_certificate, require_openssl
from tests.running import Atoll, free_port

CONFIG = Path(__file__).parents[2] / "deploy/nginx/atoll.conf"
SHOW = """export default { async fetch(request) {
  if (request.headers.get("upgrade") === "websocket") {
    const { 0: client, 1: server } = new WebSocketPair();
    server.accept();
    server.addEventListener("message", ({ data }) => data === "bye" ? server.close(4000, "done") : server.send(data));
    return new Response(null, { status: 101, webSocket: client });
  }
  if (request.method === "POST") return new Response(request.body);
  const names = ["cf-connecting-ip", "x-real-ip", "x-forwarded-for", "x-forwarded-proto", "connection"];
  const claims = ["x-forwarded-host", "forwarded", "true-client-ip", "cf-ipcountry", "cf-visitor"];
  return Response.json([request.url, ...[...names, ...claims].map((name) => request.headers.get(name)), request.headers.get("cf-ray").length]);
} };"""


@dataclass
class Site:
    """nginx in front of a node."""

    node: Atoll
    folder: Path
    port: int

    def connect(self) -> http.client.HTTPConnection:
        trust = ssl.create_default_context(cafile=str(self.folder / "ca.pem"))
        connection = http.client.HTTPConnection("unused")
        raw = socket.create_connection(("127.0.0.1", self.port), 10)
        connection.sock = trust.wrap_socket(raw, server_hostname="show.workers.example")
        return connection


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    require_openssl()
    if shutil.which("nginx") is None and os.geteuid() == 0:
        subprocess.run(["apt-get", "install", "-y", "-q", "nginx-light"], check=False, capture_output=True)
    if shutil.which("nginx") is None:
        pytest.skip("needs nginx (apt install nginx-light)")
    folder = tmp_path_factory.mktemp("nginx")
    make_certificate(folder, "site", "*.workers.example", authority=make_authority(folder))
    node = Atoll(folder / "node", engines=1, base_domain="workers.example", trusted_proxies="127.0.0.1")
    node.start()
    node.deploy("show", SHOW)
    plain, secure = free_port(), free_port()
    text = CONFIG.read_text().replace("127.0.0.1:8080", f"127.0.0.1:{node.port}")
    text = text.replace("listen 80;", f"listen 127.0.0.1:{plain};").replace(
        "listen 443 ", f"listen 127.0.0.1:{secure} "
    )
    text = text.replace("/etc/ssl/atoll/fullchain.pem", f"{folder}/site.pem").replace(
        "/etc/ssl/atoll/privkey.pem", f"{folder}/site.key"
    )
    paths = "".join(
        f"{kind}_temp_path {folder}/{kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"daemon off; pid {folder}/pid; error_log {folder}/error.log; events {{}} http {{ access_log off; {paths} {text} }}"
    )
    process = subprocess.Popen(["nginx", "-p", str(folder), "-c", str(folder / "nginx.conf")], stderr=subprocess.PIPE)
    node.wait_until(lambda: _listens(secure), 10)
    yield Site(node, folder, secure)
    process.terminate()
    process.wait(10)
    assert process.stderr is not None
    process.stderr.close()
    node.stop()


def _listens(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_a_worker_behind_nginx_knows_its_client_and_its_scheme(site: Site) -> None:
    connection = site.connect()
    forged = {
        "X-Forwarded-For": "6.6.6.6",
        "CF-Connecting-IP": "6.6.6.6",
        "X-Real-IP": "6.6.6.6",
        "X-Forwarded-Proto": "http",
        "X-Forwarded-Host": "evil.example",
        "Forwarded": "for=6.6.6.6",
        "True-Client-IP": "6.6.6.6",
        "CF-IPCountry": "XX",
        "CF-Visitor": "{}",
        "CF-Ray": "6",
    }
    connection.request("GET", "/x?y", headers={"Host": "show.workers.example", **forged})
    shown = json.loads(connection.getresponse().read())
    connection.close()
    assert shown == [
        "https://show.workers.example/x?y", "127.0.0.1", "127.0.0.1", "127.0.0.1", "https", None,
        None, None, None, None, None, 20,
    ]  # fmt: skip


def test_bodies_stream_through_nginx_in_both_directions(site: Site) -> None:
    connection = site.connect()
    connection.putrequest("POST", "/", skip_host=True)
    connection.putheader("Host", "show.workers.example")
    connection.putheader("Transfer-Encoding", "chunked")
    connection.endheaders()
    connection.send(b"5\r\nfirst\r\n")
    response = connection.getresponse()  # before the request has ended
    assert response.read(5) == b"first"
    connection.send(b"4\r\nlast\r\n0\r\n\r\n")
    assert response.read() == b"last"
    connection.close()


async def test_websockets_pass_through_nginx(site: Site) -> None:
    trust = ssl.create_default_context(cafile=str(site.folder / "ca.pem"))
    where = {"host": "127.0.0.1", "port": site.port, "proxy": None, "ssl": trust}
    async with connect("wss://show.workers.example/", **where) as ws:
        for message in ("text", bytes(100_000)):
            await ws.send(message)
            assert await ws.recv() == message
        await ws.send("bye")
        await ws.wait_closed()
        assert (ws.close_code, ws.close_reason) == (4000, "done")


def test_connections_to_atoll_are_kept(site: Site) -> None:
    def ports() -> set[str]:
        rows = Path("/proc/net/tcp").read_text().splitlines()[1:]
        here = f"{site.node.port:04X}"
        return {row.split()[2] for row in rows if row.split()[1].endswith(here) and row.split()[3] == "01"}

    for _ in range(3):
        connection = site.connect()
        connection.request("GET", "/", headers={"Host": "show.workers.example"})
        connection.getresponse().read()
        connection.close()
    time.sleep(0.05)
    assert 1 <= len(ports()) <= 3
