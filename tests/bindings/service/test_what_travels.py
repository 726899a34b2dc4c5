"""What travels through a service binding, as at Cloudflare: `cf`, how long a body is, and errors with their properties."""

from __future__ import annotations

from typing import Any

import pytest

from tests.running import Atoll

SCRIPT = """
import { DurableObject, WorkerEntrypoint } from "cloudflare:workers";
const told = async (request) => Response.json({
  cf: request.cf ?? null,
  length: request.headers.get("content-length"),
  coding: request.headers.get("transfer-encoding"),
  hidden: [...request.headers.keys()].filter((name) => name.startsWith("cf-atoll")),
  body: await request.text(),
});
const stream = (extra) => new ReadableStream({
  ...extra,
  start(controller) { controller.enqueue(new TextEncoder().encode("abcd")); controller.close(); },
});
const cf = { colo: "X", text: "\\u00e9\\u2028\\n", list: [1] };
class Odd extends Error { name = "Odd"; code = 5; }
export class Errors extends WorkerEntrypoint {
  give() { return [Object.assign(new RangeError("r", { cause: "c" }), { extra: { a: 1 } }), new Odd("o"), new TypeError("t")]; }
  take(error) { return [error.name, error.message, error.code, error instanceof Error]; }
  text() { throw "as it is"; }
}
export class Box extends DurableObject { fetch(request) { return told(request); } }
export default {
  async fetch(request, env, ctx) {
    const { pathname } = new URL(request.url);
    const send = (path, init = undefined) => env.SELF.fetch("http://self" + path, init);
    const post = (body, more = {}) => send("/told", { method: "POST", body, ...more });
    if (pathname === "/told") return told(request);
    if (pathname === "/hop") return env.SELF.fetch("http://self/told", request);
    if (pathname === "/made") return env.SELF.fetch(new Request("http://self/told", new Request(request)));
    if (pathname === "/plain") return send("/told", { cf });
    if (pathname === "/through") return send("/hop", { cf });
    if (pathname === "/through-made") return send("/made", { cf });
    if (pathname === "/object") return env.BOX.getByName("a").fetch("http://box/", { cf });
    if (pathname === "/forged") return send("/told", { headers: { "cf-atoll-cf": '{"colo":"forged"}' } });
    if (pathname === "/streamed") return post(stream(), { cf });
    if (pathname === "/expected") return post(stream({ expectedLength: 4 }));
    if (pathname === "/expected-transform") {
      const { readable, writable } = new TransformStream({ expectedLength: 4 });
      stream().pipeTo(writable);
      return post(readable);
    }
    if (pathname === "/errors") {
      const stub = ctx.exports.Errors;
      const [range, odd, type] = await stub.give();
      const message = await stub.text().catch((error) => error.message);
      return Response.json({
        range: [range.name, range.message, range.cause, range.extra, range instanceof RangeError],
        odd: [odd.name, odd.message, odd.code],
        type: [type.name, type.message, type instanceof TypeError, Object.keys(type)],
        taken: await stub.take(new Odd("back")),
        message,
      });
    }
    if (pathname === "/answer") return new Response(stream({ expectedLength: 4n }));
    try {
      return await send("/told", { cf: { text: "x".repeat(20_000) } });
    } catch (error) {
      return Response.json(`${error}`);
    }
  },
};
"""
CF = {"colo": "X", "text": "é\u2028\n", "list": [1]}


@pytest.fixture(scope="module")
def worker(atoll: Atoll) -> Any:
    bindings = [{"type": "service", "name": "SELF", "service": "travels"}]
    objects = [{"type": "durable_object", "name": "BOX", "class_name": "Box"}]
    migrations = [{"tag": "v1", "new_sqlite_classes": ["Box"]}]
    modules = {"main.js": SCRIPT}
    atoll.deploy("travels", main="main.js", modules=modules, bindings=objects, migrations=migrations)
    atoll.deploy("travels", main="main.js", modules=modules, bindings=objects + bindings, migrations=migrations)
    return lambda path: atoll.get("travels", path)


@pytest.mark.parametrize("path", ["/plain", "/through", "/through-made", "/object", "/streamed"])
def test_cf_reaches_the_worker_that_is_called(worker: Any, path: str) -> None:
    answer = worker(path).json
    assert answer["cf"] == CF
    assert answer["hidden"] == []


def test_cf_of_a_client_is_that_of_the_node(worker: Any, atoll: Atoll) -> None:
    forged = {"cf-atoll-cf": '{"colo":"forged"}'}
    answer = atoll.request("GET", atoll.host("travels"), "/told", headers=forged).json
    assert answer["cf"]["colo"] == "ATL"
    assert worker("/forged").json["cf"]["colo"] == "ATL"


def test_a_cf_that_is_too_long_is_refused(worker: Any) -> None:
    assert "longer than 16384 characters" in worker("/long").json


def test_a_body_of_unknown_length_is_chunked(worker: Any) -> None:
    answer = worker("/streamed").json
    assert (answer["length"], answer["coding"], answer["body"]) == (None, "chunked", "abcd")


@pytest.mark.parametrize("path", ["/expected", "/expected-transform"])
def test_an_expected_length_is_the_content_length(worker: Any, path: str) -> None:
    answer = worker(path).json
    assert (answer["length"], answer["coding"], answer["body"]) == ("4", None, "abcd")


def test_an_expected_length_is_that_of_the_answer(worker: Any) -> None:
    answer = worker("/answer")
    assert (answer.headers["content-length"], answer.text) == ("4", "abcd")


def test_errors_in_values_keep_their_properties(worker: Any) -> None:
    assert worker("/errors").json == {
        "range": ["RangeError", "r", "c", {"a": 1}, True],
        "odd": ["Odd", "o", 5],
        "type": ["TypeError", "t", True, []],
        "taken": ["Odd", "back", 5, True],
        "message": "as it is",
    }
