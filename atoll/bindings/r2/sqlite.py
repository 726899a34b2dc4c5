"""Objects on disk: an index in its own SQLite file, which holds small contents, and files for larger ones.

A put writes its file, syncs it, gives it its final name, and then commits its row: a row never refers to a file that is
not whole. The condition of a put is tested by that commit. Content that is replaced or deleted becomes garbage in the
same commit; its files are removed later (garbage.py). The ids of buckets are in memory.
"""

from __future__ import annotations

import builtins
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from importlib import resources
from pathlib import Path
from typing import NamedTuple, TypeAlias, TypeVar

import apsw

from atoll.bindings.r2 import multipart
from atoll.bindings.r2.admission import Admission
from atoll.bindings.r2.conditions import OnlyIf
from atoll.bindings.r2.content import DiskContent, DiskReader, DiskUpload, now_ms
from atoll.bindings.r2.files import ContentFiles
from atoll.bindings.r2.garbage import Garbage
from atoll.bindings.r2.limits import R2Refused
from atoll.bindings.r2.records import Noting, NotNoting
from atoll.bindings.r2.rows import (
    DELETE,
    IN_FILE,
    IN_SERVICE,
    ContentPlace,
    ContentSegment,
    find,
    find_content,
    list_page,
    refuse_over,
    replace,
    usage_of,
)
from atoll.bindings.r2.service.contents import ServiceContents
from atoll.bindings.r2.service.transfer import ServiceReader, ServiceUpload
from atoll.bindings.r2.sqlite_records import SqliteRecords, note
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
from atoll.db.sqlite import Database, rows
from atoll.errors import StorageFailed

T = TypeVar("T")
OpenService: TypeAlias = "Callable[[str, Callable[[], bytes]], ServiceContents]"  # (its folder there, its owner)

SHORT_LIST = 100  # a longer list is made by a thread
FOLDER = "r2"  # in the data folder
OWNER = "r2-owner"  # names this node in the service; not in backups
INDEX = "index.db"  # sorted before the files: a backup copies it first

BUCKETS = "SELECT id, tenant, name, created_at FROM buckets"
# The largest number in use. `objects` has no index of contents, but each content is in `bodies` or in `segments`.
LAST_CONTENT = (
    "SELECT max(coalesce((SELECT max(content) FROM bodies), 0), coalesce((SELECT max(content) FROM segments), 0),"
    " coalesce((SELECT max(file) FROM segments), 0), coalesce((SELECT max(content) FROM garbage), 0))"
)
SEGMENT = "SELECT file, place FROM segments WHERE content = ? AND number = ?"
UPLOADS = (
    "SELECT key, id, created_at, storage_class FROM uploads WHERE bucket = ? AND state = 0 AND (key, id) > (?, ?)"
    " AND key >= ? AND key < ? ORDER BY key, id LIMIT ?"
)
PARTS = "SELECT number, etag, size, uploaded FROM parts WHERE upload = ? AND number > ? ORDER BY number LIMIT ?"
NEW_UPLOAD = (
    "INSERT INTO uploads (id, bucket, key, state, created_at, storage_class, http, custom)"
    " VALUES (?, ?, ?, 0, ?, ?, ?, ?)"
)


class BucketRow(NamedTuple):
    id: int
    tenant: str
    name: str
    created_at: int


class SqliteObjects:
    def __init__(self, data: Path, open_service: OpenService | None = None) -> None:
        folder = data / FOLDER
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self.database = self._database = Database(
            folder / INDEX, migrations=resources.files("atoll.bindings.r2") / "migrations"
        )
        self.records = SqliteRecords(self._database)
        self.noting: Noting = NotNoting()
        self._files = ContentFiles(folder)
        self._known: dict[BucketPlace, BucketRow] = {}
        for row in self._database.read(lambda connection: rows(connection, BucketRow, BUCKETS)):
            self._known[BucketPlace(row.tenant, row.name)] = row
        self._admission = Admission()
        self._dropped: set[int] = set()  # buckets, since the start; on the writer thread
        [last] = self._database.read(lambda connection: rows(connection, int, LAST_CONTENT))
        self._first_number = self._last_number = max(last, time.time_ns() // 1000)
        self._numbering = threading.Lock()
        self._service = self._opened(open_service, folder / OWNER)
        self._place = IN_FILE if self._service is None else IN_SERVICE  # of new contents
        self.garbage = Garbage(self._database, self._files, data, self._is_new, self._service)

    def _opened(self, open_service: OpenService | None, owner_file: Path) -> ServiceContents | None:
        if open_service is None:
            return None
        [name] = self._database.read(lambda connection: rows(connection, str, "SELECT folder FROM service"))
        return open_service(name, partial(_owner_of, owner_file))

    def _is_new(self, number: int) -> bool:
        return number > self._first_number

    def _new_number(self) -> int:
        """The number of a new content or file. Never one that was used before, even if the clock was set back."""
        with self._numbering:
            self._last_number += 1
            return self._last_number

    # Buckets

    def bound(self, tenant: str, bound: R2Bound) -> None:
        self._admission.bound(tenant, bound)

    async def buckets(self, tenant: str) -> builtins.list[BucketFacts]:
        sql = "SELECT name, created_at, objects, bytes FROM buckets WHERE tenant = ? ORDER BY name"
        return self._database.read(lambda connection: rows(connection, BucketFacts, sql, tenant))

    async def some(self, most: int) -> builtins.list[tuple[BucketPlace, BucketFacts]]:
        sql = "SELECT tenant, name, created_at, objects, bytes FROM buckets ORDER BY id LIMIT ?"
        return self._database.read(lambda connection: rows(connection, _placed, sql, most))

    async def exists(self, place: BucketPlace) -> bool:
        return place in self._known

    async def create(self, place: BucketPlace, now: float) -> bool:
        if place in self._known:
            return False
        count = sum(1 for known in self._known if known.tenant == place.tenant)
        most = self._admission.most_buckets(place.tenant, MAX_BUCKETS)
        if count >= most:
            raise R2OverQuota(count + 1, "buckets", most)

        def act(connection: apsw.Connection) -> bool:
            sql = "INSERT INTO buckets (tenant, name, created_at) VALUES (?, ?, ?) ON CONFLICT DO NOTHING"
            connection.execute(sql, (*place, int(now * 1000)))
            return connection.changes() > 0

        is_new = await self._database.write(act)
        sql = f"{BUCKETS} WHERE tenant = ? AND name = ?"
        [row] = self._database.read(lambda connection: rows(connection, BucketRow, sql, *place))
        self._known[place] = row
        return is_new

    async def drop(self, place: BucketPlace, *, force: bool = False) -> None:
        number = self._id(place)

        def act(connection: apsw.Connection) -> None:
            [held] = rows(connection, int, "SELECT objects FROM buckets WHERE id = ?", number)
            if held and not force:
                raise R2Refused(10008)
            connection.execute("DELETE FROM buckets WHERE id = ?", (number,))
            connection.execute("INSERT OR IGNORE INTO dropped (id) VALUES (?)", (number,))
            self._dropped.add(number)

        try:
            await self._database.write(act)
        except StorageFailed:
            self._dropped.discard(number)  # it is still there
            raise
        self._known.pop(place, None)
        self.garbage.wake()

    async def total(self, tenant: str) -> R2Usage:
        return self._database.read(lambda connection: usage_of(connection, tenant))

    def _id(self, place: BucketPlace) -> int:
        known = self._known.get(place)
        if known is None:
            raise NoBucket
        return known.id

    # Reading

    async def head(self, place: BucketPlace, key: bytes) -> StoredObject | None:
        number = self._id(place)
        return self._database.read(lambda connection: find(connection, number, key))

    async def open(self, place: BucketPlace, key: bytes) -> tuple[StoredObject, DiskContent] | None:
        number = self._id(place)
        found = self._database.read(lambda connection: find_content(connection, number, key))
        if found is None:
            return None
        stored, where = found
        # No wait since the read: the content cannot have been removed in between.
        pin = self.garbage.pin(where.content)
        make = (
            DiskReader if self._service is None else partial(ServiceReader, {IN_SERVICE: self._service}, place.tenant)
        )
        return stored, DiskContent(self._files, where, self._segment, pin, make)

    def _segment(self, content: int, number: int) -> ContentSegment:
        found = self._database.read(lambda connection: rows(connection, ContentSegment, SEGMENT, content, number))
        if not found:
            raise StorageFailed("the storage of this node is damaged")
        return found[0]

    async def list(self, place: BucketPlace, query: ListQuery) -> ListPage:
        number = self._id(place)
        if query.limit <= SHORT_LIST:
            return self._database.read(lambda connection: list_page(connection, number, query))
        return await self._database.search(lambda connection: list_page(connection, number, query))

    # Writing

    async def begin(
        self,
        place: BucketPlace,
        size: int,
        checksum: Checksum | None = None,
        *,
        source: tuple[str, str] | None = None,
    ) -> DiskUpload:
        self._id(place)
        release = self._admission.admit(place.tenant, size)
        entry = _Entry(self, place, source, self._place)
        if self._service is None:
            return DiskUpload(self._files, entry, size, checksum, self._new_number, release)
        return ServiceUpload(
            self._service, place.tenant, self.garbage,
            self._files, entry, size, checksum, self._new_number, release,
        )  # fmt: skip

    async def enter(self, place: BucketPlace, act: Callable[[apsw.Connection, int], T]) -> T:
        """Run a write of a bucket, within the tenant's quota."""
        number, bound = self._id(place), self._admission.bound_of(place.tenant)

        def checked(connection: apsw.Connection) -> T:
            if number in self._dropped:  # deleted while this write waited
                raise NoBucket
            if bound is None:
                return act(connection, number)
            before = usage_of(connection, place.tenant)
            result = act(connection, number)
            refuse_over(before, usage_of(connection, place.tenant), bound)
            return result

        result = await self._database.write(checked)
        self.garbage.wake()
        self.noting.wake()
        return result

    async def delete(self, place: BucketPlace, keys: Sequence[bytes]) -> int:
        def act(connection: apsw.Connection, number: int) -> int:
            count = 0
            for key in keys:
                connection.execute(DELETE, (number, key))
                if connection.changes():
                    count += 1
                    note(connection, place, number, Change("DeleteObject", key), self.noting)
            return count

        return await self.enter(place, act)

    async def expire(self, place: BucketPlace, versions: Sequence[tuple[bytes, str]]) -> int:
        def act(connection: apsw.Connection, number: int) -> int:
            count = 0
            for key, version in versions:
                connection.execute(f"{DELETE} AND version = ?", (number, key, version))
                if connection.changes():
                    count += 1
                    note(connection, place, number, Change("LifecycleDeletion", key), self.noting)
            return count

        return await self.enter(place, act)

    # Multipart uploads

    async def create_upload(self, place: BucketPlace, key: bytes, meta: ObjectMeta) -> str:
        upload_id = secrets.token_urlsafe(48)

        def act(connection: apsw.Connection, number: int) -> None:
            values = (upload_id, number, key, now_ms(), meta.storage_class, meta.http, meta.custom)
            connection.execute(NEW_UPLOAD, values)

        await self.enter(place, act)
        return upload_id

    async def complete(
        self, place: BucketPlace, key: bytes, upload_id: str, parts: Sequence[tuple[int, str]]
    ) -> StoredObject:
        content = self._new_number()

        def act(connection: apsw.Connection, number: int) -> StoredObject:
            stored = multipart.complete(connection, number, key, upload_id, parts, content, now_ms())
            change = Change("CompleteMultipartUpload", key, stored.size, stored.etag)
            note(connection, place, number, change, self.noting)
            return stored

        return await self.enter(place, act)

    async def abort(self, place: BucketPlace, key: bytes, upload_id: str) -> None:
        await self.enter(place, lambda connection, number: multipart.abort(connection, number, key, upload_id))

    async def uploads(
        self, place: BucketPlace, prefix: bytes, after: tuple[bytes, str], limit: int
    ) -> builtins.list[UploadFacts]:
        values = (self._id(place), *after, prefix, after_prefix(prefix) or b"\xff", limit)
        return await self._database.search(lambda connection: rows(connection, UploadFacts, UPLOADS, *values))

    async def parts(
        self, place: BucketPlace, key: bytes, upload_id: str, after: int, limit: int
    ) -> builtins.list[PartFacts]:
        number = self._id(place)

        def look(connection: apsw.Connection) -> builtins.list[PartFacts]:
            upload = multipart.find_upload(connection, number, key, upload_id)
            if upload is None or upload.state != multipart.IN_PROGRESS:
                raise R2Refused(10024)
            return rows(connection, PartFacts, PARTS, upload_id, after, limit)

        return await self._database.search(look)

    async def close(self) -> None:
        await self.garbage.close()
        await self._database.close()
        self._files.close()
        if self._service is not None:
            self._service.close()


class _Entry:
    """Where uploads into one bucket are entered."""

    def __init__(self, store: SqliteObjects, place: BucketPlace, source: tuple[str, str] | None, segments: int) -> None:
        self._store = store
        self._place = place
        self._source = source
        self._segments = segments  # where they are

    async def save(self, stored: StoredObject, where: ContentPlace, only_if: OnlyIf) -> bool:
        def act(connection: apsw.Connection, number: int) -> bool:
            if not replace(connection, number, stored, where, only_if):
                return False
            if where.body is None:
                connection.execute(multipart.INSERT_SEGMENT, (where.content, 1, where.content, self._segments))
            action = "PutObject" if self._source is None else "CopyObject"
            change = Change(action, stored.key, stored.size, stored.etag, self._source)
            note(connection, self._place, number, change, self._store.noting)
            return True

        return await self._store.enter(self._place, act)

    async def save_part(self, upload_id: str, key: bytes, part: PartFacts, file: int) -> None:
        segment = ContentSegment(file, self._segments)
        await self._store.enter(
            self._place,
            lambda connection, number: multipart.add_part(connection, number, key, upload_id, part, segment),
        )


def _owner_of(path: Path) -> bytes:
    """What names this data folder in the service. Not in backups: a restored copy is another owner."""
    if not path.exists():
        path.write_text(secrets.token_hex(16))
    return path.read_bytes()


def _placed(tenant: str, name: str, created_at: int, objects: int, size: int) -> tuple[BucketPlace, BucketFacts]:
    return BucketPlace(tenant, name), BucketFacts(name, created_at, objects, size)
