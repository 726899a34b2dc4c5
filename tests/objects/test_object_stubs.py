"""Stubs of objects and entry points that travel over RPC, and ctx.exports with classes of objects."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest

from tests.running import Atoll

names = (f"room-{number}" for number in itertools.count())

GUEST = """
import { DurableObject, WorkerEntrypoint } from "cloudflare:workers";
let kept = null;
export default class extends WorkerEntrypoint {
  async fetch() { return Response.json(await kept?.say("kept")); }
  async use(stub, text) { return [await stub.say(text), await (await stub.fetch("http://room/path")).text()]; }
  keep(stub) { kept = stub; }
  back(stub) { return stub; }
  nested(value) { return { list: [value.deep.stub], again: value.deep.stub, plain: 1 }; }
  async kind(stub) { return [typeof stub, Object.prototype.toString.call(stub), stub.constructor.name, typeof stub.id]; }
  async forge(stub, text) { return stub.say(text); }
  get shelf() { return { kept }; }
}
export class Box extends DurableObject {
  async use(stub, text) { return stub.say(text); }
  async keep(stub) { this.stub = stub; }
  async useKept(text) { return this.stub.say(text); }
}
"""
OWNER = """
import { DurableObject, WorkerEntrypoint } from "cloudflare:workers";
export class Room extends DurableObject {
  async say(text) { const n = (this.n ?? 0) + 1; this.n = n; return `${this.ctx.id.name} ${n} ${text}`; }
  fetch(request) { return new Response(`${this.ctx.id.name} ${new URL(request.url).pathname}`); }
  async visit(guest, other) { return guest.use(this.env.ROOM.getByName(other), "from an object"); }
  async neighbour(name) { return this.ctx.exports.Room.getByName(name).say("by exports"); }
  async named() { return [Object.keys(this.ctx.exports).sort(), await this.ctx.exports.Desk({ props: { from: this.ctx.id.name } }).say("desk"), this.ctx.props]; }
  async fails() { throw new RangeError("not here"); }
}
export class Desk extends WorkerEntrypoint {
  say(text) { return `desk ${JSON.stringify(this.ctx.props)} ${text}`; }
  fetch(request) { return new Response(`desk ${JSON.stringify(this.ctx.props)} ${new URL(request.url).pathname}`); }
}
export class Lobby extends WorkerEntrypoint {
  room(name) { return this.env.ROOM.getByName(name); }
  async lateRoom(name) { await scheduler.wait(5); return { room: this.env.ROOM.getByName(name), f: () => 1 }; }
  get guest() { return this.env.GUEST; }
}
export default {
  async fetch(request, env, ctx) {
    const { code } = await request.json();
    const thrown = async (promise) => { try { return await promise; } catch (error) { return [error.name, error.message, error.remote]; } };
    try {
      const AsyncFunction = Object.getPrototypeOf(async () => {}).constructor;
      return Response.json((await new AsyncFunction("env", "ctx", "thrown", "room", code)(env, ctx, thrown, (name) => env.ROOM.getByName(name))) ?? null);
    } catch (error) {
      return Response.json({ error: error.name, message: error.message });
    }
  },
};
"""


@pytest.fixture(scope="module")
def node(atoll: Atoll) -> Atoll:
    atoll.deploy(
        "guest", GUEST, bindings=[{"type": "durable_object", "name": "BOX", "class_name": "Box"}],
        migrations=[{"tag": "v1", "new_sqlite_classes": ["Box"]}],
    )  # fmt: skip
    service = {"type": "service", "service": "guest"}
    atoll.deploy(
        "owner", OWNER, switches={"allow_eval": True}, migrations=[{"tag": "v1", "new_sqlite_classes": ["Room"]}],
        bindings=[
            {"type": "durable_object", "name": "ROOM", "class_name": "Room"},
            {"type": "durable_object", "name": "BOX", "class_name": "Box", "script_name": "guest"},
            service | {"name": "GUEST"},
            {"type": "service", "name": "LOBBY", "service": "owner", "entrypoint": "Lobby"},
            {"type": "service", "name": "DESK", "service": "owner", "entrypoint": "Desk", "props": {"secret": 1}},
        ],
    )  # fmt: skip
    return atoll


def run(node: Atoll, code: str) -> Any:
    answer = node.post("owner", "/", json.dumps({"code": code}), {"content-type": "application/json"})
    assert answer.status == 200, (answer.status, answer.text)
    return answer.json


def test_a_stub_of_an_object_works_in_a_worker_without_the_binding(node: Atoll) -> None:
    name = next(names)
    assert run(node, f'return env.GUEST.use(room("{name}"), "hi");') == [f"{name} 1 hi", f"{name} /path"]
    by_id = (
        f'return env.GUEST.use(env.ROOM.get(env.ROOM.idFromString(env.ROOM.idFromName("{name}").toString())), "again");'
    )
    assert run(node, by_id)[0] == f"{name} 2 again"


def test_stubs_of_service_bindings_and_own_exports_keep_their_props(node: Atoll) -> None:
    assert run(node, 'return env.GUEST.use(env.DESK, "hi");') == ['desk {"secret":1} hi', 'desk {"secret":1} /path']
    code = 'return env.GUEST.use(ctx.exports.Desk({ props: { a: [1] } }), "hi");'
    assert run(node, code) == ['desk {"a":[1]} hi', 'desk {"a":[1]} /path']
    assert run(node, 'return env.GUEST.use(ctx.exports.Desk, "hi");') == ["desk {} hi", "desk {} /path"]


def test_a_stub_arrives_as_a_plain_fetcher(node: Atoll) -> None:
    code = 'return [await env.GUEST.kind(room("x")), await env.GUEST.kind(env.DESK)];'
    assert run(node, code) == [["object", "[object Fetcher]", "Fetcher", "function"]] * 2


def test_a_stub_outlives_the_call_that_it_came_with(node: Atoll) -> None:
    name = next(names)
    assert run(node, f'await env.GUEST.keep(room("{name}")); return 1;') == 1
    assert node.get("guest").json == f"{name} 1 kept"
    assert node.get("guest").json == f"{name} 2 kept"


def test_stubs_come_back_in_results_and_deep_in_values(node: Atoll) -> None:
    name = next(names)
    code = f"""
      const stub = room("{name}");
      const back = await env.GUEST.back(stub);
      const deep = await env.GUEST.nested({{ deep: {{ stub }} }});
      return [await back.say(1), await deep.list[0].say(2), await deep.again.say(3), deep.plain, await (await back.fetch("http://x/p")).text(),
        await env.GUEST.use(back, "twice")];
    """
    assert run(node, code) == [
        f"{name} 1 1", f"{name} 2 2", f"{name} 3 3", 1, f"{name} /p", [f"{name} 4 twice", f"{name} /path"],
    ]  # fmt: skip


def test_calls_are_pipelined_through_a_stub_that_is_on_its_way(node: Atoll) -> None:
    name = next(names)
    code = f"""
      return [await env.LOBBY.room("{name}").say(1), await env.LOBBY.lateRoom("{name}").room.say(2),
        await (await env.LOBBY.room("{name}").fetch("http://x/p")).text(), await thrown(env.LOBBY.room("{name}").nothing()),
        await env.LOBBY.guest.use(room("{name}"), 3), await thrown(env.LOBBY.room("{name}").fails())];
    """
    assert run(node, code) == [
        f"{name} 1 1", f"{name} 2 2", f"{name} /p",
        ["TypeError", 'The RPC receiver does not implement the method "nothing".', True],
        [f"{name} 3 3", f"{name} /path"], ["RangeError", "not here", True],
    ]  # fmt: skip


def test_objects_send_and_receive_stubs(node: Atoll) -> None:
    name, other = next(names), next(names)
    assert run(node, f'return room("{name}").visit(env.GUEST, "{other}");') == [
        f"{other} 1 from an object", f"{other} /path",
    ]  # fmt: skip
    code = f"""
      const box = env.BOX.getByName("{name}");
      await box.keep(room("{other}"));
      return [await box.use(env.DESK, "in a box"), await box.useKept("kept")];
    """
    assert run(node, code) == ['desk {"secret":1} in a box', f"{other} 2 kept"]


def test_ctx_exports_has_namespaces_of_own_classes(node: Atoll) -> None:
    name = next(names)
    code = f"""
      const {{ Room }} = ctx.exports;
      const id = Room.idFromName("{name}");
      const stub = Room.get(id);
      return [id.equals(env.ROOM.idFromName("{name}")), await stub.say(1), await env.ROOM.get(id).say(2), stub.name,
        await (await Room.getByName("{name}").fetch("http://x/p")).text(), await env.GUEST.use(stub, 3),
        Object.prototype.toString.call(Room), await Room.getByName("{name}").neighbour("{name}b")];
    """
    assert run(node, code) == [
        True, f"{name} 1 1", f"{name} 2 2", name, f"{name} /p", [f"{name} 3 3", f"{name} /path"],
        "[object DurableObjectNamespace]", f"{name}b 1 by exports",
    ]  # fmt: skip


def test_ctx_exports_is_there_inside_objects(node: Atoll) -> None:
    name = next(names)
    assert run(node, f'return room("{name}").named();') == [
        ["Desk", "Lobby", "Room", "default"], f'desk {{"from":"{name}"}} desk', {},
    ]  # fmt: skip


def test_a_stub_is_no_value_outside_rpc(node: Atoll) -> None:
    code = 'return [await thrown((async () => structuredClone(room("x")))()), await thrown((async () => structuredClone({ a: env.DESK }))())];'
    found = run(node, code)
    assert [each[0] for each in found] == ["DataCloneError"] * 2
