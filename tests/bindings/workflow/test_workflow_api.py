"""Workflows over HTTP and from the command line: lists, steps, changes, quotas, tenants, deletion."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.bindings.workflow.flows import BINDINGS, DECLARED, deploy, refused, source, until
from tests.cli.test_projects import run as run_command
from tests.running import Answer, Atoll

WORKER = "api-flows"
TESTS = {
    "adds": 'return step.do("add", () => event.payload.one + event.payload.two);',
    "waits": """
      await step.do("first", { sensitive: "output" }, () => "secret");
      await step.sleep("short", 1);
      const { payload } = await step.waitForEvent("event", { type: "go" });
      return payload;""",
}
FLOW = [{"type": "workflow", "name": "FLOW", "workflow": "api-flow"}]
COUNTER = [{"type": "durable_object", "name": "COUNTER", "class_name": "Counter"}]
WORKFLOWS = [{"name": "api-flow", "class_name": "Flow"}]


@pytest.fixture(scope="module")
def node(atoll: Atoll) -> Atoll:
    deploy(atoll, WORKER, TESTS, bindings=FLOW + COUNTER, workflows=WORKFLOWS)
    return atoll


def ask(node: Atoll, method: str, path: str, body: Any = None, **headers: str) -> Answer:
    content = None if body is None else json.dumps(body).encode()
    fields = {"Content-Type": "application/json", **headers}
    return node.request(method, f"localhost:{node.port}", f"/api/workflows{path}", content, fields)


def code(answer: Answer) -> int:
    return int(answer.json["error"]["code"])


def ended(node: Atoll, id: str) -> dict[str, Any]:
    path = f"/api-flow/instances/{id}"
    node.wait_until(lambda: ask(node, "GET", path).json["status"] == "complete", 30)
    found: dict[str, Any] = ask(node, "GET", path).json
    return found


def test_an_instance_is_created_and_described(node: Atoll) -> None:
    [listed] = [each for each in ask(node, "GET", "").json["workflows"] if each["name"] == "api-flow"]
    assert (listed["worker"], listed["class_name"]) == (WORKER, "Flow")
    made = ask(node, "POST", "/api-flow/instances", {"id": "a1", "params": {"test": "adds", "one": 1, "two": 2}})
    assert made.status == 201 and made.json["id"] == "a1"
    found = ended(node, "a1")
    assert (found["output"], found["success"], found["trigger"]) == (3, True, {"source": "api"})
    [step] = found["steps"]
    assert (step["name"], step["type"], step["output"], len(step["attempts"])) == ("add-1", "step", 3, 1)
    again = ask(node, "POST", "/api-flow/instances", {"id": "a1"})
    assert again.status == 409 and code(again) == 19005
    assert code(ask(node, "POST", "/api-flow/instances", {"id": "no such id"})) == 10026
    assert code(ask(node, "GET", "/api-flow/instances/none")) == 10007
    assert code(ask(node, "GET", "/none")) == 10007
    assert ask(node, "GET", "/api-flow").json["instances"]["complete"] >= 1


def test_an_instance_is_steered(node: Atoll) -> None:
    ask(node, "POST", "/api-flow/instances", {"id": "c1", "params": {"test": "waits"}})
    one = "/api-flow/instances/c1"
    node.wait_until(lambda: len(ask(node, "GET", one).json["steps"]) == 3, 30)  # it waits in the third one
    first, sleep, wait = ask(node, "GET", one).json["steps"]
    assert first["output"] == "[REDACTED]" and sleep["finished"] and not wait["finished"]
    assert ask(node, "POST", f"{one}/pause").json["status"] in ("paused", "waitingForPause")
    node.wait_until(lambda: ask(node, "GET", one).json["status"] == "paused", 30)
    assert ask(node, "POST", f"{one}/events", {"type": "go", "payload": [1]}).json["status"] == "paused"
    assert ask(node, "POST", f"{one}/resume").status == 200
    assert ended(node, "c1")["output"] == [1]
    assert "finite state" in ask(node, "POST", f"{one}/terminate").text
    assert ask(node, "POST", f"{one}/restart", {}).status == 200
    assert ask(node, "POST", f"{one}/terminate").json["status"] == "terminated"
    listed = ask(node, "GET", "/api-flow/instances?status=terminated").json["instances"]
    assert [each["id"] for each in listed] == ["c1"] and listed[0]["expires_at"] is not None
    assert code(ask(node, "GET", "/api-flow/instances?status=odd")) == 10026
    assert ask(node, "DELETE", one).status == 204 and code(ask(node, "DELETE", one)) == 10007
    assert code(ask(node, "GET", one)) == 10007


def test_instances_are_listed_in_pages(node: Atoll) -> None:
    for number in range(3):
        params = {"test": "adds", "one": number, "two": 0}
        ask(node, "POST", "/api-flow/instances", {"id": f"page-{number}", "params": params})
    first = ask(node, "GET", "/api-flow/instances?limit=2").json
    assert [each["id"] for each in first["instances"]] == ["page-2", "page-1"] and first["cursor"]
    rest = ask(node, "GET", f"/api-flow/instances?limit=2&cursor={first['cursor']}").json
    assert rest["instances"][0]["id"] == "page-0"


def test_a_deploy_must_export_the_class_and_own_the_name(node: Atoll) -> None:
    def said(**facts: Any) -> str:
        answer = node.control("POST", "/api/workers", {"script": source(TESTS), **facts})
        assert answer.status in (400, 409, 422), answer.text
        return str(answer.json["error"]["message"])

    migrations = [{"tag": "v1", "new_sqlite_classes": ["Counter"]}]
    facts = {"name": "other", "bindings": COUNTER, "migrations": migrations}
    missing = [{"name": "other-flow", "class_name": "Missing"}]
    assert "names the class Missing, which the worker does not export" in said(workflows=missing, **facts)
    assert f"belongs to the worker `{WORKER}`" in said(workflows=WORKFLOWS, **facts)
    bound = {**facts, "bindings": [{"type": "workflow", "name": "F", "workflow": "nothing"}, *COUNTER]}
    assert said(**bound) == "there is no workflow `nothing`"
    long = [{"name": "long", "class_name": "Flow", "success_retention": "31 days"}]
    assert "keeps its instances for '31 days'" in said(workflows=long, **facts)


def test_another_worker_of_the_tenant_may_use_a_workflow(node: Atoll) -> None:
    caller = """export default { async fetch(request, env) {
      const flow = await env.FLOW.create({ id: "from-far", params: { test: "adds", one: 4, two: 5 } });
      return new Response(flow.id);
    } }"""
    bound = [{"type": "workflow", "name": "FLOW", "workflow": "api-flow", "script_name": WORKER}]
    node.deploy("flow-caller", caller, bindings=bound)
    assert node.get("flow-caller").text == "from-far"
    assert ended(node, "from-far")["output"] == 9


def test_quotas_tenants_and_the_end_of_a_worker(new_atoll: Callable[..., Atoll]) -> None:
    node = new_atoll(engines=1)
    quotas = {"name": "small", "quotas": {"workflow_instances": 2}}
    assert node.control("POST", "/api/tenants", quotas).status == 201
    of_small = {"X-Atoll-Tenant": "small"}
    facts = {
        "name": "small-flows", "script": source(TESTS), "bindings": BINDINGS + COUNTER, "workflows": DECLARED,
        "migrations": [{"tag": "v1", "new_sqlite_classes": ["Counter"]}], "switches": {"allow_eval": True},
    }  # fmt: skip
    fields = {"Content-Type": "application/json", **of_small}
    host = f"localhost:{node.port}"
    assert node.request("POST", host, "/api/workers", json.dumps(facts).encode(), fields).status == 201
    deploy(node, "flows", TESTS)
    waits = {"id": "same", "params": {"test": "waits"}}
    assert ask(node, "POST", "/flow/instances", waits, **of_small).status == 201
    assert code(ask(node, "GET", "/flow/instances/same")) == 10007  # that of another tenant
    assert ask(node, "GET", "/flow/instances").json["instances"] == []
    assert ask(node, "POST", "/flow/instances", {"id": "two", "params": {"test": "waits"}}, **of_small).status == 201
    full = ask(node, "POST", "/flow/instances", {"id": "three", "params": {"test": "waits"}}, **of_small)
    assert full.status == 400 and "Workflow instance quota reached (2 of 2)" in full.text
    assert code(ask(node, "GET", "/flow/instances/three", **of_small)) == 10007
    assert ask(node, "POST", "/flow/instances", waits).status == 201  # the other tenant has no quota
    assert b'atoll_workflow_instances{status="waiting"}' in node.control("GET", "/metrics").body
    node.stop()
    node.start()
    assert len(ask(node, "GET", "/flow/instances", **of_small).json["instances"]) == 2
    assert node.control("DELETE", "/api/workers/flows").status in (200, 204)
    assert code(ask(node, "GET", "/flow")) == 10007
    deploy(node, "flows", TESTS)
    assert ask(node, "GET", "/flow/instances").json["instances"] == []
    assert refused(node, "flows", 'await FLOW.get("same");') == "Error: instance.not_found"


def test_instances_end_when_their_time_is_over(new_atoll: Callable[..., Atoll]) -> None:
    node = new_atoll(engines=1)
    deploy(node, "flows", TESTS, workflows=[{"name": "flow", "class_name": "Flow", "success_retention": 0}])
    ask(node, "POST", "/flow/instances", {"id": "short", "params": {"test": "adds", "one": 1, "two": 1}})
    until(node, "flows", "short", "complete")
    node.stop()
    node.start()  # it looks at the start, and every minute
    node.wait_until(lambda: ask(node, "GET", "/flow/instances").json["instances"] == [], 30)
    assert refused(node, "flows", 'await FLOW.get("short");') == "Error: instance.not_found"


def test_the_command_line_starts_and_shows_instances(node: Atoll, tmp_path: Path) -> None:
    def told(*words: str) -> Any:
        done = run_command(tmp_path, "workflows", *words, "--json", "--api", f"http://localhost:{node.port}")
        return json.loads(done.stdout)

    assert told("trigger", "api-flow", '{"test": "waits"}', "--id", "cli1")["id"] == "cli1"
    node.wait_until(lambda: ask(node, "GET", "/api-flow/instances/cli1").json["status"] == "waiting", 30)
    assert told("instances", "api-flow", "--status", "waiting")[0]["id"] == "cli1"
    assert told("pause", "api-flow", "latest")["status"] == "paused"
    told("resume", "api-flow", "cli1")
    told("send-event", "api-flow", "cli1", "go", '"paid"')
    assert ended(node, "cli1")["output"] == "paid"
    assert told("describe", "api-flow", "latest")["status"] == "complete"
    assert any(each["name"] == "api-flow" for each in told("list"))
