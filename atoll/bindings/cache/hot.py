"""Responses that were asked for lately, in memory: a hit that is here needs no look at the index."""

from __future__ import annotations

from collections import OrderedDict

from atoll.bindings.cache.store import Place, Stored

HOT_BYTES = 16 << 20
LARGEST = 256 * 1024  # of one URL, in all its variants
OVERHEAD = 1_000


class Hot:
    """Whoever changes what is kept drops it here once that is done. Only the event loop's thread touches it."""

    def __init__(self, most: int = HOT_BYTES) -> None:
        self._left = most
        self._found: OrderedDict[Place, list[Stored]] = OrderedDict()  # the one used for longest ago first

    def get(self, place: Place) -> list[Stored] | None:
        found = self._found.get(place)
        if found is not None:
            self._found.move_to_end(place)
        return found

    def put(self, place: Place, found: list[Stored]) -> None:
        """Keep what the index has of a URL, if all of it is small."""
        cost = _cost(place, found)
        if not found or cost > LARGEST or any(stored.body is None for stored in found):
            return
        self.drop(place)
        self._found[place] = found
        self._left -= cost
        while self._left < 0:
            self.drop(next(iter(self._found)))

    def drop(self, place: Place) -> None:
        found = self._found.pop(place, None)
        if found is not None:
            self._left += _cost(place, found)


def _cost(place: Place, found: list[Stored]) -> int:
    return len(place.url) + sum(OVERHEAD + stored.size + len(stored.head) + len(stored.vary) for stored in found)
