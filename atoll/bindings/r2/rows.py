"""Rows of the index: SQL for objects, lists and quotas. Functions of a connection, without a state."""

from __future__ import annotations

from typing import NamedTuple

import apsw

from atoll.bindings.r2.conditions import OnlyIf
from atoll.bindings.r2.store import (
    ListPage,
    ListQuery,
    ObjectMeta,
    R2Bound,
    R2OverQuota,
    R2Usage,
    StoredObject,
    after_prefix,
)
from atoll.db.sqlite import rows

FEW = 1  # rows of the first step of a list by groups, and of the step after a group: others would be skipped
PAGE_BYTES = 1 << 20  # of metadata in a page of a list
LAST = b"\xff"  # after every key

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


IN_FILE, IN_SERVICE = range(2)  # where a segment is


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
    """One page. A group is found by its first key; the rest of it is skipped, not read."""
    sql = LIST.format("http" if query.with_http else "''", "custom" if query.with_custom else "''")
    prefix, delimiter, limit = query.prefix, query.delimiter, query.limit
    end = after_prefix(prefix) or LAST
    at = max(query.start, prefix)
    objects: list[StoredObject] = []
    groups: list[bytes] = []
    held, step = 0, FEW if delimiter else limit + 1
    while True:
        batch = rows(connection, StoredObject, sql, bucket, at, end, step)
        for row in batch:
            if row.key < at:
                continue  # of a group that is listed
            if len(objects) + len(groups) == limit or held > PAGE_BYTES:
                return ListPage(objects, groups, at)
            cut = row.key.find(delimiter, len(prefix)) if delimiter else -1
            if cut >= 0:
                groups.append(row.key[: cut + len(delimiter)])
                at = after_prefix(groups[-1]) or LAST
            else:
                objects.append(row)
                at = row.key + b"\0"  # the first key after it
                held += len(row.http) + len(row.custom)
        if len(batch) < step:
            return ListPage(objects, groups, None)
        has_skipped = at > batch[-1].key + b"\0"
        step = FEW if has_skipped else min(2 * step, limit + 1)
