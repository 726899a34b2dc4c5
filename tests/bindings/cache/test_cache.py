# ruff: noqa: E501 (workers as strings read best on one line)
"""The Cache API as a worker sees it, in a real engine."""

from __future__ import annotations

import json
from typing import Any

from tests.running import Atoll

RUNNER = """
export default {
  async fetch(request, env) {
    const test = TESTS[new URL(request.url).pathname.slice(1)];
    try {
      return Response.json({ value: (await test(caches.default, request)) ?? null });
    } catch (error) {
      return Response.json({ error: `${error.name}: ${error.message}` });
    }
  },
};
const get = async (response) => response === undefined ? "miss" : [response.status, await response.text()];
"""


def deploy(atoll: Atoll, name: str, tests: dict[str, str]) -> Any:
    table = ",\n".join(f"{json.dumps(key)}: async (cache, request) => {{ {code} }}" for key, code in tests.items())
    atoll.deploy(name, f"{RUNNER}\nconst TESTS = {{ {table} }};", limits={"cpu_ms": 5000})

    def run(test: str, data: bytes | None = None) -> Any:
        answer = atoll.request("GET" if data is None else "POST", atoll.host(name), f"/{test}", data)
        assert answer.status == 200, answer.text
        return answer.json.get("error") or answer.json["value"]

    return run


def test_a_stored_response_is_matched(atoll: Atoll) -> None:
    run = deploy(
        atoll,
        "cache-basic",
        {
            "put": 'return [await cache.put("http://x/a", new Response("body", {status: 203, statusText: "Mine é", headers: {"x-a": "é", "cache-control": "max-age=60"}})) === undefined];',
            "match": 'const r = await cache.match("http://x/a"); return [r.status, r.statusText, r.headers.get("x-a"), r.headers.get("cf-cache-status"), r.headers.has("age"), r.url, await r.text()];',
            "fragment": 'return get(await cache.match(new Request("http://x/a#part")));',
            "query": 'return get(await cache.match("http://x/a?b"));',
            "immutable": 'const r = await cache.match("http://x/a"); r.headers.set("a", "b");',
            "copied": 'const r = new Response((await cache.match("http://x/a")).body, {headers: {b: "c"}}); return r.text();',
            "named": 'const other = await caches.open("named"); await other.put("http://x/a", new Response("named")); return [await get(await other.match("http://x/a")), await get(await cache.match("http://x/a"))];',
            "method": 'return [await get(await cache.match(new Request("http://x/a", {method: "POST"}))), await get(await cache.match(new Request("http://x/a", {method: "POST"}), {ignoreMethod: true}))];',
            "delete": 'return [await cache.delete(new Request("http://x/a", {method: "POST"})), await cache.delete("http://x/a"), await cache.delete("http://x/a"), await get(await cache.match("http://x/a"))];',
            "key": 'await cache.put(new Request("http://x/b", {cf: {cacheKey: "key"}}), new Response("k")); return [await get(await cache.match("http://x/b")), await get(await cache.match(new Request("http://x/c", {cf: {cacheKey: "key"}})))];',
            "empty": 'await cache.put("http://x/e", new Response(null, {status: 204, headers: {"cache-control": "max-age=60"}})); const r = await cache.match("http://x/e"); return [r.status, r.body];',
            "shape": "return [`${caches}`, `${cache}`, typeof caches.open, caches.default === cache, await caches.open('default') instanceof Cache];",
            "illegal": "new Cache();",
        },
    )
    assert run("put") == [True]
    assert run("match") == [203, "Mine é", "é", "HIT", True, "http://x/a", "body"]
    assert run("fragment") == [203, "body"]
    assert run("query") == "miss"
    assert run("immutable").startswith("TypeError")
    assert run("copied") == "body"
    assert run("named") == [[200, "named"], [203, "body"]]
    assert run("method") == ["miss", [203, "body"]]
    assert run("delete") == [False, True, False, "miss"]
    assert run("key") == ["miss", [200, "k"]]
    assert run("empty") == [204, None]
    assert run("shape") == ["[object CacheStorage]", "[object Cache]", "function", True, True]
    assert run("illegal") == "TypeError: Illegal constructor"


def test_uncacheable_requests_are_type_errors_and_forbidden_responses_are_ignored(atoll: Atoll) -> None:
    run = deploy(
        atoll,
        "cache-refused",
        {
            "post": 'await cache.put(new Request("http://x/", {method: "POST"}), new Response(""));',
            "partial": 'await cache.put("http://x/", new Response("", {status: 206}));',
            "socket": 'await cache.put("http://x/", new Response(null, {status: 101, webSocket: new WebSocketPair()[0]}));',
            "star": 'await cache.put("http://x/", new Response("", {headers: {vary: "Accept, *"}}));',
            "used": 'const r = new Response("a"); await r.text(); await cache.put("http://x/", r);',
            "none": 'await cache.put("http://x/", {});',
            "name": 'await caches.open("n".repeat(1025));',
            "url": 'await cache.match("/relative");',
            "broken": 'await cache.put("http://x/s", new Response(new ReadableStream({ pull(c) { c.error(new RangeError("broke")); } })));',
            "private": """
              const tried = {"no-store": {"cache-control": "no-store"}, cookie: {"set-cookie": "a=b"}, zero: {"cache-control": "max-age=0"}};
              const found = {};
              for (const [name, headers] of Object.entries(tried)) {
                await cache.put(`http://x/${name}`, new Response("x", { headers }));
                found[name] = await get(await cache.match(`http://x/${name}`));
              }
              await cache.put("http://x/304", new Response(null, { status: 304 }));
              found.unchanged = await get(await cache.match("http://x/304"));
              return found;""",
            "cookie": 'await cache.put("http://x/c", new Response("x", {headers: {"set-cookie": "a=b", "cache-control": "private=Set-Cookie, max-age=60"}})); const r = await cache.match("http://x/c"); return [r.status, r.headers.get("set-cookie")];',
        },
    )
    assert run("post") == "TypeError: Cannot cache response to non-GET request."
    assert run("partial") == "TypeError: Cannot cache response to a range request (206 Partial Content)."
    assert run("socket") == "TypeError: Cannot cache WebSocket upgrade response."
    assert run("star") == "TypeError: Cannot cache response with 'Vary: *' header."
    assert run("used").startswith("TypeError: Cache.put: the body")
    assert run("none").startswith("TypeError: Cache.put: the second")
    assert run("name") == "TypeError: Cache name is too long."
    assert run("url").startswith("TypeError")
    assert run("broken") == "RangeError: broke"
    assert run("private") == dict.fromkeys(("no-store", "cookie", "zero", "unchanged"), "miss")
    assert run("cookie") == [200, None]


def test_ranges_conditions_and_variants(atoll: Atoll) -> None:
    run = deploy(
        atoll,
        "cache-http",
        {
            "fill": """
              await cache.put("http://x/", new Response("0123456789", {headers: {etag: '"v1"', "cache-control": "max-age=60"}}));
              for (const language of ["de", "fr"])
                await cache.put(new Request("http://x/v", {headers: {"accept-language": language}}), new Response(language, {headers: {vary: "Accept-Language"}}));""",
            "range": 'const r = await cache.match(new Request("http://x/", {headers: {range: "bytes=2-4"}})); return [r.status, r.headers.get("content-range"), await r.text()];',
            "416": 'const r = await cache.match(new Request("http://x/", {headers: {range: "bytes=20-"}})); return [r.status, r.headers.get("content-range"), await r.text()];',
            "304": "const r = await cache.match(new Request('http://x/', {headers: {'if-none-match': '\"v1\"'}})); return [r.status, r.body, r.headers.get('etag')];",
            "vary": 'const m = (l) => cache.match(new Request("http://x/v", {headers: l ? {"accept-language": l} : {}})).then(get); return [await m("de"), await m("fr"), await m("it"), await m("")];',
        },
    )
    run("fill")
    assert run("range") == [206, "bytes 2-4/10", "234"]
    assert run("416") == [416, "bytes */10", ""]
    assert run("304") == [304, None, '"v1"']
    assert run("vary") == [[200, "de"], [200, "fr"], "miss", "miss"]


def test_large_bodies_are_streamed_to_and_from_the_disk(atoll: Atoll) -> None:
    run = deploy(
        atoll,
        "cache-large",
        {
            "put": 'await cache.put("http://x/", new Response(request.body, {headers: {"cache-control": "max-age=600"}}));',
            "match": "let n = 0, pieces = 0; for await (const p of (await cache.match('http://x/')).body) { n += p.length; pieces++; } return [n, pieces > 10];",
            "cancel": "const r = (await cache.match('http://x/')).body.getReader(); await r.read(); await r.cancel(); return true;",
            "tee": "const r = await cache.match('http://x/'); const c = r.clone(); return [(await r.arrayBuffer()).byteLength, (await c.arrayBuffer()).byteLength];",
            "huge": "let left = 20; await cache.put('http://x/huge', new Response(new ReadableStream({ pull(c) { if (left-- > 0) c.enqueue(new Uint8Array(1 << 20)); else c.close(); } }))); return [left, await get(await cache.match('http://x/huge'))];",
        },
    )
    content = bytes(range(256)) * (12 << 12)  # 12 MiB
    run("put", content)
    assert run("match") == [len(content), True]
    assert run("cancel") is True
    assert run("tee") == [len(content)] * 2
    left, found = run("huge")
    assert left > 0 and found == "miss", "the stream is stopped when it becomes too large"
    script = "export default { async fetch() { return caches.default.match('http://x/'); } }"
    atoll.deploy("cache-served", script)
    assert atoll.get("cache-served").body == content


def test_caches_are_shown_and_cleared_over_http(atoll: Atoll) -> None:
    script = """export default { async fetch(request) {
      const cache = await caches.open("shelf");
      const hit = await cache.match(request.url);
      if (hit) return hit;
      await cache.put(request.url, new Response("fresh"));
      return new Response("put");
    } }"""
    atoll.deploy("cache-shelf", script)
    assert [atoll.get("cache-shelf").text for _ in range(2)] == ["put", "fresh"]
    [shelf] = [row for row in atoll.control("GET", "/api/caches").json["caches"] if row["name"] == "shelf"]
    assert shelf == {"name": "shelf", "responses": 1, "bytes": 5}
    assert atoll.control("DELETE", "/api/caches/shelf?url=http%3A%2F%2Fother%2F").status == 404
    assert atoll.control("DELETE", "/api/caches/shelf").status == 204
    assert atoll.control("DELETE", "/api/caches/shelf").status == 404
    assert [atoll.get("cache-shelf").text for _ in range(2)] == ["put", "fresh"]
    url = f"http%3A%2F%2Fcache-shelf.localhost%3A{atoll.port}%2F"
    assert atoll.control("DELETE", f"/api/caches/shelf?url={url}").status == 204
    assert atoll.get("cache-shelf").text == "put"


def test_cached_responses_are_listed_and_deleted_over_http(atoll: Atoll) -> None:
    script = """export default { async fetch(request) {
      const cache = await caches.open("over http");
      const headers = { "cache-tag": "even" };
      for (let i = 0; i < 5; i++) {
        await cache.put(`http://kept/${i}`, new Response("x".repeat(i), i % 2 ? {} : { headers }));
      }
      return new Response((await cache.match("http://kept/1")) ? "hit" : "miss");
    } }"""
    atoll.deploy("shelf", script)
    assert atoll.get("shelf").text == "hit"
    path = "/api/caches/over%20http"
    assert {"name": "over http", "responses": 5, "bytes": 10} in atoll.control("GET", "/api/caches").json["caches"]
    first = atoll.control("GET", f"{path}?limit=3").json
    rest = atoll.control("GET", f"{path}?limit=3&cursor={first['cursor']}").json
    assert [kept["url"] for kept in first["responses"] + rest["responses"]] == [f"http://kept/{i}" for i in range(5)]
    assert "cursor" not in rest and rest["responses"][-1]["bytes"] == 4 and rest["responses"][-1]["status"] == 200
    assert atoll.control("GET", f"{path}?limit=0").status == atoll.control("GET", f"{path}?cursor=x").status == 400
    assert atoll.control("DELETE", f"{path}?url=http://kept/1").status == 204
    assert atoll.control("DELETE", f"{path}?tag=even").status == 204
    assert atoll.control("DELETE", f"{path}?tag=even").status == 404
    assert [kept["url"] for kept in atoll.control("GET", path).json["responses"]] == ["http://kept/3"]
    assert atoll.control("DELETE", path).status == 204 and atoll.control("GET", path).status == 404
