"""Durable Objects on three real nodes that share a PostgreSQL."""

from __future__ import annotations

import json
import os
import signal
from urllib.parse import quote

from tests.cluster.conftest import Nodes
from tests.cluster.ledger import BINDINGS, MIGRATIONS, SCRIPT, Load, ask, deploy, value


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


def test_bodies_stream_to_an_object_on_another_node_and_back(nodes: Nodes) -> None:
    copies = set()
    body = bytes(range(256)) * 4_096  # more than all windows together
    for node in nodes.all:
        question = quote(json.dumps({"object": "stream", "method": "fetch", "args": []}))
        answer = node.request("POST", node.host("ledger"), f"/?{question}", body)
        assert answer.status == 200 and answer.body == body
        copies.add(answer.headers["copy"])
    assert len(copies) == 1


def test_what_cannot_go_to_another_node_is_refused_in_words(nodes: Nodes) -> None:
    script = SCRIPT.replace(
        "fetch(request) {",
        "call(f) { return f(1); } stub() { return () => 1; } stream() { return new Blob(['x']).stream(); }"
        " fetch(request) {",
    ).replace("...args)", "...args.map((each) => (each === 'function' ? (n) => n + 1 : each)))")
    nodes.deploy("parts", script, bindings=BINDINGS, migrations=MIGRATIONS)
    first, second, _ = nodes.all
    assert value(first, "one", "call", "function", name="parts") == 2
    for method, words in (("call", "The arguments have"), ("stub", "The result has"), ("stream", "The result has")):
        refused = ask(second, "one", method, *["function"][: method == "call"], name="parts")
        assert words in str(refused["message"]) and not refused["retryable"], refused
    large = ask(second, "one", "add", "x" * 3_000, name="parts")
    assert "value" in large, "the object still answers"


def test_an_alarm_is_delivered_where_its_object_is(nodes: Nodes) -> None:
    value(nodes.all[1], "alarmed", "alarmIn", 300)
    nodes.all[0].wait_until(lambda: value(nodes.all[2], "alarmed", "ids") == ["alarm"])


def test_an_object_is_deleted_from_a_node_that_does_not_have_it(nodes: Nodes) -> None:
    value(nodes.all[0], "gone", "add", "1")
    listed = nodes.all[1].control("GET", "/api/objects/ledger/Ledger?limit=10000").json["objects"]
    for each in listed:
        deleted = nodes.all[2].control("DELETE", f"/api/objects/ledger/Ledger/{each['id']}")
        assert deleted.status == 204, deleted.text
    assert value(nodes.all[0], "gone", "ids") == []
    assert len(nodes.all[1].control("GET", "/api/objects/ledger/Ledger").json["objects"]) == 1


def test_an_object_larger_than_its_log_is_restored_on_another_node(nodes: Nodes) -> None:
    """Chunks are stored and commits deleted meanwhile; what was deleted in the object stays deleted."""
    victim = nodes.add(node_name="fourth")
    value(victim, "large", "fill", 12)
    value(victim, "large", "add", "kept")
    expected = value(victim, "large", "sum")
    value(victim, "shrunk", "fill", 6)
    value(victim, "shrunk", "shrink")
    value(victim, "shrunk", "fill", 1)
    small = value(victim, "shrunk", "sum")
    assert victim.stop() == 0
    nodes.all.remove(victim)
    assert value(nodes.all[0], "large", "sum") == expected
    assert value(nodes.all[0], "large", "ids") == ["kept"]
    assert value(nodes.all[1], "shrunk", "sum") == small


def test_a_stopped_and_a_killed_owner_lose_nothing_and_double_nothing(nodes: Nodes) -> None:
    """SIGSTOP of each node in turn for longer than its lease, then kill -9 of one, under load from all sides."""
    with Load(lambda: list(nodes.all)) as load:
        load.wait_for(50)
        for node in list(nodes.all[:2]):
            assert node.process is not None
            os.kill(node.process.pid, signal.SIGSTOP)
            others = [each for each in nodes.all if each is not node]
            load.only = others
            load.wait_for(30)  # others have taken its objects
            os.kill(node.process.pid, signal.SIGCONT)
            load.only = None
            load.wait_for(30)
        victim = nodes.all.pop()
        victim.stop(signal.SIGKILL)
        load.wait_for(50)
    load.check(nodes.all[0])


def test_objects_outlive_a_restart_of_postgresql(nodes: Nodes) -> None:
    with Load(lambda: list(nodes.all)) as load:
        load.wait_for(40)
        nodes.server.stop()
        nodes.server.start()
        load.wait_for(40)
    load.check(nodes.all[1])
