"""Opens and reads files of assets in threads, and keeps small ones in memory."""

from __future__ import annotations

import os
from typing import Final

from atoll.asset_files.shares import Shares

OBJECTS: Final = 500  # bytes of the objects around the content of a small file, about


def open_file(place: str) -> int:
    """In a thread: a cold directory may need the disk."""
    return os.open(place, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)


def read_file(place: str) -> bytes:
    """In a thread: all of a small file."""
    with open(place, "rb", buffering=0) as file:
        return file.read()


class SmallFiles:
    """The contents of small files that were requested recently, within a bound of bytes that tenants share."""

    __slots__ = ("_kept", "_most", "files")

    MOST_OF_ONE: Final = 128 << 10

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: Shares[str] = Shares(most)
        self.files: dict[str, bytes] = {}  # by place

    def takes(self, size: int) -> bool:
        return size <= self.MOST_OF_ONE and size <= self._most

    def get(self, place: str) -> bytes | None:
        return self.files.get(place)

    def put(self, tenant: str, place: str, content: bytes) -> None:
        self.files[place] = content
        for oldest in self._kept.put(tenant, place, len(content) + OBJECTS):
            del self.files[oldest]
