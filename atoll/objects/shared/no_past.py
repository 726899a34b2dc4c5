"""Points in time of objects that nodes share: the history is on the disk of one node, so there is none here."""

from __future__ import annotations

import time
from typing import Final

from atoll.errors import InvalidArgument
from atoll.objects.bookmarks import Bookmark, encode_bookmark
from atoll.objects.shared.owned import OwnedTable
from atoll.objects.store import ObjectKey

NONE: Final = "Several nodes on PostgreSQL keep no history of objects: restore the database from a backup of its own."


class NoPast:
    """Implements Past."""

    def __init__(self, table: OwnedTable) -> None:
        self._table = table

    def current(self, key: ObjectKey) -> str:
        each = self._table.get(key)
        return encode_bookmark(key, Bookmark(int(time.time() * 1000), each.seq if each is not None else 0))

    async def at(self, key: ObjectKey, at_ms: int) -> str:
        raise InvalidArgument(NONE)

    async def ask(self, key: ObjectKey, text: str) -> str:
        raise InvalidArgument(NONE)

    async def carry_out(self, key: ObjectKey) -> bool:
        return True
