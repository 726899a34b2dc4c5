"""The records of calls and console lines: plain data, made by atoll/engine and used everywhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from atoll.errors import Failure
from atoll.tallies import OpSpan
from atoll.tracing import Trace
from atoll.wire.generated import Level, Outcome
from atoll.workers import Version

# Called for a finished call without console lines and ops: version, outcome, status, CPU and wall microseconds.
# True if counting it was enough; otherwise the call gets a record. Most calls of a busy worker get none.
Skim = Callable[[Version, Outcome, int, int, int], bool]

NO_OPS: Mapping[str, int] = {}
LINE_BYTES = 150  # size of a log line in Python without its text


@dataclass(slots=True)
class LogLine:
    """One console line of a call."""

    timestamp_ms: float
    level: Level
    text: str


class Said(NamedTuple):
    """A console line as soon as it is written, for live listeners that do not wait for the end of its call."""

    version: Version
    call: int  # the engine's number of the call, reused after its end; 0: top-level code
    event: str
    head: bytes  # as in Invocation
    line: LogLine


class Invocation(NamedTuple):
    """One finished call: its request, outcome, cost and console lines."""

    version: Version
    outcome: Outcome
    status: int
    cpu_us: int
    wall_us: int
    started_at: float  # seconds since 1970
    head: bytes  # b"GET http://host/path\nname: value\r\n…" as the client sent it, or b"CRON 5 * * * *\n…"
    logs: Sequence[LogLine] = ()
    failure: Failure | None = None
    truncated: bool = False  # lines beyond the limit of a call were dropped
    event: str = "fetch"
    entrypoint: str = ""
    hops: int = 0  # depth in a chain of workers that call each other
    ops: Mapping[str, int] = NO_OPS  # number of calls of each op
    spans: Sequence[OpSpan] = ()  # only where calls are traced
    trace: Trace | None = None  # where calls are traced, of a call that had ops
    subrequests: int = 0  # requests to bindings and other servers
    fetches: int = 0  # those that count against `limits.subrequests`
    memory_mb: int = 0  # of its isolate, at its response
    skipped: int = 0  # earlier calls of the worker without a record; set by the log store

    def weight(self) -> int:
        """The approximate size of its texts in bytes. It is constant: a record never changes."""
        size = len(self.head)
        for line in self.logs:
            size += LINE_BYTES + len(line.text)
        if self.failure is not None:
            size += len(self.failure.message) + len(self.failure.stack)
        return size
