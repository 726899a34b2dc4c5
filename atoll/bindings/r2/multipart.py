"""Multipart uploads in the index of one node. Functions of a connection, run on the writer thread."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from typing import NamedTuple

import apsw

from atoll.bindings.r2.conditions import ALWAYS
from atoll.bindings.r2.limits import MAX_OBJECT, MAX_PARTS, MIN_PART, R2Refused
from atoll.bindings.r2.rows import ContentPlace, ContentSegment, replace
from atoll.bindings.r2.store import PartFacts, StoredObject
from atoll.db.sqlite import rows

IN_PROGRESS, COMPLETED, ABORTED = range(3)

FIND = "SELECT state, storage_class, http, custom FROM uploads WHERE id = ? AND bucket = ? AND key = ?"
FINISH = "UPDATE uploads SET state = ? WHERE id = ?"
# Finished uploads are remembered for a while, so that a second abort or complete gets the right answer.
REMEMBERED = 1_000  # of one bucket
FORGET = (
    "DELETE FROM uploads WHERE id IN (SELECT id FROM uploads WHERE bucket = ? AND state > 0 ORDER BY created_at DESC"
    " LIMIT -1 OFFSET ?)"
)
PART = "SELECT content, size, etag FROM parts WHERE upload = ? AND number = ?"
INSERT_PART = "INSERT INTO parts (upload, number, bucket, content, size, etag, uploaded) VALUES (?, ?, ?, ?, ?, ?, ?)"
INSERT_SEGMENT = "INSERT INTO segments (content, number, file, place) VALUES (?, ?, ?, ?)"
MOVE_SEGMENT = "UPDATE segments SET content = ?, number = ? WHERE content = ? AND number = 1"
DELETE_PART = "DELETE FROM parts WHERE upload = ? AND number = ?"


class UploadRow(NamedTuple):
    state: int
    storage_class: str
    http: str
    custom: str


class PartRow(NamedTuple):
    content: int
    size: int
    etag: str


def find_upload(connection: apsw.Connection, bucket: int, key: bytes, upload_id: str) -> UploadRow | None:
    found = rows(connection, UploadRow, FIND, upload_id, bucket, key)
    return found[0] if found else None


def add_part(
    connection: apsw.Connection, bucket: int, key: bytes, upload_id: str, part: PartFacts, segment: ContentSegment
) -> None:
    """Enter a part, in place of an earlier part of its number. Its content has the number of its segment."""
    upload = find_upload(connection, bucket, key, upload_id)
    if upload is None or upload.state != IN_PROGRESS:
        raise R2Refused(10024)
    connection.execute(DELETE_PART, (upload_id, part.number))
    file = segment.file
    connection.execute(INSERT_PART, (upload_id, part.number, bucket, file, part.size, part.etag, part.uploaded))
    connection.execute(INSERT_SEGMENT, (file, 1, *segment))


def complete(
    connection: apsw.Connection,
    bucket: int,
    key: bytes,
    upload_id: str,
    wanted: Sequence[tuple[int, str]],
    content: int,
    now: int,
) -> StoredObject:
    """Make an object of the files of parts. `content` is the number of its new content."""
    upload = find_upload(connection, bucket, key, upload_id)
    if upload is None or len({number for number, _ in wanted}) != len(wanted):
        raise R2Refused(10001)
    if upload.state != IN_PROGRESS:
        raise R2Refused(10024)
    parts = _wanted_parts(connection, upload_id, wanted)
    stored, part_size = assembled(key, upload, parts, now)
    for number, part in enumerate(parts, 1):
        connection.execute(MOVE_SEGMENT, (content, number, part.content))
    _finish(connection, bucket, upload_id, COMPLETED)
    replace(connection, bucket, stored, ContentPlace(content, part_size), ALWAYS)
    return stored


def assembled(key: bytes, upload: UploadRow, parts: Sequence[PartRow], now: int) -> tuple[StoredObject, int]:
    """The object that these parts make, and the size of all but the last. R2Refused if they cannot make one."""
    part_size = _checked_part_size([part.size for part in parts])
    digest = hashlib.md5(b"".join(bytes.fromhex(part.etag) for part in parts), usedforsecurity=False)
    stored = StoredObject(
        key, secrets.token_hex(16), sum(part.size for part in parts), f"{digest.hexdigest()}-{len(parts)}", now,
        upload.storage_class, "{}", upload.http, upload.custom,
    )  # fmt: skip
    return stored, part_size


def _wanted_parts(connection: apsw.Connection, upload_id: str, wanted: Sequence[tuple[int, str]]) -> list[PartRow]:
    """The parts in the order of their numbers."""
    parts = []
    for number, etag in sorted(wanted):
        found = rows(connection, PartRow, PART, upload_id, number)
        if not found or found[0].etag != etag:
            raise R2Refused(10025)
        parts.append(found[0])
    return parts


def _checked_part_size(sizes: Sequence[int]) -> int:
    """The size of all parts but the last: they are equal, so that an offset leads to its part."""
    if not sizes or len(sizes) > MAX_PARTS:
        raise R2Refused(10048)
    if len(sizes) == 1:
        return max(sizes[0], 1)
    if min(sizes[:-1]) < MIN_PART:
        raise R2Refused(10011)
    if len(set(sizes[:-1])) > 1 or sizes[-1] > sizes[0]:
        raise R2Refused(10048)
    if sum(sizes) > MAX_OBJECT:
        raise R2Refused(100100)
    return sizes[0]


def abort(connection: apsw.Connection, bucket: int, key: bytes, upload_id: str) -> None:
    upload = find_upload(connection, bucket, key, upload_id)
    if upload is None:
        raise R2Refused(10001)
    if upload.state == IN_PROGRESS:
        _finish(connection, bucket, upload_id, ABORTED)


def _finish(connection: apsw.Connection, bucket: int, upload_id: str, state: int) -> None:
    connection.execute("DELETE FROM parts WHERE upload = ?", (upload_id,))
    connection.execute(FINISH, (state, upload_id))
    connection.execute(FORGET, (bucket, REMEMBERED))
