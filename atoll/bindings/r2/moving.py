"""R2 for `atoll migrate`. Dropped buckets and garbage are left out.

Contents that are in an S3 service stay there: the folder that they are in moves. Its owner does not, so that only one
of both sides can write to it (service/contents.py).
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from atoll.bindings.r2.files import OBJECTS
from atoll.bindings.r2.postgres.contents import ADD, PIECE
from atoll.bindings.r2.postgres.store import FOLDER
from atoll.errors import StartError
from atoll.manifests.moved import MovedPart, MovedTable

FILE = f"{FOLDER}/index.db"
LIVE = "bucket IN (SELECT id FROM buckets)"
NAMED = (  # contents that an object or a part has
    f"SELECT content FROM objects WHERE part_size > 0 AND {LIVE} UNION ALL SELECT content FROM parts WHERE {LIVE}"
)
FACTS = "version, size, etag, uploaded, storage_class, checksums, http, custom"
COLLATED = ' COLLATE "C"'
FILES = "SELECT file FROM r2_segments WHERE place = 2 AND file > $1 ORDER BY file LIMIT 500"


def put_bucket(connection: Any, row: Sequence[Any]) -> None:
    """Its sizes are kept by triggers, as its objects come."""
    connection.execute("INSERT INTO buckets (id, tenant, name, created_at) VALUES (?, ?, ?, ?)", row[:4])


def put_object(connection: Any, row: Sequence[Any]) -> None:
    *facts, content, part_size, cost, body = row
    if body is not None:
        connection.execute("INSERT INTO bodies (body) VALUES (?)", (body,))
        content = connection.last_insert_rowid()
    sql = f"INSERT INTO objects (bucket, key, {FACTS}, content, part_size, cost) VALUES (?{', ?' * 12})"
    connection.execute(sql, (*facts, content, part_size, cost))


def put_segment(connection: Any, row: Sequence[Any]) -> None:
    content, number, file, place = row
    sql = "INSERT INTO segments (content, number, file, place) VALUES (?, ?, ?, ?)"
    connection.execute(sql, (content, number, file, 0 if place == 2 else place))


def put_part(connection: Any, row: Sequence[Any]) -> None:
    sql = (
        "INSERT INTO parts (upload, number, content, size, etag, uploaded, bucket)"
        " VALUES (?, ?, ?, ?, ?, ?, (SELECT bucket FROM uploads WHERE id = ?))"
    )
    connection.execute(sql, (*row, row[0]))


def put_service(connection: Any, row: Sequence[Any]) -> None:
    connection.execute("UPDATE service SET folder = ?, keep_seconds = ?", row)


def plain(name: str, words: str, columns: str, order: str, *, where: str = "", identity: str = "") -> MovedTable:
    """A table that both have with the same columns. Texts are in the order of their bytes (COLLATED)."""
    count = columns.count(",") + 1
    holes = ", ".join(f"${number}" for number in range(1, count + 1))
    over = " OVERRIDING SYSTEM VALUE" if identity else ""
    own = {"r2_settings": "bucket_settings", "r2_public": "public_buckets"}.get(name, name.removeprefix("r2_"))
    put = f"INSERT INTO {own} ({columns}) VALUES ({', '.join('?' * count)})"
    return MovedTable(
        words,
        FILE,
        f"SELECT {columns} FROM {own} {where and 'WHERE ' + where} ORDER BY {order.replace(COLLATED, '')}",
        f"SELECT {columns} FROM {name} {where and 'WHERE ' + where.replace('FROM buckets', 'FROM r2_buckets')}"
        f" ORDER BY {order}",
        f"INSERT INTO {name} ({columns}){over} VALUES ({holes})",
        lambda connection, row: connection.execute(put, row) and None,
        identity,
    )


TABLES = (
    MovedTable(
        "sizes of tenants in R2",
        FILE,
        "SELECT tenant, objects, bytes FROM usage ORDER BY tenant",
        'SELECT tenant, objects, bytes FROM r2_tenants ORDER BY tenant COLLATE "C"',
        "INSERT INTO r2_tenants (tenant, objects, bytes) VALUES ($1, $2, $3)",
        None,
    ),
    MovedTable(
        "R2 buckets",
        FILE,
        "SELECT id, tenant, name, created_at, objects, bytes FROM buckets ORDER BY id",
        "SELECT id, tenant, name, created_at, objects, bytes FROM r2_buckets ORDER BY id",
        "INSERT INTO r2_buckets (id, tenant, name, created_at, objects, bytes) OVERRIDING SYSTEM VALUE"
        " VALUES ($1, $2, $3, $4, $5, $6)",
        put_bucket,
        "r2_buckets.id",
    ),
    MovedTable(
        "objects of R2",
        FILE,
        f"SELECT bucket, key, {FACTS}, iif(part_size > 0, content, 0), part_size, cost,"
        " iif(part_size = 0, (SELECT body FROM bodies WHERE bodies.content = objects.content), NULL)"
        f" FROM objects WHERE {LIVE} ORDER BY bucket, key",
        f"SELECT bucket, key, {FACTS}, CASE WHEN part_size > 0 THEN content ELSE 0 END, part_size, cost, body"
        " FROM r2_objects WHERE bucket IN (SELECT id FROM r2_buckets) ORDER BY bucket, key",
        f"INSERT INTO r2_objects (bucket, key, {FACTS}, content, part_size, cost, body)"
        " VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)",
        put_object,
    ),
    plain(
        "r2_uploads", "uploads of R2", "id, bucket, key, state, created_at, storage_class, http, custom",
        f"id{COLLATED}", where=LIVE,
    ),
    MovedTable(
        "parts of uploads of R2",
        FILE,
        f"SELECT upload, number, content, size, etag, uploaded FROM parts WHERE {LIVE} ORDER BY upload, number",
        "SELECT upload, number, content, size, etag, uploaded FROM r2_parts WHERE upload IN"
        " (SELECT id FROM r2_uploads WHERE bucket IN (SELECT id FROM r2_buckets))"
        ' ORDER BY upload COLLATE "C", number',
        "INSERT INTO r2_parts (upload, number, content, size, etag, uploaded) VALUES ($1, $2, $3, $4, $5, $6)",
        put_part,
    ),
    MovedTable(
        "where contents of R2 are",
        FILE,
        f"SELECT content, number, file, iif(place = 0, 2, place) FROM segments WHERE content IN ({NAMED})"
        " ORDER BY content, number",
        "SELECT content, number, file, place FROM r2_segments WHERE content IN (SELECT content FROM r2_objects"
        " WHERE part_size > 0 AND bucket IN (SELECT id FROM r2_buckets) UNION ALL SELECT content FROM r2_parts"
        " JOIN r2_uploads u ON u.id = upload WHERE u.bucket IN (SELECT id FROM r2_buckets))"
        " ORDER BY content, number",
        "INSERT INTO r2_segments (content, number, file, place) VALUES ($1, $2, $3, $4)",
        put_segment,
    ),
    plain("r2_settings", "settings of R2 buckets", "bucket, kind, value", f"bucket, kind{COLLATED}"),
    plain("r2_public", "public R2 buckets", "label, bucket", f"label{COLLATED}"),
    plain(
        "r2_credentials", "access keys of R2", "access_key, tenant, name, bucket, can_write, sealed, created_at",
        f"access_key{COLLATED}",
    ),
    plain("r2_events", "notifications of R2", "id, tenant, queue, body", "id", identity="r2_events.id"),
    MovedTable(
        "folders of R2 in an S3 service",
        FILE,
        "SELECT folder, keep_seconds FROM service WHERE EXISTS (SELECT 1 FROM segments WHERE place = 1)",
        "SELECT folder, keep_seconds FROM r2_service WHERE EXISTS (SELECT FROM r2_segments WHERE place = 1)",
        "INSERT INTO r2_service (folder, owner, keep_seconds)"
        " VALUES ($1, md5(random()::text || clock_timestamp()), $2)",
        put_service,
    ),
)  # fmt: skip


class MovedObjects:
    """Contents that are files of the node, or rows."""

    name = "contents of R2"

    async def is_empty(self, connection: Any) -> bool:
        return not await connection.fetchval("SELECT EXISTS (SELECT FROM r2_pieces)")

    async def into_postgres(self, data: Path, connection: Any) -> int:
        after = count = 0
        while rows := await connection.fetch(FILES, after):
            for row in rows:
                await self._put(connection, row["file"], path_of(data, row["file"]))
            count += len(rows)
            after = rows[-1]["file"]
        return count

    async def _put(self, connection: Any, file: int, path: Path) -> None:
        size = await asyncio.to_thread(_size, path)
        for number in range(-(-size // PIECE)):
            body = await asyncio.to_thread(_read, path, number)
            await connection.execute(ADD, file, number, body)
            sql = "SELECT body = $3 FROM r2_pieces WHERE file = $1 AND number = $2"
            if not await connection.fetchval(sql, file, number, body):
                raise StartError(
                    f"the content {path.name} is not the same in PostgreSQL, so nothing was moved", "start it again"
                )

    async def into_folder(self, connection: Any, data: Path) -> int:
        after = count = 0
        while rows := await connection.fetch(FILES, after):
            for row in rows:
                path = path_of(data, row["file"])
                await asyncio.to_thread(_make, path)
                number, sql = 0, "SELECT body FROM r2_pieces WHERE file = $1 AND number = $2"
                while (body := await connection.fetchval(sql, row["file"], number)) is not None:
                    await asyncio.to_thread(_append, path, body)
                    if await asyncio.to_thread(_read, path, number) != body:
                        raise StartError(f"the disk does not keep {path}, so nothing was moved", "look at its log")
                    number += 1
            count += len(rows)
            after = rows[-1]["file"]
        return count


def path_of(data: Path, file: int) -> Path:
    name = f"{file:016x}"
    return data / FOLDER / OBJECTS / name[-2:] / name


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError as error:
        raise StartError(f"{path} cannot be read: {error.strerror}", "restore the folder from a backup") from None


def _read(path: Path, number: int) -> bytes:
    with path.open("rb", buffering=0) as file:
        return os.pread(file.fileno(), PIECE, number * PIECE)


def _make(path: Path) -> None:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.touch(0o600)


def _append(path: Path, body: bytes) -> None:
    with path.open("ab") as file:
        file.write(body)


PART = MovedPart(TABLES, (MovedObjects(),))
