"""CPU time of the first use of a built-in module or a web API in an isolate.

Each sample is the first call of a worker that was never loaded. The baseline is a worker that uses nothing. The engine
measures the time itself (`cpu_ms` of the invocation), so a busy machine affects it little.
"""

from __future__ import annotations

import json
import statistics
import time

from bench.harness import Atoll, BenchError, fetch
from bench.report import Options, Row, main

MODULES = ("node:buffer", "node:events", "node:util", "node:stream", "node:crypto")
# Modules and APIs, with the code that uses them first.
USES = {
    "crypto.subtle.digest": 'await crypto.subtle.digest("SHA-256", new Uint8Array(8));',
    "HMAC (importKey and sign)": """
        const hmac = { name: "HMAC", hash: "SHA-256" };
        const key = await crypto.subtle.importKey("raw", new Uint8Array(32), hmac, false, ["sign"]);
        await crypto.subtle.sign("HMAC", key, new Uint8Array(8));""",
    "AES-GCM (importKey and encrypt)": """
        const key = await crypto.subtle.importKey("raw", new Uint8Array(16), "AES-GCM", false, ["encrypt"]);
        await crypto.subtle.encrypt({ name: "AES-GCM", iv: new Uint8Array(12) }, key, new Uint8Array(8));""",
    "a ReadableStream, read": """
        const stream = new ReadableStream({ start(c) { c.enqueue("a"); c.close(); } });
        await stream.getReader().read();""",
    "a TransformStream, piped through": """
        const source = new ReadableStream({ start(c) { c.enqueue("a"); c.close(); } });
        await source.pipeThrough(new TransformStream()).getReader().read();""",
    "URLPattern": 'new URLPattern({ pathname: "/books/:id" }).exec("https://a.b/books/1");',
    "FormData": 'const form = new FormData(); form.append("a", "b"); await new Response(form).text();',
    "fetch, of a data: URL": 'await (await fetch("data:,a")).text();',
}
SAMPLES = 15
WAIT_SECONDS = 10.0


def worker(use: str) -> str:
    return f"export default {{ async fetch() {{ {use} return new Response('done'); }} }};"


def cpu_ms(server: Atoll, name: str) -> float:
    """The CPU time in the record of the only call to a worker, once the record is written."""
    deadline = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < deadline:
        records = json.loads(fetch(server.port, "localhost", f"/api/workers/{name}/logs")[1])["logs"]
        if records:
            return float(records[0]["cpu_ms"])
        time.sleep(0.01)
    raise BenchError(f"there is no record of the call to {name}")


def first_call(server: Atoll, name: str) -> float:
    server.expect(name, b"done")
    return cpu_ms(server, name)


def run(options: Options) -> list[Row]:
    uses = {"": ""}
    uses |= {f"first import of {module}": f'await import("{module}");' for module in MODULES}
    uses |= {f"first use of {name}": use for name, use in USES.items()}
    found: dict[str, list[float]] = {what: [] for what in uses}
    with Atoll({}, engines=1) as server:
        for number in range(SAMPLES * options.rounds):
            for index, (what, times) in enumerate(found.items()):
                name = f"m{index}n{number}"
                server.deploy({name: worker(uses[what])})
                times.append(first_call(server, name))
    empty = statistics.median(found.pop(""))
    return [Row(f"{what}, CPU", "ms", {"atoll": statistics.median(times) - empty}) for what, times in found.items()]


if __name__ == "__main__":
    main(run)
