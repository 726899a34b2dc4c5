"""Durable Objects on three real nodes that share a PostgreSQL."""

from __future__ import annotations

from tests.cluster.conftest import Nodes
from tests.cluster.ledger import deploy, value


def test_an_object_is_the_same_from_every_node(nodes: Nodes) -> None:
    deploy(nodes)
    counts = [value(nodes.all[number % 3], "one", "add", str(number)) for number in range(9)]
    assert [each["count"] for each in counts] == list(range(1, 10)), counts
    assert len({each["copy"] for each in counts}) == 1


def test_d1_of_one_node_answers_on_every_node(nodes: Nodes) -> None:
    script = """export default { async fetch(request, env) {
        await env.DB.prepare("CREATE TABLE IF NOT EXISTS t (n INTEGER)").run();
        await env.DB.prepare("INSERT INTO t VALUES (1)").run();
        return new Response(String(await env.DB.prepare("SELECT count(*) AS n FROM t").first("n")));
    } }"""
    nodes.deploy("shop", script, bindings=[{"type": "d1", "name": "DB", "database": "shop"}])
    assert [node.get("shop").text for node in nodes.all] == ["1", "2", "3"]
