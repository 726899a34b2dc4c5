"""Durable commits of objects: `python -m bench.objects_journal`.

Beside a bare loop of write and fdatasync in a file of full size, in the same run: the least a durable commit costs.
"""

from __future__ import annotations

import asyncio
import os
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median

from atoll.objects.local import LocalObjects
from atoll.objects.store import PAGE, Commit, ObjectKey

OBJECTS = 100
SECONDS = 5.0
SINGLE = 500
CONTENTS = os.urandom(PAGE)


def bare(folder: Path) -> float:
    """The median of one write and fdatasync, in ms."""
    with (folder / "bare").open("wb", buffering=0) as file:
        file.write(bytes(SINGLE * (PAGE + 512)))
        os.fsync(file.fileno())
        took = []
        for number in range(SINGLE):
            began = time.perf_counter()
            os.pwrite(file.fileno(), CONTENTS, number * (PAGE + 512))
            os.fdatasync(file.fileno())
            took.append(time.perf_counter() - began)
    return median(took) * 1000


class Committer:
    """Commits one page of one object after the other."""

    def __init__(self, store: LocalObjects, number: int) -> None:
        self._store = store
        self.key = ObjectKey("bench", f"{number:064x}")
        self.sequence = 0

    def commit(self, done: Callable[[Exception | None], None]) -> None:
        self.sequence += 1
        number = struct.pack("<I", 1 + self.sequence % 16)
        self._store.commit(self.key, Commit(self.sequence, 16, number, CONTENTS), done)

    def keep_on(self, until: float, ended: asyncio.Future[None]) -> None:
        def done(error: Exception | None) -> None:
            if error is not None:
                ended.set_exception(error)
            elif time.perf_counter() < until:
                self.commit(done)
            else:
                ended.set_result(None)

        self.commit(done)


async def single(store: LocalObjects) -> float:
    one = Committer(store, 0)
    os.close((await store.open(one.key)).fd)
    loop = asyncio.get_running_loop()
    took = []
    for _ in range(SINGLE):
        durable: asyncio.Future[Exception | None] = loop.create_future()
        began = time.perf_counter()
        one.commit(durable.set_result)
        assert await durable is None
        took.append(time.perf_counter() - began)
    return median(took) * 1000


async def crowd(store: LocalObjects) -> float:
    """Durable commits per second of many objects at once."""
    many = [Committer(store, number) for number in range(1, OBJECTS + 1)]
    for each in many:
        os.close((await store.open(each.key)).fd)
    loop = asyncio.get_running_loop()
    ends = [loop.create_future() for _ in many]
    began = time.perf_counter()
    for each, ended in zip(many, ends, strict=True):
        each.keep_on(began + SECONDS, ended)
    await asyncio.gather(*ends)
    return sum(each.sequence for each in many) / (time.perf_counter() - began)


async def measure(folder: Path) -> None:
    store = await LocalObjects.start(folder)
    try:
        least = bare(folder)
        one = await single(store)
        least = min(least, bare(folder))
        per_second = await crowd(store)
        sys.stdout.write(
            f"write + fdatasync, p50        {least:8.2f} ms\n"
            f"one commit, p50               {one:8.2f} ms   {one / least:.1f} x\n"
            f"{OBJECTS} objects at once       {per_second:12,.0f} durable commits/s\n"
        )
    finally:
        await store.stop()


def main() -> None:
    with tempfile.TemporaryDirectory(dir=sys.argv[1] if len(sys.argv) > 1 else ".") as folder:
        try:
            import uvloop

            uvloop.run(measure(Path(folder)))
        except ImportError:
            asyncio.run(measure(Path(folder)))


if __name__ == "__main__":
    main()
