"""The size of the data folder, the free space of its disk, and failed operations."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from atoll.db.sqlite import databases


class FileState(NamedTuple):
    bytes: int  # with its write-ahead log
    faults: int  # operations that failed because of the disk


class StorageState(NamedTuple):
    free_bytes: int | None  # for users other than root; None if the disk does not report it
    files: dict[str, FileState]  # databases by name


def storage_of(data: Path) -> StorageState:
    inside = [database for database in databases if database.path.is_relative_to(data)]
    files = {
        database.path.name: FileState(_size(database.path) + _size(Path(f"{database.path}-wal")), database.faults)
        for database in sorted(inside, key=lambda database: database.path.name)
    }
    try:
        disk = os.statvfs(data)
    except OSError:
        return StorageState(None, files)
    return StorageState(disk.f_bavail * disk.f_frsize, files)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
