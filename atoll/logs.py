"""What happened in the calls of each worker: the newest records, kept in memory within bounds.

`record` runs once per call on the event loop, so it only appends: it never waits, encodes or writes. Only workers that
were opened are kept, so that a call which ends after its worker was deleted leaves nothing behind. There are three
bounds: records per worker, bytes per worker, and bytes in all, where the worker that has been quiet longest pays. A
record without a word counts as RECORD_BYTES whatever it holds (its address is cut), so the usual one is not weighed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from atoll.errors import Failure
from atoll.wire.generated import Level, Outcome
from atoll.workers import Version

RECORD_BYTES = 800  # a record without what was said, as Python holds it, with a long address
LINE_BYTES = 150  # a log line without its text
ADDRESS_BYTES = 400  # of the method and URL of a call, kept for people to read


@dataclass(slots=True)
class LogLine:
    """One console line of a call."""

    timestamp_ms: float
    level: Level
    text: str


class Invocation(NamedTuple):
    """One call that is over: what was asked, how it ended, what it cost and what it said."""

    version: Version
    outcome: Outcome
    status: int
    cpu_us: int
    wall_us: int
    started_at: float  # seconds since 1970
    method_url: bytes  # b"GET http://host/path", as the client sent it, up to ADDRESS_BYTES
    logs: Sequence[LogLine] = ()
    failure: Failure | None = None
    truncated: bool = False  # lines beyond the limit of a call were dropped
    event: str = "fetch"

    def spoken(self) -> int:
        """About how many bytes its words are. Nothing of a record changes, so neither does this."""
        size = sum(LINE_BYTES + len(line.text) for line in self.logs)
        if self.failure is not None:
            size += len(self.failure.message) + len(self.failure.stack)
        return size


class _Ring:
    """The newest records of one worker."""

    __slots__ = ("newest", "records", "spoken")

    def __init__(self) -> None:
        self.records: deque[Invocation] = deque()
        self.spoken = 0  # bytes of all their words
        self.newest = 0  # when the newest came, in records of the store

    def pop_oldest(self) -> int:
        """Drop one; returns the bytes of its words."""
        oldest = self.records.popleft()
        if not oldest.logs and oldest.failure is None:
            return 0
        size = oldest.spoken()
        self.spoken -= size
        return size


class LogStore:
    def __init__(self, *, records: int = 1_000, worker_bytes: int = 1 << 20, total_bytes: int = 64 << 20) -> None:
        self.max_records = records
        self.max_spoken = worker_bytes
        self.max_bytes = total_bytes
        self.weight = 0
        self._count = 0  # records ever taken
        self._rings: dict[str, _Ring] = {}

    def open(self, worker_id: str) -> None:
        """Keep the records of a worker from now on."""
        self._rings.setdefault(worker_id, _Ring())

    def drop(self, worker_id: str) -> None:
        """Forget a worker and all its records."""
        ring = self._rings.pop(worker_id, None)
        if ring is not None:
            self.weight -= ring.spoken + len(ring.records) * RECORD_BYTES

    def record(self, invocation: Invocation) -> None:
        ring = self._rings.get(invocation.version.worker_id)
        if ring is None:
            return
        records = ring.records
        records.append(invocation)
        self._count = ring.newest = self._count + 1
        if len(records) > self.max_records:
            self.weight -= ring.pop_oldest()
        else:
            self.weight += RECORD_BYTES
        if invocation.logs or invocation.failure is not None:
            size = invocation.spoken()
            ring.spoken += size
            self.weight += size
            while ring.spoken > self.max_spoken and len(records) > 1:
                self.weight -= ring.pop_oldest() + RECORD_BYTES
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
        """Drop records of the quietest workers, somewhat more than needed: looking for them takes time."""
        wanted = self.max_bytes - self.max_bytes // 16
        for ring in sorted(self._rings.values(), key=lambda ring: ring.newest):
            while self.weight > wanted and len(ring.records) > (ring.newest == self._count):
                self.weight -= ring.pop_oldest() + RECORD_BYTES
