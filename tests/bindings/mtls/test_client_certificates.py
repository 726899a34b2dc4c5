"""Client certificates: presented to a real server that asks for them, and nobody else's."""

from __future__ import annotations

import json
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.certificates import make_authority, make_certificate, require_openssl
from tests.running import Answer, Atoll

WORKER = """export default { async fetch(request, env) {
  const url = await request.text();
  const through = new URL(request.url).pathname === "/plain" ? globalThis : env.BANK;
  try { return new Response(await (await through.fetch(url, { cf: { cacheEverything: true } })).text()); }
  catch (error) { return new Response(`${error.name}: ${error.message}`); }
} };"""
BOUND = [{"type": "mtls_certificate", "name": "BANK", "certificate": "bank"}]


class SaysWho(BaseHTTPRequestHandler):
    """Tells each client whose certificate it saw."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        shown = self.connection.getpeercert() or {}  # type: ignore[attr-defined]
        text = str(shown.get("subject", "nobody")).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        pass


class AskingServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, folder: Path, verify: ssl.VerifyMode) -> None:
        super().__init__(("127.0.0.1", 0), SaysWho)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(folder / "server.pem", folder / "server.key")
        context.load_verify_locations(folder / "ca.pem")
        context.verify_mode = verify
        self._context = context
        self.url = f"https://127.0.0.1:{self.server_port}/"
        self._thread = threading.Thread(target=self.serve_forever, args=(0.01,))
        self._thread.start()

    def finish_request(self, request: Any, client_address: Any) -> None:
        with suppress(OSError), self._context.wrap_socket(request, server_side=True) as secured:
            super().finish_request(secured, client_address)  # type: ignore[arg-type]

    def close(self) -> None:
        self.shutdown()
        self._thread.join()
        self.server_close()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    require_openssl()
    folder = tmp_path_factory.mktemp("mtls")
    authority = make_authority(folder)
    make_certificate(folder, "server", "127.0.0.1", authority=authority)
    make_certificate(folder, "ada", "ada.example", authority=authority)
    make_certificate(folder, "bob", "bob.example", authority=authority)
    return folder


@pytest.fixture(scope="module")
def node(folder: Path) -> Iterator[Atoll]:
    node = Atoll(folder / "node", ca_file=folder / "ca.pem", engines=1, egress_allow="127.0.0.1")
    node.start()
    for tenant in ("acme", "globex"):
        assert node.control("POST", "/api/tenants", {"name": tenant}).status == 201
    yield node
    assert node.stop() == 0


@pytest.fixture(scope="module")
def servers(folder: Path) -> Iterator[list[AskingServer]]:
    """One that requires a certificate, and one that asks for it."""
    servers = [AskingServer(folder, ssl.CERT_REQUIRED), AskingServer(folder, ssl.CERT_OPTIONAL)]
    yield servers
    for server in servers:
        server.close()


def ask(node: Atoll, method: str, path: str, body: object = None, tenant: str = "acme") -> Answer:
    headers = {"X-Atoll-Tenant": tenant, "Content-Type": "application/json"}
    text = None if body is None else json.dumps(body)
    return node.request(method, f"localhost:{node.port}", path, text, headers)


def upload(node: Atoll, folder: Path, who: str, key: str = "", tenant: str = "acme") -> Answer:
    pem, private = (folder / f"{who}.pem").read_text(), (folder / f"{key or who}.key").read_text()
    body = {"name": "bank", "certificate": pem, "private_key": private}
    return ask(node, "POST", "/api/mtls-certificates", body, tenant)


def deploy(node: Atoll, name: str, tenant: str = "acme") -> Answer:
    return ask(node, "POST", "/api/workers", {"name": name, "script": WORKER, "bindings": BOUND}, tenant)


def test_a_certificate_must_exist_and_fit_its_key(node: Atoll, folder: Path) -> None:
    refused = deploy(node, "mtls-early")
    assert refused.status == 404 and "atoll mtls-certificate upload --name bank" in refused.text
    answer = upload(node, folder, "ada", key="bob")
    assert answer.status == 400 and "not the key of the certificate" in answer.text
    body = {"name": "bank", "certificate": "nonsense", "private_key": "nonsense"}
    assert ask(node, "POST", "/api/mtls-certificates", body).status == 400


def test_the_binding_presents_the_certificate_of_its_tenant(
    node: Atoll, folder: Path, servers: list[AskingServer]
) -> None:
    made = upload(node, folder, "ada")
    assert made.status == 201 and "PRIVATE" not in made.text
    assert upload(node, folder, "bob", tenant="globex").status == 201
    assert deploy(node, "mtls-acme").status == 201 and deploy(node, "mtls-globex", "globex").status == 201
    for server in servers * 2:  # the second time on a connection that was kept
        assert "ada" in node.post("mtls-acme", body=server.url).text
        assert "bob" in node.post("mtls-globex", body=server.url).text
        plain = node.post("mtls-acme", "/plain", body=server.url).text
        assert "ada" not in plain and "bob" not in plain, plain
    assert "nobody" in node.post("mtls-acme", "/plain", body=servers[1].url).text
    assert "https:" in node.post("mtls-acme", body=servers[0].url.replace("https", "http")).text
    assert "may not be reached" in node.post("mtls-acme", body="https://10.1.2.3/").text
    stored = b"".join(path.read_bytes() for path in (node.folder / "data").glob("mtls_certificates.db*"))
    assert b"bank" in stored and b"PRIVATE KEY" not in stored and b"BEGIN" not in stored

    assert node.control("POST", "/api/secrets/rotate-key").status == 200
    assert "ada" in node.post("mtls-acme", body=servers[0].url).text
    assert ask(node, "DELETE", "/api/mtls-certificates/bank").status == 204
    assert "there is no client certificate `bank`" in node.post("mtls-acme", body=servers[0].url).text
    assert "bob" in node.post("mtls-globex", body=servers[0].url).text
