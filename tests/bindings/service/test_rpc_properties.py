"""Properties over a service binding: of a pending result, and of the entry point itself."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
import pytest_asyncio

from atoll.bindings.service.target import ServiceTarget
from atoll.workers import Grant, Limits
from tests.engine.conftest import open_room, snapshots
from tests.engine.engine_room import EngineRoom, script

__all__ = ["open_room", "snapshots"]

API = """
import { WorkerEntrypoint } from "cloudflare:workers";
let calls = 0;
export default class extends WorkerEntrypoint {
  own = "an instance's";
  obj() {
    calls++;
    return { inner: { deep: [1, { x: "found" }] }, name: "n", length: 7, then2: 1, nothing: null, missing: undefined };
  }
  async later() { return { inner: 5 }; }
  list() { return [10, 20]; }
  number() { return 5; }
  nothing() { return null; }
  fail() { throw new RangeError("out of range"); }
  give() { return () => 1; }
  giveInside() { return { method: () => 1 }; }
  count() { return calls; }
  get version() { return { major: 3, list: [1] }; }
  get broken() { throw new RangeError("no version"); }
}
"""

CASES = [
    (
        "await env.API.obj()",
        {"inner": {"deep": [1, {"x": "found"}]}, "name": "n", "length": 7, "then2": 1, "nothing": None},
    ),
    ("await env.API.obj().inner", {"deep": [1, {"x": "found"}]}),
    ("await env.API.obj().inner.deep", [1, {"x": "found"}]),
    ("await env.API.obj().inner.deep[1].x", "found"),
    ("await env.API.obj().inner.deep.length", 2),
    ("await env.API.obj().name", "n"),
    ("await env.API.obj().length", 7),
    ("await env.API.obj().nothing", None),
    ("await env.API.later().inner", 5),
    ("await env.API.list()[1]", 20),
    ("await Promise.all([env.API.number(), env.API.list()[0], env.API.obj().name])", [5, 10, "n"]),
    ("await env.API.obj().inner.then((inner) => inner.deep[0])", 1),
    ("await env.API.number().then((n) => n + 1).catch(() => 0).finally(() => {})", 6),
    ("typeof env.API.number()", "function"),
    ("JSON.stringify({ promise: env.API.number() })", "{}"),
    ("await env.API.giveInside().method()", 1),
    ("await (await env.API.give())()", 1),
    ("await (await env.API.number)()", 5),
    ("[typeof env.API.number, typeof env.API.number().x]", ["function", "function"]),
    ("await env.API.number.call(null)", 5),
    ("await env.API.version", {"major": 3, "list": [1]}),
    ("await env.API.version.major", 3),
    ("await env.API.version.list[0]", 1),
]
REFUSED = [
    ("await env.API.obj().other", "TypeError", 'The RPC receiver does not implement the method "other".'),
    ("await env.API.obj().other.more", "TypeError", 'The RPC receiver does not implement the method "other".'),
    ("await env.API.obj().inner()", "TypeError", '"inner" is not a function.'),
    ("await env.API.obj().inner.deep()", "TypeError", '"inner.deep" is not a function.'),
    ("await env.API.obj().other()", "TypeError", 'The RPC receiver does not implement the method "other".'),
    ("await env.API.number().x", "TypeError", "Can't pipeline on RPC that did not return an object."),
    ("await env.API.nothing().x", "TypeError", "Can't pipeline on RPC that did not return an object."),
    ("await env.API.fail().x", "RangeError", "out of range"),
    ("await env.API.fail().x.y()", "RangeError", "out of range"),
    ("await env.API.own", "TypeError", 'The RPC receiver does not implement the method "own".'),
    ("await env.API.nowhere", "TypeError", 'The RPC receiver does not implement the method "nowhere".'),
    ("await env.API.nowhere()", "TypeError", 'The RPC receiver does not implement the method "nowhere".'),
    ("await env.API.broken", "RangeError", "no version"),
    ("await env.API.version()", "TypeError", '"version" is not a function.'),
    ("await env.API.connect()", "TypeError", "'connect' is a reserved method and cannot be called over RPC."),
]


@pytest_asyncio.fixture(params=["over Python", "inside the engine"])
async def room(open_room: Callable[..., Any], request: pytest.FixtureRequest) -> AsyncIterator[EngineRoom]:
    room = await open_room()
    room.stays_inside = request.param == "inside the engine"
    room.workers["api"] = script(API, name="api", limits=Limits(cpu_ms=300))
    yield room


async def ask(room: EngineRoom, code: str) -> Any:
    source = f"""export default {{ async fetch(request, env) {{
      try {{ return Response.json({{ value: {code} }}); }}
      catch (error) {{ return Response.json({{ error: [error.name, error.message] }}); }}
    }} }};"""
    grants = {"API": Grant("API", "service", ServiceTarget(service="api").encode())}
    ear = await room.get(script(source, name="caller", grants=grants, limits=Limits(cpu_ms=5000)))
    return json.loads(ear.body)


@pytest.mark.parametrize(("code", "expected"), CASES, ids=[code for code, _ in CASES])
async def test_a_property_of_a_pending_result_can_be_awaited(room: EngineRoom, code: str, expected: object) -> None:
    assert await ask(room, code) == {"value": expected}


@pytest.mark.parametrize(("code", "name", "message"), REFUSED, ids=[code for code, _, _ in REFUSED])
async def test_a_missing_property_is_an_error_and_never_undefined(
    room: EngineRoom, code: str, name: str, message: str | None
) -> None:
    found = await ask(room, code)
    assert found["error"][0] == name and (message is None or found["error"][1] == message), found


async def test_a_call_is_made_once_for_any_number_of_properties(room: EngineRoom) -> None:
    code = "await (async (result) => [await result.name, await result.length, await env.API.count()])(env.API.obj())"
    assert await ask(room, code) == {"value": ["n", 7, 1]}
