"""Sorted keys of objects in memory, so the cost of a page depends on the page and not on the whole list."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence


class Index:
    """Sorted keys, by tenant and of all tenants. Each key is unique."""

    def __init__(self) -> None:
        self._all: list[str] = []
        self._of: dict[str | None, list[str]] = {}

    def add(self, tenant: str | None, key: str) -> None:
        for keys in (self._all, self._of.setdefault(tenant, [])):
            at = bisect_left(keys, key)
            if at == len(keys) or keys[at] != key:
                keys.insert(at, key)

    def drop(self, tenant: str | None, key: str) -> None:
        for keys in (self._all, self._of.get(tenant, [])):
            at = bisect_left(keys, key)
            if at < len(keys) and keys[at] == key:
                del keys[at]
        if not self._of.get(tenant):
            self._of.pop(tenant, None)

    def under(self, tenant: str | None) -> Sequence[str]:
        """The keys of a tenant, or all keys."""
        return self._all if tenant is None else self._of.get(tenant, ())


def sorted_after(names: Sequence[str], after: str) -> Iterator[str]:
    """Sorted names, starting after one of them. Each is looked up when its turn comes: names may change meanwhile."""
    while (at := bisect_right(names, after)) < len(names):
        after = names[at]
        yield after
