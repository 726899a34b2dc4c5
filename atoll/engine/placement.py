"""A version in one engine, from LOAD to UNLOADED: what the pool and the calls of it keep there."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from atoll.engine.tenants import Tenant
from atoll.errors import Failure, LoadFailed
from atoll.logs import LogLine
from atoll.wire.generated import Level
from atoll.workers import Version

if TYPE_CHECKING:
    from atoll.engine.loads import LoadReport
    from atoll.engine.session import Session

LOG_BYTES: Final = 128 << 10  # console text kept per call, and of top-level code between two calls
LINE_COST: Final = 32  # what a line counts beside its text, so that empty lines are bounded too


class Lines:
    """Console lines within a bound; what comes after is dropped and `truncated` says so."""

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


class Placement:
    """One version in one engine, under a load id that is never used again on that link."""

    __slots__ = (
        "asked_code",
        "cpu_us",
        "failed",
        "in_flight",
        "last_used",
        "load_id",
        "logs",
        "open_cpu_us",
        "placed_at",
        "ready",
        "report",
        "retired",
        "room",
        "session",
        "sockets",
        "tenant",
        "unload_by",
        "unloading",
        "version",
        "waiters",
        "wall_seconds",
        "wants_code",
        "watched",
    )

    def __init__(self, version: Version, tenant: Tenant, session: Session, load_id: int, now: float) -> None:
        self.version = version
        self.tenant = tenant
        self.session = session
        self.load_id = load_id
        self.wall_seconds = version.limits.wall_ms / 1000

        # From LOAD to LOADED
        self.placed_at = now
        self.ready = False
        self.failed = False  # LOADED said so, or it took too long; UNLOADED is still to come
        self.waiters: list[asyncio.Future[LoadReport]] = []
        self.report: LoadReport | None = None

        # While it serves
        self.in_flight = 0
        self.sockets = 0  # calls that became WebSockets: they take no room, but keep the isolate
        self.room = 0  # calls that may be under way in it: none before it is ready, or while too many wait for it
        self.cpu_us = 0  # CPU time of the calls that are over
        self.open_cpu_us = 0  # and of those that are not, as far as its tenant has been charged for it
        self.last_used = now
        self.logs: Lines | None = None  # of top-level code, until the next record takes them along
        self.wants_code = False  # ask for the code cache after the next response
        self.asked_code = 0  # CODE frames under way
        self.retired = False  # unload it when its last call is over
        self.watched = False  # retired or wants_code: the pool must be told when a call is over

        # After UNLOAD
        self.unloading = False
        self.unload_by = float("inf")  # when UNLOADED must have come

    @property
    def is_idle(self) -> bool:
        return not self.in_flight and not self.sockets

    def charge_open(self, cpu_us: int) -> None:
        """So much is used by calls that are still open: a WebSocket may live for days, its tenant pays by the minute.

        When they are over they are charged as all calls are, and no more as open ones.
        """
        self.tenant.cpu_us += cpu_us - self.open_cpu_us
        self.open_cpu_us = cpu_us

    def add_log(self, level: Level, timestamp_ms: float, text: str) -> None:
        if self.logs is None:
            self.logs = Lines()
        self.logs.add(level, timestamp_ms, text)

    def settle(self, outcome: LoadReport | Failure) -> None:
        """Tell whoever waits for the load."""
        waiters, self.waiters = self.waiters, []
        for waiter in waiters:
            if waiter.done():
                continue
            if isinstance(outcome, Failure):
                waiter.set_exception(LoadFailed(outcome))
            else:
                waiter.set_result(outcome)
