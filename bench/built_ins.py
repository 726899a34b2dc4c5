"""What the first use of a built-in module costs an isolate, in CPU time of the engine.

Each sample is the first call of a worker that was never loaded; beside it, one that imports nothing. The engine
measures the time itself (`cpu_ms` of the invocation), so that a busy machine disturbs it little.
"""

from __future__ import annotations

import json
import statistics
import time

from bench.harness import Atoll, BenchError, fetch
from bench.report import Options, Row, main

MODULES = ("node:buffer", "node:events", "node:util", "node:stream", "node:crypto")
SAMPLES = 15
WAIT_SECONDS = 10.0


def worker(module: str) -> str:
    use = f'await import("{module}");' if module else ""
    return f"export default {{ async fetch() {{ {use} return new Response('done'); }} }};"


def cpu_ms(server: Atoll, name: str) -> float:
    """What the record of the one call to a worker says, once it is written."""
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
    found: dict[str, list[float]] = {module: [] for module in ("", *MODULES)}
    with Atoll({}, engines=1) as server:
        for number in range(SAMPLES * options.rounds):
            for index, (module, times) in enumerate(found.items()):
                name = f"m{index}n{number}"
                server.deploy({name: worker(module)})
                times.append(first_call(server, name))
    empty = statistics.median(found.pop(""))
    return [
        Row(f"first import of {module}, CPU", "ms", {"atoll": statistics.median(times) - empty})
        for module, times in found.items()
    ]


if __name__ == "__main__":
    main(run)
