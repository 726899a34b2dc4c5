"""How much the objects of each namespace take: asked for now and then, and corrected by what this node commits."""

from __future__ import annotations

from typing import Final

from atoll.clock import seconds_up
from atoll.objects.shared.rows import ObjectRows
from atoll.objects.store import PAGE, NamespaceSize

SHARE: Final = 50  # the question takes at most this part of the time: it looks at every object
EVERY_SECONDS: Final = 5.0
NOTHING: Final = NamespaceSize(0, 0)


class KnownSizes:
    def __init__(self, rows: ObjectRows) -> None:
        self._rows = rows
        self._sizes: dict[str, NamespaceSize] = {}  # in pages
        self._next = 0.0

    async def look(self) -> None:
        started = seconds_up()
        if started >= self._next:
            self._sizes = await self._rows.sizes()
            self._next = seconds_up() + max(EVERY_SECONDS, SHARE * (seconds_up() - started))

    def resize(self, namespace: str, before: int, after: int) -> None:
        """An object of this node has another number of pages."""
        have = self._sizes.get(namespace, NOTHING)
        objects = have.objects + (after > 0) - (before > 0)
        self._sizes[namespace] = NamespaceSize(objects, have.bytes + after - before)

    def forget(self, namespace: str) -> None:
        self._sizes.pop(namespace, None)

    def get(self, namespace: str) -> NamespaceSize:
        found = self._sizes.get(namespace, NOTHING)
        return NamespaceSize(max(found.objects, 0), max(found.bytes, 0) * PAGE)
