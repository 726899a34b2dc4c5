"""Removes content that nothing refers to, by any of several nodes, each content once.

Content that was replaced or deleted stays for a few minutes, because other nodes may read it. A node that reads longer
says so once a minute, and what is read stays. So does, for as long as the settings say, what is in an S3 service: a
backup of the database names it. Content that never became an object's is removed by its node, or by another one when
that has ended. Before it is removed it is marked as dead, in the row that the commit of the object would delete: one
of both wins.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

from atoll.bindings.r2.content import now_ms
from atoll.bindings.r2.files import ContentFiles
from atoll.bindings.r2.limits import R2Refused
from atoll.bindings.r2.postgres.contents import SharedPlaces
from atoll.bindings.r2.postgres.writing import BucketWrite
from atoll.bindings.r2.store import UPLOAD_DAYS, BucketPlace
from atoll.errors import StorageAway, StorageFailed
from atoll.postgres.pool import Connection, Postgres

log = logging.getLogger("atoll.bindings")

STEP = 100  # rows of one transaction
WAIT_SECONDS = 60.0  # between two rounds
GATHER_SECONDS = 0.1  # after some content became garbage that may go at once
MAX_ABANDONED = 10_000

KILL = "UPDATE r2_unfinished SET is_dead = true WHERE file = $1 RETURNING place"
LOST = (  # of nodes that have ended
    "UPDATE r2_unfinished u SET is_dead = true WHERE session <> $1 AND NOT EXISTS"
    " (SELECT FROM nodes n WHERE n.session = u.session AND n.expires > clock_timestamp()) RETURNING file, place"
)
HAS = "SELECT EXISTS (SELECT FROM r2_segments WHERE file = $1)"
BURY = "DELETE FROM r2_unfinished WHERE file = $1 AND is_dead"
READING = (
    "INSERT INTO r2_reading (session, content) SELECT $1, content FROM r2_garbage WHERE content = ANY ($2)"
    " ON CONFLICT DO NOTHING"
)
READ = "DELETE FROM r2_reading WHERE session = $1 AND content <> ALL ($2)"
READ_BY_NOBODY = (
    "DELETE FROM r2_reading r WHERE session <> $1 AND NOT EXISTS"
    " (SELECT FROM nodes n WHERE n.session = r.session AND n.expires > clock_timestamp())"
)
OLD_UPLOADS = (
    "SELECT u.id, u.key, b.tenant, b.name FROM r2_uploads u JOIN r2_buckets b ON b.id = u.bucket"
    " WHERE u.created_at < $1 ORDER BY u.created_at LIMIT $2"
)
DUE = (
    "SELECT content FROM r2_garbage g WHERE due <= clock_timestamp() AND content <> ALL ($1)"
    " AND NOT EXISTS (SELECT FROM r2_reading r WHERE r.content = g.content) ORDER BY due LIMIT 1"
    " FOR UPDATE SKIP LOCKED"
)
SEGMENTS = "SELECT file, place FROM r2_segments WHERE content = $1 ORDER BY number LIMIT $2"
SWEEP_OBJECTS = (
    "DELETE FROM r2_objects WHERE (bucket, key) IN (SELECT bucket, key FROM r2_objects WHERE bucket = $1 LIMIT $2)"
    " RETURNING content, part_size"
)
SWEEP_PARTS = (
    "DELETE FROM r2_parts WHERE upload IN (SELECT id FROM r2_uploads WHERE bucket = $1 LIMIT 10) RETURNING content"
)
SWEEP_UPLOADS = (
    "DELETE FROM r2_uploads u WHERE id IN (SELECT id FROM r2_uploads WHERE bucket = $1 LIMIT 10)"
    " AND NOT EXISTS (SELECT FROM r2_parts WHERE upload = u.id)"
)
DISCARD = "SELECT r2_discard(gone, $2) FROM unnest($1::bigint[]) AS gone"


class Enters(Protocol):
    """Runs a write of a bucket (store.py)."""

    def __call__(self, place: BucketPlace, act: Callable[[BucketWrite], Awaitable[Any]], /) -> Awaitable[Any]: ...


class SharedGarbage:
    """Made on the event loop; `pin` and `unpin` are called on it."""

    def __init__(
        self, postgres: Postgres, places: SharedPlaces, files: ContentFiles, session: str, enter: Enters, grace: float
    ) -> None:
        self._postgres = postgres
        self._places = places
        self._files = files
        self._session = session
        self._enter = enter
        self._grace = grace
        self._abandoned: set[int] = set()  # contents that were sent, and may not have been stored
        self._pinned: Counter[int] = Counter()  # contents that are read
        self._wake = asyncio.Event()
        self._is_swept = False  # the files of an earlier process of this node are gone
        self._task = asyncio.ensure_future(self._run())

    def pin(self, content: int) -> Callable[[], None]:
        """Keep a content until the returned function is called."""
        self._pinned[content] += 1

        def unpin() -> None:
            self._pinned[content] -= 1
            if not self._pinned[content]:
                del self._pinned[content]
                if not self._grace:
                    self._wake.set()

        return unpin

    def wake(self) -> None:
        self._wake.set()

    def abandon(self, number: int) -> None:
        self._abandoned.add(number)
        self._wake.set()

    def refuse_if_behind(self) -> None:
        if len(self._abandoned) > MAX_ABANDONED:
            raise StorageFailed(f"{MAX_ABANDONED:,} failed uploads wait to be removed: try again later")

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _run(self) -> None:
        while True:
            self._wake.clear()
            try:
                await self.round()
            except StorageAway as error:
                log.debug("R2 cannot remove old content: %s", error)
            except StorageFailed as error:
                log.error("R2 cannot remove old content: %s", error)
            except Exception:
                log.exception("R2 cannot remove old content")
            try:
                async with asyncio.timeout(WAIT_SECONDS):
                    await self._wake.wait()
            except TimeoutError:
                continue
            await asyncio.sleep(GATHER_SECONDS)

    async def round(self) -> None:
        if not self._is_swept:
            await self._sweep_files()
        await self._tell_what_is_read()
        await self._places.open()
        await self._sweep_abandoned()
        await self._sweep_lost()
        await self._expire_uploads()
        await self._sweep_dropped()
        await self._collect()

    async def _sweep_files(self) -> None:
        """Files of uploads of an earlier process: what they were for is in the database, or was not stored."""
        for number in await self._files.run(self._files.old_unfinished):
            await self._files.run(self._files.discard, number)
        self._is_swept = True

    async def _tell_what_is_read(self) -> None:
        pinned = list(self._pinned)
        if pinned:
            await self._postgres.run(READING, self._session, pinned)
        await self._postgres.run(READ, self._session, pinned)
        await self._postgres.run(READ_BY_NOBODY, self._session)

    async def _sweep_abandoned(self) -> None:
        while self._abandoned:
            number = next(iter(self._abandoned))
            place: int | None = await self._postgres.value(KILL, number)
            if place is None and not await self._postgres.value(HAS, number):  # another node has buried it meanwhile
                place = self._places.new
            if place is not None:  # else its commit has won
                await self._bury(number, place)
            self._abandoned.discard(number)

    async def _sweep_lost(self) -> None:
        for row in await self._postgres.fetch(LOST, self._session):
            await self._bury(row["file"], row["place"])

    async def _bury(self, number: int, place: int) -> None:
        contents = self._places.of(place)
        await contents.drop_parts(number)
        await contents.remove([number])
        await self._postgres.run(BURY, number)

    async def _expire_uploads(self) -> None:
        """Delete uploads that were begun long ago, with their parts."""
        before = now_ms() - UPLOAD_DAYS * 86_400_000
        while rows := await self._postgres.fetch(OLD_UPLOADS, before, STEP):
            for row in rows:
                place, key, upload_id = BucketPlace(row["tenant"], row["name"]), row["key"], row["id"]
                await self._forget_upload(place, key, upload_id)

    async def _forget_upload(self, place: BucketPlace, key: bytes, upload_id: str) -> None:
        try:
            await self._enter(place, lambda write: write.forget_upload(key, upload_id))
        except R2Refused as error:  # the bucket was dropped just now
            log.debug("R2: an old upload is not deleted: %s", error)

    async def _sweep_dropped(self) -> None:
        """Delete the objects and uploads of dropped buckets, which no size counts any more."""
        is_done = False
        while not is_done:
            async with self._postgres.transaction() as connection:
                sql = "SELECT id FROM r2_dropped ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED"
                bucket: int | None = await connection.fetchval(sql)
                if bucket is None:
                    is_done = True
                elif not await self._sweep_bucket(connection, bucket):
                    await connection.execute("DELETE FROM r2_dropped WHERE id = $1", bucket)

    async def _sweep_bucket(self, connection: Connection, bucket: int) -> bool:
        objects = await connection.fetch(SWEEP_OBJECTS, bucket, STEP)
        contents = [row["content"] for row in objects if row["part_size"]]
        await connection.fetch(DISCARD, contents, self._grace)
        parts = await connection.fetch(SWEEP_PARTS, bucket)
        await connection.fetch(DISCARD, [row["content"] for row in parts], 0.0)
        done = await connection.execute(SWEEP_UPLOADS, bucket)
        return bool(objects or parts or done != "DELETE 0")

    async def _collect(self) -> None:
        """Remove garbage, a content at a time; one that another node is at is skipped."""
        is_done = False
        while not is_done:
            async with self._postgres.transaction() as connection:
                content: int | None = await connection.fetchval(DUE, list(self._pinned))
                if content is None:
                    is_done = True
                else:
                    await self._remove(connection, content)

    async def _remove(self, connection: Connection, content: int) -> None:
        segments = await connection.fetch(SEGMENTS, content, STEP)
        for place in {row["place"] for row in segments}:
            await self._places.of(place).remove([row["file"] for row in segments if row["place"] == place])
        files = [row["file"] for row in segments]
        await connection.execute("DELETE FROM r2_segments WHERE file = ANY ($1)", files)
        if len(segments) < STEP:
            await connection.execute("DELETE FROM r2_garbage WHERE content = $1", content)
