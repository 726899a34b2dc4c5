"""Chains of workers that leave the node and return, and forged headers about such chains."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from atoll.bindings.loops import MAX_OTHERS, loop_lines, read_loops
from tests.running import Answer, Atoll
from tests.upstream import Upstream

Run = Callable[..., Answer]

FETCH = "try { return await fetch(UP + '/echo'); } catch (error) { return new Response(`${error}`); }"


class Relay:
    """A minimal proxy in front of the node: it forwards requests under another host."""

    def __init__(self, node: Atoll, host: str) -> None:
        self.node, self.host = node, host
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self.listener.getsockname()[1]
        self.passed = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._pass, args=(client,), daemon=True).start()

    def _pass(self, client: socket.socket) -> None:
        with client, self.node.connect() as node:
            head = b""
            while b"\r\n\r\n" not in head:
                head += client.recv(65536)
            self.passed += 1
            line, _, rest = head.partition(b"\r\n")
            kept = [each for each in rest.split(b"\r\n") if not each.lower().startswith((b"host:", b"connection:"))]
            head = b"\r\n".join((line, b"Host: " + self.host.encode(), b"Connection: close", *kept))
            node.sendall(head)
            while chunk := node.recv(65536):
                client.sendall(chunk)


@pytest.fixture
def relay(node: Atoll) -> Iterator[Relay]:
    relay = Relay(node, node.host("outer"))
    with closing(relay.listener):
        yield relay


def test_a_loop_through_a_proxy_and_back_ends(node: Atoll, relay: Relay) -> None:
    source = f"""export default {{ async fetch(request) {{
      const depth = Number(new URL(request.url).searchParams.get("d"));
      try {{ return await fetch("http://127.0.0.1:{relay.port}/?d=" + (depth + 1), request); }}
      catch (error) {{ return new Response(depth + " " + error); }}
    }} }};"""
    node.deploy("outer", source)
    for _ in range(2):  # the second time with cached heads
        relay.passed = 0
        assert node.get("outer", "/?d=0").text.startswith("16 Error: error 1019")
        assert relay.passed == 16


def test_a_loop_that_leaves_by_another_worker_ends(node: Atoll, relay: Relay) -> None:
    node.deploy("outer", "export default { fetch(request) { return fetch('http://leaves.localhost/', request); } };")
    node.deploy("leaves", f"export default {{ fetch(r) {{ return fetch('http://127.0.0.1:{relay.port}/', r); }} }};")
    assert node.get("outer").status == 500
    assert relay.passed == 8, "both workers of each round count"


@pytest.mark.parametrize("count", ["15", "16", "256", "9999"])
def test_a_client_cannot_set_the_depth_of_a_chain(run: Run, upstream: Upstream, count: str) -> None:
    """Otherwise a client could decide whose fetches fail."""
    claims = {"CF-EW-Via": count, "CDN-Loop": f"atoll; loops={count}, atoll; loops=16; id=0123456789abcdef"}
    assert run(FETCH, headers=claims).text == ""
    assert upstream.last().get("cf-ew-via") == "1"
    assert str(upstream.last().get("cdn-loop")).rpartition(", ")[2].startswith("atoll; loops=1; id=")


def test_entries_of_other_proxies_are_forwarded(node: Atoll, run: Run, upstream: Upstream) -> None:
    others = {"CDN-Loop": "other-cdn; v=2, atoll; loops=3; id=fedcba9876543210"}
    for _ in range(2):
        run(FETCH, headers=others)
        assert str(upstream.last().get("cdn-loop")).startswith(others["CDN-Loop"] + ", atoll; loops=1; id=")
        run(FETCH)
        assert str(upstream.last().get("cdn-loop")).startswith("atoll; loops=1; id=")
    node.deploy("middle", f"export default {{ fetch() {{ return fetch('{upstream.url}/echo'); }} }};")
    for _ in range(2):
        run("return fetch('http://middle.localhost/')", headers=others)
        assert str(upstream.last().get("cdn-loop")).startswith(others["CDN-Loop"] + ", atoll; loops=2; id=")


def test_the_cost_of_a_foreign_header_is_bounded() -> None:
    for value in (b"," * 100_000, b"a," * 50_000, b"a" * 100_000, b"x; id=" * 10_000):
        hops, others = read_loops(b"GET http://x/\ncdn-loop: " + value + b"\r\n")
        assert hops == 0 and len(others) <= MAX_OTHERS
    mine = loop_lines(4, "")
    assert read_loops(b"GET http://x/\n" + mine.encode()) == (5, "")
    assert read_loops(b"GET http://x/\n" + mine.replace("loops=5", "loops=1").encode()) == (5, "")
    assert read_loops(b"GET http://x/\nCDN-Loop: " + b"a" * 9_000 + b"\r\n" + mine.encode()) == (5, "")


CLAIMS = ["CF-Worker", "CF-EW-Via", "CF-Connecting-IP", "CF-IPCountry", "CF-Ray", "CF-Visitor", "CF-IPCity", "CF-Region-Code",
          "CF-Bot-Score", "CF-Cert-Verified", "CF-Access-Authenticated-User-Email", "CF-Atoll-TLS", "X-Real-IP",
          "X-Forwarded-For", "True-Client-IP", "Forwarded"]  # fmt: skip
SHOW = """export default { fetch(request) {
  return Response.json(Object.fromEntries(request.headers));
} };"""


@pytest.mark.parametrize("name", CLAIMS)
def test_a_client_cannot_claim_to_be_a_worker_or_another_client(node: Atoll, name: str) -> None:
    node.deploy("shows", SHOW)
    for spelled in (name, name.lower(), name.upper()):
        shown = node.get("shows", headers={spelled: "forged-by-client", "CF-Kept": "1"}).json
        assert "forged-by-client" not in str(shown) and shown["cf-kept"] == "1"


@pytest.mark.parametrize("name", CLAIMS)
def test_a_worker_cannot_claim_to_be_a_client_or_another_worker(node: Atoll, run: Run, name: str) -> None:
    node.deploy("shows", SHOW)
    code = f"return fetch('http://shows.localhost/', {{ headers: {{ '{name}': 'forged-by-worker' }} }})"
    shown = run(f"await (await fetch('http://shows.localhost/')).text(); {code}").json
    assert "forged-by-worker" not in str(shown)
    assert shown["cf-worker"].startswith("w") and "cf-connecting-ip" not in shown
