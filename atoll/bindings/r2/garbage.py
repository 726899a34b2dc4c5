"""Removes content that nothing refers to: in the background, in small steps, never what is still read or backed up."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import apsw

from atoll.bindings.r2.content import now_ms
from atoll.bindings.r2.files import ContentFiles
from atoll.bindings.r2.rows import IN_FILE, IN_SERVICE
from atoll.bindings.r2.service.contents import ServiceContents
from atoll.bindings.r2.store import UPLOAD_DAYS
from atoll.db.folder import WORK_PREFIX
from atoll.db.sqlite import Database, rows
from atoll.errors import StorageFailed

log = logging.getLogger("atoll.bindings")

STEP = 200  # rows or files of one step: other writes wait a few ms for it
WAIT_SECONDS = 60.0  # between two rounds, if no content became garbage
GATHER_SECONDS = 0.1  # after some content became garbage: every write may make some
PAUSE_SECONDS = 0.02  # between two steps
MAX_ABANDONED = 10_000
BUSY_SECONDS = 1.0  # while a backup runs, or a reader still has the content

OLD_UPLOADS = "SELECT id FROM uploads WHERE created_at < ? LIMIT ?"
SEGMENTS = "SELECT file, place FROM segments WHERE content = ? ORDER BY number LIMIT ?"
KNOWS_FILE = "SELECT count(*) FROM segments WHERE file = ?"
SOME_GARBAGE = (
    "SELECT due, content FROM garbage WHERE (due, content) > (?, ?) AND due <= ? ORDER BY due, content LIMIT ?"
)


class Garbage:
    """Made on the event loop; `pin` and `unpin` are called on it."""

    def __init__(
        self,
        database: Database,
        files: ContentFiles,
        data: Path,
        is_new: Callable[[int], bool],
        service: ServiceContents | None,
    ) -> None:
        self._database = database
        self._files = files
        self._data = data
        self._is_new = is_new  # whether a file was made since the start
        self._service = service
        self._abandoned: set[int] = set()  # contents that were not stored, and may be in the service
        self._pinned: Counter[int] = Counter()  # contents that are read
        self._wake = asyncio.Event()
        self._task = asyncio.ensure_future(self._run())

    def pin(self, content: int) -> Callable[[], None]:
        """Keep a content until the returned function is called."""
        self._pinned[content] += 1

        def unpin() -> None:
            self._pinned[content] -= 1
            if not self._pinned[content]:
                del self._pinned[content]

        return unpin

    def wake(self) -> None:
        """Some content became garbage."""
        self._wake.set()

    def abandon(self, number: int) -> None:
        """A content was sent to the service, at least in part, and no object has it."""
        self._abandoned.add(number)
        self._wake.set()

    def refuse_if_behind(self) -> None:
        """StorageFailed if many failed uploads wait for the service: each has a file."""
        if len(self._abandoned) > MAX_ABANDONED:
            raise StorageFailed(f"{MAX_ABANDONED:,} failed uploads wait for the S3 service: try again later")

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _run(self) -> None:
        is_checked = False
        while True:
            self._wake.clear()
            wait = WAIT_SECONDS
            try:
                if not is_checked:
                    await self._note_keep_time()
                    await self._sweep_unfinished()
                await self._sweep_abandoned()
                if not is_checked:
                    await self._check_all()
                    is_checked = True
                await self._expire_uploads()
                await self._sweep_dropped()
                wait = await self._collect()
            except StorageFailed as error:
                log.error("R2 cannot remove old content: %s", error)
            except Exception:
                log.exception("R2 cannot remove old content")
            try:
                async with asyncio.timeout(wait):
                    await self._wake.wait()
            except TimeoutError:
                continue
            await asyncio.sleep(GATHER_SECONDS)

    async def _sweep_unfinished(self) -> None:
        """Remove files of uploads that a killed node left. Only as many as were in progress then."""
        for number in await self._files.run(self._files.unfinished):
            if self._is_new(number):
                continue
            if self._knows(number):
                await self._files.run(self._files.settle, number)
            elif self._service is not None:
                self._abandoned.add(number)
            else:
                await self._files.run(self._files.discard, number)

    async def _note_keep_time(self) -> None:
        """Contents of the service that are deleted from now on stay for as long as the settings say."""
        if self._service is not None:
            await self._delete("UPDATE service SET keep_seconds = ?", [self._service.keep_seconds])

    async def _sweep_abandoned(self) -> None:
        """Remove what uploads that came to nothing have left in the service. What fails is tried again later."""
        while self._abandoned and self._service is not None:
            number = next(iter(self._abandoned))
            await self._service.drop_parts(number)
            await self._service.remove([number])
            await self._files.run(self._files.discard, number)
            self._abandoned.discard(number)

    async def _check_all(self) -> None:
        """After a restore, which copies files that are newer than the index, remove contents without an object."""
        if self._files.is_checked:
            return
        started = time.time()
        for shard in await self._files.run(self._files.shards):
            numbers = await self._files.run(self._files.numbers_in, shard, started)
            for first in range(0, len(numbers), STEP):
                await self._files.run(self._files.remove, self._unknown(numbers[first : first + STEP]))
                await asyncio.sleep(0)
        if self._service is not None:
            await self._service.claim()
            async for page in self._service.numbers():
                for first in range(0, len(page), STEP):
                    await self._service.remove(self._unknown(page[first : first + STEP]))
        await self._files.run(self._files.mark_checked)

    def _unknown(self, numbers: Sequence[int]) -> list[int]:
        return [number for number in numbers if not self._is_new(number) and not self._knows(number)]

    def _knows(self, number: int) -> bool:
        return self._numbers(KNOWS_FILE, number)[0] > 0

    async def _expire_uploads(self) -> None:
        """Delete uploads that were begun long ago, with their parts."""
        before = now_ms() - UPLOAD_DAYS * 86_400_000

        def act(connection: apsw.Connection) -> int:
            old = rows(connection, str, OLD_UPLOADS, before, 10)
            for each in old:
                connection.execute("DELETE FROM parts WHERE upload = ?", (each,))
                connection.execute("DELETE FROM uploads WHERE id = ?", (each,))
            return len(old)

        if self._database.read(lambda connection: rows(connection, str, OLD_UPLOADS, before, 1)):
            more = 1
            while more:
                more = await self._database.write(act)
                await asyncio.sleep(PAUSE_SECONDS)

    async def _sweep_dropped(self) -> None:
        """Delete the objects of dropped buckets."""
        while dropped := self._numbers("SELECT id FROM dropped LIMIT 1"):
            await self._database.write(partial(_sweep_bucket, dropped[0]))
            await asyncio.sleep(PAUSE_SECONDS)

    async def _collect(self) -> float:
        """Remove the files of garbage. Returns the seconds until the next round."""
        after, now = (-1, 0), int(time.time())
        wait = WAIT_SECONDS
        while True:
            # A backup copies the index first, and files that it refers to later. What is garbage before the look at
            # the folder is not in that copy of the index.
            found = self._read(SOME_GARBAGE, *after, now, STEP)
            if not found:
                return wait
            if await self._files.run(self._is_backed_up):
                return BUSY_SECONDS
            after = found[-1]
            free = [content for _, content in found if content not in self._pinned]
            if len(free) < len(found):
                wait = BUSY_SECONDS
            await self._remove(free)
            await asyncio.sleep(PAUSE_SECONDS)

    def _is_backed_up(self) -> bool:
        return any(path.is_dir() for path in self._data.glob(f"{WORK_PREFIX}*"))

    async def _remove(self, contents: Sequence[int]) -> None:
        for content in contents:
            while segments := self._read(SEGMENTS, content, STEP):
                by_place = {place: [file for file, at in segments if at == place] for place in (IN_FILE, IN_SERVICE)}
                await self._files.run(self._files.remove, by_place[IN_FILE])
                if by_place[IN_SERVICE]:
                    await self._remove_from_service(by_place[IN_SERVICE])
                await self._delete("DELETE FROM segments WHERE file = ?", [file for file, _ in segments])
        await self._delete("DELETE FROM garbage WHERE content = ?", contents)

    async def _remove_from_service(self, numbers: Sequence[int]) -> None:
        if self._service is None:
            raise StorageFailed("content is in an S3 service, and this node has no settings for one (r2_service)")
        await self._service.remove(numbers)

    def _read(self, sql: str, *values: int) -> list[tuple[int, int]]:
        return self._database.read(lambda connection: rows(connection, lambda a, b: (a, b), sql, *values))

    def _numbers(self, sql: str, *values: int) -> list[int]:
        return self._database.read(lambda connection: rows(connection, int, sql, *values))

    async def _delete(self, sql: str, numbers: Sequence[int]) -> None:
        def act(connection: apsw.Connection) -> None:
            connection.executemany(sql, [(number,) for number in numbers])

        await self._database.write(act)


def _sweep_bucket(bucket: int, connection: apsw.Connection) -> None:
    """Delete some objects and uploads of a dropped bucket; then forget it."""
    sql = "DELETE FROM objects WHERE id IN (SELECT id FROM objects WHERE bucket = ? LIMIT ?)"
    connection.execute(sql, (bucket, STEP))
    count = connection.changes()
    uploads = rows(connection, str, "SELECT id FROM uploads WHERE bucket = ? LIMIT ?", bucket, 10)
    for each in uploads:
        connection.execute("DELETE FROM parts WHERE upload = ?", (each,))
        connection.execute("DELETE FROM uploads WHERE id = ?", (each,))
    if not count and not uploads:
        connection.execute("DELETE FROM dropped WHERE id = ?", (bucket,))
