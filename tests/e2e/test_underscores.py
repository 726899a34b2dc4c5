"""Names with underscores, as wrangler allows them: the worker keeps its name, and its host has dashes."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
from pathlib import Path

import pytest
from websockets.asyncio.client import connect

from tests.certificates import make_authority, make_certificate, require_openssl
from tests.cli.test_projects import run
from tests.running import Atoll, free_port

SCRIPT = """export default { async fetch(request, env) {
  if (request.headers.get("upgrade") === "websocket") {
    const { 0: client, 1: server } = new WebSocketPair();
    server.accept();
    server.addEventListener("message", ({ data }) => server.send(data));
    return new Response(null, { status: 101, webSocket: client });
  }
  const url = new URL(request.url);
  if (url.pathname === "/fetch") return fetch("http://my-other.localhost/x");
  if (url.pathname === "/service") return env.OTHER.fetch("http://x/y");
  return Response.json([url.host, request.headers.get("cf-worker")], { headers: { "set-cookie": `a=1; Domain=${url.hostname}` } });
}, tail() {} };"""


@pytest.mark.parametrize(
    ("name", "label"),
    [("my_worker", "my-worker"), ("_private", "private"), ("a_", "a"), ("a__b", "a--b"), ("x-_-y", "x---y")],
)
def test_a_worker_name_with_underscores_works_and_its_url_is_shown(
    tmp_path: Path, atoll: Atoll, name: str, label: str
) -> None:
    (tmp_path / "index.js").write_text(SCRIPT)
    (tmp_path / "wrangler.toml").write_text(
        f'name = "{name}"\nmain = "index.js"\ncompatibility_date = "2026-01-01"\nkv_namespaces = [{{ binding = "MY_KV" }}]\n'
    )
    api = {"ATOLL_API": f"http://localhost:{atoll.port}"}
    url = run(tmp_path, "deploy", **api).stdout.split()[-1]
    assert url == f"http://{label}.localhost:{atoll.port}/"
    answer = atoll.get(label)
    assert answer.json == [f"{label}.localhost:{atoll.port}", None]
    assert answer.headers["set-cookie"] == f"a=1; Domain={label}.localhost"
    assert name in run(tmp_path, "workers", "list", **api).stdout
    assert f"{label}.localhost/*" in run(tmp_path, "routes", **api).stdout
    run(tmp_path, "logs", name, **api)
    namespaces = run(tmp_path, "kv", "namespaces", **api).stdout
    assert f"{name}-my-kv" in namespaces.split(), "the same name with dashes is another namespace"
    run(tmp_path, "workers", "delete", name, "--yes", **api)


def test_two_names_that_differ_only_in_underscores_share_one_host(atoll: Atoll) -> None:
    atoll.deploy("one-host", SCRIPT)
    for name in ("one_host", "_one-host", "one_host_"):
        answer = atoll.control("POST", "/api/workers", {"name": name, "script": SCRIPT})
        assert answer.status == 409 and "`one-host`" in answer.json["error"]["message"]
    assert atoll.control("POST", "/api/workers", {"name": "_", "script": SCRIPT}).status == 400
    assert atoll.control("DELETE", "/api/workers/one-host").status == 204
    atoll.deploy("one_host", SCRIPT)
    assert atoll.get("one-host").status == 200


async def test_workers_and_sockets_find_each_other_by_such_names(atoll: Atoll) -> None:
    atoll.deploy("my_other_", SCRIPT, routes=["x_y.example/*"])
    bindings = [{"type": "service", "name": "OTHER", "service": "my_other_"}]
    atoll.deploy("my_worker", SCRIPT, bindings=bindings, tail_consumers=[{"service": "my_other_"}])
    assert atoll.get("my-worker", "/fetch").json == ["my-other.localhost", "my-worker.localhost"]
    assert atoll.get("my-worker", "/service").json == ["x", "my-worker.localhost"]
    assert atoll.request("GET", "X_Y.example.").json[0] == "x_y.example."
    uri = f"ws://my-worker.localhost:{atoll.port}/"
    async with connect(uri, host="127.0.0.1", port=atoll.port, proxy=None) as client:
        await client.send("hello")
        assert await client.recv() == "hello"


def test_such_a_host_is_served_over_tls_by_the_wildcard_certificate(tmp_path: Path) -> None:
    require_openssl()
    folder = tmp_path / "certificates"
    folder.mkdir()
    make_certificate(folder, "_.workers.example", "*.workers.example", authority=make_authority(folder))
    authority = tmp_path / "ca.pem"
    (folder / "ca.pem").rename(authority)
    port = free_port()
    node = Atoll(tmp_path / "node", engines=1, base_domain="workers.example", https_port=port, certificates=folder)
    node.start()
    try:
        node.deploy("my_worker", SCRIPT)
        trust = ssl.create_default_context(cafile=str(authority))
        connection = http.client.HTTPConnection("unused")
        raw = socket.create_connection(("127.0.0.1", port), 10)
        connection.sock = trust.wrap_socket(raw, server_hostname="my-worker.workers.example")
        connection.request("GET", "/", headers={"Host": "my-worker.workers.example"})
        assert json.loads(connection.getresponse().read())[0] == "my-worker.workers.example"
        connection.close()
    finally:
        node.stop()
