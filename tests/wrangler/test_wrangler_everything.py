"""A project with every binding that wrangler and Atoll both have, deployed by the real wrangler."""

from __future__ import annotations

from pathlib import Path

from tests.running import Atoll
from tests.wrangler.stock import Wrangler, check_requests

CONFIG = """
name = "wr-all"
main = "index.js"
compatibility_date = "2026-01-01"
compatibility_flags = ["nodejs_compat"]
limits = { cpu_ms = 40 }
triggers = { crons = ["5 4 * * *"] }
routes = [{ pattern = "wr-all.example.org", custom_domain = true }]
version_metadata = { binding = "META" }
kv_namespaces = [{ binding = "KV", id = "wr-all-kv" }]
r2_buckets = [{ binding = "R2", bucket_name = "wr-all-bucket" }]
d1_databases = [{ binding = "DB", database_name = "wr-all-db", database_id = "wr-all-db" }]
services = [{ binding = "SELF", service = "wr-all" }]
ratelimits = [{ name = "LIMIT", namespace_id = "1", simple = { limit = 10, period = 60 } }]
migrations = [{ tag = "v1", new_sqlite_classes = ["Counter"] }, { tag = "v2", new_sqlite_classes = ["Other"] }]
[assets]
directory = "public"
binding = "FILES"
[vars]
NAME = "wr-all"
[durable_objects]
bindings = [{ name = "COUNTER", class_name = "Counter" }]
[queues]
producers = [{ binding = "JOBS", queue = "wr-all-jobs" }]
consumers = [{ queue = "wr-all-jobs", max_batch_size = 3 }]
[ai]
binding = "VECTORS_OF_SOMEONE"
"""
SCRIPT = """
import { DurableObject } from "cloudflare:workers";
import text from "./words.txt";
export class Counter extends DurableObject {
  async add() { const n = ((await this.ctx.storage.get("n")) ?? 0) + 1; await this.ctx.storage.put("n", n); return n; }
}
export class Other extends DurableObject {}
export default {
  async fetch(request, env) {
    await env.KV.put("a", "kv");
    await env.R2.put("a", "r2");
    await env.JOBS.send({ a: 1 });
    return Response.json({
      kv: await env.KV.get("a"), r2: await (await env.R2.get("a")).text(),
      d1: (await env.DB.prepare("SELECT 1 AS x").first()).x, count: await env.COUNTER.getByName("a").add(),
      file: await (await env.FILES.fetch("http://x/hello.txt")).text(), text, meta: typeof env.META.id,
      limit: (await env.LIMIT.limit({ key: "a" })).success, name: env.NAME,
    });
  },
  scheduled() {}, queue() {},
};
"""


def test_every_binding_is_deployed_twice(wrangler: Wrangler, strict: Atoll, tmp_path: Path) -> None:
    (tmp_path / "wrangler.toml").write_text(CONFIG)
    (tmp_path / "index.js").write_text(SCRIPT)
    (tmp_path / "words.txt").write_text("words")
    (tmp_path / "public").mkdir()
    (tmp_path / "public/hello.txt").write_text("hello")
    (tmp_path / "public/a b.html").write_text("<p>page</p>")
    (tmp_path / "public/_headers").write_text("/hello.txt\n  X-Mine: yes\n")
    wrangler.run(tmp_path, "queues", "create", "wr-all-jobs")
    wrangler.run(tmp_path, "deploy")
    check_requests("deploy of every binding", wrangler.asked("wr-all"))
    expected = {
        "kv": "kv", "r2": "r2", "d1": 1, "count": 1, "file": "hello", "text": "words", "meta": "string", "limit": True,
        "name": "wr-all",
    }  # fmt: skip
    assert strict.get("wr-all").json == expected
    assert strict.get("wr-all", "/a%20b").text == "<p>page</p>"
    assert strict.get("wr-all", "/hello.txt").headers["x-mine"] == "yes"
    assert strict.request("GET", "wr-all.example.org", "/hello.txt").text == "hello"
    (tmp_path / "public/hello.txt").write_text("again")
    said = wrangler.run(tmp_path, "deploy")
    assert "Found 1 new or modified static asset" in said
    check_requests("deploy of every binding, again", wrangler.asked("wr-all"))
    assert strict.get("wr-all").json == expected | {"count": 2, "file": "again"}
    settings = wrangler.ask("GET", f"/accounts/{wrangler.account}/workers/scripts/wr-all/settings")["result"]
    assert {each["name"]: each["type"] for each in settings["bindings"]} == {
        "KV": "kv_namespace", "R2": "r2_bucket", "DB": "d1", "SELF": "service", "LIMIT": "ratelimit",
        "META": "version_metadata",
        "FILES": "assets", "NAME": "plain_text", "COUNTER": "durable_object_namespace", "JOBS": "queue",
        "VECTORS_OF_SOMEONE": "ai",
    }  # fmt: skip
    assert settings["migration_tag"] == "v2" and settings["limits"] == {"cpu_ms": 40}


def test_a_site_without_a_worker_is_deployed(wrangler: Wrangler, strict: Atoll, tmp_path: Path) -> None:
    (tmp_path / "wrangler.toml").write_text(
        'name = "wr-site"\ncompatibility_date = "2026-01-01"\nassets = { directory = "public" }\n'
    )
    (tmp_path / "public").mkdir()
    for number in range(60):  # more than are sent one by one
        (tmp_path / f"public/{number}.txt").write_text(f"file {number}")
    wrangler.run(tmp_path, "deploy")
    check_requests("deploy of a site", wrangler.asked("wr-site"))
    assert strict.get("wr-site", "/59.txt").text == "file 59"
