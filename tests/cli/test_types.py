"""`atoll types`, judged by TypeScript itself."""

from __future__ import annotations

import subprocess
from pathlib import Path

from atoll.project.fetch import node_folder
from tests.cli.test_projects import run
from tests.project.conftest import ROOT

CONFIG = """
name = "typed"
main = "index.ts"
compatibility_date = "2026-01-01"
[vars]
TEXT = "x"
COUNT = 1
SHAPE = { list = [1, "a"], on = true }
[[kv_namespaces]]
binding = "KV"
id = "kv"
[[queues.producers]]
binding = "JOBS"
queue = "jobs"
[[services]]
binding = "API"
service = "api"
[[ratelimits]]
name = "RL"
namespace_id = "1"
simple = { limit = 1, period = 10 }
[version_metadata]
binding = "META"
"""
GOOD = """
export default {
  async fetch(request, env, ctx) {
    const text: string = env.TEXT + env.SHAPE.list.length;
    const count: number = env.COUNT;
    const value: string | null = await env.KV.get("key");
    const parsed = await env.KV.get<{ a: number }>("key", "json");
    await env.KV.put("key", "value", { expirationTtl: 60 });
    await env.JOBS.send({ text, count, value, a: parsed?.a });
    const { success } = await env.RL.limit({ key: env.META.id });
    ctx.waitUntil(scheduler.wait(10));
    const { readable } = new FixedLengthStream(3);
    for (const [name] of request.headers) console.log(name);
    return success ? env.API.fetch(request) : new Response(readable, { status: 429 });
  },
  async scheduled(controller, env) {
    console.log(controller.cron, env.TEXT);
  },
} satisfies ExportedHandler<Env>;
"""
BAD = """
export default {
  fetch(request, env) {
    return new Response(env.TEXT.nothing + env.MISSING);
  },
} satisfies ExportedHandler<Env>;
"""


def errors_of(folder: Path) -> str:
    command = [str(node_folder() / "bin/node"), str(ROOT / "node_modules/typescript/bin/tsc"), "-p", str(folder)]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def test_env_globals_and_the_template_have_types(tmp_path: Path) -> None:
    run(tmp_path, "init", "typescript", "typed")
    folder = tmp_path / "typed"
    (folder / "atoll.toml").write_text(CONFIG)
    (folder / "index.ts").write_text(GOOD)
    tsconfig = (folder / "tsconfig.json").read_text().replace('"src"', '"index.ts", "src"')
    (folder / "tsconfig.json").write_text(tsconfig)
    assert run(folder, "types").stdout == f"{folder}/worker-configuration.d.ts\n"
    assert errors_of(folder) == ""
    (folder / "index.ts").write_text(BAD)
    assert "Property 'nothing' does not exist on type 'string'" in errors_of(folder)
