"""Attempts of one tenant on the hosts and cookies of another, through a real node."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.cli.test_projects import run
from tests.running import Answer, Atoll


class Tenant:
    def __init__(self, atoll: Atoll, name: str) -> None:
        self.atoll, self.name = atoll, name
        assert atoll.control("POST", "/api/tenants", {"name": name}).status == 201
        body = json.dumps({"name": "ops", "scopes": ["admin"]})
        headers = {"Content-Type": "application/json", "X-Atoll-Tenant": name}
        self.token = atoll.request("POST", f"localhost:{atoll.port}", "/api/tokens", body, headers).json["token"]

    def ask(self, method: str, path: str, body: Any = None) -> Answer:
        headers = {"Authorization": f"Bearer {self.token}"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        content = None if body is None else json.dumps(body)
        return self.atoll.request(method, f"localhost:{self.atoll.port}", path, content, headers)

    def deploy(self, name: str, *routes: str) -> Answer:
        script = f"export default {{ fetch() {{ return new Response('{self.name}') }} }}"
        return self.ask("POST", "/api/workers", {"name": name, "script": script, "routes": routes})


@pytest.fixture(scope="module")
def atoll(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Atoll]:
    node = Atoll(tmp_path_factory.mktemp("hosts"), engines=1)
    node.start()
    yield node
    node.stop()


@pytest.fixture(scope="module")
def acme(atoll: Atoll) -> Tenant:
    return Tenant(atoll, "acme")


@pytest.fixture(scope="module")
def globex(atoll: Atoll) -> Tenant:
    return Tenant(atoll, "globex")


def seen(atoll: Atoll, host: str) -> str:
    answer = atoll.request("GET", host)
    return answer.text if answer.status == 200 else str(answer.status)


def test_other_tenants_cannot_claim_a_subdomain_of_a_workers_host(atoll: Atoll, acme: Tenant, globex: Tenant) -> None:
    assert acme.deploy("shop").status == 201
    for route in ("x.shop.localhost/*", "*shop.localhost/*", "*.Shop.localhost./*", "shop.localhost/login"):
        assert globex.deploy("thief", route).status == 409, route
    for host in ("x.shop.localhost", "X.SHOP.LOCALHOST.", f"x.shop.localhost:{atoll.port}", "a.b.shop.localhost."):
        assert seen(atoll, host) == "404"
    assert seen(atoll, "SHOP.localhost.:1") == "acme"


def test_with_concurrent_deploys_each_host_has_one_tenant(atoll: Atoll, acme: Tenant, globex: Tenant) -> None:
    names = [f"race{number}" for number in range(6)]
    with ThreadPoolExecutor(8) as threads:
        mine = [threads.submit(acme.deploy, name) for name in names]
        theirs = [threads.submit(globex.deploy, f"{name}-thief", f"x.{name}.localhost/*") for name in names]
        won = [(one.result().status, two.result().status) for one, two in zip(mine, theirs, strict=True)]
    assert all(sorted(pair) == [201, 409] for pair in won), won


def test_a_reserved_host_survives_kill_9_and_a_restore(tmp_path: Path) -> None:
    node = Atoll(tmp_path / "first", engines=1)
    node.start()
    acme, globex = Tenant(node, "acme"), Tenant(node, "globex")
    assert acme.deploy("mail", "mail.example/*").status == 201
    assert acme.ask("DELETE", "/api/workers/mail").status == 204
    node.stop(signal.SIGKILL)
    node.start()
    wanted = [("mail", ()), ("thief", ("x.mail.localhost/*",)), ("thief", ("*mail.example/*",))]
    for name, routes in wanted:
        refused = globex.deploy(name, *routes)
        assert (refused.status, refused.json["error"]["code"]) == (409, 19015), refused.text
    api = {"ATOLL_API": f"http://localhost:{node.port}"}
    run(tmp_path, "backup", "all.tar", **api)
    node.stop()
    run(tmp_path, "restore", "all.tar", "--data", str(tmp_path / "second" / "data"))
    restored = Atoll(tmp_path / "second", engines=1)
    restored.start()
    api = {"ATOLL_API": f"http://localhost:{restored.port}"}
    globex.atoll = restored
    try:
        hint = globex.deploy("mail").json["error"]["hint"]
        assert "'*mail.localhost'" in hint
        assert "*mail.localhost" in run(tmp_path, "hosts", "list", **api).stdout
        run(tmp_path, "hosts", "release", "*mail.localhost", **api)
        assert globex.deploy("mail").status == 201
        assert seen(restored, "mail.localhost") == "globex"
    finally:
        restored.stop()


COOKIES = """export default { async fetch(request) {
  const { pathname, searchParams } = new URL(request.url);
  const headers = new Headers({ "x-kept": "1" });
  for (const cookie of searchParams.getAll("c")) headers.append("set-cookie", cookie);
  if (pathname === "/socket") {
    const { 0: client, 1: server } = new WebSocketPair();
    server.accept();
    return new Response(null, { status: 101, webSocket: client, headers });
  }
  if (pathname === "/stream") {
    const { readable, writable } = new TransformStream();
    const writer = writable.getWriter();
    (async () => { await writer.write(new TextEncoder().encode("a")); await scheduler.wait(5); await writer.close(); })();
    return new Response(readable, { headers });
  }
  const status = { "/moved": 302, "/empty": 204, "/same": 304, "/named": 200 }[pathname] ?? 200;
  const statusText = pathname === "/named" ? "Fine" : "";
  return new Response([204, 304].includes(status) ? null : "x", { status, statusText, headers });
} };"""
SOCKET = {
    "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}  # fmt: skip


def set_by(atoll: Atoll, host: str, path: str, cookies: list[str], method: str = "GET") -> list[str]:
    """The cookies that reach a client. The rest of the response arrives even if cookies are refused."""
    query = urlencode([("c", cookie) for cookie in cookies])
    headers = SOCKET if path == "/socket" else {}
    with atoll.connect() as raw:
        lines = [f"{method} {path}?{query} HTTP/1.1", f"Host: {host}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        raw.sendall(("\r\n".join(lines) + "\r\n\r\n").encode())
        head = b""
        while b"\r\n\r\n" not in head:
            head += raw.recv(65536)
    found = head.decode("latin-1").split("\r\n\r\n")[0].split("\r\n")
    assert "x-kept: 1" in found
    assert (path == "/socket") == found[0].startswith("HTTP/1.1 101")
    return [line.split(": ", 1)[1] for line in found if line.lower().startswith("set-cookie:")]


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("path", ["/", "/stream", "/socket", "/moved", "/empty", "/same", "/named"])
def test_no_worker_can_set_a_cookie_for_all_workers(atoll: Atoll, acme: Tenant, path: str, method: str) -> None:
    if method == "HEAD" and path == "/socket":
        pytest.skip("a socket begins with GET")
    body = {"name": "baker", "script": COOKIES, "routes": ["cake.example/*"]}
    assert acme.ask("POST", "/api/workers", body).status in (201, 409)
    wide = ["a=1; Domain=localhost", "b=2; domain = .LocalHost. ; Path=/", 'c=3; Domain="localhost"; Secure']
    own = ["d=4; Domain=baker.localhost", "e=5; Path=/"]
    assert set_by(atoll, atoll.host("baker"), path, [*wide, *own], method) == own
    custom = ["f=6; Domain=cake.example"]
    assert set_by(atoll, "cake.example", path, [*wide, *custom], method) == custom
