"""Runs a worker inside a Python program and prints its response and its log: python examples/embed.py"""

from __future__ import annotations

import asyncio
from pathlib import Path

from atoll import Atoll

WORKER = Path(__file__).parent / "json-api" / "worker.js"


async def main() -> None:
    async with Atoll() as atoll:
        worker = await atoll.deploy("json-api", WORKER.read_text("utf-8"), env={"DEFAULT_NAME": "you"})
        response = await worker.fetch("/api/hello?name=Python")
        print(response.status, response.headers["content-type"], response.text.strip())
        for record in await worker.logs():
            print(f"{record['method']} {record['url']} {record['outcome']} in {record['cpu_ms']:.1f} ms of CPU")


if __name__ == "__main__":
    asyncio.run(main())
