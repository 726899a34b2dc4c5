"""Cloudflare's API with a tenant's token, and what else reads text of a tenant: SQL of data points, rules of assets."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

from atoll.api.cloudflare import account_id
from atoll.bindings.assets.uploads import digest_of, pieces
from tests.assets.sites import manifest_of, packed, sha256
from tests.running import Answer
from tests.stalls.flood import connections, flood
from tests.stalls.stage import Stage, attack

MB = 1 << 20
JOB_MB = 512  # what a job process may use beside the node itself
AT = f"/client/v4/accounts/{account_id('mallory')}"
FORM = "multipart/form-data; boundary=b"
JSON = "application/json"
HELLO = "export default { fetch() { return new Response('hello'); } };"


def v4(stage: Stage, method: str, path: str, body: Any = None, kind: str = JSON, token: str = "") -> Answer:
    headers = {"Authorization": f"Bearer {token or stage.token}", "Content-Type": kind}
    return stage.ask(method, AT + path, body if body is None or isinstance(body, bytes) else json.dumps(body), headers)


def part(name: str, content: bytes, more: str = "") -> bytes:
    return f'--b\r\nContent-Disposition: form-data; name="{name}"{more}\r\n\r\n'.encode() + content + b"\r\n"


@attack("client/v4: D1 queries with parameters of 4 MB", memory_mb=JOB_MB)
def large_parameters(stage: Stage) -> Iterator[None]:
    made = v4(stage, "POST", "/d1/database", {"name": "attack"})
    assert made.status in (200, 400), made.text
    size = 4 * MB - 1_000
    bodies = (
        b'{"sql":"SELECT 1","params":[' + b"1," * (size // 2) + b"1]}",
        b'{"sql":"SELECT 1","params":[' + b"[]," * (size // 3) + b"[]]}",
        b'{"sql":"SELECT 1","params":[' + b'"",' * (size // 3) + b'""]}',
        b'{"batch":[' + b'{"sql":""},' * (size // 11) + b'{"sql":""}]}',
    )
    yield
    for body in bodies:
        assert v4(stage, "POST", "/d1/database/attack/query", body).status == 400
        assert stage.control("POST", "/api/d1/attack/query", body).status == 400


@attack("client/v4: a KV value whose metadata is 25 MB of no text", memory_mb=JOB_MB)
def large_metadata(stage: Stage) -> Iterator[None]:
    v4(stage, "POST", "/storage/kv/namespaces", {"title": "attack"})
    body = part("value", b"x") + part("metadata", b"\xff" * (24 * MB)) + b"--b--\r\n"
    yield
    assert v4(stage, "PUT", "/storage/kv/namespaces/attack/values/k", body, FORM).status == 413


@attack("client/v4: a script as a form of odd parts", memory_mb=JOB_MB)
def odd_scripts(stage: Stage) -> Iterator[None]:
    metadata = part("metadata", b'{"main_module":"m.js","bindings":[' + b"{}," * 1_000_000 + b"{}]}")
    deep = part("metadata", b'{"main_module":"m.js","a":' + b"[" * MB)
    code = part("m.js", HELLO.encode(), '; filename="m.js"\r\nContent-Type: application/javascript+module')
    many = b"".join(part(f"m{number}.js", b"", f'; filename="m{number}.js"') for number in range(100_000))
    bodies = [metadata + code, deep + code, many, code * 50_000]
    yield
    for body in bodies:
        answer = v4(stage, "PUT", "/workers/scripts/attack", body + b"--b--\r\n", FORM)
        assert answer.status in (400, 413, 422), answer.text[:300]


@attack("client/v4: an asset of 24 MB in base64", memory_mb=JOB_MB)
def large_asset(stage: Stage) -> Iterator[None]:
    contents = {path: bytes([fill]) * (24 * MB) for path, fill in (("/a.bin", 65), ("/b.bin", 66))}
    names = {digest_of(pieces(content), path)[0]: (path, content) for path, content in contents.items()}
    manifest = {path: {"hash": name, "size": len(content)} for name, (path, content) in names.items()}
    begun = v4(stage, "POST", "/workers/scripts/site/assets-upload-session", {"manifest": manifest})
    assert begun.status == 200, begun.text
    token = begun.json["result"]["jwt"]
    forms = [part(name, base64.b64encode(content)) + b"--b--\r\n" for name, (_, content) in names.items()]
    yield
    for form in forms:
        answer = v4(stage, "POST", "/workers/assets/upload?base64=true", form, FORM, token)
        assert answer.status in (201, 202, 401), answer.text[:300]  # 401: an earlier round has sent it


@attack("client/v4: tails with as many filters as there may be")
def filtered_tails(stage: Stage) -> Iterator[None]:
    stage.deploy("tailed", "export default { fetch() { console.log('x'.repeat(1000)); return new Response(); } };")
    filters = [{"client_ip": [f"10.0.0.{number}" for number in range(50)], "query": "y" * 100} for _ in range(20)]
    yield
    for _ in range(20):
        for path in ("/workers/scripts/tailed/tails",):
            assert v4(stage, "POST", path, {"filters": filters}).status in (200, 403)
    for _ in range(100):
        stage.node.get("tailed")


@attack("an SQL query whose names stand for megabytes")
def sql_of_names(stage: Stage) -> Iterator[None]:
    names = "".join(f", b c{number}" for number in range(600))
    query = f"SELECT '{'a' * 3_000}' a, concat(a, a, a, a, a, a) b{names}"
    nested = "SELECT*FROM(" * 50 + query + ")" * 50
    keys = f"SELECT '{'a' * 3_000}' a, concat(a, a, a, a, a, a) b GROUP BY " + ",".join(["b"] * 3_000)
    cases = f"SELECT '{'a' * 3_000}' a, concat(a, a, a, a, a, a) b, CASE " + "WHEN b THEN b " * 450 + "END"
    yield
    for text in (query, nested, keys, cases, "(" * 9_000, "SELECT " + "1+" * 4_900 + "1", "SELECT " + "-" * 9_000):
        headers = {"Authorization": f"Bearer {stage.token}", "Content-Type": "text/plain"}
        answer = stage.ask("POST", "/api/analytics_engine/sql", text, headers)
        assert answer.status in (200, 400), answer.text[:300]


@attack("a site whose _headers has very many headers, and a _redirects of as many lines", memory_mb=JOB_MB)
def many_headers(stage: Stage) -> Iterator[None]:
    files = {"/index.html": b"hello"}
    found = stage.control("POST", "/api/assets/manifests", json.dumps(manifest_of(files)))
    assert found.status == 200, found.text
    if sha256(b"hello") in found.json["missing"]:
        headers = {"Authorization": f"Bearer {stage.token}"}
        assert stage.ask("PUT", "/api/assets/files", packed(files.values()), headers).status == 200
    lines = "".join(f"h{number}:{number}\n" for number in range(9_000))
    moved = "".join(f"/a{number} /b{number}\n" for number in range(9_000))
    rules = {"manifest": found.json["manifest"], "headers": f"/*\n{lines}", "redirects": moved}
    site = {"name": "rules", "assets": rules}
    large = {"name": "rules", "assets": {**rules, "headers": "x\n" * (MB // 2)}}
    yield
    assert stage.control("POST", "/api/workers", large).status == 400
    answer = stage.control("POST", "/api/workers", site)
    if answer.status == 409:
        answer = stage.control("PUT", "/api/workers/rules", site)
    assert answer.status in (200, 201), answer.text[:300]
    request = f"GET / HTTP/1.1\r\nHost: {stage.node.host('rules')}\r\nCache-Control: no-cache\r\n\r\n".encode()
    with connections(stage.node.connect, 4) as clients:
        flood(clients, request * 20)
