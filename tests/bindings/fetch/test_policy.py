"""Where a worker may connect, by the rules of its deploy, its tenant and the operator: to a real server."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.running import Answer, Atoll
from tests.upstream import Upstream

Run = Callable[..., Answer]
TRY = "try { return await fetch(UP + '/fine'); } catch (error) { return new Response(`${error}`); }"


@pytest.mark.parametrize(
    ("egress", "expected"),
    [
        ({}, "GET /fine"),
        ({"allow": ["127.0.0.1"]}, "GET /fine"),
        ({"allow": ["127.0.0.0/8:PORT"]}, "GET /fine"),
        ({"allow": ["example.com", "*.example.com"]}, "TypeError: error 1021: 127.0.0.1:PORT may not be reached: it is not in the allow list of the worker"),
        ({"allow": ["10.0.0.0/8"]}, "TypeError: error 1024: 127.0.0.1 may not be reached: it is not in the allow list of the worker"),
        ({"deny": ["*:PORT"]}, "TypeError: error 1021: 127.0.0.1:PORT may not be reached: the rule '*:PORT' of the deny list of the worker"),
        ({"deny": ["127.0.0.0/8"]}, "TypeError: error 1024: 127.0.0.1 may not be reached: the rule '127.0.0.0/8' of the deny list of the worker"),
    ],
)  # fmt: skip
def test_the_egress_of_a_deploy_narrows_a_worker(
    run: Run, upstream: Upstream, egress: dict[str, list[str]], expected: str
) -> None:
    port = str(upstream.port)
    rules = {name: [rule.replace("PORT", port) for rule in texts] for name, texts in egress.items()}
    assert run(TRY, egress=rules).text == expected.replace("PORT", port)


def test_the_egress_of_a_worker_persists_and_is_shown(node: Atoll, upstream: Upstream) -> None:
    source = f"const UP = '{upstream.url}'; export default {{ async fetch() {{ {TRY} }} }};"
    shown = node.deploy("narrow", source, egress={"deny": ["127.0.0.1"]})
    assert shown["egress"] == {"allow": [], "deny": ["127.0.0.1"]}
    node.deploy("narrow", source + " ")  # a new version without the field
    assert "error 1024" in node.get("narrow").text
    node.deploy("narrow", egress={})
    assert node.get("narrow").text == "GET /fine"


@pytest.mark.parametrize(
    "egress", [{"allow": ["http://a"]}, {"deny": ["10.0.0.0/99"]}, {"only": []}, {"deny": "a"}, ["a"]]
)
def test_invalid_rules_are_refused(node: Atoll, egress: object) -> None:
    answer = node.control(
        "POST", "/api/workers", {"name": "bad-rules", "script": "export default {fetch() {}}", "egress": egress}
    )
    assert (answer.status, answer.json["error"]["code"]) == (400, 10026)
    assert "egress" in answer.json["error"]["message"]


def test_the_rules_of_a_tenant_apply_to_all_its_workers_at_once(node: Atoll, run: Run) -> None:
    before = node.control("GET", "/api/workers/narrow-tenant")
    assert before.status == 404
    assert run(TRY).text == "GET /fine"
    changed = node.control("PATCH", "/api/tenants/default", {"egress": {"deny": ["127.0.0.1"]}})
    try:
        assert changed.json["egress"] == {"allow": [], "deny": ["127.0.0.1"]}
        assert "of the deny list of the tenant" in run(TRY).text
    finally:
        node.control("PATCH", "/api/tenants/default", {"egress": {}})
    assert run(TRY).text == "GET /fine"


def test_outgoing_requests_are_counted(node: Atoll, run: Run) -> None:
    def count(name: str) -> float:
        text = node.control("GET", "/metrics").text
        return next(float(line.split()[1]) for line in text.splitlines() if line.startswith(f"{name} "))

    before = count("atoll_fetch_requests_total")
    assert run("await fetch(UP + '/a'); return fetch(UP + '/b')").text == "GET /b"
    assert count("atoll_fetch_requests_total") == before + 2
    assert count("atoll_fetch_connections") >= 1


@pytest.mark.parametrize(
    ("egress", "is_reached"),
    [
        ({}, True),
        ({"allow": ["served.localhost"]}, True),
        ({"allow": ["*.localhost:80"]}, True),
        ({"allow": ["other.localhost"]}, False),
        (
            {"allow": ["127.0.0.0/8", "::/0", "0.0.0.0/0"]},
            False,
        ),  # a worker of the node is reached by name and not by address
        ({"allow": ["served.localhost"], "deny": ["served.localhost"]}, False),
    ],
)
def test_the_rules_apply_to_hosts_of_the_node_too(
    node: Atoll, run: Run, egress: dict[str, list[str]], is_reached: bool
) -> None:
    node.deploy("served", "export default { fetch() { return new Response('reached'); } };")
    script = "return new Response(await fetch('http://served.localhost/').then((r) => r.text(), String))"
    text = run(script, egress=egress).text
    assert text == "reached" if is_reached else text.startswith("TypeError: error 1021: served.localhost:80 may not")
