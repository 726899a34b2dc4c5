"""A page of a list, step by step: which rows to read next, and what becomes of them. Without a database.

A group is found by its first key; the rest of it is skipped, not read.
"""

from __future__ import annotations

from collections.abc import Sequence

from atoll.bindings.r2.store import ListPage, ListQuery, StoredObject, after_prefix

FEW = 1  # rows of the first step of a list by groups, and of the step after a group: others would be skipped
PAGE_BYTES = 1 << 20  # of metadata in a page of a list
LAST = b"\xff"  # after every key


class Listing:
    """The next step reads `step` objects in the order of their keys, from `at` to before `end`."""

    def __init__(self, query: ListQuery) -> None:
        self._query = query
        self.end = after_prefix(query.prefix) or LAST
        self.at = max(query.start, query.prefix)
        self.step = FEW if query.delimiter else query.limit + 1
        self._objects: list[StoredObject] = []
        self._groups: list[bytes] = []
        self._held = 0

    def take(self, batch: Sequence[StoredObject]) -> ListPage | None:
        """What a step has read. Returns the page if it is complete."""
        prefix, delimiter, limit = self._query.prefix, self._query.delimiter, self._query.limit
        for row in batch:
            if row.key < self.at:
                continue  # of a group that is listed
            if len(self._objects) + len(self._groups) == limit or self._held > PAGE_BYTES:
                return ListPage(self._objects, self._groups, self.at)
            cut = row.key.find(delimiter, len(prefix)) if delimiter else -1
            if cut >= 0:
                self._groups.append(row.key[: cut + len(delimiter)])
                self.at = after_prefix(self._groups[-1]) or LAST
            else:
                self._objects.append(row)
                self.at = row.key + b"\0"  # the first key after it
                self._held += len(row.http) + len(row.custom)
        if len(batch) < self.step:
            return ListPage(self._objects, self._groups, None)
        has_skipped = self.at > batch[-1].key + b"\0"
        self.step = FEW if has_skipped else min(2 * self.step, limit + 1)
        return None
