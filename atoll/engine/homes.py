"""A version on this node: the isolates it is loaded in, and which of them takes the next call.

Usually there is one: globals persist between calls, as workers expect. A worker that keeps one isolate busy all the
time gets more, each in another engine (see spread.py), and calls go to the one with fewest under way.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

from atoll.engine.cells import Cell
from atoll.engine.placement import Placement
from atoll.engine.tenants import Tenant
from atoll.workers import Version


class Home:
    __slots__ = ("calm", "cell", "cpu_us", "first", "placements", "pressed", "tenant", "version")

    def __init__(self, version: Version, tenant: Tenant, cell: Cell, first: Placement) -> None:
        self.version = version
        self.tenant = tenant
        self.cell = cell
        self.first: Placement | None = first  # the only one; None while there are several
        self.placements = [first]

        # What spread.py has seen
        self.pressed = 0  # looks in a row that found calls waiting
        self.calm = 0  # looks in a row that found fewer isolates would do
        self.cpu_us = 0  # CPU time of its calls at the last look

    def lightest(self) -> Placement:
        """Where the next call goes: ready, if one is, and with fewest calls under way."""
        if self.first is not None:
            return self.first
        best, *rest = self.placements
        for other in rest:
            if (not other.room, other.in_flight) < (not best.room, best.in_flight):
                best = other
        return best

    def add(self, placement: Placement) -> None:
        self.placements.append(placement)
        self.first = None

    def remove(self, placement: Placement) -> None:
        self.placements.remove(placement)
        self.first = self.placements[0] if len(self.placements) == 1 else None

    @property
    def in_flight(self) -> int:
        return sum(placement.in_flight for placement in self.placements)

    @property
    def is_idle(self) -> bool:
        return not any(not placement.is_idle or placement.waiters for placement in self.placements)

    @property
    def last_used(self) -> float:
        return max(placement.last_used for placement in self.placements)


class Homes:
    """All versions that are loaded or being loaded, the least recently used first."""

    def __init__(self) -> None:
        self._homes: OrderedDict[Version, Home] = OrderedDict()
        self.get = self._homes.get  # both are on the hot path
        self.used = self._homes.move_to_end
        self.loaded = 0  # isolates

    def __iter__(self) -> Iterator[Home]:
        return iter(list(self._homes.values()))

    def __contains__(self, version: Version) -> bool:
        return version in self._homes

    def __getitem__(self, version: Version) -> Home:
        return self._homes[version]

    def add(self, version: Version, tenant: Tenant, cell: Cell, placement: Placement) -> Home:
        home = self._homes.get(version)
        if home is None:
            home = self._homes[version] = Home(version, tenant, cell, placement)
        else:
            home.add(placement)
        self.loaded += 1
        tenant.loaded += 1
        return home

    def drop(self, placement: Placement) -> None:
        """No call goes there any more."""
        if not self.holds(placement):
            return
        home = self._homes[placement.version]
        self.loaded -= 1
        home.tenant.loaded -= 1
        if len(home.placements) == 1:
            del self._homes[placement.version]
        else:
            home.remove(placement)

    def holds(self, placement: Placement) -> bool:
        """Whether calls go there."""
        home = self._homes.get(placement.version)
        return home is not None and placement in home.placements

    def longest_idle(self, tenant: Tenant | None = None) -> Home | None:
        """The idle version nobody called for longest, of one tenant or of all."""
        for home in self._homes.values():
            if (tenant is None or home.tenant is tenant) and home.is_idle:
                return home
        return None
