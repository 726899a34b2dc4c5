"""The versions that are loaded on this node, the isolates of each, and which isolate takes the next call.

Usually a version has one isolate: globals persist between calls, as workers expect. A worker that keeps one isolate
busy all the time gets more, each in another engine (scaling.py). Calls then go to the one with the fewest in flight.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterator

from atoll.engine.loaded.engine_groups import EngineGroup
from atoll.engine.loaded.engine_session import Isolate
from atoll.engine.tenant_usage import TenantUsage
from atoll.workers import Isolation, Version


def is_exclusive(version: Version) -> bool:
    """Whether an isolate of the version has one call at a time (exclusive.py)."""
    return version.isolation in (Isolation.CONTEXT, Isolation.ISOLATE)


class LoadedVersion:
    """A version with its isolates: at least one."""

    __slots__ = ("calm_looks", "cpu_us", "far_calls", "group", "isolates", "late_looks", "only", "tenant", "version")

    def __init__(self, version: Version, tenant: TenantUsage, group: EngineGroup, first: Isolate) -> None:
        self.version = version
        self.tenant = tenant
        self.group = group
        self.only: Isolate | None = first  # None while there are several
        self.isolates = [first]

        self.far_calls = 0  # of workers in engines without an isolate of it

        # For scaling.py
        self.late_looks = 0  # looks in a row that found late calls
        self.calm_looks = 0  # looks in a row that found one isolate too many
        self.cpu_us = 0  # CPU time of its calls at the last look

    def lightest(self) -> Isolate:
        """Where the next call goes: to a ready isolate, if there is one, with the fewest calls in flight."""
        if self.only is not None:
            return self.only
        best, *rest = self.isolates
        for other in rest:
            if (not other.room, other.in_flight) < (not best.room, best.in_flight):
                best = other
        return best

    def add(self, isolate: Isolate) -> None:
        self.isolates.append(isolate)
        self.only = None

    def remove(self, isolate: Isolate) -> None:
        self.isolates.remove(isolate)
        self.only = self.isolates[0] if len(self.isolates) == 1 else None

    @property
    def in_flight(self) -> int:
        return sum(isolate.in_flight for isolate in self.isolates)

    @property
    def is_idle(self) -> bool:
        return not any(not isolate.is_idle or isolate.waiters for isolate in self.isolates)

    @property
    def last_used(self) -> float:
        return max(isolate.last_used for isolate in self.isolates)


class LoadedVersions:
    """All versions that are loaded or being loaded, the least recently used first."""

    def __init__(self) -> None:
        self._loaded: OrderedDict[Version, LoadedVersion] = OrderedDict()
        self.get = self._loaded.get  # both are on the hot path
        self.used = self._loaded.move_to_end
        self.isolates = 0

    def __iter__(self) -> Iterator[LoadedVersion]:
        return iter(list(self._loaded.values()))

    def __contains__(self, version: Version) -> bool:
        return version in self._loaded

    def __getitem__(self, version: Version) -> LoadedVersion:
        return self._loaded[version]

    def add(self, version: Version, tenant: TenantUsage, group: EngineGroup, isolate: Isolate) -> LoadedVersion:
        loaded = self._loaded.get(version)
        if loaded is None:
            loaded = self._loaded[version] = LoadedVersion(version, tenant, group, isolate)
        else:
            loaded.add(isolate)
        self.isolates += 1
        tenant.loaded += 1
        return loaded

    def drop(self, isolate: Isolate) -> None:
        """Send no more calls to the isolate."""
        if not self.holds(isolate):
            return
        loaded = self._loaded[isolate.version]
        isolate.session.close_routes(isolate)
        self.isolates -= 1
        loaded.tenant.loaded -= 1
        if len(loaded.isolates) == 1:
            del self._loaded[isolate.version]
        else:
            loaded.remove(isolate)

    def holds(self, isolate: Isolate) -> bool:
        """Whether calls may go to the isolate."""
        loaded = self._loaded.get(isolate.version)
        return loaded is not None and isolate in loaded.isolates

    def longest_idle(self, tenant: TenantUsage | None = None) -> LoadedVersion | None:
        """The least recently used idle version, of one tenant or of all."""
        for loaded in self._loaded.values():
            if (tenant is None or loaded.tenant is tenant) and loaded.is_idle:
                return loaded
        return None
