"""Opens and reads files of assets in threads, and keeps small ones in memory."""

from __future__ import annotations

import os
from typing import Final


def open_file(place: str) -> int:
    """In a thread: a cold directory may need the disk."""
    return os.open(place, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)


def read_file(place: str) -> bytes:
    """In a thread: all of a small file."""
    with open(place, "rb", buffering=0) as file:
        return file.read()


class SmallFiles:
    """The contents of small files that were requested recently, within a bound of bytes."""

    __slots__ = ("_most", "files", "size")

    MOST_OF_ONE: Final = 128 << 10

    def __init__(self, most: int) -> None:
        self._most = most
        self.files: dict[str, bytes] = {}  # by place; the least recently added first
        self.size = 0

    def takes(self, size: int) -> bool:
        return size <= self.MOST_OF_ONE and size <= self._most

    def get(self, place: str) -> bytes | None:
        return self.files.get(place)

    def put(self, place: str, content: bytes) -> None:
        if place in self.files:
            return
        self.files[place] = content
        self.size += len(content)
        while self.size > self._most:
            oldest = next(iter(self.files))
            self.size -= len(self.files.pop(oldest))
