"""Durable Objects on three real nodes that share a PostgreSQL."""

from __future__ import annotations

from tests.cluster.conftest import Nodes
from tests.cluster.ledger import ask, deploy, value


def test_an_object_is_the_same_from_every_node(nodes: Nodes) -> None:
    deploy(nodes)
    counts = [value(nodes.all[number % 3], "one", "add", str(number)) for number in range(9)]
    assert [each["count"] for each in counts] == list(range(1, 10)), counts
    assert len({each["copy"] for each in counts}) == 1
