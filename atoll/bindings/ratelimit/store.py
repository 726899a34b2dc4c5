"""What counts for rate limits, whatever it is made of: tests/bindings/ratelimit/test_counters.py says it as a suite.

A count belongs to a tenant, a namespace, a period and a key, and begins anew with every window: windows are aligned to
the wall clock and as long as the period.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

PERIODS = (10, 60)  # seconds


class Bucket(NamedTuple):
    """What of a tenant is counted together."""

    tenant: str
    namespace: str
    period: int


class Counted(NamedTuple):
    """What was counted in the window that is open."""

    namespace: str
    period: int
    keys: int
    ends_at: int  # seconds since 1970


class Counters(Protocol):
    async def count(self, bucket: Bucket, key: str) -> int:
        """Count once more under a key; how often that was in this window."""

    async def look(self, bucket: Bucket, key: str) -> int:
        """How often a key was counted in this window."""

    async def counted(self, tenant: str) -> list[Counted]:
        """What a tenant has counts of."""

    async def reset(self, tenant: str, namespace: str | None = None, key: str | None = None) -> bool:
        """Forget the counts of a tenant, of a namespace or of one key in it; whether there were any."""

    def window_end(self, period: int) -> int:
        """When the window that is open ends, in seconds since 1970."""
