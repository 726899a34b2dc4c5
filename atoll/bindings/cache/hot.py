"""Recently used responses in memory: a hit here does not read the index."""

from __future__ import annotations

from collections import OrderedDict

from atoll.bindings.cache.store import CachePlace, Stored

HOT_BYTES = 16 << 20
LARGEST = 256 * 1024  # of one URL, in all its variants
OVERHEAD = 1_000


class Hot:
    """The responses in memory. Code that changes the store drops the URL here afterwards. For the event loop only."""

    def __init__(self, most: int = HOT_BYTES) -> None:
        self._left = most
        self._found: OrderedDict[CachePlace, list[Stored]] = OrderedDict()  # least recently used first

    def get(self, place: CachePlace) -> list[Stored] | None:
        found = self._found.get(place)
        if found is not None:
            self._found.move_to_end(place)
        return found

    def put(self, place: CachePlace, found: list[Stored]) -> None:
        """Keep the responses of a URL, if they are small together."""
        cost = _cost(place, found)
        if not found or cost > LARGEST or any(stored.body is None for stored in found):
            return
        self.drop(place)
        self._found[place] = found
        self._left -= cost
        while self._left < 0:
            self.drop(next(iter(self._found)))

    def drop(self, place: CachePlace) -> None:
        found = self._found.pop(place, None)
        if found is not None:
            self._left += _cost(place, found)


def _cost(place: CachePlace, found: list[Stored]) -> int:
    return len(place.url) + sum(OVERHEAD + stored.size + len(stored.head) + len(stored.vary) for stored in found)
