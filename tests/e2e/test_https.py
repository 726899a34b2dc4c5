"""HTTPS on the front: certificates by name, correct schemes, renewals; and https with fetch()."""

from __future__ import annotations

import http.client
import json
import os
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.assets.sites import deploy_site
from tests.certificates import make_authority, make_certificate, require_openssl
from tests.running import Atoll, free_port
from tests.upstream import Upstream

SHOW = """export default { async fetch(request) {
  return Response.json([request.url, request.headers.get("x-forwarded-proto"), request.headers.get("cf-atoll-tls"), request.cf, request.headers.get("cf-ray")]);
} };"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_openssl()
    folder = tmp_path_factory.mktemp("https")
    authority = make_authority(folder)
    make_certificate(folder / "certificates", "a.localhost", "a.localhost", authority=authority)
    make_certificate(folder / "certificates", "_.example.test", "*.example.test", authority=authority)
    make_certificate(folder / "upstream", "up", "127.0.0.1", authority=authority)
    return folder


@pytest.fixture(scope="module")
def node(folder: Path) -> Iterator[Atoll]:
    atoll = Atoll(
        folder / "node",
        engines=1,
        https_port=free_port(),
        certificates=folder / "certificates",
        ca_file=folder / "ca.pem",
        egress_allow="127.0.0.1",
    )
    atoll.start()
    atoll.deploy("a", SHOW, routes=["*.example.test/*"])
    yield atoll
    atoll.stop()


def handshake(node: Atoll, folder: Path, name: str) -> ssl.SSLSocket:
    trust = ssl.create_default_context(cafile=str(folder / "ca.pem"))
    raw = socket.create_connection(("127.0.0.1", int(str(node.settings["https_port"]))), 10)
    return trust.wrap_socket(raw, server_hostname=name)


def get(node: Atoll, folder: Path, name: str) -> bytes:
    connection = http.client.HTTPConnection("unused")
    connection.sock = handshake(node, folder, name)
    try:
        connection.request("GET", "/x", headers={"Host": name})
        return connection.getresponse().read()
    finally:
        connection.close()


def test_a_request_over_tls_has_an_https_url(node: Atoll, folder: Path) -> None:
    url, proto, hidden, cf, ray = json.loads(get(node, folder, "a.localhost"))
    assert (url, proto, hidden) == ("https://a.localhost/x", "https", None)
    assert cf["tlsVersion"] == "TLSv1.3" and cf["tlsCipher"] and cf["clientIp"] == "127.0.0.1" and cf["colo"] == "ATL"
    assert ray.endswith("-ATL") and len(ray) == 20


def test_addresses_that_the_node_shows_are_those_of_https(node: Atoll, folder: Path) -> None:
    port = node.settings["https_port"]
    assert node.control("GET", "/api/workers/a").json["url"] == f"https://a.localhost:{port}/"
    assert f'href="https://a.localhost:{port}/"' in node.control("GET", "/").text
    assert f"is serving on https://localhost:{port}" in node.log()


def test_a_fetch_to_the_nodes_own_https_port_finds_the_worker(node: Atoll) -> None:
    port = node.settings["https_port"]
    node.deploy(
        "asks",
        f"""export default {{ async fetch() {{
          const inside = await fetch("https://a.localhost:{port}/inside");
          const control = await fetch("https://127.0.0.1:{port}/api/workers").catch(String);
          return Response.json([(await inside.json())[0], control]);
        }} }};""",
    )
    inside, control = node.get("asks").json
    assert inside == f"https://a.localhost:{port}/inside"
    assert "error 1024" in control and "the port of this node" in control


def test_the_certificate_matches_the_name(node: Atoll, folder: Path) -> None:
    with handshake(node, folder, "shop.example.test") as connection:
        names = [value for _, value in connection.getpeercert()["subjectAltName"]]  # type: ignore[index]
        assert names == ["*.example.test"]
        assert connection.selected_alpn_protocol() is None or connection.selected_alpn_protocol() == "http/1.1"
    with pytest.raises(ssl.SSLError):  # a name without a certificate
        handshake(node, folder, "other.test")


def test_plain_http_is_served_beside_it(node: Atoll) -> None:
    url, proto, _, cf, _ = node.get("a").json
    assert (url.partition(":")[0], proto) == ("http", "http")
    assert "tlsVersion" not in cf


def test_a_renewed_certificate_is_used_without_a_restart(node: Atoll, folder: Path) -> None:
    def serial() -> str:
        with handshake(node, folder, "a.localhost") as connection:
            return str(connection.getpeercert()["serialNumber"])  # type: ignore[index]

    before = serial()
    make_certificate(folder / "certificates", "a.localhost", "a.localhost", authority=folder / "ca.pem")
    node.wait_until(lambda: serial() != before, 15)


def test_a_start_without_a_certificate_says_what_is_missing(tmp_path: Path) -> None:
    atoll = Atoll(tmp_path, https_port=free_port(), certificates=tmp_path / "none")
    with pytest.raises(AssertionError, match="there is no certificate in"):
        atoll.start()
    assert atoll.process is not None and atoll.process.wait(10) == 1


def test_fetch_trusts_only_the_configured_authority(node: Atoll, folder: Path, tmp_path: Path) -> None:
    def serve(cert: Path) -> Upstream:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(cert, cert.with_suffix(".key"))
        return Upstream(context)

    make_certificate(tmp_path, "stranger", "127.0.0.1", authority=make_authority(tmp_path))
    make_certificate(tmp_path, "misnamed", "other.test", authority=folder / "ca.pem")
    good, stranger = serve(folder / "upstream/up.pem"), serve(tmp_path / "stranger.pem")
    misnamed = serve(tmp_path / "misnamed.pem")
    make_certificate(tmp_path, "expired", "127.0.0.1", authority=folder / "ca.pem", days=-1)
    expired = serve(tmp_path / "expired.pem")
    try:
        node.deploy(
            "https-client",
            """export default { async fetch(request) {
              try { return await fetch(new URL(request.url).searchParams.get("u")); } catch (error) { return new Response(`${error}`); }
            } };""",
        )
        ask = lambda url: node.get("https-client", f"/?u={url}/some").text  # noqa: E731
        assert ask(good.url) == "GET /some"
        assert ask(good.url) == "GET /some" and good.connections == 1
        assert "is not trusted: " in ask(stranger.url)
        assert "is not trusted: " in ask(misnamed.url) and "mismatch" in ask(misnamed.url)
        assert "is not trusted: certificate has expired" in ask(expired.url)
    finally:
        for upstream in (good, stranger, misnamed, expired):
            upstream.close()


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET / HTTP/9.9\r\nHost: a.localhost\r\n\r\n", 505),
        (b"GET /first HTTP/1.1\r\nHost: a.localhost\r\n\r\n\n", 400),
        (b"\r\n" * 100_000, 400),
        (b"POST / HTTP/1.1\r\nHost: a.localhost\r\nContent-Length: 200000000\r\n\r\n" + bytes(300_000), 413),
        (b"POST / HTTP/1.1\r\nHost: a.localhost\r\nTransfer-Encoding: chunked\r\n\r\nx", 400),
    ],
    ids=["version", "line feed", "empty lines", "long body", "chunk"],
)
def test_a_refused_request_over_tls_is_answered(node: Atoll, folder: Path, request_bytes: bytes, status: int) -> None:
    with handshake(node, folder, "a.localhost") as connection:
        connection.sendall(request_bytes)
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert b"HTTP/1.1 %d " % status in answer and b"connection: close\r\n" in answer
    assert "Traceback" not in node.log()


def test_a_pipeline_over_tls_is_answered_in_order(node: Atoll, folder: Path) -> None:
    count = 2000
    with handshake(node, folder, "a.localhost") as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: nobody.localhost\r\n\r\n" * (count // 2))
        connection.sendall(b"GET /x HTTP/1.1\r\nHost: a.localhost\r\n\r\n" * 10)
        connection.sendall(b"GET / HTTP/1.1\r\nHost: nobody.localhost\r\nConnection: close\r\n\r\n")
        answer = b"".join(iter(lambda: connection.recv(65536), b""))
    assert answer.count(b"HTTP/1.1 404 ") == count // 2 + 1
    assert answer.count(b"HTTP/1.1 200 ") == 10


def test_a_large_asset_arrives_whole_over_tls(node: Atoll, folder: Path) -> None:
    """The kernel cannot send it past TLS: it goes out in pieces, as fast as the client reads."""
    content = os.urandom(5 << 20)
    deploy_site(node, "site", {"/big.bin": content}, routes=["files.example.test/*"])
    connection = http.client.HTTPConnection("unused")
    connection.sock = handshake(node, folder, "files.example.test")
    try:
        for _ in range(2):  # the connection stays open
            connection.request("GET", "/big.bin", headers={"Host": "files.example.test"})
            response = connection.getresponse()
            assert response.status == 200 and response.read() == content
    finally:
        connection.close()
