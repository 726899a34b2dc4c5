"""Manifests and files of assets in the node's database, as functions of a connection.

The rows of a file and of the manifests that name it are written before its bytes arrive: an upload can only bring what
a manifest of the same tenant wants, and quotas are checked before the first byte.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import apsw
from msgspec import Struct

from atoll.assets.manifest import lines_of, manifest_id
from atoll.assets.media import is_compressible, media_of
from atoll.db.sqlite import each_row, rows
from atoll.errors import InvalidArgument, QuotaExceeded
from atoll.pauses import with_pauses

PENDING: Final = 2  # manifests of a tenant that no version has named yet; an older one is dropped
COLLECTED: Final = 2_000  # files of one step: other writes wait a few ms for it

# Versions of a tenant that name a manifest `m`
_PINS: Final = (
    "SELECT 1 FROM versions JOIN workers ON workers.id = worker_id WHERE versions.assets != ''"
    " AND json_extract(versions.assets, '$.manifest') = m.id AND workers.tenant = m.tenant"
)
# Versions that the rollback rules of their worker may return to
_RETURNS: Final = (
    "SELECT json_extract(share.value, '$[0]') FROM deployments, json_each(rule, '$.target') AS share"
    " WHERE deployments.worker_id = workers.id AND rule <> '' AND json_extract(rule, '$.state') = 'watching'"
)
# Manifests of the versions that have traffic
_ACTIVE: Final = (
    "SELECT m.number FROM (SELECT tenant, active_version AS version FROM workers UNION ALL"
    " SELECT tenant, version_id FROM workers JOIN traffic ON worker_id = workers.id) AS used"
    " JOIN versions ON versions.id = used.version JOIN asset_manifests AS m"
    " ON m.tenant = used.tenant AND m.id = json_extract(versions.assets, '$.manifest')"
    " WHERE used.tenant = ? AND versions.assets != ''"
)


class AssetBound(NamedTuple):
    """Quotas of a tenant; None: unbounded."""

    bytes: int | None = None
    files: int | None = None


class AssetSize(NamedTuple):
    files: int
    bytes: int


class KnownManifest(NamedTuple):
    number: int
    text: bytes


class FileRow(Struct, gc=False):  # as AssetFile: there may be tens of thousands
    hash: bytes
    size: int
    stored: int
    gzip: int
    br: int


class Collected(NamedTuple):
    id: int
    tenant: str
    hash: bytes


class NewFile(NamedTuple):
    """A file that has arrived and is in its place."""

    hash: bytes
    size: int
    gzip: int = 0
    br: int = 0


FILES: Final = (
    "SELECT hash, size, stored, gzip, br FROM asset_refs JOIN asset_files ON asset_files.id = file WHERE manifest = ?"
)


def find_manifest(connection: apsw.Connection, tenant: str, manifest: str) -> KnownManifest | None:
    sql = "SELECT number, text FROM asset_manifests WHERE tenant = ? AND id = ?"
    found = rows(connection, KnownManifest, sql, tenant, manifest)
    return found[0] if found else None


class ReadManifest(NamedTuple):
    """A manifest prepared for the database, outside of its writer: other writes wait for each that is under way."""

    id: str
    text: bytes
    files: int
    sizes: dict[bytes, int]  # by hash
    packs: set[bytes]  # hashes of files that compress


def read_manifest(text: bytes) -> ReadManifest:
    """In a thread: read the checked text of a manifest."""
    sizes: dict[bytes, int] = {}
    packs: set[bytes] = set()
    files = 0
    for digest, size, path in with_pauses(lines_of(text)):
        raw = bytes.fromhex(digest)
        sizes[raw] = size
        files += 1
        if is_compressible(media_of(path), size):
            packs.add(raw)
    return ReadManifest(manifest_id(text), text, files, sizes, packs)


def add_manifest(
    connection: apsw.Connection, tenant: str, manifest: ReadManifest, bound: AssetBound, now: int
) -> list[str]:
    """Store a manifest and return the hashes of the files that are missing. Raises QuotaExceeded, InvalidArgument."""
    known = find_manifest(connection, tenant, manifest.id)
    if known is None:
        sizes, packs = manifest.sizes, manifest.packs
        connection.execute(
            "INSERT INTO asset_manifests (tenant, id, text, files, bytes, used_at) VALUES (?, ?, ?, ?, ?, ?)",
            (tenant, manifest.id, manifest.text, manifest.files, sum(sizes.values()), now),
        )
        number = connection.last_insert_rowid()
        connection.executemany(
            "INSERT INTO asset_files (tenant, hash, size, packs, used_at) VALUES (?, ?, ?, ?, ?)"
            " ON CONFLICT (tenant, hash) DO UPDATE SET size = excluded.size, packs = excluded.packs WHERE stored = 0",
            ((tenant, digest, size, digest in packs, now) for digest, size in sizes.items()),
        )
        connection.executemany(
            "INSERT INTO asset_refs (manifest, file) SELECT ?, id FROM asset_files WHERE tenant = ? AND hash = ?",
            ((number, tenant, digest) for digest in sizes),
        )
        _refuse_other_sizes(connection, number, sizes)
        _refuse_too_much(connection, tenant, number, bound)
        _drop_pending(connection, tenant)
    else:
        number = known.number
    connection.execute("UPDATE asset_manifests SET used_at = ? WHERE number = ?", (now, number))
    connection.execute(
        "UPDATE asset_files SET used_at = ? WHERE id IN (SELECT file FROM asset_refs WHERE manifest = ?)", (now, number)
    )
    sql = (
        "SELECT lower(hex(hash)) FROM asset_refs JOIN asset_files ON asset_files.id = file"
        " WHERE manifest = ? AND stored = 0 ORDER BY file"
    )
    return rows(connection, str, sql, number)


def _refuse_other_sizes(connection: apsw.Connection, number: int, sizes: Mapping[bytes, int]) -> None:
    """Refuse a manifest that states another size than a stored file has.

    The files are compared one by one only if the sums differ. Wrong sizes that make up for each other are found by the
    deploy, when it reads the files.
    """
    sql = "SELECT sum(size) FROM asset_refs JOIN asset_files ON asset_files.id = file WHERE manifest = ?"
    if rows(connection, int, sql, number) == [sum(sizes.values())]:
        return
    for row in rows(connection, FileRow, FILES, number):
        if row.size != sizes[row.hash]:
            raise InvalidArgument(f"the file {row.hash.hex()} has {row.size:,} bytes, not {sizes[row.hash]:,}")


def _refuse_too_much(connection: apsw.Connection, tenant: str, number: int, bound: AssetBound) -> None:
    """Refuse a manifest whose files, with those of versions that have traffic, exceed a quota. Each counts once."""
    sql = (
        "SELECT count(*), coalesce(sum(size), 0) FROM asset_files WHERE id IN"
        f" (SELECT file FROM asset_refs WHERE manifest = ? OR manifest IN ({_ACTIVE}))"
    )
    [size] = rows(connection, AssetSize, sql, number, tenant)
    [paths] = rows(
        connection,
        int,
        f"SELECT coalesce(sum(files), 0) FROM asset_manifests WHERE number = ? OR number IN ({_ACTIVE})",
        number,
        tenant,
    )
    if bound.bytes is not None and size.bytes > bound.bytes:
        raise QuotaExceeded(
            f"the assets of the tenant `{tenant}` would have {size.bytes:,} bytes, more than its quota of"
            f" {bound.bytes:,}"
        )
    if bound.files is not None and paths > bound.files:
        raise QuotaExceeded(
            f"the tenant `{tenant}` would have {paths:,} assets, more than its quota of {bound.files:,}"
        )


def _drop_pending(connection: apsw.Connection, tenant: str) -> None:
    """Keep only the newest manifests that no version has named. Their files wait for the collection."""
    sql = f"SELECT number FROM asset_manifests AS m WHERE tenant = ? AND NOT EXISTS ({_PINS}) ORDER BY number DESC"
    for number in rows(connection, int, sql, tenant)[PENDING:]:
        connection.execute("DELETE FROM asset_manifests WHERE number = ?", (number,))


class WantedFile(Struct, gc=False):
    hash: bytes
    size: int
    stored: int
    packs: int


def wanted_files(connection: apsw.Connection, tenant: str) -> dict[bytes, WantedFile]:
    """The files that manifests of a tenant name, whether they have arrived or not."""
    sql = "SELECT hash, size, stored, packs FROM asset_files WHERE tenant = ?"
    return {row.hash: row for row in each_row(connection, WantedFile, sql, tenant)}


def keep_files(connection: apsw.Connection, tenant: str, files: Sequence[NewFile], now: int) -> None:
    """Mark files as stored. A file that nothing names any more is kept too: the next collection removes it."""
    connection.executemany(
        "INSERT INTO asset_files (tenant, hash, size, stored, packs, gzip, br, used_at) VALUES (?, ?, ?, 1, 0, ?, ?, ?)"
        " ON CONFLICT (tenant, hash) DO UPDATE SET size = excluded.size, stored = 1, gzip = excluded.gzip,"
        " br = excluded.br, used_at = excluded.used_at",
        ((tenant, file.hash, file.size, file.gzip, file.br, now) for file in files),
    )


def usage_of(connection: apsw.Connection, tenant: str) -> AssetSize:
    """Files and bytes of all versions that have traffic, as the quotas count them."""
    sql = (
        "SELECT count(*), coalesce(sum(size), 0) FROM asset_files WHERE id IN"
        f" (SELECT file FROM asset_refs WHERE manifest IN ({_ACTIVE}))"
    )
    [size] = rows(connection, AssetSize, sql, tenant)
    [paths] = rows(
        connection, int, f"SELECT coalesce(sum(files), 0) FROM asset_manifests WHERE number IN ({_ACTIVE})", tenant
    )
    return AssetSize(paths, size.bytes)


def trim_versions(connection: apsw.Connection, tenant: str, most: int) -> int:
    """Delete a tenant's oldest versions with assets, without those in use, until its named files are within a bound."""
    old = rows(
        connection,
        str,
        "SELECT versions.id FROM workers JOIN versions ON worker_id = workers.id WHERE tenant = ? AND assets != ''"
        " AND versions.id != active_version AND versions.id NOT IN (SELECT version_id FROM traffic)"
        f" AND versions.id NOT IN ({_RETURNS}) ORDER BY versions.created_at, number",
        tenant,
    )
    dropped = 0
    for version in old:
        sql = (
            "SELECT count(*), coalesce(sum(size), 0) FROM asset_files WHERE id IN (SELECT file FROM asset_refs"
            f" WHERE manifest IN (SELECT number FROM asset_manifests AS m WHERE tenant = ? AND EXISTS ({_PINS})))"
        )
        [size] = rows(connection, AssetSize, sql, tenant)
        if size.bytes <= most:
            break
        connection.execute("DELETE FROM versions WHERE id = ?", (version,))
        dropped += 1
    return dropped


def collect(connection: apsw.Connection, before: int) -> list[Collected]:
    """Delete manifests that no version names, and files that no manifest names, if both were last used before then.

    Returns the deleted files: at most COLLECTED, so a caller repeats it until there are none.
    """
    connection.execute(f"DELETE FROM asset_manifests AS m WHERE used_at < ? AND NOT EXISTS ({_PINS})", (before,))
    sql = (
        "SELECT id, tenant, hash FROM asset_files AS f WHERE used_at < ?"
        " AND NOT EXISTS (SELECT 1 FROM asset_refs WHERE file = f.id) LIMIT ?"
    )
    found = rows(connection, Collected, sql, before, COLLECTED)
    connection.executemany("DELETE FROM asset_files WHERE id = ?", [(row.id,) for row in found])
    return found


def forget_tenant(connection: apsw.Connection, tenant: str) -> None:
    connection.execute("DELETE FROM asset_manifests WHERE tenant = ?", (tenant,))
    connection.execute("DELETE FROM asset_files WHERE tenant = ?", (tenant,))
