"""Counters in the memory of this node: after a restart every count is 0."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import Callable

from atoll.bindings.ratelimit.store import PERIODS, Bucket, Counted

FREED_AT_ONCE = 5_000
MAX_KEYS = 1_000_000  # of one tenant in the windows of one period; further keys are allowed and not counted


class Window:
    """The counts of one tenant in the current window."""

    def __init__(self) -> None:
        self.number = -1
        self.size = 0
        self.counts: dict[str, dict[bytes, int]] = {}  # by namespace


class MemoryCounters:
    def __init__(self, *, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._windows: dict[tuple[str, int], Window] = {}  # by tenant and period
        self._old: list[dict[bytes, int]] = []  # counts of windows that are over
        self._is_freeing = False

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

    async def counted(self, tenant: str, namespace: str | None = None) -> list[Counted]:
        found = []
        for period in PERIODS:
            counts = self._window(tenant, period).counts
            for name in sorted(counts) if namespace is None else (namespace,):
                if counts.get(name):
                    found.append(Counted(name, period, len(counts[name]), self.window_end(period)))
        return found

    async def reset(self, tenant: str, namespace: str | None = None, key: str | None = None) -> bool:
        gone = 0
        for period in PERIODS:
            window = self._window(tenant, period)
            for name in list(window.counts) if namespace is None else [namespace]:
                counts = window.counts.get(name, {})
                before = len(counts)
                if key is None and counts:
                    window.counts[name] = {}
                    self._discard({name: counts})
                else:
                    counts.pop(_digest(key or ""), None)
                left = len(window.counts.get(name, {}))
                gone += before - left
                window.size -= before - left
        return gone > 0

    def window_end(self, period: int) -> int:
        return (int(self._clock() // period) + 1) * period

    def _window(self, tenant: str, period: int) -> Window:
        window = self._windows.get((tenant, period))
        if window is None:
            window = self._windows[tenant, period] = Window()
        number = int(self._clock() // period)
        if window.number != number:  # a new window, also if the clock was set back
            old, window.counts = window.counts, {}
            window.number, window.size = number, 0
            self._discard(old)
        return window

    def _discard(self, counts: dict[str, dict[bytes, int]]) -> None:
        """Free counts in steps: a million at once would block the event loop for a tenth of a second."""
        self._old += [each for each in counts.values() if len(each) > FREED_AT_ONCE]
        if self._old and not self._is_freeing:
            self._is_freeing = True
            asyncio.get_running_loop().call_soon(self._free)

    def _free(self) -> None:
        last = self._old[-1]
        for _ in range(min(FREED_AT_ONCE, len(last))):
            last.popitem()
        if not last:
            self._old.pop()
        self._is_freeing = bool(self._old)
        if self._is_freeing:
            asyncio.get_running_loop().call_later(0.002, self._free)


def _digest(key: str) -> bytes:
    """A key of fixed length, whatever the length of the worker's key."""
    return hashlib.blake2b(key.encode("utf-8", "replace"), digest_size=16).digest()
