"""deploy/nginx with a real nginx: it passes on the client's address, streams bodies, and allows no smuggling."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from websockets.asyncio.client import connect

from tests.certificates import make_authority, make_certificate
from tests.nginx import documented_flags, nginx, require_nginx
from tests.running import Answer, Atoll, free_port

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


MALLORY = """export default { async fetch(request) {
  if (new URL(request.url).pathname === "/slow") await scheduler.wait(300);
  return new Response("mallory");
} };"""
SOCKET = (
    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
    "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
)
UPGRADES = {"websocket": SOCKET, "h2c": "Connection: Upgrade\r\nUpgrade: h2c\r\n", "other": "Upgrade: other\r\n"}


@dataclass
class Site:
    """nginx in front of a node."""

    node: Atoll
    folder: Path
    port: int
    plain: int
    token: str

    @property
    def ports(self) -> dict[str, int]:
        return {"node": self.node.port, "port": self.port, "plain": self.plain}

    def handshake(self, name: str = "show.workers.example") -> ssl.SSLSocket:
        trust = ssl.create_default_context(cafile=str(self.folder / "ca.pem"))
        raw = socket.create_connection(("127.0.0.1", self.port), 10)
        try:
            return trust.wrap_socket(raw, server_hostname=name)
        except ssl.SSLError:
            raw.close()
            raise

    def connect(self, name: str = "show.workers.example") -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection("unused")
        connection.sock = self.handshake(name)
        return connection

    def get(
        self, host: str, path: str = "/", headers: dict[str, str] | None = None, name: str = ""
    ) -> tuple[int, bytes]:
        """Sends a request for a host through nginx, optionally with another name in TLS."""
        connection = self.connect(name or host)
        try:
            connection.request("GET", path, headers={"Host": host, **(headers or {})})
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def send(self, text: str) -> bytes:
        """Sends bytes through nginx to the hostile tenant's worker; returns the answer."""
        with self.handshake("mallory.workers.example") as connection:
            connection.sendall(text.encode())
            return connection.recv(65536)

    def operate(self, method: str, path: str, body: object = None, tenant: str = "default") -> Answer:
        """A request of the operator that bypasses nginx."""
        headers = {"X-Atoll-Tenant": tenant, "Content-Type": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        return self.node.request(
            method, f"localhost:{self.node.port}", path, None if body is None else json.dumps(body), headers
        )


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with started(tmp_path_factory.mktemp("nginx"), documented_flags()) as site:
        yield site


@pytest.fixture(scope="module")
def careless(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A node whose operator did not follow the instructions of the file."""
    with started(tmp_path_factory.mktemp("careless"), ["--base-domain", "workers.example"]) as site:
        yield site


@contextlib.contextmanager
def started(folder: Path, flags: list[str]) -> Iterator[Site]:
    require_nginx()
    make_certificate(folder, "site", "*.workers.example", authority=make_authority(folder))
    node = Atoll(folder / "node", engines=1)
    node.command = [*node.command, *flags]
    node.start()
    token = folder / "node/data/admin-token"
    site = Site(node, folder, free_port(), free_port(), token.read_text().strip() if token.exists() else "")
    try:
        for tenant, name, script in (("default", "show", SHOW), ("mallory", "mallory", MALLORY)):
            site.operate("POST", "/api/tenants", {"name": tenant})
            assert site.operate("POST", "/api/workers", {"name": name, "script": script}, tenant).status == 201
        with nginx(site.folder, "nginx", "deny all;", **site.ports):
            yield site
    finally:
        node.stop()


def test_a_worker_behind_nginx_sees_its_client_and_scheme(site: Site) -> None:
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
    response = connection.getresponse()  # before the request ends
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


def test_connections_to_atoll_are_kept_alive(site: Site) -> None:
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


# --- which names are served ---


@pytest.mark.parametrize(
    "host", ["localhost", "127.0.0.1", "[::1]", "workers.example.evil", "x.localhost", "_", "nobody"]
)
def test_nginx_refuses_every_other_name(site: Site, host: str) -> None:
    for path in ("/", "/health", "/api/workers", "/api/backup", "/metrics"):
        status, body = site.get(host, path, name="show.workers.example")
        assert status == 421 and b"nginx" in body
    connection = http.client.HTTPConnection("127.0.0.1", site.plain, timeout=10)
    connection.request("GET", "/api/workers", headers={"Host": host})
    assert connection.getresponse().status == 421
    connection.close()
    with pytest.raises(ssl.SSLError):
        site.handshake("localhost")


def test_an_absolute_url_does_not_bypass_the_server_names(site: Site) -> None:
    answer = site.send("GET http://localhost/api/workers HTTP/1.1\r\nHost: mallory.workers.example\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 421 ")


def test_the_control_host_is_served_only_to_allowed_addresses(site: Site) -> None:
    host = "control.workers.example"
    for headers in ({}, {"Authorization": f"Bearer {site.token}"}):
        assert site.get(host, "/api/workers", headers)[0] == 403
    opened = Site(site.node, site.folder, free_port(), free_port(), site.token)
    with nginx(opened.folder, "opened", "allow 127.0.0.1; deny all;", **opened.ports):
        assert opened.get(host, "/api/workers")[0] == 401
        status, body = opened.get(host, "/api/workers", {"Authorization": f"Bearer {site.token}"})
        assert status == 200 and b"show" in body


# --- smuggling ---


def smuggled(inner: str) -> list[str]:
    """Ways to hide a request, or a part of one, in the body of another."""
    return [
        f"Content-Length: {len(inner)}\r\n\r\n{inner}",
        f"Transfer-Encoding: chunked\r\n\r\n{len(inner):x}\r\n{inner}\r\n0\r\n\r\n",
        f"Content-Length: {len(inner) + 2}\r\n\r\n\r\n{inner}",
    ]


# The first is answered late, so that nginx gives its answer to the next user of the connection. The second swallows the
# head of the next request.
SLOW = "GET /slow HTTP/1.1\r\nHost: mallory.workers.example\r\n\r\n"
OPEN = "GET /open HTTP/1.1\r\nHost: mallory.workers.example\r\nX-Rest: "


@pytest.mark.parametrize("kind", UPGRADES)
@pytest.mark.parametrize("method", ["GET", "POST"])
@pytest.mark.parametrize("inner", [SLOW, OPEN], ids=["slow", "open"])
def test_a_body_after_an_upgrade_poisons_no_answer(site: Site, kind: str, method: str, inner: str) -> None:
    for body in smuggled(inner):
        for _ in range(2):
            attack = f"{method} / HTTP/1.1\r\nHost: mallory.workers.example\r\n{UPGRADES[kind]}{body}"
            assert site.send(attack).startswith((b"HTTP/1.1 200 ", b"HTTP/1.1 400 "))
            for _ in range(3):
                status, answer = site.get("show.workers.example", "/victim")
                assert status == 200 and json.loads(answer)[0] == "https://show.workers.example/victim"


@pytest.mark.parametrize("kind", UPGRADES)
@pytest.mark.parametrize("inner", ["GET /api/backup", "DELETE /api/workers/show"])
def test_a_request_smuggled_to_the_control_api_does_nothing(careless: Site, kind: str, inner: str) -> None:
    """Even if no token is needed on this machine and no proxy is trusted."""
    text = f"{inner} HTTP/1.1\r\nHost: localhost\r\n\r\n"
    for body in smuggled(text):
        attack = f"GET / HTTP/1.1\r\nHost: mallory.workers.example\r\n{UPGRADES[kind]}{body}"
        for _ in range(2):
            careless.send(attack)
            assert careless.get("mallory.workers.example", "/next") == (200, b"mallory")
    assert careless.operate("GET", "/api/workers/show").status == 200
    actions = [record["action"] for record in careless.operate("GET", "/api/audit").json["audit"]]
    assert "worker.create" in actions and not {"node.backup", "worker.delete"} & set(actions)
