"""What happened in the calls of each worker: the newest records, kept in memory within bounds.

`record` runs once per call on the event loop, so it only appends: it never waits, encodes or writes. Only workers that
were opened are kept, so that a call which ends after its worker was deleted leaves nothing behind. There are three
bounds: records per worker, bytes per worker, and bytes in all, where the worker that has been quiet longest pays.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from dataclasses import dataclass, field

from atoll.errors import Failure
from atoll.wire.generated import Level, Outcome

RECORD_BYTES = 500  # a record without its texts, as Python holds it
LINE_BYTES = 150  # a log line without its text


@dataclass(slots=True)
class LogLine:
    """One console line of a call."""

    timestamp_ms: float
    level: Level
    text: str


@dataclass(slots=True)
class Invocation:
    """One call that is over: what was asked, how it ended, what it cost and what it said."""

    worker_id: str
    worker_name: str
    version_id: str
    event: str
    outcome: Outcome
    status: int
    cpu_us: int
    wall_us: int
    started_at: float  # seconds since 1970
    method_url: bytes  # b"GET http://host/path", as the client sent it
    logs: list[LogLine] = field(default_factory=list)
    failure: Failure | None = None
    truncated: bool = False  # lines beyond the limit of a call were dropped

    def weight(self) -> int:
        """About how many bytes it holds. Nothing of a record changes once recorded, so neither does this."""
        weight = RECORD_BYTES + len(self.method_url)
        for line in self.logs:
            weight += LINE_BYTES + len(line.text)
        if self.failure is not None:
            weight += len(self.failure.message) + len(self.failure.stack)
        return weight


class _Ring:
    """The newest records of one worker."""

    __slots__ = ("records", "weight")

    def __init__(self) -> None:
        self.records: deque[Invocation] = deque()
        self.weight = 0

    def pop_oldest(self) -> int:
        weight = self.records.popleft().weight()
        self.weight -= weight
        return weight


class LogStore:
    def __init__(self, *, records: int = 1_000, worker_bytes: int = 1 << 20, total_bytes: int = 64 << 20) -> None:
        self.max_records = records
        self.max_worker_bytes = worker_bytes
        self.max_bytes = total_bytes
        self.weight = 0
        self._rings: dict[str, _Ring] = {}
        self._spoken: OrderedDict[str, _Ring] = OrderedDict()  # rings that hold something, the quietest first

    def open(self, worker_id: str) -> None:
        """Keep the records of a worker from now on."""
        self._rings.setdefault(worker_id, _Ring())

    def drop(self, worker_id: str) -> None:
        """Forget a worker and all its records."""
        ring = self._rings.pop(worker_id, None)
        if ring is not None:
            self.weight -= ring.weight
            self._spoken.pop(worker_id, None)

    def record(self, invocation: Invocation) -> None:
        worker_id = invocation.worker_id
        ring = self._rings.get(worker_id)
        if ring is None:
            return
        weight = invocation.weight()
        ring.records.append(invocation)
        ring.weight += weight
        self.weight += weight
        self._spoken[worker_id] = ring
        self._spoken.move_to_end(worker_id)
        while len(ring.records) > self.max_records or (ring.weight > self.max_worker_bytes and len(ring.records) > 1):
            self.weight -= ring.pop_oldest()
        if self.weight > self.max_bytes:
            self._shrink()

    def recent(self, worker_id: str, limit: int) -> list[Invocation]:
        """Up to `limit` records of a worker, newest first."""
        ring = self._rings.get(worker_id)
        if ring is None:
            return []
        newest = reversed(ring.records)
        return [record for record, _ in zip(newest, range(limit), strict=False)]

    def _shrink(self) -> None:
        while self.weight > self.max_bytes and self._spoken:
            worker_id, quietest = next(iter(self._spoken.items()))
            self.weight -= quietest.pop_oldest()
            if not quietest.records:
                del self._spoken[worker_id]
