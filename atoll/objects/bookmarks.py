"""Bookmarks: points in the history of one object, as text that sorts by time.

    8 digits of seconds - 8 of milliseconds - 7 of a count, 1 of the kind - 16 of the commit, 16 of the object

The count makes each bookmark of a moment larger than those before it.

All are hexadecimal. A worker may keep a bookmark for days and hand in any text, so everything in it is checked against
the history, and a bookmark of another object is refused.
"""

from __future__ import annotations

import hashlib
import itertools
import re
from typing import NamedTuple

from atoll.objects.store import ObjectKey

TEXT = re.compile(r"([0-9a-f]{8})-([0-9a-f]{8})-[0-9a-f]{7}([01])-([0-9a-f]{16})([0-9a-f]{16})")


_counts = itertools.count()


class Bookmark(NamedTuple):
    at_ms: int  # when the commit came
    sequence: int  # of the last commit that belongs to it
    # The state right before a restore that was asked for when `sequence` was the last commit
    is_before_restore: bool = False


def encode_bookmark(key: ObjectKey, bookmark: Bookmark) -> str:
    seconds, ms = divmod(bookmark.at_ms, 1000)
    count, kind = next(_counts) & 0xFFFFFFF, int(bookmark.is_before_restore)
    return f"{seconds:08x}-{ms:08x}-{count:07x}{kind:x}-{bookmark.sequence:016x}{_owner(key)}"


def decode_bookmark(key: ObjectKey, text: str) -> Bookmark | None:
    """None if it is no bookmark, or one of another object."""
    match = TEXT.fullmatch(text)
    if match is None or match[5] != _owner(key):
        return None
    at_ms = int(match[1], 16) * 1000 + int(match[2], 16)
    return Bookmark(at_ms, int(match[4], 16), match[3] == "1")


def _owner(key: ObjectKey) -> str:
    return hashlib.blake2b(f"{key.namespace}\n{key.id}".encode(), digest_size=8).hexdigest()
