"""KV over HTTP, and a worker that uses the same namespace."""

from __future__ import annotations

import json
import time
from typing import Any
from urllib.parse import quote

import pytest

from tests.running import Answer, Atoll


def ask(
    atoll: Atoll, method: str, path: str, body: Any = None, kind: str = "application/json", **headers: str
) -> Answer:
    content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    fields = {"Content-Type": kind, **{name.replace("_", "-"): value for name, value in headers.items()}}
    return atoll.request(method, f"localhost:{atoll.port}", f"/api/kv{path}", content, fields)


def code(answer: Answer) -> int:
    return int(answer.json["error"]["code"])


def test_a_namespace_is_created_listed_measured_and_deleted(atoll: Atoll) -> None:
    made = ask(atoll, "POST", "", {"name": "books"})
    assert made.status == 201 and made.json["name"] == "books" and made.headers["location"] == "/api/kv/books"
    assert code(ask(atoll, "POST", "", {"name": "books"})) == 19005
    assert code(ask(atoll, "POST", "", {"name": "no such name"})) == 10026
    assert "books" in [row["name"] for row in ask(atoll, "GET", "").json["namespaces"]]
    ask(atoll, "PUT", "/books/values/a", b"12345")
    size = ask(atoll, "GET", "/books").json
    assert (size["keys"], size["bytes"]) == (1, 6)
    assert ask(atoll, "DELETE", "/books").status == 204
    for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/values/a"), ("PUT", "/values/a"), ("GET", "/keys")):
        assert code(ask(atoll, method, f"/books{path}", b"")) == 10007


def test_a_worker_reads_what_is_put_over_http(atoll: Atoll) -> None:
    script = """export default { async fetch(request, env) {
      const { value, metadata } = await env.KV.getWithMetadata("dir/ü key");
      await env.KV.put("from worker", new Uint8Array([255, 0, 1]));
      return Response.json({ value, metadata });
    } }"""
    atoll.deploy("kv-api", script, bindings=[{"type": "kv", "name": "KV", "namespace": "api"}])
    key, metadata = quote("dir/ü key"), quote(json.dumps({"ü": "é"}))
    assert ask(atoll, "PUT", f"/api/values/{key}?expiration_ttl=100&metadata={metadata}", "täxt".encode()).status == 204
    assert atoll.get("kv-api").json == {"value": "täxt", "metadata": {"ü": "é"}}
    got = ask(atoll, "GET", f"/api/values/{key}")
    assert got.text == "täxt" and json.loads(got.headers["x-atoll-metadata"]) == {"ü": "é"}
    assert 90 < int(got.headers["x-atoll-expiration"]) - time.time() <= 100
    assert got.headers["content-type"] == "application/octet-stream"
    assert ask(atoll, "GET", "/api/values/from%20worker").body == bytes([255, 0, 1])
    assert ask(atoll, "DELETE", f"/api/values/{key}").status == 204
    assert code(ask(atoll, "GET", f"/api/values/{key}")) == 10007


@pytest.mark.parametrize(
    ("method", "path", "body", "expected"),
    [
        ("PUT", "/errors/values/k?expiration_ttl=5", b"", 10026),
        ("PUT", "/errors/values/k?metadata=%7B", b"", 10026),
        ("PUT", "/errors/values/" + "k" * 513, b"", 10027),
        ("PUT", "/errors/values/k", bytes((25 << 20) + 1), 10027),
        ("GET", "/errors/keys?limit=0", None, 10026),
        ("GET", "/errors/keys?cursor=%21", None, 10026),
        ("POST", "/errors/bulk", [{"key": "k"}], 10026),
        ("POST", "/errors/bulk", [{"key": "k", "value": "!", "base64": True}], 10026),
        ("POST", "/errors/bulk", [{"key": "k", "value": "v"}, {"key": "", "value": "v"}], 10026),
        ("POST", "/errors/bulk", [{"key": "k", "value": "v", "ttl": 5}], 10026),
        ("POST", "/errors/bulk", [{"key": "k", "value": "v"}] * 10_001, 10026),
        ("POST", "/errors/bulk/delete", [5], 10026),
    ],
)
def test_an_invalid_request_is_refused_and_changes_nothing(
    atoll: Atoll, method: str, path: str, body: Any, expected: int
) -> None:
    ask(atoll, "POST", "", {"name": "errors"})
    answer = ask(atoll, method, path, body)
    assert code(answer) == expected and "Traceback" not in answer.text
    assert ask(atoll, "GET", "/errors/keys").json == {"keys": []}


def test_a_key_that_is_not_utf8_is_refused(atoll: Atoll) -> None:
    ask(atoll, "POST", "", {"name": "garbled"})
    for method in ("PUT", "GET", "DELETE"):
        assert code(ask(atoll, method, "/garbled/values/%ff%fe", b"x")) == 10026
    assert ask(atoll, "PUT", "/garbled/values/%EF%BF%BD", b"meant so").status == 204
    assert ask(atoll, "GET", "/garbled/values/%EF%BF%BD").text == "meant so"


def test_a_form_of_another_site_cannot_fill_a_namespace(atoll: Atoll) -> None:
    ask(atoll, "POST", "", {"name": "forms"})
    answer = ask(atoll, "POST", "/forms/bulk", b'[{"key":"a","value":"b"}]', kind="text/plain")
    assert code(answer) == 19003
    answer = ask(atoll, "PUT", "/forms/values/a", b"b", Origin="http://evil.example")
    assert code(answer) == 19002


def test_an_import_accepts_an_export(atoll: Atoll) -> None:
    for name in ("first", "second"):
        ask(atoll, "POST", "", {"name": name})
    pairs: list[dict[str, Any]] = [{"key": f"key {i:04}", "value": f"value {i}"} for i in range(1500)]
    pairs[3]["metadata"] = {"é": [1, None]}
    pairs[4]["expiration"] = int(time.time()) + 1000
    pairs[5] |= {"value": "/wAB", "base64": True}
    assert ask(atoll, "POST", "/first/bulk", pairs).json == {"written": 1500}
    lines = ask(atoll, "GET", "/first/export")
    assert lines.headers["content-type"] == "application/x-ndjson"
    assert [json.loads(line) for line in lines.body.splitlines()] == pairs
    imported = ask(atoll, "POST", "/second/bulk", b"\n" + lines.body, kind="application/x-ndjson")
    assert imported.json == {"written": 1500}
    assert ask(atoll, "GET", "/second/export").body == lines.body
    page = ask(atoll, "GET", "/second/keys?prefix=key%200&limit=10").json
    assert [key["name"] for key in page["keys"]] == [f"key {i:04}" for i in range(10)]
    more = ask(atoll, "GET", f"/second/keys?prefix=key%200&limit=10&cursor={page['cursor']}").json
    assert more["keys"][0]["name"] == "key 0010"
    deleted = ask(atoll, "POST", "/second/bulk/delete", [pair["key"] for pair in pairs[1:]] + ["never was"])
    assert deleted.json == {"deleted": 1500}
    assert ask(atoll, "GET", "/second").json["keys"] == 1


def test_an_import_accepts_an_export_with_expired_entries(atoll: Atoll) -> None:
    ask(atoll, "POST", "", {"name": "old-export"})
    now = int(time.time())
    pairs = [{"key": key, "value": "", "expiration": now + left} for key, left in (("over", -1), ("soon", 50))]
    lines = "\n".join(json.dumps(pair) for pair in [*pairs, {"key": "last", "value": "3"}]).encode()
    assert ask(atoll, "POST", "/old-export/bulk", lines, kind="application/x-ndjson").json == {"written": 2}
    keys = ask(atoll, "GET", "/old-export/keys").json["keys"]
    assert keys == [{"name": "last"}, {"name": "soon", "expiration": now + 50}]
    for pair in pairs:  # an array is not an export: it is refused as a put would be
        assert code(ask(atoll, "POST", "/old-export/bulk", [pair])) == 10026


def test_a_bad_line_of_an_import_is_named_and_those_before_it_are_stored(atoll: Atoll) -> None:
    ask(atoll, "POST", "", {"name": "lines"})
    for bad in (b'{"key":5}', b'{"key":"","value":""}', b'{"key":"k","value":"","expiration":-1}'):
        answer = ask(atoll, "POST", "/lines/bulk", b'{"key":"a","value":"1"}\n%b\n' % bad, kind="application/x-ndjson")
        assert code(answer) == 10026 and "line 2" in answer.text
        assert [key["name"] for key in ask(atoll, "GET", "/lines/keys").json["keys"]] == ["a"]
        assert ask(atoll, "DELETE", "/lines/values/a").status == 204


def test_a_line_with_a_value_of_maximum_size_is_accepted(atoll: Atoll) -> None:
    ask(atoll, "POST", "", {"name": "long-lines"})
    line = json.dumps({"key": "k", "value": "x" * (25 << 20)}).encode()
    imported = ask(atoll, "POST", "/long-lines/bulk", line + b"\n" + line, kind="application/x-ndjson")
    assert imported.json == {"written": 2}
    assert len(ask(atoll, "GET", "/long-lines/values/k").body) == 25 << 20


@pytest.mark.parametrize("key", ["a\nb", "\n", "a\n", "\na", "a\r\n/b\n", "a//b", "/", "\u2028", "a?b#c%2F", " "])
def test_a_key_with_any_character_is_found_by_its_address(atoll: Atoll, key: str) -> None:
    ask(atoll, "POST", "", {"name": "odd-keys"})
    path = f"/odd-keys/values/{quote(key, safe='')}"
    assert ask(atoll, "PUT", path, b"value").status in (200, 201, 204)
    assert [row["name"] for row in ask(atoll, "GET", "/odd-keys/keys").json["keys"]] == [key]
    assert ask(atoll, "GET", path).body == b"value"
    assert ask(atoll, "DELETE", path).status == 204
    assert ask(atoll, "GET", path).status == 404
