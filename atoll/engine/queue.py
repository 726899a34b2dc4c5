"""Calls that no engine can take yet: none runs, or every loaded version is busy. First come, first served.

Bounded three ways: calls in all, calls per version, and the time one waits.
"""

from __future__ import annotations

from collections import Counter, deque

from atoll.engine.calls import QUEUED, Call
from atoll.workers import Version

MAX_QUEUE = 2000
QUEUE_SECONDS = 5.0


class CallQueue:
    def __init__(self, per_version: int) -> None:
        self._per_version = per_version
        self._calls: deque[Call] = deque()
        self._waiting: Counter[Version] = Counter()

    def __len__(self) -> int:
        return len(self._calls)

    def add(self, call: Call, now: float) -> bool:
        """Keep a call; False if there is no room for it."""
        if len(self._calls) >= MAX_QUEUE or self._waiting[call.version] >= self._per_version:
            return False
        call.deadline = now + QUEUE_SECONDS
        self._calls.append(call)
        self._waiting[call.version] += 1
        return True

    def first(self) -> Call | None:
        """The call that waits longest."""
        return self._calls[0] if self._calls else None

    def pop(self) -> Call:
        call = self._calls.popleft()
        self._leave(call)
        return call

    def pop_late(self, now: float) -> Call | None:
        """The next call that has waited long enough to be refused."""
        return self.pop() if self._calls and self._calls[0].deadline < now else None

    def remove(self, call: Call) -> None:
        """A call was cancelled."""
        assert call.state == QUEUED
        self._calls.remove(call)
        self._leave(call)

    def _leave(self, call: Call) -> None:
        self._waiting[call.version] -= 1
        if not self._waiting[call.version]:
            del self._waiting[call.version]
