"""Objects in PostgreSQL, for any number of nodes.

Nothing of the index is in memory: every read asks the database, so it sees each write that was confirmed, by whichever
node. A write is one transaction, which locks its tenant, tests the condition and counts the quota (writing.py). Content
up to 64 KiB is in the row of its object; larger content is sent first, to an S3 service or in rows of 1 MB, and the
commit of the row makes it count. If that commit finds that the upload was given up, because its node seemed to have
ended, it fails.
"""

from __future__ import annotations

import builtins
import secrets
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import apsw

from atoll.bindings.r2.admission import Admission
from atoll.bindings.r2.conditions import OnlyIf
from atoll.bindings.r2.content import DiskContent, now_ms
from atoll.bindings.r2.files import ContentFiles
from atoll.bindings.r2.limits import R2Refused
from atoll.bindings.r2.listing import Listing
from atoll.bindings.r2.multipart import IN_PROGRESS
from atoll.bindings.r2.postgres.contents import MARK, OpenService, SharedPlaces, SharedReader, SharedUpload, new_number
from atoll.bindings.r2.postgres.garbage import SharedGarbage
from atoll.bindings.r2.postgres.records import PostgresRecords, is_text
from atoll.bindings.r2.postgres.writing import BucketWrite
from atoll.bindings.r2.records import Noting, NotNoting
from atoll.bindings.r2.rows import ContentPlace, ContentSegment
from atoll.bindings.r2.store import (
    MAX_BUCKETS,
    BucketFacts,
    BucketPlace,
    Change,
    Checksum,
    ListPage,
    ListQuery,
    NoBucket,
    ObjectMeta,
    PartFacts,
    R2Bound,
    R2OverQuota,
    R2Usage,
    StoredObject,
    UploadFacts,
    after_prefix,
)
from atoll.errors import StartError, StorageAway, StorageFailed
from atoll.postgres.pool import Postgres

T = TypeVar("T")

FOLDER = "r2"  # in the data folder: only what is on its way
GRACE_SECONDS = 300.0  # for which garbage stays: nodes tell within a minute what they read (garbage.py)
LOOK_SECONDS = 5.0  # between two looks for notifications that a node left when it ended

FACTS = "o.key, o.version, o.size, o.etag, o.uploaded, o.storage_class, o.checksums"
OF_BUCKET = (
    " FROM r2_buckets b LEFT JOIN r2_objects o ON o.bucket = b.id AND o.key = $3 WHERE b.tenant = $1 AND b.name = $2"
)
HEAD = f"SELECT {FACTS}, o.http, o.custom{OF_BUCKET}"
OPEN = f"SELECT {FACTS}, o.http, o.custom, o.content, o.part_size, o.body{OF_BUCKET}"
LIST = (
    f"SELECT {FACTS}, {{}}, {{}} FROM r2_objects o WHERE bucket = $1 AND key >= $2 AND key < $3 ORDER BY key LIMIT $4"
)
BUCKET = "SELECT id FROM r2_buckets WHERE tenant = $1 AND name = $2"
BUCKETS = 'SELECT name, created_at, objects, bytes FROM r2_buckets WHERE tenant = $1 ORDER BY name COLLATE "C"'
OLDER = "SELECT release FROM nodes WHERE expires > clock_timestamp() AND NOT schemas ? 'tables of r2' LIMIT 1"
SOME = "SELECT tenant, name, created_at, objects, bytes FROM r2_buckets ORDER BY id LIMIT $1"
SEGMENT = "SELECT file, place FROM r2_segments WHERE content = $1 AND number = $2"
UPLOADS = (
    "SELECT u.key, u.id, u.created_at, u.storage_class FROM r2_buckets b LEFT JOIN LATERAL"
    ' (SELECT * FROM r2_uploads WHERE bucket = b.id AND state = 0 AND (key, id COLLATE "C") > ($3, $4 COLLATE "C")'
    ' AND key >= $5 AND key < $6 ORDER BY key, id COLLATE "C" LIMIT $7) u ON true'
    ' WHERE b.tenant = $1 AND b.name = $2 ORDER BY u.key, u.id COLLATE "C"'
)
PARTS = "SELECT number, etag, size, uploaded FROM r2_parts WHERE upload = $1 AND number > $2 ORDER BY number LIMIT $3"
STATE = "SELECT state FROM r2_uploads WHERE id = $1 AND bucket = $2 AND key = $3"


class PostgresObjects:
    def __init__(
        self,
        data: Path,
        postgres: Postgres,
        session: str,
        open_service: OpenService | None = None,
        *,
        grace: float = GRACE_SECONDS,
    ) -> None:
        self._postgres = postgres
        self._session = session
        self._grace = grace
        self.records = PostgresRecords(postgres)
        self.noting: Noting = NotNoting()
        self._admission = Admission()
        self._files = ContentFiles(data / FOLDER)
        self._places = SharedPlaces(postgres, open_service)
        self.garbage = SharedGarbage(postgres, self._places, self._files, session, self.enter, grace)

    # Buckets

    def bound(self, tenant: str, bound: R2Bound) -> None:
        self._admission.bound(tenant, bound)

    async def buckets(self, tenant: str) -> builtins.list[BucketFacts]:
        return [BucketFacts(*row.values()) for row in await self._postgres.fetch(BUCKETS, tenant)]

    async def some(self, most: int) -> builtins.list[tuple[BucketPlace, BucketFacts]]:
        rows = await self._postgres.fetch(SOME, most)
        return [(BucketPlace(tenant, name), BucketFacts(name, *facts)) for tenant, name, *facts in map(tuple, rows)]

    async def exists(self, place: BucketPlace) -> bool:
        return await self._postgres.value(BUCKET, *place) is not None

    async def create(self, place: BucketPlace, now: float) -> bool:
        if await self.exists(place):
            return False
        most = self._admission.most_buckets(place.tenant, MAX_BUCKETS)
        async with self._postgres.transaction() as connection:
            await connection.execute("INSERT INTO r2_tenants VALUES ($1) ON CONFLICT DO NOTHING", place.tenant)
            await connection.execute("SELECT FROM r2_tenants WHERE tenant = $1 FOR UPDATE", place.tenant)
            sql = (
                "SELECT count(*) AS count, coalesce(bool_or(name = $2), false) AS has FROM r2_buckets WHERE tenant = $1"
            )
            found = await connection.fetchrow(sql, *place)
            assert found is not None
            if found["has"]:
                return False
            if found["count"] >= most:
                raise R2OverQuota(found["count"] + 1, "buckets", most)
            if (older := await connection.fetchval(OLDER)) is not None:
                raise StorageAway(f"a node with Atoll {older} still runs, which does not share R2: upgrade it")
            sql = "INSERT INTO r2_buckets (tenant, name, created_at) VALUES ($1, $2, $3)"
            await connection.execute(sql, *place, int(now * 1000))
            return True

    async def drop(self, place: BucketPlace, *, force: bool = False) -> None:
        async with self._postgres.transaction() as connection:
            write = BucketWrite(connection, place, self._grace, self.noting)
            await write.enter()
            sql = "SELECT objects, bytes FROM r2_buckets WHERE id = $1"
            held = await connection.fetchrow(sql, write.bucket)
            assert held is not None
            if held["objects"] and not force:
                raise R2Refused(10008)
            await connection.execute(
                "UPDATE r2_tenants SET objects = objects - $2, bytes = bytes - $3 WHERE tenant = $1",
                place.tenant, *held.values(),
            )  # fmt: skip
            await connection.execute("DELETE FROM r2_buckets WHERE id = $1", write.bucket)
            await connection.execute("INSERT INTO r2_dropped (id) VALUES ($1)", write.bucket)
        self.garbage.wake()

    async def total(self, tenant: str) -> R2Usage:
        row = await self._postgres.row("SELECT objects, bytes FROM r2_tenants WHERE tenant = $1", tenant)
        return R2Usage(0, 0) if row is None else R2Usage(*row.values())

    async def _id(self, place: BucketPlace) -> int:
        number: int | None = await self._postgres.value(BUCKET, *place)
        if number is None:
            raise NoBucket
        return number

    # Reading

    async def head(self, place: BucketPlace, key: bytes) -> StoredObject | None:
        row = await self._postgres.row(HEAD, *place, key)
        if row is None:
            raise NoBucket
        return None if row["key"] is None else StoredObject(*row.values())

    async def open(self, place: BucketPlace, key: bytes) -> tuple[StoredObject, DiskContent] | None:
        row = await self._postgres.row(OPEN, *place, key)
        if row is None:
            raise NoBucket
        if row["key"] is None:
            return None
        facts = tuple(row.values())
        where = ContentPlace(*facts[9:])
        # It may have become garbage since it was found; garbage stays for a while.
        pin = _nothing if where.body is not None else self.garbage.pin(where.content)
        try:
            services = await self._places.open()
        except BaseException:
            pin()
            raise
        make = partial(SharedReader, self._segment, services, place.tenant)
        return StoredObject(*facts[:9]), DiskContent(self._files, where, _unused, pin, make)

    async def _segment(self, content: int, number: int) -> ContentSegment:
        row = await self._postgres.row(SEGMENT, content, number)
        if row is None:
            raise StorageFailed("a content of R2 is not in PostgreSQL as a whole")
        return ContentSegment(*row.values())

    async def list(self, place: BucketPlace, query: ListQuery) -> ListPage:
        sql = LIST.format("http" if query.with_http else "''", "custom" if query.with_custom else "''")
        listing = Listing(query)
        bucket = await self._id(place)
        while True:
            rows = await self._postgres.fetch(sql, bucket, listing.at, listing.end, listing.step)
            if (page := listing.take([StoredObject(*row.values()) for row in rows])) is not None:
                return page

    # Writing

    async def begin(
        self,
        place: BucketPlace,
        size: int,
        checksum: Checksum | None = None,
        *,
        source: tuple[str, str] | None = None,
    ) -> SharedUpload:
        await self._id(place)
        services = await self._places.open()
        new = self._places.new
        release = self._admission.admit(place.tenant, size)
        return SharedUpload(
            lambda number: self._mark(number, new),
            services[new], place.tenant, self.garbage,
            self._files, _SharedEntry(self, place, source, new), size, checksum, new_number, release,
        )  # fmt: skip

    async def _mark(self, number: int, place: int) -> None:
        await self._postgres.run(MARK, number, self._session, place)

    async def enter(self, place: BucketPlace, act: Callable[[BucketWrite], Awaitable[T]]) -> T:
        """Run a write of a bucket, within the tenant's quota."""
        async with self._postgres.transaction() as connection:
            write = BucketWrite(connection, place, self._grace, self.noting)
            await write.enter()
            result = await act(write)
            await write.count(self._admission.bound_of(place.tenant))
        if not self._grace:
            self.garbage.wake()
        self.noting.wake()
        return result

    async def delete(self, place: BucketPlace, keys: Sequence[bytes]) -> int:
        return await self.enter(place, lambda write: write.delete(keys))

    async def expire(self, place: BucketPlace, versions: Sequence[tuple[bytes, str]]) -> int:
        return await self.enter(place, lambda write: write.expire(versions))

    # Multipart uploads

    async def create_upload(self, place: BucketPlace, key: bytes, meta: ObjectMeta) -> str:
        upload_id = secrets.token_urlsafe(48)
        await self.enter(place, lambda write: write.new_upload(upload_id, key, meta, now_ms()))
        return upload_id

    async def complete(
        self, place: BucketPlace, key: bytes, upload_id: str, parts: Sequence[tuple[int, str]]
    ) -> StoredObject:
        if not is_text(upload_id):
            raise R2Refused(10001)
        content = new_number()
        return await self.enter(place, lambda write: write.complete(key, upload_id, parts, content, now_ms()))

    async def abort(self, place: BucketPlace, key: bytes, upload_id: str) -> None:
        if not is_text(upload_id):
            raise R2Refused(10001)
        await self.enter(place, lambda write: write.abort(key, upload_id))

    async def uploads(
        self, place: BucketPlace, prefix: bytes, after: tuple[bytes, str], limit: int
    ) -> builtins.list[UploadFacts]:
        key, id = after
        end = after_prefix(prefix) or b"\xff"
        rows = await self._postgres.fetch(UPLOADS, *place, key, id if is_text(id) else "", prefix, end, limit)
        if not rows:
            raise NoBucket
        return [UploadFacts(*row.values()) for row in rows if row["key"] is not None]

    async def parts(
        self, place: BucketPlace, key: bytes, upload_id: str, after: int, limit: int
    ) -> builtins.list[PartFacts]:
        bucket = await self._id(place)
        state = await self._postgres.value(STATE, upload_id, bucket, key) if is_text(upload_id) else None
        if state != IN_PROGRESS:
            raise R2Refused(10024)
        return [PartFacts(*row.values()) for row in await self._postgres.fetch(PARTS, upload_id, after, limit)]

    async def close(self) -> None:
        await self.garbage.close()
        self._files.close()
        self._places.close()


class _SharedEntry:
    """Where uploads into one bucket are entered."""

    def __init__(
        self, store: PostgresObjects, place: BucketPlace, source: tuple[str, str] | None, segments: int
    ) -> None:
        self._store = store
        self._place = place
        self._source = source
        self._segments = segments  # where they are

    async def save(self, stored: StoredObject, where: ContentPlace, only_if: OnlyIf) -> bool:
        async def act(write: BucketWrite) -> bool:
            if not await write.put(stored, where, only_if):
                return False
            if where.body is None:
                await write.arrived(where.content, self._segments)
            action = "PutObject" if self._source is None else "CopyObject"
            write.note(Change(action, stored.key, stored.size, stored.etag, self._source))
            return True

        return await self._store.enter(self._place, act)

    async def save_part(self, upload_id: str, key: bytes, part: PartFacts, file: int) -> None:
        if not is_text(upload_id):
            raise R2Refused(10024)
        await self._store.enter(self._place, lambda write: write.add_part(key, upload_id, part, file, self._segments))


def refuse_own_index(data: Path) -> None:
    """StartError if this folder has buckets of a time when nodes did not share them: they would be missing."""
    path = data / FOLDER / "index.db"
    if not path.exists():
        return
    try:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            [(count,)] = connection.execute("SELECT count(*) FROM buckets").fetchall()
        finally:
            connection.close()
    except apsw.Error as error:
        raise StartError(f"{path} cannot be read: {error}", "restore the folder from a backup") from None
    if count:
        raise StartError(
            f"{data / FOLDER} has {count} R2 buckets of this node alone, from before nodes shared them",
            "start the Atoll before this one again, copy their objects with an S3 client, and move the folder away",
        )


def _unused(content: int, number: int) -> ContentSegment:
    raise AssertionError("segments are found by the reader")


def _nothing(*_: Any) -> None:
    pass
