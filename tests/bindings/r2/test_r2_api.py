"""R2 over HTTP and from the command line, beside a worker that has the same bucket."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.cli.test_projects import run
from tests.running import Answer, Atoll


def ask(atoll: Atoll, method: str, path: str, body: Any = None, **headers: str) -> Answer:
    content = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    fields = {"Content-Type": "application/json", **{name.replace("_", "-"): value for name, value in headers.items()}}
    return atoll.request(method, f"localhost:{atoll.port}", f"/api/r2{path}", content, fields)


def code(answer: Answer) -> int:
    return int(answer.json["error"]["code"])


def test_a_bucket_is_made_listed_measured_and_removed(atoll: Atoll) -> None:
    made = ask(atoll, "POST", "", {"name": "books"})
    assert made.status == 201 and made.json["name"] == "books" and made.headers["location"] == "/api/r2/books"
    assert code(ask(atoll, "POST", "", {"name": "books"})) == 19005
    for name in ("no", "Large", "under_score", "-dash", "a" * 64):
        assert code(ask(atoll, "POST", "", {"name": name})) == 10026
    assert "books" in [row["name"] for row in ask(atoll, "GET", "").json["buckets"]]
    assert ask(atoll, "PUT", "/books/objects/a", b"12345").json["size"] == 5
    size = ask(atoll, "GET", "/books").json
    assert (size["objects"], size["bytes"]) == (1, 5 + 1 + len('{"contentType":"application/json"}'))
    assert (full := ask(atoll, "DELETE", "/books")).status == 409 and code(full) == 10008
    assert ask(atoll, "DELETE", "/books?force=true").status == 204
    for method, path in (
        ("GET", ""),
        ("DELETE", ""),
        ("GET", "/objects/a"),
        ("PUT", "/objects/a"),
        ("GET", "/objects"),
    ):
        assert code(ask(atoll, method, f"/books{path}", b"")) == 10007


def test_what_is_put_over_http_is_what_a_worker_gets(atoll: Atoll) -> None:
    script = """export default { async fetch(request, env) {
      const object = await env.R2.get("dir/ü key");
      await env.R2.put("from worker", new Uint8Array(100_000), { httpMetadata: { contentType: "evil\\r\\nx: y" } });
      return Response.json([await object.text(), object.httpMetadata, object.customMetadata, object.storageClass]);
    } }"""
    atoll.deploy("r2-api", script, bindings=[{"type": "r2", "name": "R2", "bucket": "api"}])
    key = quote("dir/ü key")
    headers = {"Content_Type": "text/x", "Cache_Control": "no-store", "x_atoll_storage_class": "InfrequentAccess"}
    stored = ask(atoll, "PUT", f"/api/objects/{key}", "täxt".encode(), X_Atoll_Metadata='{"a": "b"}', **headers)
    assert stored.status == 200 and stored.json["key"] == "dir/ü key"
    http = {"contentType": "text/x", "cacheControl": "no-store"}
    assert atoll.get("r2-api").json == ["täxt", http, {"a": "b"}, "InfrequentAccess"]
    got = ask(atoll, "GET", f"/api/objects/{key}")
    assert got.text == "täxt" and got.headers["content-length"] == "5"
    assert got.headers["content-type"] == "application/octet-stream"
    facts = ask(atoll, "GET", f"/api/facts/{key}").json
    assert (facts["http"], facts["etag"]) == (http, hashlib.md5("täxt".encode()).hexdigest())
    worker = ask(atoll, "GET", "/api/objects/from%20worker")
    assert worker.body == bytes(100_000) and "x" not in worker.headers
    page = ask(atoll, "GET", "/api/objects?limit=1").json
    assert [each["key"] for each in page["objects"]] == ["dir/ü key"] and page["cursor"]
    assert ask(atoll, "GET", "/api/objects?delimiter=/").json["prefixes"] == ["dir/"]
    assert ask(atoll, "POST", "/api/delete", ["from worker", "none"]).json == {"deleted": 1}
    assert ask(atoll, "DELETE", f"/api/objects/{key}").status == 204
    assert code(ask(atoll, "GET", f"/api/objects/{key}")) == 10007
    assert code(ask(atoll, "GET", f"/api/facts/{key}")) == 10007
    assert code(ask(atoll, "PUT", f"/api/objects/{'k' * 1025}", b"")) == 10026
    assert code(ask(atoll, "GET", "/api/objects?limit=wat")) == 10026
    assert code(ask(atoll, "PUT", "/api/objects/k", b"", X_Atoll_Metadata="wat")) == 10026
    head = ask(atoll, "HEAD", "/api/objects/none")
    assert head.status == 404 and head.body == b""


def test_a_folder_is_uploaded_and_a_large_file_goes_in_parts(atoll: Atoll, tmp_path: Path) -> None:
    node = {"ATOLL_API": f"http://localhost:{atoll.port}"}
    folder = tmp_path / "tree"
    (folder / "inner").mkdir(parents=True)
    (folder / "page.html").write_text("<p>")
    (folder / "inner" / "empty").write_bytes(b"")
    large = bytes(range(256)) * (33 << 12)
    (folder / "inner" / "large.bin").write_bytes(large)
    run(tmp_path, "r2", "bucket", "create", "cli-tree", **node)
    said = run(tmp_path, "r2", "upload", "cli-tree", "tree", "--prefix", "t/", **node).stderr
    assert "3/3" in said and "stored 3 objects" in said
    listed = run(tmp_path, "r2", "object", "list", "cli-tree", **node).stdout.splitlines()
    assert [line.split()[-1] for line in listed] == ["t/inner/empty", "t/inner/large.bin", "t/page.html"]
    run(tmp_path, "r2", "object", "get", "cli-tree/t/inner/large.bin", "--file", "copy", **node)
    assert (tmp_path / "copy").read_bytes() == large
    facts = json.loads(run(tmp_path, "r2", "object", "head", "cli-tree/t/page.html", "--json", **node).stdout)
    assert facts["http"] == {"contentType": "text/html"} and facts["size"] == 3
    assert json.loads(run(tmp_path, "r2", "bucket", "info", "cli-tree", "--json", **node).stdout)["objects"] == 3
    for words, hint in (
        (("object", "get", "cli-tree"), "write BUCKET/KEY"),
        (("object", "get", "cli-tree/none"), "`atoll r2 object list cli-tree` lists the objects"),
        (("object", "list", "none"), "`atoll r2 bucket list` lists the buckets"),
        (("bucket", "delete", "cli-tree"), "add --force"),
        (("object", "put", "cli-tree/x", "--file", "copy", "--metadata", "{"), "write an object of strings"),
    ):
        assert f"hint: {hint}" in run(tmp_path, "r2", *words, code=1, **node).stderr
    assert "deleted 1 of 2" in run(tmp_path, "r2", "object", "delete", "cli-tree", "t/page.html", "x", **node).stderr
    run(tmp_path, "r2", "bucket", "delete", "cli-tree", "--force", "--yes", **node)
