"""Rows of modules for a download: their facts, and their bytes piece by piece. Functions of a connection."""

from __future__ import annotations

import hashlib
from typing import NamedTuple

import apsw

from atoll.control.store.version_rows import sha256
from atoll.db.sqlite import rows


class StoredModule(NamedTuple):
    row: int
    path: str
    kind: str
    size: int
    sha256: str
    map_size: int
    map_sha256: str  # "": it has no source map


class ModuleFacts(NamedTuple):
    row: int
    path: str
    kind: str
    size: int
    sha256: str
    map_size: int  # -1: it has no source map


def list_bundled(connection: apsw.Connection, version_id: str) -> list[StoredModule]:
    """The modules of a version in their order. Reads every source map once, for its hash."""
    sql = (
        "SELECT rowid, path, kind, length(source), sha256, ifnull(length(source_map), -1) FROM modules"
        " WHERE version_id = ? ORDER BY position"
    )
    found = rows(connection, ModuleFacts, sql, version_id)
    paths = {facts.path for facts in found}
    modules = []
    for facts in found:
        known = facts.sha256 or sha256(read_piece(connection, facts.row, "source", 0, facts.size))
        has_map = facts.map_size >= 0 and f"{facts.path}.map" not in paths  # a module may have the name of a map
        digest = hashlib.sha256()
        if has_map:
            digest.update(read_piece(connection, facts.row, "source_map", 0, facts.map_size))
        modules.append(
            StoredModule(
                facts.row,
                facts.path,
                facts.kind,
                facts.size,
                known,
                max(facts.map_size, 0),
                digest.hexdigest() if has_map else "",
            )
        )
    return modules


def read_piece(connection: apsw.Connection, row: int, column: str, start: int, size: int) -> bytes:
    """A piece of a module or its source map. SQLite reads these bytes only, not the whole."""
    with connection.blob_open("main", "modules", column, row, False) as blob:
        blob.seek(start)
        piece = blob.read(size)
    assert isinstance(piece, bytes)
    return piece
