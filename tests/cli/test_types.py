"""`atoll types`, checked by TypeScript itself and by an isolate."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from atoll import Atoll
from atoll.cli.types.command import global_types
from atoll.project.fetch import node_folder
from tests.cli.test_projects import run
from tests.project.conftest import ROOT

HERE = Path(__file__).resolve().parent
TSC = [str(node_folder() / "bin/node"), str(ROOT / "node_modules/typescript/bin/tsc")]
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
import { RpcStub, RpcTarget, WorkerEntrypoint } from "cloudflare:workers";
import page from "./page.html";

interface Adder { add(a: number, b: number): number }

class Counter extends RpcTarget { add(by: number): number { return by; } get value(): number { return 1; } }
interface Counters {
  make(start: number): Counter;
  on(listener: (by: number) => string): { stop(): void; name: string };
  read(counter: Counter): number;
}
async function counters(api: Service<Counters>, stub: RpcStub<Counter>) {
  const piped: number = await api.make(1).add(2);
  using counter = await api.make(1);
  const value: number = await counter.value, read: number = await api.read(counter.dup());
  const { name, stop } = await api.on((by) => `${by}`);
  await stop();
  return [piped, value, read, await stub.add(1), name.length, await new RpcStub((x: number) => x)(1)];
}

export class Admin extends WorkerEntrypoint<Env> {
  ping(): string { return this.env.TEXT; }
}

addEventListener("unhandledrejection", (event) => console.warn(event.reason));

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
    if (request.headers.get("upgrade") === "websocket") {
      const [client, server] = Object.values(new WebSocketPair());
      server.accept();
      server.addEventListener("message", ({ data }) => server.send(data.toString()));
      return new Response(null, { status: 101, webSocket: client });
    }
    const sum: number = await (env.API as Service<Adder>).add(1, 2);
    const key = await crypto.subtle.importKey("raw", new Uint8Array(16), "AES-GCM", false, ["encrypt"]);
    const sealed = await crypto.subtle.encrypt({ name: "AES-GCM", iv: new Uint8Array(12) }, key, new Uint8Array(sum));
    const gone = request.signal.aborted || (await caches.default.match(request)) !== undefined;
    const upper = new TransformStream<string, string>({ transform: (chunk, to) => to.enqueue(chunk.toUpperCase()) });
    const shouted = request.body?.pipeThrough(new TextDecoderStream()).pipeThrough(upper);
    if (gone) return Response.json({ page, size: sealed.byteLength, words: await shouted?.getReader().read() });
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
OF_BROWSERS = (
    "window", "document", "location", "localStorage", "XMLHttpRequest", "alert", "importScripts", "postMessage",
    "indexedDB", "Worker", "SharedArrayBuffer", "history", "Notification", "requestAnimationFrame", "close",
)  # fmt: skip
# Left out on purpose: compiling bytes is refused, and a declaration in the file explains the alternative.
UNDECLARED = {"WebAssembly": {"compile", "compileStreaming", "instantiateStreaming"}}
# Members of each object and not of the class
OF_OBJECTS = {"Event": {"isTrusted"}}
SCOPES = {"WorkerGlobalScope", "ServiceWorkerGlobalScope"}  # their members are the globals themselves
CHECK_JS = {
    "lib": ["esnext"], "types": [], "target": "esnext", "module": "esnext", "moduleResolution": "bundler",
    "allowJs": True, "checkJs": True, "noEmit": True, "strict": True, "noImplicitAny": False,
    "useUnknownInCatchVariables": False,
}  # fmt: skip
LANGUAGE_ONLY = ("SharedArrayBuffer",)  # declared by TypeScript's own library of ECMAScript


def errors_of(folder: Path) -> str:
    return subprocess.run([*TSC, "-p", str(folder)], capture_output=True, text=True, check=False).stdout


@pytest.fixture
def typed(tmp_path: Path) -> Path:
    run(tmp_path, "init", "typescript", "typed")
    folder = tmp_path / "typed"
    (folder / "atoll.toml").write_text(CONFIG)
    (folder / "index.ts").write_text(GOOD)
    tsconfig = (folder / "tsconfig.json").read_text().replace('"src"', '"index.ts", "src"')
    (folder / "tsconfig.json").write_text(tsconfig)
    assert run(folder, "types").stdout == f"{folder}/worker-configuration.d.ts\n"
    return folder


def test_env_globals_and_the_template_have_types(typed: Path) -> None:
    assert errors_of(typed) == ""
    (typed / "index.ts").write_text(BAD)
    assert "Property 'nothing' does not exist on type 'string'" in errors_of(typed)
    fields = json.loads(run(typed, "types", "--json").stdout)["fields"]
    assert fields["KV"] == "KVNamespace" and fields["COUNT"] == "number"


def test_a_service_binding_has_the_methods_of_the_worker_it_names(typed: Path) -> None:
    api = typed.parent / "api"
    api.mkdir()
    (api / "wrangler.toml").write_text('name = "api"\nmain = "api.ts"\ncompatibility_date = "2026-01-01"\n')
    worker = """import { WorkerEntrypoint } from "cloudflare:workers";
    export default class extends WorkerEntrypoint<{}> { add(a: number, b: number): number { return a + b; } }
    """
    (api / "api.ts").write_text(worker)
    fields = json.loads(run(typed, "types", "-c", "atoll.toml", "-c", "../api", "--json").stdout)["fields"]
    assert fields["API"] == 'ServiceOf<typeof import("../api/api").default>'
    uses = (
        "export default { async fetch(_, env) { const n: %s = await env.API.add(1, 2); return new Response(`${n}`) } }"
    )
    (typed / "index.ts").write_text(f"{uses % 'number'} satisfies ExportedHandler<Env>;\n")
    assert errors_of(typed) == ""
    (typed / "index.ts").write_text(f"{uses % 'string'} satisfies ExportedHandler<Env>;\n")
    assert "Type 'number' is not assignable to type 'string'" in errors_of(typed)


def test_browser_only_apis_have_no_types(typed: Path) -> None:
    names = [name for name in OF_BROWSERS if name not in LANGUAGE_ONLY]
    (typed / "index.ts").write_text("".join(f"console.log({name});\n" for name in names) + "export default {};\n")
    errors = errors_of(typed)
    assert [name for name in names if f"Cannot find name '{name}'" not in errors] == []


def test_every_example_and_template_passes_the_type_check(tmp_path: Path) -> None:
    """JavaScript too, as an editor checks it: a misspelt or undeclared API is an error."""
    (tmp_path / "globals.d.ts").write_text(global_types())
    found = [*(ROOT / "examples").glob("*/*.js"), *(ROOT / "atoll").rglob("templates/*/**/*.js")]
    # Files with "global" use declarations from elsewhere: @types/node, or variables as globals in the older syntax.
    scripts = [str(path) for path in found if "/* global " not in path.read_text()]
    assert len(scripts) > 15
    (tmp_path / "tsconfig.json").write_text(
        json.dumps({"compilerOptions": CHECK_JS, "files": ["globals.d.ts", *scripts]})
    )
    wants_jsdoc = "TS2810"  # resolve() without a value, which plain JavaScript cannot declare
    assert [line for line in errors_of(tmp_path).splitlines() if wants_jsdoc not in line] == []


def declared_in(folder: Path) -> Any:
    file = folder / "globals.d.ts"
    file.write_text(global_types())
    script = HERE / "declared_globals.mjs"
    ran = subprocess.run([TSC[0], str(script), str(file)], capture_output=True, text=True, check=True)
    return json.loads(ran.stdout)


async def test_the_declarations_are_the_globals_of_an_isolate(tmp_path: Path) -> None:
    """In both directions, down to the members of each class."""
    declared = declared_in(tmp_path)
    assert declared["problems"] == []
    async with Atoll() as atoll:
        lister = (HERE / "real_globals.js").read_text()
        worker = await atoll.deploy("globals", lister, compatibility_date="2026-01-01")
        real = json.loads((await worker.fetch("/")).text)
    assert set(real) == set(declared["found"])
    for name, found in declared["found"].items():
        if found == "value" or name in SCOPES:
            continue
        members = set(found["members"]) - OF_OBJECTS.get(name, set())
        statics = set(found["statics"]) | UNDECLARED.get(name, set())
        assert (name, members, statics) == (name, set(real[name]["members"]), set(real[name]["statics"]))
