"""Who may name which database: an operator's may be in his own network, a tenant's may not."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.running import Answer, Atoll
from tests.tcp_peer import TcpPeer

Control = Callable[..., Answer]

WORKER = """
export default { async fetch(request, env) {
  const socket = env.DB.connect();
  const writer = socket.writable.getWriter();
  try {
    await socket.opened;
    await writer.write(new TextEncoder().encode("bye\\n"));
    return new Response(socket.readable);
  } catch (error) { return new Response(`${error.message} ${error.cause?.message}`); }
} };
"""


@pytest.fixture(scope="module")
def peer() -> Iterator[TcpPeer]:
    peer = TcpPeer()
    yield peer
    peer.close()


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Atoll]:
    node = Atoll(tmp_path_factory.mktemp("named"), engines=1, control_auth="token")
    node.start()
    yield node
    assert node.stop() == 0


@pytest.fixture(scope="module")
def control(node: Atoll) -> Control:
    """Asks the API: as the operator for a tenant, or with the token of the tenant."""
    secret = (node.folder / "data/admin-token").read_text().strip()
    tokens: dict[str, str] = {}

    def ask(method: str, path: str, body: object = None, *, tenant: str, operator: bool = False) -> Answer:
        if tenant not in tokens:
            tokens[tenant] = ""
            assert ask("POST", "/api/tenants", {"name": tenant}, tenant=tenant, operator=True).status == 201
            made = ask("POST", "/api/tokens", {"name": "t", "scopes": ["deploy"]}, tenant=tenant, operator=True)
            tokens[tenant] = made.json["token"]
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {tokens[tenant]}"}
        if operator:
            headers |= {"Authorization": f"Bearer {secret}"} | (
                {} if path == "/api/tenants" else {"X-Atoll-Tenant": tenant}
            )
        text = None if body is None else json.dumps(body)
        return node.request(method, f"localhost:{node.port}", path, text, headers)

    return ask


def deploy(control: Control, tenant: str, worker: str, database: str) -> Answer:
    bindings: list[dict[str, Any]] = [{"type": "hyperdrive", "name": "DB", "database": database}]
    return control("POST", "/api/workers", {"name": worker, "script": WORKER, "bindings": bindings}, tenant=tenant)


def name(control: Control, tenant: str, peer: TcpPeer, **who: bool) -> None:
    body = {"name": "shop", "connection_string": f"postgres://a:b@127.0.0.1:{peer.port}/c"}
    answer = control("POST", "/api/hyperdrive", body, tenant=tenant, **who)
    assert answer.status == 201, answer.text


def test_the_database_of_an_operator_may_be_internal(node: Atoll, control: Control, peer: TcpPeer) -> None:
    name(control, "acme", peer, operator=True)
    assert deploy(control, "acme", "named", "shop").status == 201
    for _ in range(3):  # also over a spare connection
        assert node.get("named").text == "bye"


def test_the_database_of_a_tenant_may_not(node: Atoll, control: Control, peer: TcpPeer) -> None:
    name(control, "mallory", peer)
    assert deploy(control, "mallory", "ssrf", "shop").status == 201
    accepted = peer.accepted
    assert "error 1024: 127.0.0.1 may not be reached: it is a loopback address" in node.get("ssrf").text
    assert peer.accepted == accepted


def test_a_tenant_that_changes_an_operators_database_makes_it_its_own(
    node: Atoll, control: Control, peer: TcpPeer
) -> None:
    name(control, "eve", peer, operator=True)
    assert deploy(control, "eve", "changed", "shop").status == 201
    change = {"connection_string": f"postgres://a:b@127.0.0.1:{peer.port}/other"}
    assert control("PUT", "/api/hyperdrive/shop", change, tenant="eve").status == 200
    assert "error 1024" in node.get("changed").text


def test_tenants_do_not_share_names(control: Control, peer: TcpPeer) -> None:
    name(control, "alone", peer, operator=True)
    answer = deploy(control, "stranger", "foreign", "shop")
    assert answer.status >= 400 and "there is no Hyperdrive database `shop`" in answer.text
    assert control("GET", "/api/hyperdrive/shop", tenant="stranger").status == 404
    assert control("GET", "/api/hyperdrive", tenant="stranger").json == {"databases": []}


def test_the_node_itself_is_no_database(node: Atoll, control: Control) -> None:
    body = {"name": "node", "connection_string": f"postgres://a:b@127.0.0.1:{node.port}/c"}
    assert control("POST", "/api/hyperdrive", body, tenant="acme", operator=True).status == 201
    assert deploy(control, "acme", "own-port", "node").status == 201
    assert "on the port of this node" in node.get("own-port").text
