"""Who may keep how much of a bounded memory: the oldest goes first, and no tenant can push out all others.

While the memory is full, a tenant that holds more than an equal share makes room from what it has itself. A tenant that
holds less takes room from the others in turn. Every step takes the same time, however many tenants there are.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class Shares(Generic[K]):
    __slots__ = ("_most", "_of", "_sizes", "size")

    def __init__(self, most: int) -> None:
        self._most = most
        self._of: dict[str, dict[K, int]] = {}  # tenant -> what it keeps with sizes, the oldest first
        self._sizes: dict[str, int] = {}  # the same as a sum for each tenant
        self.size = 0

    def put(self, tenant: str, key: K, size: int) -> list[K]:
        """Keep `key`, or change its size. Returns what must go, which may be `key` itself."""
        mine = self._of.setdefault(tenant, {})
        change = size - mine.get(key, 0)
        mine[key] = size
        self._sizes[tenant] = self._sizes.get(tenant, 0) + change
        self.size += change
        gone = []
        while self.size > self._most:
            is_mine = self._sizes.get(tenant, 0) * len(self._of) > self._most
            gone.append(self._oldest(tenant if is_mine else self._next(tenant)))
        return gone

    def drop(self, tenant: str, key: K) -> None:
        mine = self._of.get(tenant)
        size = mine.pop(key, None) if mine is not None else None
        if mine is None or size is None:
            return
        self._shrink(tenant, mine, size)

    def _next(self, tenant: str) -> str:
        """Who makes room for a tenant: the one that has done so least recently."""
        turns = iter(self._of)
        first = next(turns)
        return next(turns, first) if first == tenant else first

    def _oldest(self, tenant: str) -> K:
        """Take the oldest key of a tenant away, and let the others go before this tenant the next time."""
        mine = self._of.pop(tenant)
        self._of[tenant] = mine
        key = next(iter(mine))
        self._shrink(tenant, mine, mine.pop(key))
        return key

    def _shrink(self, tenant: str, mine: dict[K, int], size: int) -> None:
        self.size -= size
        self._sizes[tenant] -= size
        if not mine:
            del self._of[tenant], self._sizes[tenant]
