"""What is known of a call once it is over: plain data that the engine room makes and everyone may hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from atoll.errors import Failure
from atoll.tallies import OpSpan
from atoll.tracing import Trace
from atoll.wire.generated import Level, Outcome
from atoll.workers import Version

# A call is over that said nothing and asked nothing: version, outcome, status, CPU and wall microseconds. True if it
# was counted and nobody wants to know more of it; else it gets a record. Most calls of a busy worker get none.
Skim = Callable[[Version, Outcome, int, int, int], bool]

NO_OPS: Mapping[str, int] = {}
LINE_BYTES = 150  # a log line without its text, as Python holds it


@dataclass(slots=True)
class LogLine:
    """One console line of a call."""

    timestamp_ms: float
    level: Level
    text: str


class Said(NamedTuple):
    """A console line at the moment it was said, for those who do not want to wait until its call is over."""

    version: Version
    call: int  # as the engine knows it, so free again after its end; 0: said by top-level code
    event: str
    head: bytes  # as Invocation has it
    line: LogLine


class Invocation(NamedTuple):
    """One call that is over: what was asked, how it ended, what it cost and what it said."""

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
    hops: int = 0  # workers that called each other before
    ops: Mapping[str, int] = NO_OPS  # how often it asked for each op
    spans: Sequence[OpSpan] = ()  # only where calls are traced
    trace: Trace | None = None  # where calls are traced, of a call that had ops
    subrequests: int = 0  # what it asked of bindings and other servers
    fetches: int = 0  # those of them that go against `limits.subrequests`
    memory_mb: int = 0  # of its isolate, when it answered
    skipped: int = 0  # calls of the worker before it that have no record: filled in by the log store

    def weight(self) -> int:
        """About how many bytes its words are. Nothing of a record changes, so neither does this."""
        size = len(self.head)
        for line in self.logs:
            size += LINE_BYTES + len(line.text)
        if self.failure is not None:
            size += len(self.failure.message) + len(self.failure.stack)
        return size
