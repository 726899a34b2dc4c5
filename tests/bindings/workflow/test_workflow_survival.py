# ruff: noqa: E501 (workers as strings read best on one line)
"""Instances go on after the end of an engine, of the node, and of the version that they began with."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

from tests.bindings.workflow.flows import counts, deploy, open_gate, run, source, start, status, until
from tests.running import Atoll

WORKER = "survivor"
TESTS = {
    "gated": """
      await step.do("one", () => done("one"));
      await step.do("two", { retries: { limit: 9, delay: 10, backoff: "constant" } }, async () => { await done("two"); await gate("two"); });
      await step.do("three", () => done("three"));
      return VERSION;""",
    "waits": """
      await step.do("one", () => done("one"));
      const came = await step.waitForEvent("event", { type: "go" });
      await step.do("two", () => done("two"));
      return came.payload;""",
    "sleeps": """
      await step.do("one", () => done("one"));
      await step.sleep("while", "4 seconds");
      return step.do("two", () => done("two"));""",
    "hungry": """
      await step.do("one", () => done("one"));
      const hold = [];
      await step.do("eats", { retries: { limit: 1, delay: 10, backoff: "constant" } }, async () => {
        await done("eats");
        for (;;) hold.push(new Array(100_000).fill(Math.random()));
      });""",
}  # fmt: skip


def kill_engines(node: Atoll) -> None:
    for pid in node.engines():
        os.kill(pid, signal.SIGKILL)


def test_no_finished_step_runs_again_after_kills_of_engines_and_of_the_node(new_atoll: Callable[..., Atoll]) -> None:
    node = new_atoll(quarantine_seconds=0)  # else the killed engines are blamed on the worker
    deploy(node, WORKER, TESTS)
    start(node, WORKER, "gated", "k1")
    start(node, WORKER, "waits", "k2")
    start(node, WORKER, "sleeps", "k3")
    until(node, WORKER, "k2", "waiting")
    node.wait_until(lambda: counts(node, WORKER, "k1").get("two") == 1, 30)
    kill_engines(node)
    node.wait_until(lambda: counts(node, WORKER, "k1").get("two") == 2, 60)
    node.stop(signal.SIGKILL)
    node.start()
    node.wait_until(lambda: counts(node, WORKER, "k1").get("two") == 3, 60)
    open_gate(node, WORKER, "k1", "two")
    assert until(node, WORKER, "k1", "complete")["output"] == 1
    assert counts(node, WORKER, "k1") == {"one": 1, "two": 3, "three": 1}
    run(node, WORKER, 'await (await FLOW.get("k2")).sendEvent({ type: "go", payload: "went" });')
    node.stop(signal.SIGKILL)
    node.start()
    assert until(node, WORKER, "k2", "complete")["output"] == "went"
    assert counts(node, WORKER, "k2") == {"one": 1, "two": 1}
    until(node, WORKER, "k3", "complete")
    assert counts(node, WORKER, "k3") == {"one": 1, "two": 1}
    listed = node.control("GET", "/api/workflows/flow/instances").json["instances"]
    assert sorted((each["id"], each["status"]) for each in listed) == [(f"k{n}", "complete") for n in (1, 2, 3)]
    steps = node.control("GET", "/api/workflows/flow/instances/k1").json["steps"]
    attempts = [[attempt["success"] for attempt in step["attempts"]] for step in steps]
    assert attempts == [[True], [False, False, True], [True]]
    assert steps[1]["attempts"][0]["error"]["message"] == "Attempt failed due to internal workflows error"


def test_a_deploy_lets_running_instances_go_on_with_the_new_version(atoll: Atoll) -> None:
    bindings = [
        {"type": "workflow", "name": "FLOW", "workflow": "flow-updated"},
        {"type": "durable_object", "name": "COUNTER", "class_name": "Counter"},
    ]
    facts = {"bindings": bindings, "workflows": [{"name": "flow-updated", "class_name": "Flow"}]}
    deploy(atoll, "flow-updated", TESTS, **facts)
    start(atoll, "flow-updated", "waits", "d1")
    start(atoll, "flow-updated", "gated", "d2")
    until(atoll, "flow-updated", "d1", "waiting")
    atoll.wait_until(lambda: counts(atoll, "flow-updated", "d2").get("two") == 1, 30)
    changed = {**TESTS, "waits": TESTS["waits"].replace("came.payload", "[VERSION, came.payload]")}
    deploy(atoll, "flow-updated", TESTS, script=source(changed).replace("VERSION = 1", "VERSION = 2"), **facts)
    run(atoll, "flow-updated", 'await (await FLOW.get("d1")).sendEvent({ type: "go", payload: 7 });')
    assert until(atoll, "flow-updated", "d1", "complete")["output"] == [2, 7]
    open_gate(atoll, "flow-updated", "d2", "two")
    assert until(atoll, "flow-updated", "d2", "complete")["output"] == 2
    assert counts(atoll, "flow-updated", "d1") == {"one": 1, "two": 1}
    assert counts(atoll, "flow-updated", "d2")["one"] == 1


def test_a_step_that_uses_up_the_memory_fails_and_the_instance_with_it(new_atoll: Callable[..., Atoll]) -> None:
    node = new_atoll(quarantine_seconds=0)
    deploy(node, WORKER, TESTS, limits={"memory_mb": 64})
    start(node, WORKER, "hungry", "h1")
    listed = "/api/workflows/flow/instances/h1"  # the worker itself is ended whenever its memory is used up
    node.wait_until(lambda: node.control("GET", listed).json.get("status") == "errored", 90)
    assert counts(node, WORKER, "h1") == {"one": 1, "eats": 2}
    error = status(node, WORKER, "h1")["error"]
    assert error == {"name": "WorkflowInternalError", "message": "Attempt failed due to internal workflows error"}
