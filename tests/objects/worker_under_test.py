"""The worker that the tests of Durable Objects deploy, and how they call it."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from tests.running import Answer, Atoll

MIGRATIONS = [{"tag": "v1", "new_sqlite_classes": ["Counter"], "new_classes": ["Plain"]}]
BINDINGS = [
    {"type": "durable_object", "name": "COUNTER", "class_name": "Counter"},
    {"type": "durable_object", "name": "PLAIN", "class_name": "Plain"},
]

SOURCE = """
import { DurableObject } from "cloudflare:workers";

const VERSION = 1;

export class Counter extends DurableObject {
  constructor(ctx, env) {
    super(ctx, env);
    this.memory = 0;
    this.steps = [];
    ctx.blockConcurrencyWhile(async () => {
      const wants = await ctx.storage.get("throw in constructor");
      if (wants) throw new RangeError("constructor threw");
      this.loads = 1;
    });
  }
  fetch(request) {
    return new Response(`${request.method} ${new URL(request.url).pathname} ${this.ctx.id.name}`, { status: 202 });
  }
  async increment(by = 1) {
    const value = ((await this.ctx.storage.get("value")) ?? 0) + by;
    await this.ctx.storage.put("value", value);
    return value;
  }
  add(id) {
    this.ctx.storage.sql.exec("CREATE TABLE IF NOT EXISTS seen (id TEXT)");
    this.ctx.storage.sql.exec("INSERT INTO seen VALUES (?)", id);
    return this.ctx.storage.sql.exec("SELECT count(*) AS n FROM seen").one().n;
  }
  ids() { return this.ctx.storage.sql.exec("SELECT id FROM seen").toArray().map((row) => row.id); }
  value() { return this.ctx.storage.get("value"); }
  remember(value) { this.memory = value; return this.memory; }
  recall() { return this.memory; }
  version() { return VERSION; }
  bookmark() { return this.ctx.storage.getCurrentBookmark(); }
  bookmarkAt(time) { return this.ctx.storage.getBookmarkForTime(time); }
  onNextStart(bookmark) { return this.ctx.storage.onNextSessionRestoreBookmark(bookmark); }
  put(key, value) { return this.ctx.storage.put(key, value); }
  list() { return this.ctx.storage.list(); }
  fail() { throw new RangeError("out of range"); }
  name() { return this.ctx.id.name; }

  async step(name) {
    this.steps.push(`${name} begins`);
    await this.env.ECHO.say({});
    this.steps.push(`${name} ends`);
    return this.steps;
  }
  async section(name) {
    await this.ctx.blockConcurrencyWhile(() => this.step(name));
    return this.steps;
  }
  brokenSection() { return this.ctx.blockConcurrencyWhile(async () => { throw new TypeError("section threw"); }); }
  nest(depth) { return depth === 0 ? 0 : this.ctx.blockConcurrencyWhile(() => this.nest(depth - 1)); }
  async rolledBack() {
    await this.ctx.storage.put("kept", 1);
    try {
      await this.ctx.storage.transaction(async (txn) => { await txn.put("lost", 1); throw new Error("undo"); });
    } catch (error) {
      return [error.message, [...(await this.ctx.storage.list()).keys()]];
    }
  }
  async abort(reason) { await this.ctx.storage.put("value", -1); this.ctx.abort(reason); }

  async alarmIn(ms, fails = 0) {
    this.ctx.storage.kv.put("fails", fails);
    await this.ctx.storage.setAlarm(Date.now() + ms);
    return this.ctx.storage.getAlarm();
  }
  async alarm(info) {
    const runs = this.ctx.storage.kv.get("runs") ?? [];
    const during = await this.ctx.storage.getAlarm();
    const fails = this.ctx.storage.kv.get("fails");
    this.ctx.storage.kv.put("runs", [...runs, { retry: info.isRetry, count: info.retryCount, during }]);
    if (runs.length < fails) throw new Error("alarm failed");
  }
  async alarms() { return [this.ctx.storage.kv.get("runs") ?? [], await this.ctx.storage.getAlarm()]; }
}

export class Plain {
  constructor(ctx) { this.ctx = ctx; }
  async fetch() {
    const n = ((await this.ctx.storage.get("n")) ?? 0) + 1;
    this.ctx.storage.put("n", n);
    let sql = "";
    try { this.ctx.storage.sql; } catch (error) { sql = error.message; }
    return Response.json({ n, sql });
  }
  method() {}
}

const flags = ({ name, message, remote, retryable, overloaded, durableObjectReset }) =>
  ({ error: name, message, remote, retryable, overloaded, reset: durableObjectReset });

export default {
  async fetch(request, env) {
    const { code } = await request.json();
    try {
      const AsyncFunction = Object.getPrototypeOf(async () => {}).constructor;
      const value = await new AsyncFunction("env", "counter", code)(env, (name) => env.COUNTER.getByName(name));
      return Response.json({ value: value instanceof Map ? [...value] : value === undefined ? null : value });
    } catch (error) {
      return Response.json(flags(error));
    }
  },
};
"""


def deploy(node: Atoll, name: str, source: str = SOURCE, **fields: Any) -> None:
    # The tests send code; `echo` is a binding whose reply takes a turn.
    bindings = [*BINDINGS, {"type": "echo", "name": "ECHO"}]
    wanted = {"bindings": bindings, "migrations": MIGRATIONS, "switches": {"allow_eval": True}, **fields}
    node.deploy(name, source, **wanted)


def ask(node: Atoll, name: str, code: str) -> Answer:
    return node.post(name, "/", json.dumps({"code": code}), {"content-type": "application/json"})


def run(node: Atoll, name: str, code: str) -> Any:
    """The value of the code in the worker, which has `env` and `counter(name)`. An exception is its fields."""
    answer = ask(node, name, code)
    assert answer.status == 200, (answer.status, answer.text, quote(code))
    found = answer.json
    return found.get("value", found)
