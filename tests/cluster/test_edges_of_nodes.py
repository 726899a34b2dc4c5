"""Three nodes behind each load balancer, as `atoll edge` configures it: no request that may be repeated fails when a
node is killed, or when all of them are restarted one after the other."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from tests.cluster.conftest import Nodes
from tests.cluster.edges import KINDS, Load, ask, edge
from tests.running import Atoll

ECHO = "export default { fetch(request) { return new Response(new URL(request.url).hostname); } }"
HOSTS = [f"h{i}.load.example" for i in range(24)]  # spread over the nodes
COUNTS = """let calls = 0;
export default { fetch(request) { calls += 1; return new Response(String(calls)); } }"""

LENGTH = "export default { async fetch(r) { return new Response(String((await r.arrayBuffer()).byteLength)); } }"


@pytest.fixture(scope="module")
def loaded(nodes: Nodes) -> Nodes:
    nodes.deploy("echo", ECHO, routes=["*.load.example/*"])
    nodes.deploy("counts", COUNTS)
    nodes.deploy("length", LENGTH)
    return nodes


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "nginx"])  # nginx: test_three_nodes.py
def test_when_a_node_is_killed_no_get_fails(loaded: Nodes, tmp_path: Path, kind: str) -> None:
    with edge(kind, loaded, tmp_path) as port:
        large = ask(port, "length.localhost", method="POST", body=bytes(5 << 20))
        assert large.text == str(5 << 20), "a body that is too large to be kept for a repetition passes"
        with Load(port, HOSTS) as load:
            load.more(100)
            victim = loaded.all.pop()
            victim.stop(signal.SIGKILL)
            load.more(300)
            loaded.add()
        assert set(load.statuses) == {200}, load.statuses


@pytest.mark.parametrize("kind", ["nginx", "haproxy"])
def test_a_restart_of_one_node_after_the_other_fails_no_get_and_refuses_nobody(
    loaded: Nodes, tmp_path: Path, kind: str
) -> None:
    with edge(kind, loaded, tmp_path) as port:
        with Load(port, HOSTS) as load:
            for node in loaded.all:
                load.more(50)
                assert node.stop() == 0
                load.more(20)
                node.start()
                node.wait_until(lambda node=node: served(node) > 0, 30)  # the edge uses it again
        assert set(load.statuses) == {200}, load.statuses


def served(node: Atoll) -> float:
    """Requests that a node has had since its start."""
    lines = node.control("GET", "/metrics").text.splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith("atoll_requests_total{"))


@pytest.mark.parametrize("kind", ["nginx", "haproxy", "caddy"])
def test_requests_for_a_host_go_to_one_node(loaded: Nodes, tmp_path: Path, kind: str) -> None:
    with edge(kind, loaded, tmp_path) as port:
        counted = [int(ask(port, "counts.localhost").text) for _ in range(12)]
    # HAProxy bounds the load of a node: while it still counts the request before, the next one goes to another node.
    least = 9 if kind == "haproxy" else 12
    assert max(counted) >= counted[0] + least - 1, f"one isolate of one node has them: {counted}"
