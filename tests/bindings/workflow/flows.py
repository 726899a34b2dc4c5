# ruff: noqa: E501 (workers as strings read best on one line)
"""The workflows that the tests deploy, and how they are called."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tests.running import Answer, Atoll

BINDINGS = [{"type": "workflow", "name": "FLOW", "workflow": "flow"}]
DECLARED = [{"name": "flow", "class_name": "Flow"}]

SOURCE = """
import { WorkflowEntrypoint, DurableObject } from "cloudflare:workers";
import { NonRetryableError } from "cloudflare:workflows";

/** Counts how often something was done, outside of the workflow. */
export class Counter extends DurableObject {
  async add(key) {
    const count = ((await this.ctx.storage.get(key)) ?? 0) + 1;
    await this.ctx.storage.put(key, count);
    return count;
  }
  all() { return this.ctx.storage.list(); }
  async open(name) { await this.ctx.storage.put(`gate ${name}`, true); }
  isOpen(name) { return this.ctx.storage.get(`gate ${name}`); }
}

const SOURCES = TESTS;
const VERSION = 1;

export class Flow extends WorkflowEntrypoint {
  async run(event, step) {
    const id = event.instanceId;
    const counter = this.env.COUNTER.getByName(id);
    const done = (name) => counter.add(name);
    /** Holds a step until the test opens a gate. */
    const gate = async (name) => { while (!(await counter.isOpen(name))) await scheduler.wait(20); };
    return SOURCES[event.payload.test]({ event, step, done, gate, env: this.env, ctx: this.ctx, NonRetryableError, VERSION, self: this });
  }
}

export default {
  async fetch(request, env) {
    const { code } = await request.json();
    try {
      const AsyncFunction = Object.getPrototypeOf(async () => {}).constructor;
      const value = await new AsyncFunction("env", "FLOW", "counter", code)(env, env.FLOW, (id) => env.COUNTER.getByName(id));
      return Response.json({ value: value instanceof Map ? Object.fromEntries(value) : value === undefined ? null : value });
    } catch (error) {
      return Response.json({ error: `${error.name}: ${error.message}` });
    }
  },
};
"""


def source(tests: dict[str, str]) -> str:
    names = "{ event, step, done, gate, env, ctx, NonRetryableError, VERSION, self }"
    bodies = ",\n".join(f"{json.dumps(name)}: async ({names}) => {{ {body} }}" for name, body in tests.items())
    return SOURCE.replace("TESTS", f"{{ {bodies} }}", 1)


def deploy(node: Atoll, worker: str, tests: dict[str, str], **more: Any) -> None:
    facts: dict[str, Any] = {
        "bindings": [*BINDINGS, {"type": "durable_object", "name": "COUNTER", "class_name": "Counter"}],
        "migrations": [{"tag": "v1", "new_sqlite_classes": ["Counter"]}],
        "workflows": DECLARED,
        "switches": {"allow_eval": True},
    }
    node.deploy(worker, more.pop("script", source(tests)), **(facts | more))


def run(node: Atoll, worker: str, code: str) -> Any:
    """The value of code in the worker."""
    told = _post(node, worker, code).json
    assert "value" in told, told
    return told["value"]


def refused(node: Atoll, worker: str, code: str) -> str:
    told = _post(node, worker, code).json
    assert "error" in told, told
    return str(told["error"])


def _post(node: Atoll, worker: str, code: str) -> Answer:
    body = json.dumps({"code": code}).encode()
    answer = node.request("POST", node.host(worker), "/", body, {"Content-Type": "application/json"})
    assert answer.status == 200, answer.text
    return answer


def start(node: Atoll, worker: str, test: str, id: str) -> None:
    run(node, worker, f"await FLOW.create({{ id: {id!r}, params: {{ test: {test!r} }} }});")


def status(node: Atoll, worker: str, id: str) -> dict[str, Any]:
    found: dict[str, Any] = run(node, worker, f"return (await FLOW.get({id!r})).status();")
    return found


def counts(node: Atoll, worker: str, id: str) -> dict[str, Any]:
    """How often the steps of an instance were done."""
    found: dict[str, Any] = run(node, worker, f"return counter({id!r}).all();")
    return {name: count for name, count in found.items() if not name.startswith("gate ")}


def open_gate(node: Atoll, worker: str, id: str, name: str) -> None:
    run(node, worker, f"return counter({id!r}).open({name!r});")


def until(node: Atoll, worker: str, id: str, wanted: str | Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Wait until an instance has a status."""
    found: dict[str, Any] = {}

    def is_so() -> bool:
        found.clear()
        found.update(status(node, worker, id))
        return found["status"] == wanted if isinstance(wanted, str) else wanted(found)

    node.wait_until(is_so, 60)
    return found
