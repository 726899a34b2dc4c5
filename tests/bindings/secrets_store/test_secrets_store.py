"""Secrets of stores: sealed, shared by the workers of a tenant, read when a worker asks."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from tests.running import Answer, Atoll

WORKER = """export default { async fetch(request, env) {
  try { return new Response(`${await env.KEY.get()} ${Object.keys(env.KEY)}`); }
  catch (error) { return new Response(`${error.name}: ${error.message}`, { status: 500 }); }
} };"""
BOUND = [{"type": "secrets_store_secret", "name": "KEY", "store": "shared", "secret": "API_KEY"}]
SECRET = "/api/secrets-stores/shared/secrets/API_KEY"


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Atoll]:
    node = Atoll(tmp_path_factory.mktemp("stores"), engines=1)
    node.start()
    for tenant in ("acme", "globex"):
        assert node.control("POST", "/api/tenants", {"name": tenant}).status == 201
    yield node
    assert node.stop() == 0


def ask(node: Atoll, method: str, path: str, body: object = None, tenant: str = "acme") -> Answer:
    headers = {"X-Atoll-Tenant": tenant, "Content-Type": "application/json"}
    text = None if body is None else json.dumps(body)
    return node.request(method, f"localhost:{node.port}", path, text, headers)


def deploy(node: Atoll, name: str, tenant: str = "acme") -> Answer:
    return ask(node, "POST", "/api/workers", {"name": name, "script": WORKER, "bindings": BOUND}, tenant)


def test_a_secret_is_shared_changed_and_deleted_without_a_deploy(node: Atoll) -> None:
    refused = deploy(node, "one")
    assert (refused.status, "atoll secrets-store store create shared" in refused.text) == (404, True)
    assert ask(node, "POST", "/api/secrets-stores", {"name": "shared"}).status == 201
    assert ask(node, "POST", "/api/secrets-stores", {"name": "shared"}).status == 409
    refused = deploy(node, "one")
    assert (refused.status, "secret create shared --name API_KEY" in refused.text) == (404, True)
    assert ask(node, "PUT", SECRET, {"value": "s3cr3t-ä"}).status == 200
    for name in ("one", "two"):
        assert deploy(node, name).status == 201
        assert node.get(name).text == "s3cr3t-ä "
    assert ask(node, "PUT", SECRET, {"value": "n3w", "comment": "why"}).json["comment"] == "why"
    assert node.get("one").text == "n3w "
    listed = ask(node, "GET", "/api/secrets-stores/shared/secrets")
    assert [each["name"] for each in listed.json["secrets"]] == ["API_KEY"] and "n3w" not in listed.text

    assert node.stop() == 0  # and all of it is on disk, sealed
    stored = b"".join(path.read_bytes() for path in (node.folder / "data").glob("secrets_stores.db*"))
    assert b"API_KEY" in stored and b"n3w" not in stored and b"s3cr3t" not in stored
    node.start()
    assert node.get("two").text == "n3w "

    assert node.control("POST", "/api/secrets/rotate-key").status == 200
    assert node.get("two").text == "n3w "
    assert ask(node, "DELETE", SECRET).status == 204
    assert node.get("one").text == 'Error: Secret "API_KEY" not found'


def test_a_tenant_cannot_bind_the_secret_of_another(node: Atoll) -> None:
    ask(node, "POST", "/api/secrets-stores", {"name": "shared"})
    ask(node, "PUT", SECRET, {"value": "of acme"})
    assert deploy(node, "thief", "globex").status == 404
    assert ask(node, "POST", "/api/secrets-stores", {"name": "shared"}, "globex").status == 201
    assert deploy(node, "thief", "globex").status == 404
    assert ask(node, "DELETE", "/api/tenants/globex", tenant="default").status == 409  # a store of it would be found


@pytest.mark.parametrize("body", [{"value": ""}, {"value": "x" * 65_537}, {"value": "v", "comment": "x" * 2_000}, {}])
def test_bad_values_are_refused(node: Atoll, body: dict[str, str]) -> None:
    ask(node, "POST", "/api/secrets-stores", {"name": "shared"})
    assert ask(node, "PUT", "/api/secrets-stores/shared/secrets/BAD", body).status == 400
    assert ask(node, "PUT", "/api/secrets-stores/shared/secrets/a%20b", {"value": "v"}).status == 400
