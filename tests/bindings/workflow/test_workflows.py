# ruff: noqa: E501 (workers as strings read best on one line)
"""Workflows as workers see them, in a real engine: steps, retries, sleep, events, and their messages."""

from __future__ import annotations

import pytest

from tests.bindings.workflow.flows import counts, deploy, open_gate, refused, run, start, status, until
from tests.running import Atoll

WORKER = "flows"
TESTS = {
    "steps": """
      const one = await step.do("one", async (ctx) => { await done("one"); return { ctx, at: new Date(5), map: new Map([["k", 1n]]) }; });
      one.at = one.at.getTime();
      const twice = [await step.do("same", () => "a"), await step.do("same", () => "b")];
      const both = await Promise.all([step.do("x", async () => 1), step.do("y", async () => undefined)]);
      return { one: { ...one, map: one.map.get("k") === 1n }, twice, both, event, workflow: event.workflowName, dated: event.timestamp instanceof Date, url: typeof ctx.waitUntil };""",
    "sleeps": """
      await step.do("before", () => done("before"));
      await step.sleep("a while", "3 seconds");
      await step.sleepUntil("a moment", Date.now() + 10);
      return step.do("after", () => done("after"));""",
    "retries": """
      return step.do("flaky", { retries: { limit: 2, delay: 10, backoff: "constant" } }, async ({ attempt }) => {
        await done("flaky");
        if (attempt < 3) throw new RangeError(`attempt ${attempt}`);
        return attempt;
      });""",
    "gives up": """
      try {
        await step.do("never", { retries: { limit: 1, delay: 5, backoff: "linear" } }, async () => { await done("never"); throw new TypeError("no"); });
      } catch (error) { await step.do("caught", () => done("caught")); throw error; }""",
    "final": """await step.do("final", async () => { await done("final"); throw new NonRetryableError("enough"); });""",
    "slow": """
      return step.do("slow", { timeout: 30, retries: { limit: 0, delay: 0 } }, () => new Promise(() => {}));""",
    "past": """await step.sleepUntil("past", new Date(0));""",
    "waits": """
      const first = await step.waitForEvent("first", { type: "go", timeout: "1 hour" });
      const second = await step.waitForEvent("second", { type: "go" });
      return { first, second, dated: first.timestamp instanceof Date };""",
    "waits in vain": """
      try { await step.waitForEvent("nothing", { type: "never", timeout: 20 }); }
      catch (error) { return `${error.name}: ${error.message}`; }""",
    "function": """await step.do("function", () => () => 1);""",
    "large": """await step.do("large", { retries: { limit: 0, delay: 0 } }, () => "x".repeat(2 ** 20));""",
    "long name": """await step.do("n".repeat(257), () => 1);""",
    "gated": """
      await step.do("one", () => done("one"));
      await step.do("two", async () => { await done("two"); await gate("two"); });
      return step.do("three", () => done("three"));""",
    "rolls back": """
      const undo = { rollback: async ({ error, output, stepName }) => { await done(`undo ${stepName} ${output} ${error.message}`); } };
      await step.do("pay", async () => "paid", undo);
      await step.do("ship", async () => "shipped", undo);
      await step.do("fails", { retries: { limit: 0, delay: 0 } }, () => { throw new Error("no more"); });""",
    "races": """
      const first = await Promise.race([step.sleep("long", "1 hour").then(() => "slept"), (async () => { await scheduler.wait(50); return step.do("quick", () => "quick"); })()]);
      return first;""",
    "many": """let sum = 0; for (let i = 0; i < 600; i++) sum += await step.do(`step ${i}`, () => i); return sum;""",
    "unlimited": """for (let i = 0; ; i++) await step.do("again", () => i);""",
}


@pytest.fixture(scope="module")
def node(atoll: Atoll) -> Atoll:
    deploy(atoll, WORKER, TESTS)
    return atoll


def test_steps_run_once_and_give_copies_of_their_results(node: Atoll) -> None:
    start(node, WORKER, "steps", "s1")
    found = until(node, WORKER, "s1", "complete")
    output = found["output"]
    context = output["one"]["ctx"]
    assert context["step"] == {"name": "one", "count": 1} and context["attempt"] == 1
    assert context["config"] == {
        "retries": {"limit": 5, "delay": 1000, "backoff": "exponential"},
        "timeout": "10 minutes",
    }
    assert output["one"]["at"] == 5 and output["one"]["map"] and output["dated"] and output["url"] == "function"
    assert output["twice"] == ["a", "b"] and output["both"][0] == 1
    assert output["event"]["payload"] == {"test": "steps"} and output["event"]["instanceId"] == "s1"
    assert output["workflow"] == "flow" and found["error"] is None
    assert counts(node, WORKER, "s1") == {"one": 1}


def test_a_sleep_lets_the_instance_rest_and_does_no_step_again(node: Atoll) -> None:
    start(node, WORKER, "sleeps", "z1")
    until(node, WORKER, "z1", "waiting")
    assert counts(node, WORKER, "z1") == {"before": 1}
    assert until(node, WORKER, "z1", "complete")["output"] == 1
    assert counts(node, WORKER, "z1") == {"before": 1, "after": 1}


def test_a_step_is_tried_again_after_a_failure(node: Atoll) -> None:
    start(node, WORKER, "retries", "r1")
    assert until(node, WORKER, "r1", "complete")["output"] == 3
    assert counts(node, WORKER, "r1") == {"flaky": 3}


def test_after_the_last_attempt_the_step_rejects_and_the_instance_fails(node: Atoll) -> None:
    start(node, WORKER, "gives up", "g1")
    assert until(node, WORKER, "g1", "errored")["error"] == {"name": "TypeError", "message": "no"}
    assert counts(node, WORKER, "g1") == {"never": 2, "caught": 1}


@pytest.mark.parametrize(
    ("test", "error"),
    [
        ("final", {"name": "NonRetryableError", "message": "enough"}),
        ("slow", {"name": "WorkflowTimeoutError", "message": "Execution timed out after 30ms"}),
        ("past", {"name": "Error", "message": "You can't sleep until a time in the past, time-traveler"}),
        ("function", {"name": "WorkflowFatalError", "message": 'Value returned from step "function" is not serialisable'}),
        ("large", {"name": "WorkflowFatalError", "message": "Step large output is too large. Maximum allowed size is 1MiB."}),
        ("long name", {"name": "WorkflowFatalError", "message": f'Step name "{"n" * 256}" exceeds max length (256 chars) or invalid characters found'}),
    ],
)  # fmt: skip
def test_errors_have_the_words_of_cloudflare(node: Atoll, test: str, error: dict[str, str]) -> None:
    id = test.replace(" ", "-")
    start(node, WORKER, test, id)
    assert until(node, WORKER, id, "errored")["error"] == error
    assert all(count == 1 for count in counts(node, WORKER, id).values())


def test_events_come_early_or_late(node: Atoll) -> None:
    start(node, WORKER, "waits", "e1")
    until(node, WORKER, "e1", "waiting")
    run(
        node,
        WORKER,
        'const f = await FLOW.get("e1"); await f.sendEvent({ type: "other", payload: 0 }); await f.sendEvent({ type: "go", payload: { n: 1 } }); await f.sendEvent({ type: "go", payload: { n: 2 } });',
    )
    output = until(node, WORKER, "e1", "complete")["output"]
    assert [output["first"]["payload"], output["second"]["payload"], output["first"]["type"]] == [
        {"n": 1},
        {"n": 2},
        "go",
    ]
    assert output["dated"]
    start(node, WORKER, "waits in vain", "e2")
    assert until(node, WORKER, "e2", "complete")["output"] == "WorkflowTimeoutError: Execution timed out after 20ms"
    said = refused(node, WORKER, 'await (await FLOW.get("e2")).sendEvent({ type: "go", payload: 1 });')
    assert said == "WorkflowError: (instance.not_running) Cannot send an event to an instance that is complete"


def test_instances_are_created_found_and_refused(node: Atoll) -> None:
    assert refused(node, WORKER, 'await FLOW.get("nobody");') == "Error: instance.not_found"
    assert (
        refused(node, WORKER, 'await FLOW.create({ id: "-bad" });') == "WorkflowError: Workflow instance has invalid id"
    )
    made = run(
        node,
        WORKER,
        'const made = await FLOW.create({ params: { test: "past" } }); return [made.id, typeof made.sendEvent];',
    )
    assert len(made[0]) == 36 and made[1] == "function"
    start(node, WORKER, "past", "twice")
    said = refused(node, WORKER, 'await FLOW.create({ id: "twice" });')
    assert said == "WorkflowError: (instance.already_exists) Instance already exists"
    ids = run(
        node,
        WORKER,
        'return (await FLOW.createBatch([{ id: "twice" }, { id: "b1", params: { test: "past" } }])).map(({ id }) => id);',
    )
    assert ids == ["b1"]
    run(node, WORKER, 'await FLOW.deleteBatch(["b1", "twice"]);')
    assert refused(node, WORKER, 'await FLOW.get("b1");') == "Error: instance.not_found"


def test_an_instance_is_paused_resumed_restarted_and_terminated(node: Atoll) -> None:
    start(node, WORKER, "gated", "p1")
    node.wait_until(lambda: counts(node, WORKER, "p1") == {"one": 1, "two": 1}, 30)
    run(node, WORKER, 'await (await FLOW.get("p1")).pause();')
    assert status(node, WORKER, "p1")["status"] == "waitingForPause"
    open_gate(node, WORKER, "p1", "two")
    until(node, WORKER, "p1", "paused")
    assert counts(node, WORKER, "p1") == {"one": 1, "two": 1}
    run(node, WORKER, 'await (await FLOW.get("p1")).resume();')
    assert until(node, WORKER, "p1", "complete")["output"] == 1
    assert counts(node, WORKER, "p1") == {"one": 1, "two": 1, "three": 1}
    run(node, WORKER, 'await (await FLOW.get("p1")).restart({ from: { name: "three" } });')
    until(node, WORKER, "p1", lambda found: found["status"] == "complete" and found["output"] == 2)
    assert counts(node, WORKER, "p1") == {"one": 1, "two": 1, "three": 2}
    run(node, WORKER, 'await (await FLOW.get("p1")).restart();')
    until(node, WORKER, "p1", lambda found: found["status"] == "complete" and found["output"] == 3)
    said = refused(node, WORKER, 'await (await FLOW.get("p1")).terminate();')
    assert said == "WorkflowError: (instance.cannot_terminate) Cannot terminate instance since its on a finite state"
    start(node, WORKER, "waits", "p2")
    run(node, WORKER, 'await (await FLOW.get("p2")).terminate();')
    assert status(node, WORKER, "p2")["status"] == "terminated"


def test_a_failure_undoes_the_steps_before_it_in_reverse(node: Atoll) -> None:
    start(node, WORKER, "rolls back", "u1")
    assert until(node, WORKER, "u1", "errored")["error"]["message"] == "no more"
    assert counts(node, WORKER, "u1") == {"undo ship shipped no more": 1, "undo pay paid no more": 1}


def test_code_between_steps_goes_on_while_a_step_sleeps(node: Atoll) -> None:
    start(node, WORKER, "races", "q1")
    assert until(node, WORKER, "q1", "complete")["output"] == "quick"


def test_a_long_workflow_runs_in_several_passes(node: Atoll) -> None:
    start(node, WORKER, "many", "m1")
    assert until(node, WORKER, "m1", "complete")["output"] == sum(range(600))


def test_a_workflow_has_a_limit_of_steps(atoll: Atoll) -> None:
    deploy(atoll, "flow-limited", TESTS, workflows=[{"name": "flow-limited", "class_name": "Flow", "steps": 5}],
           bindings=[{"type": "workflow", "name": "FLOW", "workflow": "flow-limited"}, {"type": "durable_object", "name": "COUNTER", "class_name": "Counter"}])  # fmt: skip
    start(atoll, "flow-limited", "unlimited", "l1")
    message = "The limit of 5 steps has been reached. This limit can be changed in your worker configuration."
    assert until(atoll, "flow-limited", "l1", "errored")["error"] == {"name": "WorkflowFatalError", "message": message}
