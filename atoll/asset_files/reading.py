"""Reads files of assets without making the event loop wait for a disk.

Bytes that are in the page cache are read in place: RWF_NOWAIT refuses to wait for others, and a thread reads those.
"""

from __future__ import annotations

import errno
import os
from typing import Final

from atoll.asset_files.shares import Shares

OBJECTS: Final = 500  # bytes of the objects around the content of a small file, about
WARM: Final = 512 << 10  # bytes that a thread reads ahead
_NOT_THERE: Final = (errno.EAGAIN, errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)


def open_file(place: str) -> int:
    """In a thread: a cold directory may need the disk."""
    return os.open(place, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)


def read_file(place: str) -> bytes:
    """In a thread: all of a small file."""
    with open(place, "rb", buffering=0) as file:
        return file.read()


def read_now(descriptor: int, start: int, size: int) -> bytes | None:
    """Bytes that are in memory; None if they must come from the disk."""
    buffer = bytearray(size)
    try:
        count = os.preadv(descriptor, [buffer], start, os.RWF_NOWAIT)
    except OSError as error:
        if error.errno in _NOT_THERE:
            return None
        raise
    return bytes(buffer[:count])


def is_warm(descriptor: int, start: int, size: int) -> bool:
    """Whether the first and the last of these bytes are in memory. The kernel reads ahead what is between."""
    probe = bytearray(1)
    try:
        for at in (start, start + size - 1):
            os.preadv(descriptor, [probe], at, os.RWF_NOWAIT)
    except OSError as error:
        # A file system without RWF_NOWAIT: say yes after the thread has read the bytes once.
        return error.errno in _NOT_THERE[1:]
    return True


def read_some(descriptor: int, start: int, size: int) -> bytes:
    """In a thread: at least one byte, unless the file ends there."""
    return os.pread(descriptor, size, start)


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
