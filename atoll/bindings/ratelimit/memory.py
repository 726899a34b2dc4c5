"""Counts in the memory of this node: after a restart every count is 0."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable

from atoll.bindings.ratelimit.store import PERIODS, Bucket, Counted

MAX_KEYS = 1_000_000  # of one tenant in the windows of one period; further keys are let through uncounted


class Window:
    """The counts of one tenant in the window that is open."""

    def __init__(self) -> None:
        self.number = -1
        self.size = 0
        self.counts: dict[str, dict[bytes, int]] = {}  # by namespace


class MemoryCounters:
    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._windows: dict[tuple[str, int], Window] = {}  # by tenant and period

    async def count(self, bucket: Bucket, key: str) -> int:
        window = self._window(bucket.tenant, bucket.period)
        counts = window.counts.get(bucket.namespace)
        if counts is None:
            counts = window.counts[bucket.namespace] = {}
        name = _digest(key)
        count = counts.get(name, 0) + 1
        if count > 1:
            counts[name] = count
        elif window.size < MAX_KEYS:
            counts[name] = 1
            window.size += 1
        return count

    async def look(self, bucket: Bucket, key: str) -> int:
        window = self._window(bucket.tenant, bucket.period)
        return window.counts.get(bucket.namespace, {}).get(_digest(key), 0)

    async def counted(self, tenant: str) -> list[Counted]:
        return [
            Counted(namespace, period, len(counts), self.window_end(period))
            for period in PERIODS
            for namespace, counts in sorted(self._window(tenant, period).counts.items())
            if counts
        ]

    async def reset(self, tenant: str, namespace: str | None = None, key: str | None = None) -> bool:
        gone = 0
        for period in PERIODS:
            window = self._window(tenant, period)
            for name in list(window.counts) if namespace is None else [namespace]:
                counts = window.counts.get(name, {})
                before = len(counts)
                if key is None:
                    counts.clear()
                else:
                    counts.pop(_digest(key), None)
                gone += before - len(counts)
                window.size -= before - len(counts)
        return gone > 0

    def window_end(self, period: int) -> int:
        return (int(self._clock() // period) + 1) * period

    def _window(self, tenant: str, period: int) -> Window:
        window = self._windows.get((tenant, period))
        if window is None:
            window = self._windows[tenant, period] = Window()
        number = int(self._clock() // period)
        if window.number != number:  # another one, also when the clock was set back
            window.number, window.size, window.counts = number, 0, {}
        return window


def _digest(key: str) -> bytes:
    """As long for every key, whatever a worker takes for one."""
    return hashlib.blake2b(key.encode("utf-8", "replace"), digest_size=16).digest()
