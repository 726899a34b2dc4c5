"""Data points from workers to queries, on a real node."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.running import Answer, Atoll

WORKER = """
const tries = {
  write: (env) => {
    for (let n = 0; n < 10; n++) {
      env.AE.writeDataPoint({ indexes: ["i"], blobs: [`/${n % 2}`, null, new TextEncoder().encode("ä")], doubles: [n, "7"] });
    }
    env.AE.writeDataPoint();
  },
  doubles: (env) => env.AE.writeDataPoint({ doubles: Array(21).fill(1) }),
  blobs: (env) => env.AE.writeDataPoint({ blobs: Array(21).fill("x") }),
  indexes: (env) => env.AE.writeDataPoint({ indexes: ["a", "b"] }),
  longIndex: (env) => env.AE.writeDataPoint({ indexes: ["x".repeat(97)] }),
  longBlobs: (env) => env.AE.writeDataPoint({ blobs: ["x".repeat(16_000), "y"] }),
};
export default { fetch(request, env) {
  try { return new Response(`${tries[new URL(request.url).pathname.slice(1)](env)}`); }
  catch (error) { return new Response(`${error.name}: ${error.message}`); }
} };"""
TOO_MUCH = {
    "doubles": "TypeError: writeDataPoint(): Maximum of 20 doubles supported.",
    "blobs": "TypeError: writeDataPoint(): Maximum of 20 blobs supported.",
    "indexes": "TypeError: writeDataPoint(): Maximum of 1 indexes supported.",
    "longIndex": "TypeError: writeDataPoint(): Size of indexes[0] exceeds 96 bytes).",
    "longBlobs": "TypeError: writeDataPoint(): Cumulative size of blobs exceeds 16000 bytes).",
}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Atoll]:
    node = Atoll(tmp_path_factory.mktemp("analytics"), engines=1)
    node.start()
    for tenant in ("acme", "globex"):
        assert node.control("POST", "/api/tenants", {"name": tenant}).status == 201
    yield node
    assert node.stop() == 0


def ask(node: Atoll, method: str, path: str, body: Any = None, tenant: str = "acme") -> Answer:
    kind = "text/plain" if isinstance(body, str) else "application/json"
    text = body if body is None or isinstance(body, str) else json.dumps(body)
    headers = {"X-Atoll-Tenant": tenant, "Content-Type": kind}
    return node.request(method, f"localhost:{node.port}", path, text, headers)


def query(node: Atoll, sql: str, tenant: str = "acme") -> Answer:
    return ask(node, "POST", "/api/analytics_engine/sql", sql, tenant)


def deploy(node: Atoll, name: str, dataset: str, tenant: str) -> None:
    bindings = [{"type": "analytics_engine", "name": "AE", "dataset": dataset}]
    body = {"name": name, "script": WORKER, "bindings": bindings}
    assert ask(node, "POST", "/api/workers", body, tenant).status == 201


def test_points_are_stored_and_queried(node: Atoll) -> None:
    deploy(node, "ae-writer", "visits", "acme")
    assert node.get("ae-writer", "/write").text == "undefined"
    found = query(
        node,
        "SELECT blob1, blob3, count() AS n, sum(double1 * _sample_interval) AS total, avg(double2) AS two "
        "FROM visits WHERE index1 = 'i' AND timestamp > NOW() - INTERVAL '1' HOUR GROUP BY blob1, blob3 ORDER BY blob1",
    ).json
    assert found["data"] == [
        {"blob1": "/0", "blob3": "ä", "n": "5", "total": 20.0, "two": 7.0},
        {"blob1": "/1", "blob3": "ä", "n": "5", "total": 25.0, "two": 7.0},
    ]
    assert [each["type"] for each in found["meta"]] == ["String", "String", "UInt64", "Float64", "Float64"]
    assert query(node, "SELECT count() AS n FROM visits WHERE index1 = ''").json["data"] == [{"n": "1"}]
    assert ask(node, "GET", "/api/analytics_engine/datasets").json["datasets"][0]["points"] == 11


@pytest.mark.parametrize("what", TOO_MUCH)
def test_the_limits_are_those_of_cloudflare(node: Atoll, what: str) -> None:
    deploy(node, f"ae-{what.lower()}", "limits", "acme")
    assert node.get(f"ae-{what.lower()}", f"/{what}").text == TOO_MUCH[what]


def test_a_tenant_cannot_query_the_points_of_another(node: Atoll) -> None:
    deploy(node, "ae-own", "own", "globex")
    assert node.get("ae-own", "/write").status == 200
    for sql in ("SELECT * FROM own", "SELECT * FROM points", "SELECT * FROM datasets", "SELECT * FROM sqlite_master"):
        assert query(node, sql).status == 400
    assert query(node, "SELECT count() AS n FROM own", "globex").json["data"] == [{"n": "11"}]
    assert query(node, "SHOW TABLES", "globex").json["data"] == [{"dataset": "own"}]
    assert ask(node, "DELETE", "/api/analytics_engine/datasets/own").status == 404
    assert ask(node, "DELETE", "/api/analytics_engine/datasets/own", tenant="globex").status == 204
    assert query(node, "SELECT count() AS n FROM own", "globex").status == 400
