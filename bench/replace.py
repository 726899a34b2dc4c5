"""Replace: a node takes the place of another under load, again and again. No client may notice.

    python -m bench.replace --times 5 --rate 1000 --sockets 200 --streams 20

Fails at the first refused connection, failed request, broken stream, lost write, or number that an object gives twice.
tests/replacing.py has the load and the checks.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path

from tests.replacing import FIELDS, NAME, SOURCE, Load
from tests.running import Atoll


async def replace_under(load: Load, times: int, every: float) -> None:
    for _ in range(times):
        await asyncio.sleep(every)
        await asyncio.to_thread(load.atoll.replace)
    await asyncio.sleep(every)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.replace", description="Replace a node under load.")
    parser.add_argument("--times", type=int, default=3, help="Default: 3.")
    parser.add_argument("--every", type=float, default=5, help="Seconds between two. Default: 5.")
    parser.add_argument("--rate", type=float, default=1000, help="Requests per second. Default: 1000.")
    parser.add_argument("--sockets", type=int, default=200, help="Open WebSockets. Default: 200.")
    parser.add_argument("--streams", type=int, default=20, help="Long responses. Default: 20.")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="atoll-replace-") as folder:
        node = Atoll(Path(folder), engines=2, drain_seconds=30, log_rate=10_000)
        node.start()
        try:
            node.deploy(NAME, SOURCE, **FIELDS)
            lines = int(10 * options.every) + 50
            load = Load(node, rate=options.rate, sockets=options.sockets, streams=options.streams, stream_lines=lines)
            found = asyncio.run(load.run(lambda: replace_under(load, options.times, options.every)))
            load.check()
        finally:
            node.stop()
    for problem in found.problems[:20]:
        print(f"error: {problem}", file=sys.stderr)
    print(
        f"{options.times} replacements: {found.answered:,} requests, slowest {found.slowest * 1000:.0f} ms;"
        f" {found.streams} streams, {found.messages:,} messages, {found.restarts} WebSockets told 1012;"
        f" {len(found.stored):,} writes checked, {len(found.problems)} problems"
    )
    return 1 if found.problems else 0


if __name__ == "__main__":
    sys.exit(main())
