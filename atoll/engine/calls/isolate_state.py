"""What the calls of an isolate share: its counters, its console lines, and the flags that they set and read.

The isolate itself, with the engine it is in, is `Isolate` in loaded/engine_session.py. Calls know only this part.
"""

from __future__ import annotations

from typing import Final, Protocol

from atoll.engine.tenant_usage import TenantUsage
from atoll.errors import Failure
from atoll.logs import LogLine
from atoll.wire.generated import LINE_COST, Level
from atoll.workers import Version

LOG_BYTES: Final = 128 << 10  # console text kept per call, and of top-level code between two calls


class ConsoleLines:
    """Console lines up to LOG_BYTES. Later lines are dropped, and `truncated` is set."""

    __slots__ = ("lines", "room", "truncated")

    def __init__(self) -> None:
        self.lines: list[LogLine] = []
        self.room = LOG_BYTES
        self.truncated = False

    def add(self, level: Level, timestamp_ms: float, text: str) -> None:
        self.room -= len(text) + LINE_COST
        if self.room < 0:
            self.truncated = True
        else:
            self.lines.append(LogLine(timestamp_ms, level, text))


class Residents(Protocol):
    """The Durable Objects in an isolate (objects/residents.py)."""

    def on_commit(self, slot: int, data: bytes, start: int, end: int) -> None: ...

    def on_reset(self, slot: int, failure: Failure) -> None: ...

    def on_socket(self, slot: int, data: bytes, start: int, end: int) -> None: ...

    def on_gone(self) -> None: ...  # the isolate is unloaded or about to be: nothing more is taken from it


class IsolateState:
    """An isolate as its calls see it."""

    __slots__ = (
        "cpu_us",
        "draining",
        "in_flight",
        "inner",
        "last_inner",
        "last_used",
        "load_id",
        "logs",
        "open_cpu_us",
        "ready",
        "residents",
        "room",
        "sockets",
        "tenant",
        "version",
        "wall_seconds",
        "watched",
    )

    def __init__(self, version: Version, tenant: TenantUsage, load_id: int, now: float) -> None:
        self.version = version
        self.tenant = tenant
        self.load_id = load_id
        self.wall_seconds = version.limits.wall_ms / 1000

        self.ready = False  # LOADED came
        self.in_flight = 0
        self.inner = 0  # those among them that the engine began
        self.sockets = 0  # calls that became WebSockets: they take no room, but keep the isolate loaded
        self.room = 0  # the most calls in flight: 0 before it is ready, and while too many calls wait for it
        self.cpu_us = 0  # CPU time of finished calls
        self.open_cpu_us = 0  # CPU time of open calls that is already charged to the tenant
        self.last_used = now
        self.last_inner = float("-inf")  # when the engine last began a call in it
        self.logs: ConsoleLines | None = None  # of top-level code, until the next invocation record takes them
        self.residents: Residents | None = None  # Durable Objects that live in it
        self.draining = False  # unload it when its last call is over
        self.watched = False  # the pool wants to hear when a call is over

    @property
    def is_idle(self) -> bool:
        return not self.in_flight and not self.sockets

    def charge_open(self, cpu_us: int) -> None:
        """Charge the tenant for the CPU time of open calls: a WebSocket may stay open for days.

        `cpu_us` is the total of the calls that are open now. A finished call is charged as all calls are, and no longer
        counts here.
        """
        self.tenant.cpu_us += cpu_us - self.open_cpu_us
        self.open_cpu_us = cpu_us

    def add_log(self, level: Level, timestamp_ms: float, text: str) -> None:
        if self.logs is None:
            self.logs = ConsoleLines()
        self.logs.add(level, timestamp_ms, text)
