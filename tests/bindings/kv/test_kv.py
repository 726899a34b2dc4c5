# ruff: noqa: E501 (workers as strings read best on one line)
"""KV as a worker sees it, in a real engine: the whole API, its limits and its messages."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.running import Atoll

# Runs the body of each request as the body of an async function of (env, KV, request).
RUNNER = """
export default {
  async fetch(request, env) {
    const test = TESTS[new URL(request.url).pathname.slice(1)];
    try {
      return Response.json({ value: (await test(env.KV, request, env)) ?? null });
    } catch (error) {
      return Response.json({ error: `${error.name}: ${error.message}` });
    }
  },
};
"""


def deploy(atoll: Atoll, name: str, tests: dict[str, str], **fields: Any) -> Callable[..., Any]:
    """Deploys a worker with some tests; returns a function that runs one of them."""
    table = ",\n".join(f"{json.dumps(key)}: async (KV, request, env) => {{ {code} }}" for key, code in tests.items())
    bindings = [{"type": "kv", "name": "KV", "namespace": name}]
    body = {"limits": {"cpu_ms": 5000}, "bindings": bindings, **fields}
    atoll.deploy(name, f"const TESTS = {{ {table} }};\n{RUNNER}", **body)

    def run(test: str, data: bytes | None = None) -> Any:
        answer = atoll.request("GET" if data is None else "POST", atoll.host(name), f"/{test}", data)
        assert answer.status == 200, answer.text
        return answer.json.get("error") or answer.json["value"]

    return run


def test_values_of_every_type_are_stored_and_read(atoll: Atoll) -> None:
    run = deploy(
        atoll,
        "kv-types",
        {
            "text": 'await KV.put("k", "schön \\u{1f600}"); return KV.get("k");',
            "json": 'await KV.put("k", JSON.stringify({a: [1]})); return [await KV.get("k", "json"), await KV.get("k", {type: "json"})];',
            "buffer": 'await KV.put("k", new Uint8Array([1, 2, 3]).buffer); return [...new Uint8Array(await KV.get("k", "arrayBuffer"))];',
            "view": 'await KV.put("k", new Uint8Array([1, 2, 3, 4]).subarray(1, 3)); return [...new Uint8Array(await KV.get("k", "arrayBuffer"))];',
            "number": 'await KV.put("k", 42); return KV.get("k");',
            "stream": 'await KV.put("k", new Response("streamed").body); const s = await KV.get("k", "stream"); return [s instanceof ReadableStream, await new Response(s).text()];',
            "empty": 'await KV.put("k", ""); return [await KV.get("k"), (await KV.get("k", "arrayBuffer")).byteLength];',
            "missing": 'return [await KV.get("none"), await KV.get("none", "stream"), await KV.getWithMetadata("none")];',
            "metadata": 'await KV.put("k", "v", {metadata: {tags: ["a"]}}); return KV.getWithMetadata("k");',
            "delete": 'await KV.put("k", "v"); const was = await KV.delete("k"); await KV.delete("k"); return [was === undefined, await KV.get("k")];',
            "tag": "return [Object.prototype.toString.call(KV), typeof KV.get, Object.keys(KV)];",
        },
    )
    assert run("text") == "schön \U0001f600"
    assert run("json") == [{"a": [1]}] * 2
    assert run("buffer") == [1, 2, 3]
    assert run("view") == [2, 3]
    assert run("number") == "42"
    assert run("stream") == [True, "streamed"]
    assert run("empty") == ["", 0]
    assert run("missing") == [None, None, {"value": None, "metadata": None, "cacheStatus": None}]
    assert run("metadata") == {"value": "v", "metadata": {"tags": ["a"]}, "cacheStatus": None}
    assert run("delete") == [True, None]
    assert run("tag") == ["[object KVNamespace]", "function", []]


def test_many_keys_are_read_at_once(atoll: Atoll) -> None:
    run = deploy(
        atoll,
        "kv-many",
        {
            "fill": 'await KV.put("a", "1", {metadata: 5}); await KV.put("b", "{\\"x\\":2}"); await KV.put("c", "no json")',
            "text": 'const m = await KV.get(["b", "none", "a"]); return [m instanceof Map, [...m]];',
            "json": 'return [...await KV.get(["a", "b"], "json")];',
            "broken": 'return KV.get(["a", "c"], "json");',
            "metadata": 'return [...await KV.getWithMetadata(["a", "none", "b"], {type: "json"})];',
            "none": "return KV.get([]);",
            "type": 'return KV.get(["a"], "stream");',
        },
    )
    run("fill")
    assert run("text") == [True, [["b", '{"x":2}'], ["none", None], ["a", "1"]]]
    assert run("json") == [["a", 1], ["b", {"x": 2}]]
    assert (
        run("broken")
        == "Error: KV GET_BULK failed: 400 At least one of the requested keys corresponds to a non-json value"
    )
    assert run("metadata") == [
        ["a", {"value": 1, "metadata": 5}],
        ["none", None],
        ["b", {"value": {"x": 2}, "metadata": None}],
    ]
    assert run("none") == "Error: KV GET_BULK failed: 400 You must request a minimum of 1 key"
    assert run("type") == 'Error: KV GET_BULK failed: 400 "stream" is not a valid type. Use "json" or "text"'


LIMITS = {
    "empty": ('KV.get("")', "TypeError: Key name cannot be empty."),
    "dot": ('KV.put(".", "")', 'TypeError: "." is not allowed as a key name.'),
    "dots": ('KV.delete("..")', 'TypeError: ".." is not allowed as a key name.'),
    "empty-among-many": ('KV.get(["a", ""])', "Error: KV GET_BULK failed: 400 Key names must not be empty"),
    "long": ('KV.get("é".repeat(257))', "Error: KV GET failed: 414 UTF-8 encoded length of 514 exceeds key length limit of 512."),
    "fits": ('KV.get("é".repeat(256))', None),
    "many": ("KV.get(Array(101).fill('k'))", "Error: KV GET_BULK failed: 400 You can request a maximum of 100 keys"),
    "ttl": ('KV.put("k", "", {expirationTtl: 59})', "Error: KV PUT failed: 400 Invalid expiration_ttl of 59. Expiration TTL must be at least 60."),
    "nan": ('KV.put("k", "", {expirationTtl: NaN})', "Error: KV PUT failed: 400 Invalid expiration_ttl of NaN. Please specify integer greater than 0."),
    "ttl0": ('KV.put("k", "", {expirationTtl: 0})', "Error: KV PUT failed: 400 Invalid expiration_ttl of 0. Please specify integer greater than 0."),
    "past": ('KV.put("k", "", {expiration: 1000})', "Error: KV PUT failed: 400 Invalid expiration of 1000. Please specify integer greater than the current number of seconds since the UNIX epoch."),
    "metadata": ('KV.put("k", "", {metadata: "x".repeat(1023)})', "Error: KV PUT failed: 413 Metadata length of 1025 exceeds limit of 1024."),
    "object": ('KV.put("k", {})', "TypeError: KV put() accepts only strings, ArrayBuffers, ArrayBufferViews, and ReadableStreams as values."),
    "value": ('KV.put("k", new Uint8Array((25 << 20) + 1))', "Error: KV PUT failed: 413 Value length of 26214401 exceeds limit of 26214400."),
    "cache": ('KV.get("k", {cacheTtl: 29})', "Error: KV GET failed: 400 Invalid cache_ttl of 29. Cache TTL must be at least 30."),
    "type": ('KV.get("k", "blob")', 'TypeError: Unknown response type. Possible types are "text", "arrayBuffer", "json", and "stream".'),
    "limit0": ("KV.list({limit: 0})", "Error: KV GET failed: 400 Invalid key_count_limit of 0. Please specify an integer greater than 0."),
    "limit": ("KV.list({limit: 1001})", "Error: KV GET failed: 400 Invalid key_count_limit of 1001. Please specify an integer less than 1000."),
    "cursor": ('KV.list({cursor: "!"})', "Error: KV GET failed: 400 Invalid cursor."),
    "arguments": ("KV.put('k')", "TypeError: Failed to execute 'put' on 'KVNamespace': parameter 2 is not of type 'string'."),
    "surrogate": ("KV.put('\\ud800', 'x').then(() => KV.get('\\ufffd'))", "x"),
}  # fmt: skip


def test_invalid_arguments_get_the_messages_of_cloudflare(atoll: Atoll) -> None:
    run = deploy(atoll, "kv-limits", {name: f"return {code};" for name, (code, _) in LIMITS.items()})
    assert {name: run(name) for name in LIMITS} == {name: words for name, (_, words) in LIMITS.items()}


def test_a_list_has_names_expirations_and_metadata_and_continues_from_a_cursor(atoll: Atoll) -> None:
    run = deploy(
        atoll,
        "kv-list",
        {
            "fill": """
              const at = Math.floor(Date.now() / 1000) + 1000;
              await Promise.all(Array.from({length: 25}, (_, i) => KV.put(`n:${String(i).padStart(2, "0")}`, "v")));
              await KV.put("é", "v", {metadata: {a: "b"}});
              await KV.put("x", "v", {expiration: at});
              return at;""",
            "all": "return KV.list();",
            "prefix": 'return (await KV.list({prefix: "n:2"})).keys.map((key) => key.name);',
            "pages": """
              const sizes = []; let cursor; let names = [];
              do {
                const page = await KV.list({limit: 10, cursor});
                names.push(...page.keys.map((key) => key.name)); sizes.push(page.keys.length);
                cursor = page.list_complete ? undefined : page.cursor;
              } while (cursor);
              return [sizes, names.length, new Set(names).size];""",
        },
    )
    at = run("fill")
    everything = run("all")
    assert everything["list_complete"] is True and "cursor" not in everything
    assert [key["name"] for key in everything["keys"]] == [f"n:{i:02}" for i in range(25)] + ["x", "é"]
    assert everything["keys"][-2:] == [{"name": "x", "expiration": at}, {"name": "é", "metadata": {"a": "b"}}]
    assert run("prefix") == [f"n:{i}" for i in range(20, 25)]
    assert run("pages") == [[10, 10, 7], 27, 27]


def test_a_large_stream_is_stored_and_read_in_pieces(atoll: Atoll) -> None:
    run = deploy(
        atoll,
        "kv-stream",
        {
            "put": 'await KV.put("k", request.body); return true;',
            "sizes": """
              let total = 0, pieces = 0, sum = 0;
              for await (const piece of await KV.get("k", "stream")) { total += piece.length; pieces++; sum += piece[0]; }
              return [total, pieces > 10];""",
            "cancel": 'const s = await KV.get("k", "stream"); const r = s.getReader(); await r.read(); await r.cancel(); return (await KV.get("k", "arrayBuffer")).byteLength;',
            "long": """
              const piece = new Uint8Array(1 << 20); let left = 26;
              const stream = new ReadableStream({ pull(c) { if (left-- > 0) c.enqueue(piece.slice()); else c.close(); } });
              await KV.put("k", stream);""",
            "broken": 'const s = new ReadableStream({ pull(c) { c.error(new RangeError("broke")); } }); await KV.put("k", s);',
            "strange": 'const s = new ReadableStream({ pull(c) { c.enqueue({}); c.close(); } }); await KV.put("k", s);',
            "size": 'return (await KV.get("k", "arrayBuffer")).byteLength;',
        },
    )
    content = bytes(range(256)) * (24 << 12)  # 24 MiB
    assert run("put", content) is True
    assert run("sizes") == [len(content), True]
    assert run("cancel") == len(content)
    assert run("long").startswith("Error: KV PUT failed: 413 Value length of ")
    assert run("broken") == "RangeError: broke"
    assert run("strange").startswith("TypeError: The stream given to KV put()")
    assert run("size") == len(content), "the failed puts changed nothing"


def test_a_stream_from_kv_is_a_response_body(atoll: Atoll) -> None:
    script = """export default { async fetch(request, env) {
      if (request.method === "POST") { await env.KV.put("file", request.body); return new Response(null, {status: 204}); }
      return new Response(await env.KV.get("file", "stream"));
    } }"""
    atoll.deploy("kv-file", script, bindings=[{"type": "kv", "name": "KV", "namespace": "files"}])
    content = bytes(range(256)) * (3 << 12)
    assert atoll.post("kv-file", "/", content).status == 204
    assert atoll.get("kv-file").body == content


def test_in_service_worker_syntax_the_binding_is_a_global(atoll: Atoll) -> None:
    script = """addEventListener("fetch", (event) => event.respondWith(handle()));
    async function handle() {
      const count = Number(await COUNTER.get("n")) + 1;
      await COUNTER.put("n", `${count}`);
      return new Response(`${count}`);
    }"""
    atoll.deploy("kv-global", script, bindings=[{"type": "kv", "name": "COUNTER", "namespace": "counter"}])
    assert [atoll.get("kv-global").text for _ in range(3)] == ["1", "2", "3"]


def test_two_workers_with_one_namespace_share_it_and_others_do_not(atoll: Atoll) -> None:
    script = """export default { async fetch(request, env) {
      if (request.method === "POST") await env.KV.put("k", await request.text());
      return new Response(await env.KV.get("k"));
    } }"""
    for name, namespace in (("kv-one", "shared"), ("kv-two", "shared"), ("kv-three", "apart")):
        atoll.deploy(name, script, bindings=[{"type": "kv", "name": "KV", "namespace": namespace}])
    atoll.post("kv-one", "/", b"written by one")
    assert atoll.get("kv-two").text == "written by one"
    assert atoll.get("kv-three").text == ""


def test_a_binding_needs_a_namespace_with_a_proper_name(atoll: Atoll) -> None:
    for entry, words in (
        ({}, "namespace"),
        ({"namespace": "a b"}, "letters"),
        ({"namespace": "../up"}, "letters"),
        ({"namespace": "x", "id": "y"}, "id"),
    ):
        body = {"name": "kv-bad", "script": RUNNER, "bindings": [{"type": "kv", "name": "KV", **entry}]}
        answer = atoll.control("POST", "/api/workers", body)
        assert answer.status == 400 and words in answer.text


@pytest.mark.parametrize("meta", ["{}", "{key: 5}", "{key: 'k', upload: 7}", "{key: 'k', upload: 'x'}"])
def test_a_worker_that_bypasses_the_javascript_half_gets_only_an_error(atoll: Atoll, meta: str) -> None:
    script = f"""const stringify = JSON.stringify;
    export default {{ async fetch(request, env) {{
      JSON.stringify = () => stringify({{binding: "KV", ...{meta}}});
      try {{ await env.KV.put("k", "v"); return new Response("done"); }}
      catch (error) {{ return new Response(error.message); }}
      finally {{ JSON.stringify = stringify; }}
    }} }}"""
    atoll.deploy("kv-bent", script, bindings=[{"type": "kv", "name": "KV", "namespace": "bent"}])
    assert atoll.get("kv-bent").text in (
        "KV PUT failed: 400 Key names must not be empty",
        "it is closed, or belongs to another request",
    )
