"""Calls between workers and to Durable Objects, beside workerd: wall time and CPU time of all processes per call.

One request makes all calls of a round, one after the other or all at once, so that the figures are about the calls and
not about HTTP. Both servers run one engine: workerd has one thread.
"""

from __future__ import annotations

import os
import statistics
import time
from pathlib import Path

from bench.harness import WORKERD, Atoll, BenchError, Server, Workerd, fetch
from bench.report import Options, Row, main

CALLS = 500  # calls per request
OBJECTS = 1_000
CALLEE = """import { WorkerEntrypoint } from "cloudflare:workers";
export default class extends WorkerEntrypoint {
  fetch() { return new Response("x".repeat(100)); }
  add(a, b) { return a + b; }
}"""
CALLER = f"""import {{ DurableObject }} from "cloudflare:workers";
export class Thing extends DurableObject {{
  value = 0;
  fetch() {{ return new Response("x".repeat(100)); }}
  write() {{
    const {{ sql }} = this.ctx.storage;
    sql.exec("CREATE TABLE IF NOT EXISTS w (id INTEGER PRIMARY KEY, name TEXT)");
    for (let i = 0; i < 100; i++) sql.exec("INSERT OR REPLACE INTO w VALUES (?, ?)", i, "name");
    return "ready";
  }}
  add(n) {{ return (this.value += n); }}
  read() {{
    const {{ sql }} = this.ctx.storage;
    sql.exec("CREATE TABLE IF NOT EXISTS t (id INTEGER PRIMARY KEY, name TEXT)");
    if (sql.exec("SELECT count(*) AS n FROM t").one().n === 0) sql.exec("INSERT INTO t VALUES (1, 'one')");
    for (let i = 0; i < 100; i++) sql.exec("SELECT name FROM t WHERE id = ?", 1).one();
    return "ready";
  }}
}}
let turn = 0;
const each = (count, call) => Promise.all(Array.from({{ length: count }}, (_, i) => call(i)));
const DOES = {{
  "/fetch": async ({{ API }}) => {{ for (let i = 0; i < {CALLS}; i++) await (await API.fetch("http://x/")).text(); }},
  "/rpc": async ({{ API }}) => {{ for (let i = 0; i < {CALLS}; i++) await API.add(1, i); }},
  "/rpcs": ({{ API }}) => each({CALLS}, (i) => API.add(1, i)),
  "/object": async ({{ THING }}) => {{
    const stub = THING.get(THING.idFromName("one"));
    for (let i = 0; i < {CALLS}; i++) await stub.add(1);
  }},
  "/object-fetch": async ({{ THING }}) => {{
    const stub = THING.get(THING.idFromName("one"));
    for (let i = 0; i < {CALLS}; i++) await (await stub.fetch("http://x/")).text();
  }},
  "/write": async ({{ THING }}) => {{
    const stub = THING.get(THING.idFromName("write"));
    for (let i = 0; i < {CALLS // 10}; i++) await stub.write();
  }},
  "/objects": ({{ THING }}) =>
    each({CALLS}, () => THING.get(THING.idFromName(`o${{(turn += 7919) % {OBJECTS}}}`)).add(1)),
  "/sql": async ({{ THING }}) => {{
    const stub = THING.get(THING.idFromName("sql"));
    for (let i = 0; i < {CALLS // 10}; i++) await stub.read();
  }},
  "/first": async ({{ THING }}) => {{
    for (let i = 0; i < {CALLS // 5}; i++) await THING.get(THING.newUniqueId()).add(1);
  }},
}};
export default {{ async fetch(request, env) {{
  await DOES[new URL(request.url).pathname](env);
  return new Response("ready");
}} }};"""
KINDS = {  # path -> title, and calls per request
    "/fetch": ("fetch of a service binding, one after the other", CALLS),
    "/rpc": ("method of a service binding, one after the other", CALLS),
    "/rpcs": (f"method of a service binding, {CALLS} at once", CALLS),
    "/object": ("method of one object, one after the other", CALLS),
    "/object-fetch": ("fetch of one object, one after the other", CALLS),
    "/objects": (f"methods of {OBJECTS:,} objects, {CALLS} at once", CALLS),
    "/sql": ("method of an object with 100 SQL reads", CALLS // 10),
    "/write": ("method of an object with 100 SQL writes", CALLS // 10),
    "/first": ("first call of a new object", CALLS // 5),
}


class BoundWorkerd(Workerd):
    """workerd with a worker that has the other one as a service binding, and objects of its own on disk."""

    def service(self, name: str, source: str, more: str = "") -> str:
        if name != "caller":
            return super().service(name, source, more)
        disk = Path(self.folder.name) / "objects"
        disk.mkdir(exist_ok=True)
        bound = '(name = "API", service = "callee"), (name = "THING", durableObjectNamespace = "Thing")'
        kept = '(className = "Thing", uniqueKey = "thing", enableSql = true)'
        more = (
            f', bindings = [{bound}], durableObjectNamespaces = [{kept}], durableObjectStorage = (localDisk = "disk")'
        )
        return super().service(name, source, more) + f', (name = "disk", disk = (path = "{disk}", writable = true))'


def cpu_seconds(server: Server) -> float:
    total = 0.0
    for pid in server.pids():
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        total += (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return total


def measure(server: Server, kind: str, rounds: int) -> tuple[float, float]:
    """Microseconds per call: median of the wall time, and CPU time of all processes."""
    port, host = server.address("caller")
    calls = KINDS[kind][1]
    times = []
    for _ in range(3):  # code is compiled, objects exist
        server.expect("caller", b"ready", kind)
    before = cpu_seconds(server)
    for _ in range(rounds):
        began = time.perf_counter()
        status, _ = fetch(port, host, kind)
        times.append((time.perf_counter() - began) / calls * 1e6)
        if status != 200:
            raise BenchError(f"{server.name} answered {kind} with {status}")
    return statistics.median(times), (cpu_seconds(server) - before) / rounds / calls * 1e6


def deploy(atoll: Atoll) -> None:
    atoll.deploy({"callee": CALLEE})
    bound = [
        {"type": "service", "name": "API", "service": "callee"},
        {"type": "durable_object", "name": "THING", "class_name": "Thing"},
    ]
    migrations = [{"tag": "v1", "new_sqlite_classes": ["Thing"]}]
    limits = {"subrequests": 2 * CALLS, "internal_subrequests": 4 * CALLS, "cpu_ms": 30_000, "memory_mb": 512}
    atoll.deploy({"caller": CALLER}, bindings=bound, migrations=migrations, limits=limits)


def run(options: Options) -> list[Row]:
    rounds = max(20, 10 * options.seconds)
    took: dict[str, dict[str, tuple[float, float]]] = {}
    with Atoll({}, engines=1) as atoll:
        deploy(atoll)
        took["atoll"] = {kind: measure(atoll, kind, rounds) for kind in KINDS}
    if WORKERD.exists():
        with BoundWorkerd({"caller": CALLER, "callee": CALLEE}) as peer:
            took["workerd"] = {kind: measure(peer, kind, rounds) for kind in KINDS}
    found = []
    for kind, (what, _) in KINDS.items():
        found += [
            Row(what, "us", {name: times[kind][0] for name, times in took.items()}),
            Row(f"{what}, CPU", "us", {name: times[kind][1] for name, times in took.items()}),
        ]
    return found


if __name__ == "__main__":
    main(run)
