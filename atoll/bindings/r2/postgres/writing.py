"""A write of one bucket, in its transaction. The tenant is locked: writes of one tenant follow one another.

What a write adds to the sizes of bucket and tenant, and the notifications about it, are gathered and stored at its end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from atoll.bindings.r2.conditions import ALWAYS, OnlyIf
from atoll.bindings.r2.limits import R2Refused
from atoll.bindings.r2.multipart import (
    ABORTED,
    COMPLETED,
    IN_PROGRESS,
    REMEMBERED,
    PartRow,
    UploadRow,
    assembled,
)
from atoll.bindings.r2.records import Noting
from atoll.bindings.r2.rows import ContentPlace, cost_of, refuse_over
from atoll.bindings.r2.store import (
    BucketPlace,
    Change,
    NoBucket,
    ObjectMeta,
    PartFacts,
    R2Bound,
    R2Usage,
    StoredObject,
)
from atoll.errors import StorageFailed
from atoll.postgres.pool import Connection

UPLOAD_COST = 500  # of an unfinished upload, besides its metadata: a tenant could begin any number of them
COUNTED = 200_000  # waiting notifications

ENTER = "SELECT id, objects, bytes, rules FROM r2_enter($1, $2)"
PRESENT = "SELECT etag, uploaded, content, part_size, cost FROM r2_objects WHERE bucket = $1 AND key = $2"
PUT = (
    "INSERT INTO r2_objects (bucket, key, version, size, etag, uploaded, storage_class, checksums, http, custom,"
    " content, part_size, cost, body) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)"
    " ON CONFLICT (bucket, key) DO UPDATE SET version = excluded.version, size = excluded.size, etag = excluded.etag,"
    " uploaded = excluded.uploaded, storage_class = excluded.storage_class, checksums = excluded.checksums,"
    " http = excluded.http, custom = excluded.custom, content = excluded.content, part_size = excluded.part_size,"
    " cost = excluded.cost, body = excluded.body"
)
GONE = " RETURNING o.key, o.content, o.part_size, o.cost"
DELETE = "DELETE FROM r2_objects o WHERE bucket = $1 AND key = ANY ($2)" + GONE
EXPIRE = (
    "DELETE FROM r2_objects o USING unnest($2::bytea[], $3::text[]) AS old (key, version)"
    " WHERE o.bucket = $1 AND o.key = old.key AND o.version = old.version" + GONE
)
DISCARD = "SELECT r2_discard(gone, $2) FROM unnest($1::bigint[]) AS gone"
ARRIVED = "DELETE FROM r2_unfinished WHERE file = $1 AND NOT is_dead"
SEGMENT = "INSERT INTO r2_segments (content, number, file, place) VALUES ($1, $2, $3, $4)"

NEW_UPLOAD = (
    "INSERT INTO r2_uploads (id, bucket, key, state, created_at, storage_class, http, custom)"
    " VALUES ($1, $2, $3, 0, $4, $5, $6, $7)"
)
UPLOAD = "SELECT state, storage_class, http, custom FROM r2_uploads WHERE id = $1 AND bucket = $2 AND key = $3"
PARTS = "SELECT number, content, size, etag FROM r2_parts WHERE upload = $1 AND number = ANY ($2)"
PUT_PART = "INSERT INTO r2_parts (upload, number, content, size, etag, uploaded) VALUES ($1, $2, $3, $4, $5, $6)"
DROP_PARTS = "DELETE FROM r2_parts WHERE upload = $1 AND ($2::int IS NULL OR number = $2) RETURNING content, size"
MOVE = (
    "UPDATE r2_segments s SET content = $1, number = p.number::int FROM unnest($2::bigint[]) WITH ORDINALITY"
    " AS p (content, number) WHERE s.content = p.content AND s.number = 1"
)
FINISH = "UPDATE r2_uploads SET state = $2 WHERE id = $1"
FORGET = (
    "DELETE FROM r2_uploads WHERE id IN (SELECT id FROM r2_uploads WHERE bucket = $1 AND state > 0"
    " ORDER BY created_at DESC OFFSET $2)"
)
WAITING = "SELECT count(*) FROM (SELECT FROM r2_events WHERE tenant = $1 LIMIT $2) AS waiting"
NOTE = "INSERT INTO r2_events (tenant, queue, body) SELECT $1, * FROM unnest($2::text[], $3::bytea[])"


class BucketWrite:
    """Begin it with `enter`, and end it with `count`, in one transaction."""

    def __init__(self, connection: Connection, place: BucketPlace, grace: float, noting: Noting) -> None:
        self.connection = connection
        self._place = place
        self._grace = grace  # seconds for which garbage stays, because nodes may read it
        self._noting = noting
        self.bucket = 0
        self._rules: str | None = None
        self._before = R2Usage(0, 0)
        self._objects = self._bytes = 0  # that it adds
        self._messages: list[tuple[str, bytes]] = []

    async def enter(self) -> None:
        row = await self.connection.fetchrow(ENTER, *self._place)
        if row is None:
            raise NoBucket
        self.bucket, self._rules = row["id"], row["rules"]
        self._before = R2Usage(row["objects"], row["bytes"])

    async def count(self, bound: R2Bound | None) -> None:
        """Store what was gathered. Raises R2OverQuota."""
        if bound is not None:
            after = R2Usage(self._before.objects + self._objects, self._before.bytes + self._bytes)
            refuse_over(self._before, after, bound)
        if self._objects or self._bytes:
            values = self._place.tenant, self.bucket, self._objects, self._bytes
            await self.connection.execute("SELECT r2_count($1, $2, $3, $4)", *values)
        if self._messages:
            self._noting.check(
                await self.connection.fetchval(WAITING, self._place.tenant, COUNTED) + len(self._messages)
            )
            queues, bodies = zip(*self._messages, strict=True)
            await self.connection.execute(NOTE, self._place.tenant, queues, bodies)

    def note(self, change: Change) -> None:
        if self._rules is not None:
            self._messages += self._noting.messages(self._rules, self._place, change)

    # Objects

    async def put(self, stored: StoredObject, where: ContentPlace, only_if: OnlyIf) -> bool:
        """Put an object in the place of the present one, if the condition holds of that."""
        present = await self.connection.fetchrow(PRESENT, self.bucket, stored.key)
        etag, uploaded = (None, 0) if present is None else (present["etag"], present["uploaded"])
        if not only_if.holds(etag, uploaded):
            return False
        cost = cost_of(stored.key, stored.size, ObjectMeta(stored.http, stored.custom))
        values = (*stored, where.content, where.part_size, cost, where.body)
        await self.connection.execute(PUT, self.bucket, *values)
        self._objects += present is None
        self._bytes += cost - (0 if present is None else present["cost"])
        if present is not None and present["part_size"]:
            await self._discard([present["content"]], self._grace)
        return True

    async def arrived(self, content: int, place: int) -> None:
        """The content of an upload is an object's or a part's from now on."""
        if await self.connection.execute(ARRIVED, content) != "DELETE 1":
            raise StorageFailed("this node was cut off from the others for too long: send the content again")
        await self.connection.execute(SEGMENT, content, 1, content, place)

    async def delete(self, keys: Sequence[bytes]) -> int:
        gone = await self._gone(await self.connection.fetch(DELETE, self.bucket, list(keys)))
        for key in dict.fromkeys(keys):
            if key in gone:
                self.note(Change("DeleteObject", key))
        return len(gone)

    async def expire(self, versions: Sequence[tuple[bytes, str]]) -> int:
        keys, named = [key for key, _ in versions], [version for _, version in versions]
        gone = await self._gone(await self.connection.fetch(EXPIRE, self.bucket, keys, named))
        for key in keys:
            if key in gone:
                self.note(Change("LifecycleDeletion", key))
        return len(gone)

    async def _gone(self, rows: Sequence[Any]) -> set[bytes]:
        self._objects -= len(rows)
        self._bytes -= sum(row["cost"] for row in rows)
        await self._discard([row["content"] for row in rows if row["part_size"]], self._grace)
        return {row["key"] for row in rows}

    async def _discard(self, contents: Sequence[int], grace: float) -> None:
        if contents:
            await self.connection.fetch(DISCARD, list(contents), grace)

    # Uploads in parts

    async def new_upload(self, upload_id: str, key: bytes, meta: ObjectMeta, now: int) -> None:
        values = upload_id, self.bucket, key, now, meta.storage_class, meta.http, meta.custom
        await self.connection.execute(NEW_UPLOAD, *values)
        self._bytes += _upload_cost(key, meta.http, meta.custom)

    async def find_upload(self, key: bytes, upload_id: str) -> UploadRow | None:
        row = await self.connection.fetchrow(UPLOAD, upload_id, self.bucket, key)
        return None if row is None else UploadRow(*row.values())

    async def add_part(self, key: bytes, upload_id: str, part: PartFacts, file: int, place: int) -> None:
        """Enter a part, in place of an earlier part of its number."""
        upload = await self.find_upload(key, upload_id)
        if upload is None or upload.state != IN_PROGRESS:
            raise R2Refused(10024)
        await self.arrived(file, place)
        await self._drop_parts(upload_id, part.number)
        values = upload_id, part.number, file, part.size, part.etag, part.uploaded
        await self.connection.execute(PUT_PART, *values)
        self._bytes += part.size

    async def complete(
        self, key: bytes, upload_id: str, wanted: Sequence[tuple[int, str]], content: int, now: int
    ) -> StoredObject:
        upload = await self.find_upload(key, upload_id)
        numbers = sorted(number for number, _ in wanted)
        if upload is None or len(set(numbers)) != len(numbers):
            raise R2Refused(10001)
        if upload.state != IN_PROGRESS:
            raise R2Refused(10024)
        rows = await self.connection.fetch(PARTS, upload_id, numbers)
        found = {row["number"]: PartRow(row["content"], row["size"], row["etag"]) for row in rows}
        for number, etag in wanted:
            if number not in found or found[number].etag != etag:
                raise R2Refused(10025)
        parts = [found[number] for number in numbers]
        stored, part_size = assembled(key, upload, parts, now)
        await self.connection.execute(MOVE, content, [part.content for part in parts])
        await self._drop_parts(upload_id, None)  # those that are used have no segments any more
        await self._finish(upload_id, key, upload, COMPLETED)
        await self.put(stored, ContentPlace(content, part_size), ALWAYS)
        self.note(Change("CompleteMultipartUpload", key, stored.size, stored.etag))
        return stored

    async def abort(self, key: bytes, upload_id: str) -> None:
        upload = await self.find_upload(key, upload_id)
        if upload is None:
            raise R2Refused(10001)
        if upload.state == IN_PROGRESS:
            await self._drop_parts(upload_id, None)
            await self._finish(upload_id, key, upload, ABORTED)

    async def forget_upload(self, key: bytes, upload_id: str) -> None:
        """Delete an upload that was begun long ago, with its parts."""
        upload = await self.find_upload(key, upload_id)
        if upload is None:
            return
        await self._drop_parts(upload_id, None)
        await self.connection.execute("DELETE FROM r2_uploads WHERE id = $1", upload_id)
        if upload.state == IN_PROGRESS:
            self._bytes -= _upload_cost(key, upload.http, upload.custom)

    async def _drop_parts(self, upload_id: str, number: int | None) -> None:
        rows = await self.connection.fetch(DROP_PARTS, upload_id, number)
        self._bytes -= sum(row["size"] for row in rows)
        await self._discard([row["content"] for row in rows], 0)  # nobody reads parts

    async def _finish(self, upload_id: str, key: bytes, upload: UploadRow, state: int) -> None:
        await self.connection.execute(FINISH, upload_id, state)
        self._bytes -= _upload_cost(key, upload.http, upload.custom)
        await self.connection.execute(FORGET, self.bucket, REMEMBERED)


def _upload_cost(key: bytes, http: str, custom: str) -> int:
    return UPLOAD_COST + len(key) + len(http) + len(custom)
