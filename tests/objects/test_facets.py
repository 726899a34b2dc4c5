"""Facets: child objects within an object, with databases of their own."""

from __future__ import annotations

import itertools
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.running import Atoll

names = (f"object-{number}" for number in itertools.count())

SOURCE = """
import { DurableObject, WorkerEntrypoint } from "cloudflare:workers";
const thrown = async (run) => { try { return await run(); } catch (error) { return `${error.name}: ${error.message}`; } };
export class Outer extends DurableObject {
  starts = [];
  child(name, props = { p: 1 }) {
    return this.ctx.facets.get(name, async () => { this.starts.push(name); return { class: this.ctx.exports.Child({ props }) }; });
  }
  async count(name, by) { return this.child(name).count(by); }
  async own() { const n = ((await this.ctx.storage.get("n")) ?? 0) + 1; await this.ctx.storage.put("n", n); return n; }
  async started() { return this.starts; }
  async about(name) { return this.child(name).about(); }
  async text(name) { return (await this.child(name).fetch("http://facet/path", { method: "POST", body: "x" })).text(); }
  async withId(name) {
    const { facets, exports } = this.ctx;
    return [await facets.get(name, () => ({ class: exports.Child, id: "chosen" })).about(),
      await facets.get(`${name}2`, () => ({ class: exports.Child, id: exports.Outer.idFromName("x") })).about()];
  }
  async stop(name) {
    const stub = this.child(name);
    await stub.remember(5);
    const waiting = thrown(() => stub.wait());
    await stub.count(0);
    this.ctx.facets.abort(name, new Error("stopped"));
    return [await waiting, await thrown(() => stub.recall()), await this.child(name).recall(), await this.child(name).count(0), this.starts];
  }
  async erase(name) {
    const stub = this.child(name);
    await stub.count(5);
    await stub.nest(1);
    this.ctx.facets.delete(name);
    return [await thrown(() => stub.count(0)), await this.child(name).count(1)];
  }
  async broken(name) {
    return [await thrown(() => this.child(name).crash()), await this.child(name).recall(), await this.child(name).count(0)];
  }
  async errors(name) {
    const { facets, exports } = this.ctx;
    const sync = (run) => { try { return run(); } catch (error) { return `${error.name}: ${error.message}`; } };
    return [
      sync(() => facets.get("x".repeat(257), () => ({}))), sync(() => facets.get("x")), await thrown(() => facets.get("bad", () => ({ class: Child })).count(1)),
      await thrown(() => facets.get("bad2", () => { throw new RangeError("no class"); }).count(1)), await thrown(() => this.child(name).setsAlarm()),
      await thrown(() => this.child(name).nest(3)), await thrown(() => exports.Echo.echo(this.child(name))), await thrown(() => this.child(name).nothing()),
      await thrown(() => this.child(name).fails()), sync(() => facets.clone("a", "a")), sync(() => facets.clone("a")), sync(() => facets.clone("a", "")),
    ];
  }
  async cloned(from, to) {
    const old = this.child(to);
    await old.count(50);
    await this.child(from).count(5);
    await this.child(from).nest(1);
    this.ctx.facets.clone(from, to);
    const later = await this.child(from).count(1);
    return [later, await this.child(to).count(0), await this.child(to).nest(1), await thrown(() => old.count(1)), this.starts];
  }
  emptied(from, to) { this.ctx.facets.clone(from, to); return this.child(to).count(1); }
  async ordered() {
    const { facets } = this.ctx;
    await this.child("a").count(5);
    facets.clone("a", "b");
    facets.clone("b", "c");
    facets.delete("b");
    facets.delete("a");
    facets.clone("b", "d");
    return [await this.child("c").count(0), await this.child("d").count(1), await this.child("a").count(1)];
  }
  async failed(from, to) {
    this.ctx.facets.clone(from, to);
    const first = await thrown(() => this.child(to).count(1));
    const second = await thrown(() => this.child(to).count(1));
    this.ctx.facets.delete(to);
    return [first, second, await this.child(to).count(1)];
  }
  reset() { this.ctx.abort("reset"); }
  whoami() { return this.ctx.id.toString(); }
}
export class Child extends DurableObject {
  memory = 0;
  async count(by) { const n = ((await this.ctx.storage.get("n")) ?? 0) + by; await this.ctx.storage.put("n", n); return n; }
  about() { return [this.ctx.id.toString(), this.ctx.id.name ?? null, this.ctx.props, Object.keys(this.env)]; }
  async fetch(request) { return new Response(`${request.method} ${new URL(request.url).pathname} ${await request.text()}`); }
  remember(value) { this.memory = value; }
  recall() { return this.memory; }
  wait() { return new Promise((resolve) => setTimeout(resolve, 20_000)); }
  crash() { this.memory = 7; this.ctx.abort("crashed"); }
  fails() { throw new SyntaxError("in the facet"); }
  async alarm() {}
  async setsAlarm() { await this.ctx.storage.setAlarm(Date.now() + 1000); }
  nest(depth) { return depth === 0 ? this.count(100) : this.ctx.facets.get("deeper", () => ({ class: this.ctx.exports.Child })).nest(depth - 1); }
}
export class Echo extends WorkerEntrypoint { echo(value) { return value; } }
export default {
  async fetch(request, env) {
    const [name, method, ...args] = await request.json();
    try { return Response.json((await env.OUTER.getByName(name)[method](...args)) ?? null); }
    catch (error) { return Response.json({ error: error.message, reset: error.durableObjectReset }); }
  },
};
"""


def deploy(node: Atoll, source: str = SOURCE) -> None:
    node.deploy(
        "facets", source, migrations=[{"tag": "v1", "new_sqlite_classes": ["Outer"]}],
        bindings=[{"type": "durable_object", "name": "OUTER", "class_name": "Outer"}],
    )  # fmt: skip


@pytest.fixture(scope="module")
def node(atoll: Atoll) -> Atoll:
    deploy(atoll)
    return atoll


@pytest.fixture
def name() -> str:
    return next(names)


def ask(node: Atoll, *args: Any) -> Any:
    answer = node.post("facets", "/", json.dumps(args), {"content-type": "application/json"})
    assert answer.status == 200, (answer.status, answer.text)
    return answer.json


def test_a_facet_has_its_own_database_and_starts_once(node: Atoll, name: str) -> None:
    assert [ask(node, name, "count", "a", 1), ask(node, name, "count", "a", 2), ask(node, name, "count", "b", 5)] == [
        1,
        3,
        5,
    ]
    assert ask(node, name, "own") == 1
    assert ask(node, name + "-other", "count", "a", 1) == 1, "a facet of another object"
    assert ask(node, name, "started") == ["a", "b"]
    assert ask(node, name, "text", "a") == "POST /path x"


def test_a_facet_has_the_id_of_its_object_and_its_own_props(node: Atoll, name: str) -> None:
    id = ask(node, name, "whoami")
    assert ask(node, name, "about", "a") == [id, name, {"p": 1}, ["OUTER"]]
    chosen, other = ask(node, name, "withId", "b")
    assert chosen[:3] == ["chosen", None, {}] and other[1] == "x"


def test_an_aborted_facet_keeps_its_database(node: Atoll, name: str) -> None:
    ask(node, name, "count", "a", 3)
    assert ask(node, name, "stop", "a") == ["Error: stopped", "Error: stopped", 0, 3, ["a", "a"]]


def test_a_deleted_facet_is_empty_with_all_facets_within(node: Atoll, name: str) -> None:
    assert ask(node, name, "erase", "a") == ["Error: Facet was deleted.", 1]


def test_a_facet_that_breaks_starts_anew_and_its_object_goes_on(node: Atoll, name: str) -> None:
    assert ask(node, name, "broken", "a") == ["Error: crashed", 0, 0]
    assert ask(node, name, "own") == 1


def test_errors_of_facets(node: Atoll, name: str) -> None:
    found = ask(node, name, "errors", "a")
    assert found == [
        "TypeError: Facet name is too long (max 256 characters).",
        found[1],
        "TypeError: Incorrect type for the 'class' field on 'StartupOptions': the provided value is not of type 'DurableObjectClass'.",
        "RangeError: no class",
        "Error: Facets currently cannot set alarms.",
        "Error: Facet nesting depth limit exceeded. The maximum depth including the root Durable Object is 4.",
        "DataCloneError: Stubs pointing to Durable Object facets are not serializable.",
        'TypeError: The RPC receiver does not implement the method "nothing".',
        "SyntaxError: in the facet",
        "TypeError: A facet cannot be cloned onto itself.",
        found[10],
        "TypeError: Facet name cannot be empty.",
    ]
    assert found[1].startswith("TypeError") and found[10].startswith("TypeError")


def test_a_clone_has_what_a_facet_and_those_within_stored(node: Atoll, name: str) -> None:
    assert ask(node, name, "cloned", "a", "b") == [6, 5, 200, "Error: Facet was replaced by a clone.", ["b", "a", "b"]]
    assert [ask(node, name, "count", each, 1) for each in ("a", "b")] == [7, 6]


def test_a_clone_of_a_facet_that_never_was_is_empty(node: Atoll, name: str) -> None:
    ask(node, name, "count", "b", 3)
    assert ask(node, name, "emptied", "a", "b") == 1
    assert ask(node, name, "count", "a", 1) == 1


def test_clones_and_deletions_happen_in_the_order_of_their_calls(node: Atoll, name: str) -> None:
    assert ask(node, name, "ordered") == [5, 1, 1]


def test_a_facet_that_could_not_be_cloned_says_so_until_it_is_deleted(new_atoll: Callable[..., Atoll]) -> None:
    node = new_atoll()
    deploy(node)
    ask(node, "x", "count", "a", 1)
    assert ask(node, "x", "reset")["reset"]
    node.stop()
    (file,) = [
        path
        for path in (Path(node.settings["data"]) / "objects/files").rglob("*")
        if path.is_file() and path.stat().st_size
    ]
    file.write_bytes(b"x" * file.stat().st_size)
    node.start()
    first, second, after = ask(node, "x", "failed", "a", "b")
    assert "cannot be read" in first and (second, after) == (first, 1)


def test_facets_end_with_their_object_and_keep_what_they_stored(node: Atoll, name: str) -> None:
    assert ask(node, name, "count", "a", 4) == 4
    assert ask(node, name, "reset") == {"error": "reset", "reset": True}
    assert ask(node, name, "started") == []
    assert ask(node, name, "count", "a", 1) == 5


def test_facets_survive_crashes_and_are_deleted_with_their_object(new_atoll: Callable[..., Atoll]) -> None:
    node = new_atoll()
    deploy(node)
    assert ask(node, "x", "count", "a", 4) == 4
    for pid in node.engines():
        os.kill(pid, signal.SIGKILL)
    node.wait_until(lambda: ask(node, "x", "count", "a", 0) == 4, 30)
    node.stop(signal.SIGKILL)
    node.start()
    assert ask(node, "x", "count", "a", 1) == 5
    assert ask(node, "x", "own") == 1
    id = ask(node, "x", "whoami")
    listed = node.control("GET", "/api/objects/facets/Outer").json["objects"]
    assert [each["id"] for each in listed] == [id], "facets are part of their object"
    assert node.control("DELETE", f"/api/objects/facets/Outer/{id}").status == 204
    assert node.control("GET", "/api/objects").json["namespaces"][0]["objects"] == 0
    assert ask(node, "x", "count", "a", 1) == 1
