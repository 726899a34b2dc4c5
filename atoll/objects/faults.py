"""What a fault of the disk means to those who cannot see this machine."""

from __future__ import annotations

import errno
import logging
import time

from atoll.errors import StorageFailed

log = logging.getLogger("atoll.objects")

TOLD_AGAIN = 60.0  # seconds after which the same fault is logged again

WORDS = {
    errno.ENOSPC: "the disk of this node is full",
    errno.EDQUOT: "the disk of this node is full",
    errno.EROFS: "the storage of this node cannot be written to",
    errno.EACCES: "the storage of this node cannot be written to",
    errno.ENOENT: "the storage of this node is not available",
}
OTHER = "the storage of this node cannot be read or written"

_told: dict[str, float] = {}  # faults that were logged, and when


def storage_failed(error: OSError, path: object) -> StorageFailed:
    words = WORDS.get(error.errno or 0, OTHER)
    now = time.monotonic()
    if now - _told.get(words, -TOLD_AGAIN) >= TOLD_AGAIN:
        _told[words] = now
        log.error("objects: %s (%s: %s)", words, path, error)
    return StorageFailed(words, str(path))
