"""A store of objects to test, and a model of what it must hold."""

from __future__ import annotations

import asyncio
import os
import struct
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from atoll.objects.local import LocalObjects
from atoll.objects.store import KEEP_ALARM, NO_ALARM, PAGE, Commit, ObjectKey, Opened

SEGMENT = 64 << 10
MOST = 1 << 20


def key(number: int = 1, namespace: str = "counters") -> ObjectKey:
    return ObjectKey(namespace, f"{number:064x}")


def page(word: object) -> bytes:
    return str(word).encode().ljust(PAGE, b".")


def make_commit(
    sequence: int, pages: int, changed: dict[int, bytes], alarm: int = KEEP_ALARM, alarm_ms: int = NO_ALARM
) -> Commit:
    numbers = struct.pack(f"<{len(changed)}I", *changed)
    return Commit(sequence, pages, numbers, b"".join(changed.values()), alarm, alarm_ms)


class Stored:
    """Commits to one store, and waits for them."""

    def __init__(self, store: LocalObjects) -> None:
        self.store = store

    def begin(self, key: ObjectKey, commit: Commit) -> asyncio.Future[None]:
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def done(error: Exception | None) -> None:
            if error is None:
                future.set_result(None)
            else:
                future.set_exception(error)

        self.store.commit(key, commit, done)
        return future

    async def open(self, key: ObjectKey) -> Opened:
        opened = await self.store.open(key)
        os.close(opened.fd)
        return opened

    async def write(self, key: ObjectKey, *words: object) -> None:
        """Open an object and write a word to its first page for each commit."""
        sequence = (await self.open(key)).sequence
        for count, word in enumerate(words, 1):
            await self.begin(key, make_commit(sequence + count, 1, {1: page(word)}))
        self.store.close(key)

    async def pages(self, key: ObjectKey) -> list[bytes]:
        opened = await self.store.open(key)
        try:
            assert os.fstat(opened.fd).st_size == opened.pages * PAGE
            return [os.pread(opened.fd, PAGE, number * PAGE) for number in range(opened.pages)]
        finally:
            os.close(opened.fd)
            self.store.close(key)

    async def words(self, key: ObjectKey) -> list[str]:
        return [each.rstrip(b".").decode() for each in await self.pages(key)]


@asynccontextmanager
async def running(data: Path, *, segment: int = SEGMENT, most: int = MOST) -> AsyncIterator[Stored]:
    store = await LocalObjects.start(data, segment=segment, most=most)
    try:
        yield Stored(store)
    finally:
        await store.stop()


def segments(data: Path) -> Sequence[Path]:
    return sorted((data / "objects" / "journal").glob("*.segment"))
