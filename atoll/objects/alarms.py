"""The alarms of all objects, in memory: a heap by time. An object has one alarm at most."""

from __future__ import annotations

from heapq import heapify, heappop, heappush

from atoll.objects.store import Alarm, ObjectKey

STALE = 1_000  # entries of alarms that were changed or deleted, before the heap is made anew


class Alarms:
    def __init__(self) -> None:
        self._set: dict[ObjectKey, Alarm] = {}
        self._times: dict[ObjectKey, int] = {}  # when to hand out those that were not handed out yet
        self._heap: list[tuple[int, ObjectKey]] = []
        self._gone: set[str] = set()  # namespaces that were deleted

    def get(self, key: ObjectKey) -> Alarm | None:
        return self._set.get(key)

    def load(self, alarms: list[Alarm]) -> None:
        self._set = {alarm.key: alarm for alarm in alarms}
        self._times = {alarm.key: alarm.at_ms for alarm in alarms}
        self._rebuild()

    def set(self, alarm: Alarm) -> None:
        self._set[alarm.key] = alarm
        self._hand_out(alarm.key, alarm.at_ms)

    def retry(self, alarm: Alarm, at_ms: int) -> None:
        """Hand an alarm out again later, unless it was changed."""
        if self._set.get(alarm.key) == alarm:
            self._hand_out(alarm.key, at_ms)

    def delete(self, key: ObjectKey) -> None:
        self._set.pop(key, None)
        self._times.pop(key, None)

    def delete_namespace(self, namespace: str) -> None:
        """Its alarms are dropped when they are due: there may be many, and its id is not used again."""
        self._gone.add(namespace)

    def next(self) -> int | None:
        while self._heap and self._times.get(self._heap[0][1]) != self._heap[0][0]:
            heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def due(self, now_ms: int, limit: int) -> list[Alarm]:
        found: list[Alarm] = []
        while len(found) < limit and (first := self.next()) is not None and first <= now_ms:
            _, key = heappop(self._heap)
            del self._times[key]
            if key.namespace in self._gone:
                self.delete(key)
            else:
                found.append(self._set[key])
        return found

    def _hand_out(self, key: ObjectKey, at_ms: int) -> None:
        self._times[key] = at_ms
        heappush(self._heap, (at_ms, key))
        if len(self._heap) > 2 * len(self._times) + STALE:
            self._rebuild()

    def _rebuild(self) -> None:
        self._heap = [(at_ms, key) for key, at_ms in self._times.items()]
        heapify(self._heap)
