"""Tenants as the pool counts them: what each has under way and loaded now, and how much of that it may have.

The node's settings give every tenant the same caps; whoever knows more about one (the control room, which stores
quotas) sets its own with `set_caps`, at any time. What is under way already is never ended for it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TenantCaps:
    """What one tenant may have at the same time on this node."""

    calls: int = 2000  # calls under way, over all its workers
    loaded: int = 1000  # isolates
    own_engine: bool = False  # all its workers run in an engine process of its own


class Tenant:
    __slots__ = ("caps", "in_flight", "loaded", "max_calls", "name")

    def __init__(self, name: str, caps: TenantCaps) -> None:
        self.name = name
        self.caps = caps
        self.max_calls = caps.calls  # also there because it is looked at for every call
        self.in_flight = 0
        self.loaded = 0


class Tenants:
    def __init__(self, usual: TenantCaps) -> None:
        self._usual = usual
        self._by_name: dict[str, Tenant] = {}

    def of(self, name: str) -> Tenant:
        tenant = self._by_name.get(name)
        if tenant is None:
            tenant = self._by_name[name] = Tenant(name, self._usual)
        return tenant

    def set_caps(self, name: str, caps: TenantCaps | None) -> None:
        """Caps of one tenant from now on; None: those of the node's settings."""
        tenant = self.of(name)
        tenant.caps = caps or self._usual
        tenant.max_calls = tenant.caps.calls

    def busiest(self, count: int) -> list[Tenant]:
        """Those with most under way, for people to look at."""
        active = [tenant for tenant in self._by_name.values() if tenant.in_flight or tenant.loaded]
        return sorted(active, key=lambda tenant: (-tenant.in_flight, -tenant.loaded, tenant.name))[:count]
