"""Calls that no engine can take yet, because none runs or every loaded version is busy.

Calls of one version are served in order. Versions are served in turns, one tenant after the other, so that a tenant
with many calls does not get more than its share. Four limits apply: calls in all, of one tenant, of one version, and
the time that a call waits.
"""

from __future__ import annotations

from collections import Counter, deque

from atoll.engine.calls.call import QUEUED, Call
from atoll.errors import Failure
from atoll.wire.generated import ErrorCode
from atoll.workers import Version

MAX_QUEUE = 2000
MAX_TENANT = 1000  # half of the queue is left for other tenants
QUEUE_SECONDS = 5.0
# The failure of a call that was sent and waits behind too many others for its isolate.
QUEUE_FULL = Failure(ErrorCode.OVERLOADED, "too many calls wait for this worker already")


class CallQueue:
    def __init__(self, per_version: int) -> None:
        self._per_version = per_version
        self._waiting: dict[Version, deque[Call]] = {}  # in the order of their turns
        self._of_tenant: Counter[str] = Counter()
        self._last_turn: dict[str, int] = {}  # the turn in which each waiting tenant was last served
        self._turn = 0
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def add(self, call: Call, now: float) -> bool:
        """Queue a call; False if the queue is full."""
        waiting = self._waiting.get(call.version)
        tenant = call.version.tenant
        if self._count >= MAX_QUEUE or self._of_tenant[tenant] >= MAX_TENANT:
            return False
        if waiting is None:
            waiting = self._waiting[call.version] = deque()
        elif len(waiting) >= self._per_version:
            return False
        call.deadline = now + QUEUE_SECONDS
        waiting.append(call)
        self._of_tenant[tenant] += 1
        self._count += 1
        return True

    def counts(self) -> dict[Version, int]:
        return {version: len(waiting) for version, waiting in self._waiting.items()}

    def turns(self) -> list[Version]:
        """The waiting versions in the order to serve them: the first of each tenant, then the second of each.

        Among tenants the one that was served longest ago comes first.
        """
        rounds: Counter[str] = Counter()
        ranked = []
        for position, version in enumerate(self._waiting):
            tenant = version.tenant
            ranked.append((rounds[tenant], self._last_turn.get(tenant, 0), position, version))
            rounds[tenant] += 1
        ranked.sort(key=lambda entry: entry[:3])
        return [entry[3] for entry in ranked]

    def take(self, version: Version) -> list[Call]:
        """Take all calls of a version out of the queue."""
        calls = list(self._waiting.pop(version, ()))
        self._turn += 1
        self._last_turn[version.tenant] = self._turn
        self._left(version, len(calls))
        return calls

    def has(self, version: Version) -> bool:
        return version in self._waiting

    def take_late(self, now: float) -> list[Call]:
        """Take out the calls that have waited too long."""
        late: list[Call] = []
        for version, waiting in list(self._waiting.items()):
            while waiting and waiting[0].deadline < now:
                late.append(waiting.popleft())
                self._left(version, 1)
            if not waiting:
                del self._waiting[version]
        return late

    def take_all(self) -> list[Call]:
        return [call for version in self.turns() for call in self.take(version)]

    def remove(self, call: Call) -> None:
        """A call was cancelled."""
        assert call.state == QUEUED
        waiting = self._waiting[call.version]
        waiting.remove(call)
        self._left(call.version, 1)
        if not waiting:
            del self._waiting[call.version]

    def _left(self, version: Version, count: int) -> None:
        self._count -= count
        self._of_tenant[version.tenant] -= count
        if not self._of_tenant[version.tenant]:
            del self._of_tenant[version.tenant]
            self._last_turn.pop(version.tenant, None)
