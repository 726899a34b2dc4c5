"""The configurations for nginx, HAProxy, Traefik and Caddy with the real programs: what clients and workers meet behind each."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import subprocess
from collections.abc import Iterator

import pytest
from websockets.asyncio.client import connect

from tests.debian import require
from tests.edges import EDGES, Site, site_behind

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


@pytest.fixture(scope="module", params=EDGES)
def site(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    worker = {"name": "show", "script": SHOW, "limits": {"cpu_ms": 10_000}}
    with site_behind(request.param, tmp_path_factory.mktemp(request.param), worker) as started:
        yield started


def test_a_worker_sees_its_real_client_and_nothing_that_it_claims(site: Site) -> None:
    with contextlib.closing(site.connect()) as connection:
        connection.request("GET", "/x?y", headers={"Host": "show.workers.example", **FORGED})
        url, headers = json.loads(connection.getresponse().read())
    assert url == "https://show.workers.example/x?y"
    assert [headers[name] for name in NAMES] == ["127.0.0.1", "127.0.0.1", "127.0.0.1", "https"]
    rest = {name: value for name, value in headers.items() if name != "cf-ray"}
    assert "66" not in str(rest) and "6.6" not in str(headers)
    assert len(headers["cf-ray"]) == 20 and "cf-worker" not in headers


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "[::1]", "other.example", "workers.example.evil"])
def test_unknown_hosts_are_refused(site: Site, host: str) -> None:
    for path in ("/", "/api/workers", "/readyz"):
        assert site.status(host, path) in (404, 421)


@pytest.mark.parametrize("host", ["control.workers.example", "CONTROL.workers.example."])
def test_the_control_host_is_closed_until_the_operator_opens_it(site: Site, host: str) -> None:
    for path in ("/", "/api/workers", "/readyz"):
        assert site.status(host, path) in (403, 404, 421)
        assert site.status(host, path, name="control.workers.example") in (403, 404, 421)


def test_a_name_without_a_worker_gets_no_answer_of_the_control_api(site: Site) -> None:
    """HAProxy, nginx and Caddy give it no certificate; Traefik gives its own, which no client trusts."""
    for name in ("localhost", "other.example"):
        with pytest.raises(ssl.SSLError):
            site.handshake(name)


def test_only_hosts_of_workers_get_a_certificate_by_themselves(site: Site) -> None:
    if site.kind != "caddy":
        pytest.skip("Caddy alone gets certificates by itself")
    with site.handshake() as connection:
        certificate = connection.getpeercert()
    assert certificate is not None and "Pebble" in str(certificate["issuer"])
    with pytest.raises(ssl.SSLError):
        site.handshake("nobody.workers.example")
    worker = {"name": "late", "script": SHOW, "routes": ["late.example/*", "*.wild.example/*"]}
    assert site.operate("POST", "/api/workers", worker).status == 201
    assert site.status("late.workers.example", "/read", name="late.workers.example") == 200
    assert site.status("late.example", "/read", name="late.example") == 200
    with pytest.raises(ssl.SSLError):
        site.handshake("any.wild.example")  # a stranger could order certificates without end


def test_plain_http_is_redirected_to_https(site: Site) -> None:
    with socket.create_connection(("127.0.0.1", site.plain), 10) as raw:
        raw.sendall(b"GET /a?b HTTP/1.1\r\nHost: show.workers.example\r\nConnection: close\r\n\r\n")
        answer = b"".join(iter(lambda: raw.recv(65536), b"")).decode()
    assert answer.split()[1] in ("301", "308") and "ocation: https://show.workers.example" in answer


def test_clients_speak_http_2_to_the_edge(site: Site) -> None:
    host = "show.workers.example"
    done = subprocess.run(
        [require("curl", "curl"), "-sS", "--http2", "--cacert", str(site.trusted), "-w", "\n%{http_version}",
         "--resolve", f"{host}:{site.port}:127.0.0.1", f"https://{host}:{site.port}/read"],
        capture_output=True, text=True, check=False, timeout=30,
    )  # fmt: skip
    assert done.stdout.splitlines()[-1] == "2", done.stdout + done.stderr


def test_a_response_streams(site: Site) -> None:
    with contextlib.closing(site.connect()) as connection:
        connection.request("GET", "/stream", headers={"Host": "show.workers.example"})
        response = connection.getresponse()
        assert response.read(5) == b"first"  # the rest has not arrived yet
        assert site.status("show.workers.example", "/more") == 200
        assert response.read() == b"second"


def test_a_request_streams(site: Site) -> None:
    """In one direction at a time: over HTTP/1.1 Traefik and Caddy start no response before they have read the request."""
    before = int(site.node.request("GET", "show.workers.example", "/read").text)
    with contextlib.closing(site.connect()) as connection:
        connection.putrequest("POST", "/", skip_host=True)
        connection.putheader("Host", "show.workers.example")
        connection.putheader("Transfer-Encoding", "chunked")
        connection.endheaders()
        connection.send(b"5\r\nfirst\r\n")
        site.node.wait_until(lambda: site.node.request("GET", "show.workers.example", "/read").text == f"{before + 5}")
        connection.send(b"6\r\nsecond\r\n0\r\n\r\n")
        assert connection.getresponse().read() == f"read {before + 11}".encode()


def test_an_upload_of_100_mb_arrives_whole(site: Site) -> None:
    before = int(site.node.request("GET", "show.workers.example", "/read").text)
    with contextlib.closing(site.connect()) as connection:
        connection.request("POST", "/", bytes(100_000_000), {"Host": "show.workers.example"})
        assert connection.getresponse().read() == f"read {before + 100_000_000}".encode()


async def test_a_websocket_stays_open_and_closes_with_its_code(site: Site) -> None:
    uri = f"wss://show.workers.example:{site.port}/"
    async with connect(uri, host="127.0.0.1", port=site.port, ssl=site.trust(), proxy=None) as client:
        for message in ("hello", b"bytes" * 1000):
            await client.send(message)
            assert await client.recv() == message
        await client.send("bye")
        await client.wait_closed()
        assert client.close_code == 4000
