"""Bytes that connections hold in this process, counted per tenant.

Each connection limits its own buffers. A tenant may have thousands of connections, so there is also a limit for all of
them together, the tenant's room. Above it the tenant is tight, and whoever can wait, waits: a connection that sends a
body is read in small pieces and only while it holds little, and responses are asked for in small pieces. A connection
that holds little is never stopped, so none depends on another to get on.

Incomplete messages and responses that no client reads cannot wait. At four times the room, the connection that holds
the most is closed, so that clients with small messages are not affected.
"""

from __future__ import annotations

from typing import Final, Protocol

FREE_BYTES = 64 << 10  # per connection that cannot wait, not counted
SMALL_WINDOW: Final = 16 << 10  # per connection that can wait, not counted: what it may hold while its tenant is tight
ROOM_BYTES = 64 << 20  # for all connections of one tenant, beyond these
SHED_AT = 4  # rooms


class Holder(Protocol):
    """A connection."""

    def shed(self) -> None:
        """Free all buffers: the tenant holds too much."""


class Holdings:
    """What is held for each tenant, and by whom."""

    __slots__ = ("_by_tenant", "_room", "_totals")

    def __init__(self, room: int = ROOM_BYTES) -> None:
        self._room = room
        self._by_tenant: dict[str, dict[Holder, int]] = {}  # connections that cannot wait
        self._totals: dict[str, int] = {}

    def note(self, tenant: str, holder: Holder, size: int) -> None:
        """Record that a connection that cannot wait holds `size` bytes; 0 when it is closed.

        May call its `shed` before returning.
        """
        holders = self._by_tenant.get(tenant)
        if size <= FREE_BYTES:
            if holders is not None and holder in holders:
                self.count(tenant, -holders.pop(holder))
                if not holders:
                    del self._by_tenant[tenant]
            return
        if holders is None:
            holders = self._by_tenant[tenant] = {}
        change = size - holders.get(holder, 0)
        holders[holder] = size
        self.count(tenant, change)
        if change > 0 and self.is_full(tenant):
            largest = max(holders, key=holders.__getitem__)
            self.note(tenant, largest, 0)
            largest.shed()

    def count(self, tenant: str, change: int) -> None:
        """Record that something that can wait holds more, or less."""
        total = self._totals.get(tenant, 0) + change
        if total:
            self._totals[tenant] = total
        else:
            self._totals.pop(tenant, None)

    def is_tight(self, tenant: str) -> bool:
        """Whether the tenant holds more than its room."""
        return self._totals.get(tenant, 0) > self._room

    def is_full(self, tenant: str) -> bool:
        """Whether the tenant holds so much that bytes must go."""
        return self._totals.get(tenant, 0) > SHED_AT * self._room

    def total(self, tenant: str) -> int:
        return self._totals.get(tenant, 0)
