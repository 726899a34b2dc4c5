"""Projects like Cloudflare's most used public templates, unchanged from their wrangler config.

Each has what such a template has: its config in the original format, environments, bindings, npm packages. Atoll
refuses what it does not support with one clear message per field, and `atoll doctor` reports it before anything runs.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.test_projects import run
from tests.project.conftest import ROOT
from tests.running import Atoll

Write = Callable[..., Path]
DATE = "2025-10-08"


@pytest.fixture
def project(tmp_path: Path) -> Write:
    """`project("name", **files)` writes a project with the packages of this repository, and returns its folder."""

    def write(name: str, **files: str | bytes) -> Path:
        folder = tmp_path / name
        for path, content in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content if isinstance(content, bytes) else content.encode())
        (folder / "node_modules").symlink_to(ROOT / "node_modules")  # as `npm install` leaves it
        return folder

    return write


def node_of(atoll: Atoll) -> dict[str, str]:
    return {"ATOLL_API": f"http://localhost:{atoll.port}"}


def test_an_api_with_environments_variables_and_routes(atoll: Atoll, project: Write) -> None:
    config = """{
      "$schema": "node_modules/wrangler/config-schema.json",
      "name": "cf-api", "main": "src/index.ts", "compatibility_date": "2025-10-08",
      "compatibility_flags": ["nodejs_compat"],
      "observability": { "enabled": true, "head_sampling_rate": 1 },
      "placement": { "mode": "smart" },
      "vars": { "STAGE": "default", "LIMITS": { "items": 10 } },
      "env": {
        "production": { "vars": { "STAGE": "live", "LIMITS": { "items": 100 } }, "routes": ["cf-shop.example/api/*"] },
        "preview": { "name": "cf-api-pr-1", "vars": { "STAGE": "preview" } }, // no LIMITS
      },
    }"""
    source = """
      import { AutoRouter, cors, json } from "itty-router";
      import { nanoid } from "nanoid";
      const { preflight, corsify } = cors();
      const router = AutoRouter<any, [Env]>({ before: [preflight], finally: [corsify] });
      interface Env { STAGE: string; LIMITS?: { items: number } }
      router
        .get("/api/stage", (_: any, env: Env) => ({ stage: env.STAGE, items: env.LIMITS?.items ?? null }))
        .post("/api/items", async (request: any) => json({ id: nanoid().length, ...(await request.json()) }));
      export default { ...router } satisfies { fetch: unknown };
    """
    folder = project("cf-api", **{"wrangler.jsonc": config, "src/index.ts": source})
    said = run(folder, "deploy", **node_of(atoll)).stderr
    assert "`placement` is ignored" in said and said.count("warning:") == 1
    assert atoll.get("cf-api", "/api/stage").json == {"stage": "default", "items": 10}
    made = atoll.post("cf-api", "/api/items", b'{"title":"x"}', {"Origin": "https://a.example"})
    assert (made.json, made.headers["access-control-allow-origin"]) == ({"id": 21, "title": "x"}, "*")
    run(folder, "deploy", "--env", "production", **node_of(atoll))
    assert atoll.request("GET", "cf-shop.example", "/api/stage").json == {"stage": "live", "items": 100}
    run(folder, "deploy", "--env", "preview", **node_of(atoll))
    assert atoll.get("cf-api-pr-1", "/api/stage").json == {"stage": "preview", "items": None}
    assert "no environment `prod`" in run(folder, "deploy", "--env", "prod", code=1, **node_of(atoll)).stderr


def test_a_queue_with_its_producer_and_consumer(atoll: Atoll, project: Write) -> None:
    config = f"""
      name = "cf-queue"
      main = "src/index.ts"
      compatibility_date = "{DATE}"
      kv_namespaces = [ {{ binding = "DONE", id = "0f2ac74b498b48028cb68387c421e279", preview_id = "x" }} ]
      [[queues.producers]]
      queue = "cf-jobs"
      binding = "JOBS"
      [[queues.consumers]]
      queue = "cf-jobs"
      max_batch_size = 10
      max_batch_timeout = 1
      max_retries = 3
      dead_letter_queue = "cf-jobs-dead"
    """
    source = """
      interface Env { JOBS: Queue<{ n: number }>; DONE: KVNamespace }
      export default {
        async fetch(request, env): Promise<Response> {
          if (request.method === "GET") return Response.json((await env.DONE.list()).keys.map(({ name }) => name));
          await env.JOBS.sendBatch([1, 2, 3].map((n) => ({ body: { n } })));
          return new Response("queued", { status: 202 });
        },
        async queue(batch, env): Promise<void> {
          for (const message of batch.messages) {
            await env.DONE.put(`job ${message.body.n}`, message.id);
            message.ack();
          }
        },
      } satisfies ExportedHandler<Env, { n: number }>;
    """
    run(project("cf-queue", **{"wrangler.toml": config, "src/index.ts": source}), "deploy", **node_of(atoll))
    assert atoll.post("cf-queue").status == 202
    atoll.wait_until(lambda: atoll.get("cf-queue").json == ["job 1", "job 2", "job 3"], 30)


def test_two_workers_joined_by_a_service_binding_with_methods(atoll: Atoll, project: Write) -> None:
    back = """
      import { WorkerEntrypoint } from "cloudflare:workers";
      export default class extends WorkerEntrypoint {
        async fetch() { return new Response("back"); }
        add(a, b) { return a + b; }
      }
      export class Admin extends WorkerEntrypoint { whoami() { return `admin for ${this.ctx.props.team}`; } }
    """
    front = """
      export default {
        async fetch(request, env) {
          const plain = await (await env.BACK.fetch(request)).text();
          return Response.json({ plain, sum: await env.BACK.add(2, 3), who: await env.ADMIN.whoami() });
        },
      };
    """
    config = '{ "name": "cf-back", "main": "index.js", "compatibility_date": "2025-10-08" }'
    run(project("cf-back", **{"wrangler.json": config, "index.js": back}), "deploy", **node_of(atoll))
    services = [
        {"binding": "BACK", "service": "cf-back"},
        {"binding": "ADMIN", "service": "cf-back", "entrypoint": "Admin", "props": {"team": "ops"}},
    ]
    config = json.dumps({"name": "cf-front", "main": "index.js", "compatibility_date": DATE, "services": services})
    run(project("cf-front", **{"wrangler.json": config, "index.js": front}), "deploy", **node_of(atoll))
    assert atoll.get("cf-front").json == {"plain": "back", "sum": 5, "who": "admin for ops"}


def test_modules_by_rules_aliases_defines_and_a_tsconfig(atoll: Atoll, project: Write) -> None:
    wasm = (
        b"\0asm"
        + struct.pack("<I", 1)
        + bytes.fromhex("010501600001" + "7f" + "030201000707010361646400000a06010400412a0b")
    )
    config = f"""
      name = "cf-modules"
      main = "src/index.tsx"
      compatibility_date = "{DATE}"
      minify = true
      rules = [
        {{ type = "Text", globs = ["**/*.graphql"], fallthrough = true }},
        {{ type = "Data", globs = ["**/*.dat"] }},
      ]
      [define]
      BUILD = "'abc'"
      [alias]
      "left-pad" = "./src/pad"
    """
    source = """
      import { renderToString } from "preact-render-to-string";
      import pad from "left-pad";
      import { title } from "@/title";
      import query from "./query.graphql";
      import data from "./numbers.dat";
      import wasm from "./answer.wasm";
      declare const BUILD: string;
      export default {
        async fetch() {
          const { exports } = await WebAssembly.instantiate(wasm);
          const html = renderToString(<h1 class="x">{title}</h1>);
          const bytes = [...new Uint8Array(data)];
          return Response.json({ html, pad: pad("a"), query, bytes, answer: exports.add(), BUILD });
        },
      };
    """
    tsconfig = (
        '{ "compilerOptions": { "jsx": "react-jsx", "jsxImportSource": "preact", "paths": { "@/*": ["./src/*"] } } }'
    )
    files: dict[str, str | bytes] = {
        "wrangler.toml": config, "src/index.tsx": source, "tsconfig.json": tsconfig, "src/query.graphql": "{ me }",
        "src/pad.ts": "export default (text: string) => text.padStart(3);", "src/numbers.dat": b"\1\2\3",
        "src/title.ts": 'export const title: string = "Rules";', "src/answer.wasm": wasm,
    }  # fmt: skip
    run(project("cf-modules", **files), "deploy", **node_of(atoll))
    assert atoll.get("cf-modules").json == {
        "html": '<h1 class="x">Rules</h1>', "pad": "  a", "query": "{ me }", "bytes": [1, 2, 3], "answer": 42,
        "BUILD": "abc",
    }  # fmt: skip


def test_a_worker_that_uses_node_modules(atoll: Atoll, project: Write) -> None:
    flags = ["nodejs_compat"]
    facts = {"name": "cf-node", "main": "index.ts", "compatibility_date": DATE, "compatibility_flags": flags}
    config = json.dumps(facts | {"vars": {"SECRET": "s"}})
    source = """
      import { AsyncLocalStorage } from "node:async_hooks";
      import { createHash } from "crypto";
      import { Buffer } from "node:buffer";
      import jwt from "jsonwebtoken";
      const store = new AsyncLocalStorage<string>();
      export default {
        fetch: (request: Request, env: { SECRET: string }) =>
          store.run("kept", async () => {
            await scheduler.wait(1);
            const token = jwt.sign({ sub: "ada" }, env.SECRET);
            return Response.json({
              hash: createHash("md5").update("x").digest("hex"), als: store.getStore(),
              base64: Buffer.from("ok").toString("base64"), env: process.env.SECRET,
              sub: jwt.verify(token, env.SECRET).sub,
            });
          }),
      };
    """
    run(project("cf-node", **{"wrangler.jsonc": config, "index.ts": source}), "deploy", **node_of(atoll))
    hashed = "9dd4e461268c8034f5c8564e155c67a6"
    assert atoll.get("cf-node").json == {"hash": hashed, "als": "kept", "base64": "b2s=", "env": "s", "sub": "ada"}


def test_the_older_syntax_with_a_build_step(atoll: Atoll, project: Write) -> None:
    config = f"""
      name = "cf-older"
      type = "javascript"
      main = "dist/worker.js"
      compatibility_date = "{DATE}"
      workers_dev = true
      [build]
      command = "mkdir -p dist && sed s/WHO/world/ src/worker.js > dist/worker.js"
      watch_dir = "src"
      [vars]
      GREETING = "Hello"
    """
    source = """addEventListener("fetch", (event) => event.respondWith(new Response(`${GREETING}, WHO`)));"""
    folder = project("cf-older", **{"wrangler.toml": config, "src/worker.js": source, "dist/worker.js": ""})
    said = run(folder, "deploy", **node_of(atoll)).stderr
    assert "`type` is not a known field" in said
    assert atoll.get("cf-older").text == "Hello, world"


# Templates that need a feature Atoll lacks: field -> the value in such a template's config
REFUSED = {
    "vectorize": '"vectorize": [{ "binding": "DB", "index_name": "i" }]',
    "images": '"images": { "binding": "IMAGES" }',
    "pages_build_output_dir": '"pages_build_output_dir": "./dist"',
}


@pytest.mark.parametrize("field", REFUSED)
def test_an_unsupported_feature_is_refused_by_name(atoll: Atoll, project: Write, field: str) -> None:
    name = f"cf-no-{field.replace('_', '-')}"[:40]
    config = f'{{ "name": "{name}", "main": "index.js", "compatibility_date": "{DATE}", {REFUSED[field]} }}'
    folder = project(
        name, **{"wrangler.jsonc": config, "index.js": "export default { fetch: () => new Response('runs') }"}
    )
    ran = run(folder, "deploy", code=1, **node_of(atoll))
    about = [line for line in ran.stderr.splitlines() if line.startswith(f"error: `{field}` is not supported: ")]
    assert len(about) == 1 and "hint: " in ran.stderr and ran.stdout == ""
    assert atoll.get(name).status == 404
    if field == "vectorize":  # checked for one field only: the code is the same for all
        checks = json.loads(run(folder, "doctor", "--no-sandbox", "--json", code=1, **node_of(atoll)).stdout)
        assert [c["level"] for c in checks if f"`{field}`" in c["text"]] == ["error"]
        run(folder, "deploy", "--allow-missing-bindings", **node_of(atoll))
        assert atoll.get(name).text == "runs"


USES_WHAT_IS_MISSING = """
import { RpcTarget } from "cloudflare:workers";
class Counter extends RpcTarget {}
export default {
  async fetch(request, env) {
    const { DB, POOL, AI, TEXT } = env;
    if (new URL(request.url).pathname === "/other") return Response.json([TEXT, typeof DB, !!POOL, await AI === AI]);
    console.log("env is", env);
    const said = [];
    const uses = [() => DB.prepare("SELECT 1"), () => POOL.connect("a"), () => AI.run("m"), () => { DB.x = 1; },
      () => new Counter()];
    for (const use of uses) {
      try { use(); said.push("worked"); } catch (error) { said.push(error.message); }
    }
    return Response.json(said);
  },
};
"""


def test_an_allowed_missing_binding_throws_when_used(atoll: Atoll, project: Write) -> None:
    config = f"""{{ "name": "cf-goes-without", "main": "index.js", "compatibility_date": "{DATE}",
      "vectorize": [{{ "binding": "DB", "index_name": "i" }}],
      "dispatch_namespaces": [{{ "binding": "POOL", "namespace": "x" }}],
      "images": {{ "binding": "AI" }}, "vars": {{ "TEXT": "t" }} }}"""
    folder = project("cf-goes-without", **{"wrangler.jsonc": config, "index.js": USES_WHAT_IS_MISSING})
    run(folder, "deploy", "--allow-missing-bindings", **node_of(atoll))
    assert json.loads(atoll.get("cf-goes-without", "/other").text) == ["t", "object", True, True]
    *said, target = json.loads(atoll.get("cf-goes-without").text)
    assert [text.split(" cannot be used: ")[0] for text in said] == ["env.DB", "env.POOL", "env.AI", "env.DB"]
    assert all("atoll doctor" in text for text in said)
    assert target == "worked"
    shown = json.loads(run(folder, "workers", "show", "cf-goes-without", "--json", **node_of(atoll)).stdout)
    fields = {binding["name"]: binding["field"] for binding in shown["bindings"]}
    assert fields == {"DB": "vectorize", "POOL": "dispatch_namespaces", "AI": "images"}


def test_a_project_with_durable_objects_deploys(atoll: Atoll, project: Write) -> None:
    config = f"""{{ "name": "cf-objects", "main": "index.js", "compatibility_date": "{DATE}",
      "durable_objects": {{ "bindings": [{{ "name": "ROOM", "class_name": "Room" }}] }},
      "migrations": [{{ "tag": "v1", "new_sqlite_classes": ["Room"] }}] }}"""
    source = """
      import { DurableObject } from "cloudflare:workers";
      export class Room extends DurableObject {
        async enter() {
          const count = ((await this.ctx.storage.get("count")) ?? 0) + 1;
          await this.ctx.storage.put("count", count);
          return count;
        }
      }
      export default { fetch: async (request, env) => new Response(await env.ROOM.getByName("a").enter()) };
    """
    folder = project("cf-objects", **{"wrangler.jsonc": config, "index.js": source})
    run(folder, "deploy", **node_of(atoll))
    assert [atoll.get("cf-objects").text for _ in range(2)] == ["1", "2"]
    run(folder, "deploy", **node_of(atoll))
    assert atoll.get("cf-objects").text == "3"
    (listed,) = json.loads(run(folder, "objects", "list", "cf-objects", "Room", "--json", **node_of(atoll)).stdout)
    run(folder, "objects", "delete", "cf-objects", "Room", listed["id"], **node_of(atoll))
    assert atoll.get("cf-objects").text == "1"
