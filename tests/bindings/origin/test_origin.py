"""The server behind a worker: fetches to itself, and requests that it fails to answer."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.running import Atoll

WORKER = """export default { async fetch(request, env, ctx) {
  const { pathname } = new URL(request.url);
  if (pathname === "/self") return fetch(request);
  if (pathname === "/binding") return env.ORIGIN.fetch("http://any.example/x?y=1", { method: "PUT", body: "b" });
  if (pathname !== "/plain") ctx.passThroughOnException();
  if (pathname === "/read") await request.text();
  if (pathname === "/late") await 1;
  throw new Error("boom");
} };"""
SCRIPT = """addEventListener("fetch", (event) => {
  event.passThroughOnException();
  throw new Error("boom");
});"""


class Backend(BaseHTTPRequestHandler):
    """Says what it was asked for."""

    protocol_version = "HTTP/1.1"

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
        text = f"{self.command} {self.path} {self.headers['host']} {body}".encode()
        self.send_response(201)
        self.send_header("content-length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    do_GET = do_POST = do_PUT = answer

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def backend() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Backend)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Atoll]:
    node = Atoll(tmp_path_factory.mktemp("origin"), engines=1, egress_allow="127.0.0.1")
    node.start()
    yield node
    assert node.stop() == 0


def bound(url: str) -> list[dict[str, str]]:
    return [{"type": "origin", "name": "ORIGIN", "url": url}]


def test_a_request_that_fails_goes_to_the_origin(node: Atoll, backend: str) -> None:
    node.deploy("front", WORKER, bindings=bound(backend))
    host = node.host("front")
    passed = node.post("front", "/throws?a=b", body="the body")
    assert (passed.status, passed.text) == (201, f"POST /throws?a=b {host} the body")
    assert node.get("front", "/late").text == f"GET /late {host} "
    logs = node.control("GET", "/api/workers/front/logs").json["logs"]
    assert any("boom" in str(each) for each in logs)
    assert node.get("front", "/plain").status == 500
    assert node.post("front", "/read", body="gone").status == 500  # its body is gone


def test_a_fetch_to_itself_goes_to_the_origin(node: Atoll, backend: str) -> None:
    node.deploy("front", WORKER, bindings=bound(backend))
    host = node.host("front")
    for _ in range(3):
        assert node.post("front", "/self", body="x").text == f"POST /self {host} x"
        assert node.get("front", "/self").text == f"GET /self {host} "
    assert node.get("front", "/binding").text == "PUT /x?y=1 any.example b"


def test_a_script_passes_through_too(node: Atoll, backend: str) -> None:
    node.deploy("front-script", SCRIPT, bindings=bound(backend))
    assert node.get("front-script", "/a").text == f"GET /a {node.host('front-script')} "


def test_without_an_origin_the_error_is_answered(node: Atoll) -> None:
    node.deploy("front-alone", WORKER)
    assert node.get("front-alone", "/throws").status == 500


def test_egress_rules_hold_for_origins_and_bad_ones_are_refused(node: Atoll) -> None:
    node.deploy("front-inside", WORKER, bindings=bound("http://10.1.2.3"))
    assert node.get("front-inside", "/throws").status == 500
    for url in ("backend", "ftp://a.example", "https://a.example/path", "https://a:b@c.example", "http://a:99999"):
        answer = node.control("POST", "/api/workers", {"name": "bad-origin", "script": WORKER, "bindings": bound(url)})
        assert answer.status == 400 and "without a path" in answer.text
