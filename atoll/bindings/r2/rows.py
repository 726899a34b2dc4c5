"""Rows of the index: SQL for objects, lists and quotas. Functions of a connection, without a state."""

from __future__ import annotations

from typing import NamedTuple

import apsw

from atoll.bindings.r2.conditions import OnlyIf
from atoll.bindings.r2.listing import Listing
from atoll.bindings.r2.store import (
    ListPage,
    ListQuery,
    ObjectMeta,
    R2Bound,
    R2OverQuota,
    R2Usage,
    StoredObject,
)
from atoll.db.sqlite import rows

FACTS = "key, version, size, etag, uploaded, storage_class, checksums"
FIND = f"SELECT {FACTS}, http, custom FROM objects WHERE bucket = ? AND key = ?"
OPEN = (
    f"SELECT {FACTS}, http, custom, content, part_size,"
    " CASE WHEN part_size = 0 THEN (SELECT body FROM bodies WHERE bodies.content = objects.content) END"
    " FROM objects WHERE bucket = ? AND key = ?"
)
LIST = f"SELECT {FACTS}, {{}}, {{}} FROM objects WHERE bucket = ? AND key >= ? AND key < ? ORDER BY key LIMIT ?"
INSERT = (
    "INSERT INTO objects (bucket, key, version, size, etag, uploaded, storage_class, checksums, http, custom, content,"
    " part_size, cost) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
)
DELETE = "DELETE FROM objects WHERE bucket = ? AND key = ?"
USAGE = "SELECT objects, bytes FROM usage WHERE tenant = ?"


IN_FILE, IN_SERVICE, IN_ROWS = range(3)  # where a segment is; rows are those of PostgreSQL


class ContentSegment(NamedTuple):
    """A file or an object of the service, which has a content or a part of it."""

    file: int  # its number
    place: int


class ContentPlace(NamedTuple):
    """Where the content of an object is."""

    content: int
    part_size: int  # 0: in the index
    body: bytes | None = None  # if it is in the index


def find(connection: apsw.Connection, bucket: int, key: bytes) -> StoredObject | None:
    found = rows(connection, StoredObject, FIND, bucket, key)
    return found[0] if found else None


def find_content(connection: apsw.Connection, bucket: int, key: bytes) -> tuple[StoredObject, ContentPlace] | None:
    row = connection.execute(OPEN, (bucket, key)).fetchone()
    return None if row is None else (StoredObject(*row[:9]), ContentPlace(*row[9:]))


def usage_of(connection: apsw.Connection, tenant: str) -> R2Usage:
    found = rows(connection, R2Usage, USAGE, tenant)
    return found[0] if found else R2Usage(0, 0)


def cost_of(key: bytes, size: int, meta: ObjectMeta) -> int:
    return size + len(key) + len(meta.http.encode()) + len(meta.custom.encode())


def replace(
    connection: apsw.Connection, bucket: int, stored: StoredObject, place: ContentPlace, only_if: OnlyIf
) -> bool:
    """Put an object in the place of the present one, if the condition holds of that."""
    present = find(connection, bucket, stored.key)
    if not only_if.holds(None if present is None else present.etag, 0 if present is None else present.uploaded):
        return False
    if present is not None:
        connection.execute(DELETE, (bucket, stored.key))
    cost = cost_of(stored.key, stored.size, ObjectMeta(stored.http, stored.custom))
    connection.execute(INSERT, (bucket, *stored, place.content, place.part_size, cost))
    if place.body is not None:
        connection.execute("INSERT INTO bodies (content, body) VALUES (?, ?)", (place.content, place.body))
    return True


def refuse_over(before: R2Usage, after: R2Usage, bound: R2Bound) -> None:
    """R2OverQuota if a write made a tenant's data grow above its quota."""
    if bound.objects is not None and after.objects > max(bound.objects, before.objects):
        raise R2OverQuota(after.objects, "objects", bound.objects)
    if bound.bytes is not None and after.bytes > max(bound.bytes, before.bytes):
        raise R2OverQuota(after.bytes, "bytes", bound.bytes)


def list_page(connection: apsw.Connection, bucket: int, query: ListQuery) -> ListPage:
    sql = LIST.format("http" if query.with_http else "''", "custom" if query.with_custom else "''")
    listing = Listing(query)
    while True:
        batch = rows(connection, StoredObject, sql, bucket, listing.at, listing.end, listing.step)
        if (page := listing.take(batch)) is not None:
            return page
