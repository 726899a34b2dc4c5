"""What a data folder has that nodes cannot share yet."""

from __future__ import annotations

from pathlib import Path

import apsw

from atoll.errors import StartError
from atoll.manifests.every import manifests


def what_stays(data: Path) -> list[str]:
    """In words: what the folder has of kinds that are on one node alone."""
    found = []
    for manifest in manifests().values():
        file, sql = manifest.holds
        words = manifest.one_node or manifest.stays
        if words and file and (data / file).exists() and _count(data / file, sql):
            found.append(words)
    return sorted(found)


def kept_objects(data: Path) -> list[str]:
    """In words: what the folder of a node has that nodes share, but that this node had alone."""
    found = [each for each in manifests().values() if each.stays and (data / each.holds[0]).exists()]
    return sorted(each.stays for each in found if _count(data / each.holds[0], each.holds[1]))


def _count(path: Path, sql: str) -> int:
    try:
        connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            [(count,)] = connection.execute(sql).fetchall()
            return int(str(count))
        finally:
            connection.close()
    except apsw.Error as error:
        raise StartError(f"{path} cannot be read: {error}", "restore the folder from a backup") from None
