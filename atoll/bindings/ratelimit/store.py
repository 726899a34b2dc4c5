"""The protocol of rate limit counters. Every implementation passes tests/bindings/ratelimit/test_counters.py.

A count belongs to a tenant, a namespace, a period and a key, and starts at 0 with every window. Windows are aligned to
the wall clock and as long as the period.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

PERIODS = (10, 60)  # seconds


class Bucket(NamedTuple):
    """The counts of a tenant that belong together."""

    tenant: str
    namespace: str
    period: int


class Counted(NamedTuple):
    """A namespace with counts in the current window."""

    namespace: str
    period: int
    keys: int
    ends_at: int  # seconds since 1970


class Counters(Protocol):
    async def count(self, bucket: Bucket, key: str) -> int:
        """Count a key once; returns its count in this window."""

    async def look(self, bucket: Bucket, key: str) -> int:
        """The count of a key in this window."""

    async def counted(self, tenant: str, namespace: str | None = None) -> list[Counted]:
        """The namespaces of a tenant with counts, or one of them, by period and name."""

    async def reset(self, tenant: str, namespace: str | None = None, key: str | None = None) -> bool:
        """Reset the counts of a tenant, of a namespace or of one key in it; returns whether there were any."""

    def window_end(self, period: int) -> int:
        """When the current window ends, in seconds since 1970."""
