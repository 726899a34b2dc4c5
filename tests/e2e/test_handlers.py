"""How a worker's code runs: formats, modules, async, errors, logs."""

from __future__ import annotations

import base64
import threading
import time

import pytest

from tests.running import Atoll

# (module (func (export "add") (param i32 i32) (result i32) local.get 0 local.get 1 i32.add))
WASM = bytes.fromhex("0061736d0100000001070160027f7f017f030201000707010361646400000a09010700200020016a0b")


def test_service_worker_syntax_and_its_globals(atoll: Atoll) -> None:
    script = (
        'addEventListener("fetch", (event) => { event.respondWith(new Response(`${NAME} ${event.request.method}`)); });'
    )
    atoll.deploy("old-style", script, env={"NAME": "sw"})
    assert atoll.post("old-style").text == "sw POST"


def test_a_service_worker_script_may_import_modules(atoll: Atoll) -> None:
    main = """
        import { greet } from "./greet.js";
        import add from "./add.wasm";
        const sum = new WebAssembly.Instance(add).exports.add(2, 3);
        addEventListener("fetch", (event) => event.respondWith(new Response(greet(NAME) + sum)));"""
    modules = {
        "main.js": main,
        "greet.js": "export const greet = (name) => `hello ${name} `;",
        "add.wasm": {"base64": base64.b64encode(WASM).decode()},
    }
    atoll.deploy("old-style-imports", main="main.js", modules=modules, env={"NAME": "sw"})
    assert atoll.get("old-style-imports").text == "hello sw 5"


def test_modules_of_every_kind_import_each_other(atoll: Atoll) -> None:
    main = """
        import { twice } from "./lib/math.js";
        import data from "./data.json";
        import text from "./note.txt";
        import bytes from "./raw.bin";
        import wasm from "./add.wasm";
        const instance = new WebAssembly.Instance(wasm);
        const late = await import("./lib/late.js");
        export default {
          async fetch() {
            const later = await import("./lib/late.js");
            return Response.json([twice(2), data.a, text, [...new Uint8Array(bytes)], instance.exports.add(2, 3),
                                  late.name, late === later]);
          },
        };"""
    modules = {
        "main.js": main,
        "lib/math.js": 'import { factor } from "../factor.js"; export const twice = (x) => x * factor;',
        "factor.js": "export const factor = 2;",
        "lib/late.js": 'export const name = "late";',
        "data.json": '{"a": 1}',
        "note.txt": "a note",
        "raw.bin": {"base64": base64.b64encode(b"\x00\xff").decode()},
        "add.wasm": {"base64": base64.b64encode(WASM).decode()},
    }
    atoll.deploy("modules", main="main.js", modules=modules)
    assert atoll.get("modules").json == [4, 1, "a note", [0, 255], 5, "late", True]


def test_top_level_await_delays_the_first_call_only(atoll: Atoll) -> None:
    atoll.deploy(
        "tla",
        "const x = await new Promise((r) => setTimeout(r, 30, 7)); export default { fetch: () => new Response(x) };",
    )
    assert atoll.get("tla").text == "7"


def test_requests_interleave_at_await(atoll: Atoll) -> None:
    script = """
        let running = 0, most = 0;
        export default { async fetch() {
          most = Math.max(most, ++running);
          await new Promise((resolve) => setTimeout(resolve, 100));
          running--;
          return new Response(String(most));
        } };"""
    atoll.deploy("interleave", script)
    answers: list[str] = []
    threads = [threading.Thread(target=lambda: answers.append(atoll.get("interleave").text)) for _ in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert max(map(int, answers)) > 1


@pytest.mark.parametrize(
    ("name", "handler", "words"),
    [
        ("throws", 'throw new TypeError("broken");', "broken"),
        ("rejects", 'return Promise.reject(new Error("refused"));', "refused"),
        ("nothing", "", "returned nothing"),
        ("text", 'return "hi";', "a string"),
        ("plain", "return { status: 200 };", "not a Response"),
        ("getter", 'return { get then() { throw new Error("no then"); } };', "no then"),
        ("proxy", 'return new Proxy({}, { get() { throw new Error("no get"); } });', "no get"),
        ("revoked", "const { proxy, revoke } = Proxy.revocable({}, {}); revoke(); return proxy;", "revoked"),
        ("symbol", 'throw Symbol("odd");', "Symbol(odd)"),
        ("unreadable", "throw { toString() { throw 1; } };", "[object Object]"),
        ("hangs", "return new Promise(() => {});", "never"),
        ("cleared", "clearTimeout(setTimeout(() => {}, 999)); return new Promise(() => {});", "1 timer"),
        ("spins", "for (;;);", "limit 50 ms"),
    ],
)
def test_a_handler_that_fails_gives_a_clear_page_and_record(atoll: Atoll, name: str, handler: str, words: str) -> None:
    atoll.deploy(f"bad-{name}", f"export default {{ fetch() {{ {handler} }} }};")
    started = time.monotonic()
    reply = atoll.get(f"bad-{name}", headers={"Accept": "application/json"})
    assert time.monotonic() - started < 10, "the call does not wait for the limit of 30 s"
    assert reply.status in (500, 503)
    assert reply.headers["x-atoll-error"] in ("1101", "1102")
    assert "worker.js" not in reply.text, "clients do not see the stack"
    record = atoll.logs(f"bad-{name}")[0]
    assert record["outcome"] in ("exception", "exceededCpu")
    assert words in record["exception"]["message"]
    assert atoll.get(f"bad-{name}").status == reply.status, "a second call fails in the same way"


def test_an_exception_has_name_message_stack_and_position(atoll: Atoll) -> None:
    script = "export default {\n  fetch() {\n    null.x;\n  },\n};"
    atoll.deploy("position", script)
    assert atoll.get("position").status == 500
    failure = atoll.logs("position")[0]["exception"]
    assert failure["message"].startswith("Cannot read properties of null")
    assert (failure["file"], failure["line"], failure["column"]) == ("worker.js", 3, 10)
    assert "TypeError" in failure["stack"] and "atoll:" not in failure["stack"]


def test_console_lines_belong_to_their_own_request(atoll: Atoll) -> None:
    script = """
        export default { async fetch(request) {
          const id = new URL(request.url).searchParams.get("id");
          console.log("before", id, { nested: [1, 2] });
          await new Promise((resolve) => setTimeout(resolve, 20));
          console.error("after", id);
          return new Response(id);
        } };"""
    atoll.deploy("talks", script)
    threads = [threading.Thread(target=atoll.get, args=("talks", f"/?id={i}")) for i in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    records = atoll.logs("talks")
    assert len(records) == 5
    for record in records:
        number = record["url"].rpartition("=")[2]
        lines = [(line["level"], line["message"]) for line in record["logs"]]
        assert lines == [("log", f"before {number} {{ nested: [ 1, 2 ] }}"), ("error", f"after {number}")]


def test_wait_until_continues_after_the_response(atoll: Atoll) -> None:
    script = """
        let done = "no";
        export default { fetch(request, env, ctx) {
          if (request.url.endsWith("/state")) return new Response(done);
          ctx.waitUntil(new Promise((resolve) => setTimeout(resolve, 50)).then(() => { done = "yes"; console.log("finished"); }));
          return new Response("early");
        } };"""
    atoll.deploy("waits", script)
    assert atoll.get("waits").text == "early"
    assert atoll.get("waits", "/state").text == "no"
    atoll.wait_until(lambda: atoll.get("waits", "/state").text == "yes")
    first = next(record for record in atoll.logs("waits") if not record["url"].endswith("/state"))
    assert [line["message"] for line in first["logs"]] == ["finished"]


def test_async_storage_of_one_request_is_invisible_to_others(atoll: Atoll) -> None:
    script = """
        import { AsyncLocalStorage } from "node:async_hooks";
        const storage = new AsyncLocalStorage();
        const sleep = (delay) => new Promise((resolve) => setTimeout(resolve, delay));
        const deep = async () => { await sleep(10); console.log("in", storage.getStore()); return storage.getStore(); };
        export default { async fetch(request) {
          const id = new URL(request.url).searchParams.get("id");
          const before = storage.getStore() ?? "none";
          if (id === "0") { storage.enterWith("entered"); await sleep(5); return Response.json([before, storage.getStore()]); }
          return Response.json([before, await storage.run(id, deep)]);
        } };"""
    atoll.deploy("stores", script)
    answers: dict[int, object] = {}

    def ask(number: int) -> None:
        answers[number] = atoll.get("stores", f"/?id={number}").json

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {0: ["none", "entered"]} | {number: ["none", str(number)] for number in range(1, 6)}
    for record in atoll.logs("stores"):
        number = record["url"].rpartition("=")[2]
        assert [line["message"] for line in record["logs"]] == ([] if number == "0" else [f"in {number}"])


def test_the_module_cloudflare_workers(atoll: Atoll) -> None:
    script = """
        import { env, waitUntil, WorkerEntrypoint } from "cloudflare:workers";
        const early = env.NAME;
        let late = "not yet";
        let failure = "";
        try { waitUntil(Promise.resolve()); } catch (error) { failure = error.message; }
        export default class extends WorkerEntrypoint {
          async fetch(request) {
            if (request.url.endsWith("/late")) return new Response(late);
            const helper = () => waitUntil(new Promise((resolve) => setTimeout(resolve, 20)).then(() => { late = "done"; }));
            helper();
            await null;
            helper();
            return Response.json([early, this.env.NAME === env.NAME, typeof this.ctx.waitUntil, failure.includes("request")]);
          }
        }"""
    atoll.deploy("entrypoint", script, env={"NAME": "n"})
    assert atoll.get("entrypoint").json == ["n", True, "function", True]
    atoll.wait_until(lambda: atoll.get("entrypoint", "/late").text == "done")


def test_a_missing_built_in_is_named_at_deploy(atoll: Atoll) -> None:
    body = {
        "name": "no-fs",
        "script": 'import fs from "node:nowhere"; export default { fetch: () => new Response(fs) };',
    }
    answer = atoll.control("POST", "/api/workers", body)
    assert answer.status == 422
    assert 'Cannot find module \\"node:nowhere\\" imported by \\"worker.js\\"' in answer.text
    assert "Atoll has no node:nowhere" in answer.text and "node:buffer" in answer.text


@pytest.mark.parametrize(
    ("path", "source", "words"),
    [
        ("data.json", '{"a": nope}', "SyntaxError: data.json: "),
        ("add.wasm", {"base64": "bm9wZQ=="}, "CompileError: add.wasm: "),
    ],
)
def test_an_unreadable_module_is_named_at_deploy(
    atoll: Atoll, path: str, source: str | dict[str, str], words: str
) -> None:
    main = f'import it from "./{path}"; export default {{ fetch: () => new Response(it) }};'
    body = {"name": "unreadable", "main": "main.js", "modules": {"main.js": main, path: source}}
    answer = atoll.control("POST", "/api/workers", body)
    assert answer.status == 422
    assert answer.json["error"]["message"].startswith(words)


def test_a_module_url_of_another_server_is_refused_with_a_clear_error(atoll: Atoll) -> None:
    script = 'import x from "https://example.com/x.js"; export default { fetch: () => new Response(x) };'
    answer = atoll.control("POST", "/api/workers", {"name": "remote", "script": script})
    assert answer.status == 422
    assert answer.json["error"]["message"].endswith("put it into `modules`, or bundle it")


def test_no_module_may_have_the_name_of_a_built_in(atoll: Atoll) -> None:
    modules = {"main.js": "export default { fetch() {} };", "events": "export default 'mine';"}
    answer = atoll.control("POST", "/api/workers", {"name": "own-events", "main": "main.js", "modules": modules})
    assert answer.status == 400
    assert "has no known extension" in answer.text


def test_variables_are_globals_of_a_script_from_its_first_line(atoll: Atoll) -> None:
    script = "const greeting = `hi ${NAME}`; addEventListener('fetch', (e) => e.respondWith(new Response(greeting)));"
    atoll.deploy("script-vars", script, env={"NAME": "you"})
    assert atoll.get("script-vars").text == "hi you"


def test_node_globals_follow_the_compatibility_date(atoll: Atoll) -> None:
    script = "export default { fetch: () => Response.json([typeof process, typeof Buffer, typeof global]) };"
    atoll.deploy("old-date", script, compatibility_date="2026-08-03")
    atoll.deploy("new-date", script, compatibility_date="2026-08-04")
    assert atoll.get("old-date").json == ["undefined"] * 3
    assert atoll.get("new-date").json == ["object", "function", "object"]


def test_a_killed_loop_does_not_stop_its_neighbours(atoll: Atoll) -> None:
    atoll.deploy("spinner", "export default { fetch() { for (;;); } }", limits={"cpu_ms": 300})
    atoll.deploy("calm", 'export default { fetch() { return new Response("ok"); } }')
    atoll.get("calm")
    spinners = [threading.Thread(target=atoll.get, args=("spinner",)) for _ in range(2)]
    for thread in spinners:
        thread.start()
    for _ in range(20):
        assert atoll.get("calm").text == "ok"
    for thread in spinners:
        thread.join()


def test_a_memory_bomb_ends_its_own_isolate(atoll: Atoll) -> None:
    script = """
        let kept = [];
        export default { fetch(request) {
          if (request.url.endsWith("/bomb")) for (;;) kept.push(new Array(10000).fill(kept.length));
          return new Response("fresh " + kept.length);
        } };"""
    atoll.deploy("bomb", script, limits={"cpu_ms": 20000, "memory_mb": 64})
    reply = atoll.get("bomb", "/bomb", {"Accept": "application/json"})
    assert reply.status == 503 and "memory" in reply.text
    assert atoll.get("bomb").text == "fresh 0"
    assert atoll.logs("bomb")[1]["outcome"] == "exceededMemory"


def test_forbidden_globals_are_absent(atoll: Atoll) -> None:
    names = [
        "process",
        "require",
        "global",
        "Buffer",
        "SharedArrayBuffer",
        "native",
        "Deno",
        "Bun",
        "__dirname",
        "module",
    ]
    script = f"""
        const tries = [() => eval("1"), () => new Function("return 1")(), () => new WebAssembly.Module(new Uint8Array({list(WASM)}))];
        export default {{ fetch() {{
          const there = {names!r}.filter((name) => name in globalThis);
          const ran = tries.filter((t) => {{ try {{ t(); return true; }} catch {{ return false; }} }}).length;
          return Response.json([there, ran]);
        }} }};"""
    atoll.deploy("nothing-there", script, compatibility_date="2026-08-03")  # later dates include Node's globals
    assert atoll.get("nothing-there").json == [[], 0]
