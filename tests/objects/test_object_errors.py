"""Errors of objects at their callers: texts and properties. And what the input gate lets in."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from tests.running import Atoll

names = (f"object-{number}" for number in itertools.count())

SOURCE = """
import { DurableObject, WorkerEntrypoint, RpcTarget } from "cloudflare:workers";
const wait = (env, ms) => env.ECHO.wait(ms);
export class Box extends DurableObject {
  steps = [];
  async fail() { throw Object.assign(new RangeError("mine"), { code: 7 }); }
  fetch() { throw new SyntaxError("in fetch"); }
  abort(reason) { this.ctx.abort(reason); }
  spin() { for (;;); }
  async memory() { const all = []; for (;;) all.push(new Array(1_000_000).fill(1.5)); }
  whoami() { return this.ctx.id.toString(); }
  async step(name) { this.steps.push(name); return this.steps; }

  // critical sections
  async callback() {
    return this.ctx.blockConcurrencyWhile(async () => {
      this.steps.push("begin");
      const got = await this.ctx.exports.Helper.callLater(async (x) => { this.steps.push("callback"); await wait(this.env, 1); return x + 1; });
      this.steps.push("end");
      return got;
    });
  }
  async answers() {
    return this.ctx.blockConcurrencyWhile(async () => {
      const counter = await this.ctx.exports.Helper.counter();
      return [await counter.add(1), await counter.add(2), await this.ctx.exports.Helper.counter().add(5)];
    });
  }
  async lateStub() { return { f: async (name) => { this.steps.push(name); return this.steps; } }; }
  async section(ms) { await this.ctx.blockConcurrencyWhile(async () => { this.steps.push("in"); await wait(this.env, ms); this.steps.push("out"); }); }
  async lateReply() {
    // An op that was begun in a section and ends after it, while another section is open.
    let late;
    await this.ctx.blockConcurrencyWhile(async () => { late = wait(this.env, 20).then(() => this.steps.push("late")); });
    await this.ctx.blockConcurrencyWhile(async () => { this.steps.push("in"); await wait(this.env, 60); this.steps.push("out"); });
    await late;
    return this.steps;
  }

  // transactions
  async transactions() {
    const { storage } = this.ctx;
    const thrown = async (run) => { try { return await run(); } catch (error) { return `${error.name}: ${error.message}`; } };
    let moved;
    await storage.transaction(async (txn) => { moved = txn; await txn.put("a", 1); });
    return [
      await thrown(() => moved.put("b", 1)),
      await thrown(() => storage.transaction(async (txn) => { txn.rollback(); await txn.put("c", 1); })),
      await thrown(() => storage.transaction((txn) => txn.deleteAll())),
      await thrown(() => storage.put("k", undefined)), await thrown(() => storage.put("k")), await thrown(() => storage.list({ start: "a", startAfter: "b" })),
      await thrown(() => storage.list({ limit: 0 })), await thrown(() => storage.setAlarm(Date.now() + 1000)),
    ];
  }
  async options() {
    const { storage } = this.ctx;
    await storage.put("a", 1, { allowConcurrency: true, allowUnconfirmed: true, noCache: true });
    await storage.put({ b: 2 }, { allowUnconfirmed: true });
    return [await storage.get("a", { allowConcurrency: true, noCache: true }), await storage.delete("b", { allowUnconfirmed: true })];
  }
  async deferred() {
    this.ctx.storage.sql.exec("CREATE TABLE p (id INTEGER PRIMARY KEY); CREATE TABLE c (p INTEGER REFERENCES p DEFERRABLE INITIALLY DEFERRED)");
    await scheduler.wait(1);
    this.ctx.storage.sql.exec("INSERT INTO c VALUES (5)");
  }
}
class Counter extends RpcTarget { n = 0; async add(by) { return (this.n += by); } }
export class Helper extends WorkerEntrypoint {
  async callLater(f) { await wait(this.env, 5); return f(1); }
  counter() { return new Counter(); }
}
export class Middle extends WorkerEntrypoint { async fail(name) { return this.env.BOX.getByName(name).fail(); } }
export default {
  async fetch(request, env, ctx) {
    const { code } = await request.json();
    const fields = (error) => ({ name: error.name, message: error.message, ...error });
    const caught = async (promise) => { try { return await promise; } catch (error) { return fields(error); } };
    const AsyncFunction = Object.getPrototypeOf(async () => {}).constructor;
    const value = await caught(new AsyncFunction("env", "ctx", "caught", "box", code)(env, ctx, caught, (name) => env.BOX.getByName(name)));
    return Response.json(value ?? null);
  },
};
"""


@pytest.fixture(scope="module")
def node(atoll: Atoll) -> Atoll:
    box = {"type": "durable_object", "name": "BOX", "class_name": "Box"}
    atoll.deploy(
        "errors", SOURCE, switches={"allow_eval": True}, limits={"memory_mb": 64, "cpu_ms": 500},
        migrations=[{"tag": "v1", "new_sqlite_classes": ["Box"]}], bindings=[box, {"type": "echo", "name": "ECHO"}],
    )  # fmt: skip
    atoll.deploy(
        "errors-caller", SOURCE, switches={"allow_eval": True}, migrations=[{"tag": "v1", "new_sqlite_classes": ["Box"]}],
        bindings=[box | {"script_name": "errors"}, {"type": "echo", "name": "ECHO"}],
    )  # fmt: skip
    return atoll


@pytest.fixture
def name() -> str:
    return next(names)


def run(node: Atoll, code: str, worker: str = "errors") -> Any:
    answer = node.post(worker, "/", json.dumps({"code": code}), {"content-type": "application/json"})
    assert answer.status == 200, (answer.status, answer.text)
    return answer.json


def test_errors_of_an_object_name_it(node: Atoll, name: str) -> None:
    id = run(node, f'return box("{name}").whoami();')
    remote = {"remote": True, "durableObjectId": id}
    assert run(node, f'return box("{name}").fail();') == {"name": "RangeError", "message": "mine", "code": 7, **remote}
    failed = run(node, f'return box("{name}").fetch("http://x/");')
    assert failed == {"name": "SyntaxError", "message": "in fetch", **remote}
    reset = {"name": "Error", "durableObjectReset": True, **remote}
    assert run(node, f'return box("{name}").abort("because");') == {"message": "because", **reset}
    assert run(node, f'return ctx.exports.Middle.fail("{name}");')["durableObjectId"] == id


def test_limits_of_an_object_reset_it(node: Atoll, name: str) -> None:
    # The caller is another worker: it does not share the isolate.
    failed = run(node, f'return box("{name}").spin();', "errors-caller")
    assert failed["message"] == "Durable Object exceeded its CPU time limit and was reset."
    assert failed["durableObjectReset"] is True and failed["remote"] is True
    failed = run(node, f'return box("{name}").memory();', "errors-caller")
    assert failed["message"] in (
        "Durable Object's isolate exceeded its memory limit and was reset.", "Network connection lost.",
    )  # fmt: skip


def test_a_callback_of_a_section_runs_in_it(node: Atoll, name: str) -> None:
    code = f"""
      const stub = box("{name}");
      const [got] = await Promise.all([stub.callback(), stub.step("other"), stub.step("another")]);
      return [got, await stub.step("last")];
    """
    assert run(node, code) == [2, ["begin", "callback", "end", "other", "another", "last"]]


def test_stubs_are_used_in_a_section(node: Atoll, name: str) -> None:
    assert run(node, f'return box("{name}").answers();') == [1, 3, 5]


def test_calls_of_a_stub_wait_for_the_end_of_a_section(node: Atoll, name: str) -> None:
    code = f"""
      const stub = box("{name}");
      const late = await stub.lateStub();
      const section = stub.section(30);
      const steps = await late.f("stub");
      await section;
      return steps;
    """
    steps = run(node, code)
    assert steps in (["in", "out", "stub"], ["stub"]), "never between begin and end"


def test_a_late_reply_of_one_section_waits_for_the_next_one(node: Atoll, name: str) -> None:
    assert run(node, f'return box("{name}").lateReply();') == ["in", "out", "late"]


def test_texts_of_transactions_and_keys(node: Atoll, name: str) -> None:
    pairs = (
        "put() may only be called with a single key-value pair and optional options as put(key, value, options) or with "
        "multiple key-value pairs and optional options as put(entries, options)"
    )
    assert run(node, f'return box("{name}").transactions();') == [
        "Error: Cannot call put() on transaction that has already committed: did you move `txn` outside of the closure?",
        "Error: Cannot put() on rolled back transaction",
        "Error: Cannot call deleteAll() within a transaction",
        "TypeError: put() called with undefined value.",
        f"TypeError: {pairs}",
        "TypeError: list() cannot be called with both start and startAfter values.",
        "TypeError: List limit must be positive.",
        "TypeError: Your Durable Object class must have an alarm() handler in order to call setAlarm()",
    ]
    assert run(node, f'return box("{name}").options();') == [1, True]


def test_a_deferred_constraint_that_does_not_hold_resets_the_object(node: Atoll, name: str) -> None:
    failed = run(node, f'return box("{name}").deferred();')
    assert failed["message"] == (
        "Durable Object was reset and rolled back to its last known good state because the application left the database "
        "in a state where constraints were violated: FOREIGN KEY constraint failed: SQLITE_CONSTRAINT"
    )
    assert failed["durableObjectReset"] is True


def test_a_stub_takes_properties_of_its_own(node: Atoll, name: str) -> None:
    code = f"""
      const stub = box("{name}");
      const before = Object.keys(stub);
      stub.mine = () => "called";
      return [before, Object.keys(stub), stub.mine(), typeof stub.fetch, await stub.step("x")];
    """
    assert run(node, code) == [["id", "name"], ["id", "name", "mine"], "called", "function", ["x"]]
