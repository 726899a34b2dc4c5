"""How many instances of a tenant run at the same time. The others are queued: those that only wait do not count."""

from __future__ import annotations

import random
from collections import Counter

from atoll.bindings.scope import CallScope

MOST_RUNNING = 50  # of one tenant: their calls share the node with the alarms of all objects
FIRST_WAIT = 500  # ms
LONGEST_WAIT = 30_000


class _Place:
    """The place of an instance, until its call is over."""

    def __init__(self, running: RunningInstances, tenant: str) -> None:
        self._running = running
        self._tenant = tenant

    def close(self) -> None:
        self._running.leave(self._tenant)


class RunningInstances:
    def __init__(self) -> None:
        self._running: Counter[str] = Counter()
        self._refused: Counter[str] = Counter()  # since a place was free

    def enter(self, tenant: str, scope: CallScope) -> int:
        """0, or the milliseconds after which to ask again: the longer the queue, the longer."""
        if self._running[tenant] >= MOST_RUNNING:
            self._refused[tenant] += 1
            wait = FIRST_WAIT * (1 + self._refused[tenant] / MOST_RUNNING)
            return int(min(wait, LONGEST_WAIT) * (0.75 + random.random() / 2))
        self._running[tenant] += 1
        scope.keep(_Place(self, tenant))
        return 0

    def leave(self, tenant: str) -> None:
        self._running[tenant] -= 1
        if self._running[tenant] <= 0:
            del self._running[tenant]
        if self._refused[tenant] > 0:
            self._refused[tenant] = max(0, self._refused[tenant] - 2)

    def count(self, tenant: str) -> int:
        return self._running[tenant]
