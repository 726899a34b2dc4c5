"""What keeps engines fresh: less memory when it is short, a new process for one that has grown or is old.

`look` is called about once a second. Engines are replaced one at a time, and without losing a call: the new one runs
before the old one is left, and the old one stays until its last call is over (supervisor.py). What an engine may use
is restart_memory_mb and ISOLATE_MB for each of its isolates: an engine full of workers is large for a good reason. No
engine may use more than three quarters of the machine's memory, so that one worker cannot take the node with it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from msgspec import Struct, field

from atoll.engine.memory import available_bytes, engine_bytes, resident_bytes
from atoll.engine.pool import Pool
from atoll.engine.session import Session

log = logging.getLogger("atoll.supervisor")

MB = 1 << 20
ISOLATE_MB = 10
LOOKS = 5  # in a row: a peak passes
REMIND_SECONDS = 10.0  # between two requests to collect garbage
PAUSE_SECONDS = 60.0  # between two engines that are replaced


class UpkeepLimits(Struct, frozen=True):
    restart_memory_mb: int = 256  # beyond what its isolates may use; 0: engines may grow
    restart_hours: float = 24.0  # 0: engines may grow old
    min_free_mb: int = 256  # with less the node is short of memory; 0: it never is
    engine_bytes: int = field(default_factory=engine_bytes)  # no engine uses more; 0: it may


class Upkeep:
    def __init__(
        self,
        pool: Pool,
        limits: UpkeepLimits,
        clock: Callable[[], float],
        *,
        available: Callable[[], int] = available_bytes,
        resident: Callable[[int], int] = resident_bytes,
    ) -> None:
        self._pool = pool
        self._limits = limits
        self._clock = clock
        self._available = available
        self._resident = resident
        self._started: dict[Session, float] = {}
        self._large: dict[Session, int] = {}  # looks in a row that found it too large
        self._last_reminder = self._last_restart = float("-inf")
        self.is_short = False  # of memory

    def look(self, running: Mapping[Session, int], may_restart: bool) -> None:
        """`running` gives the process of each engine. While one is being replaced, no other may be."""
        now = self._clock()
        self._started = {session: self._started.get(session, now) for session in running}
        self._relieve(running, now)
        sizes = {session: self._resident(pid) for session, pid in running.items()}
        self._large = {
            session: self._large.get(session, 0) + 1 for session, size in sizes.items() if self._is_large(session, size)
        }
        self._end_largest(sizes)
        if not may_restart or now < self._last_restart + PAUSE_SECONDS:
            return
        for session in running:
            reason = self._reason(session, sizes[session], now)
            if reason and session.takes_loads:
                self._last_restart = now
                session.condemn(reason, is_urgent=False)
                return

    def _end_largest(self, sizes: Mapping[Session, int]) -> None:
        """The kernel's bound (confine.py) leaves room for what V8 sets aside: here only what is used counts."""
        most = self._limits.engine_bytes
        for session, size in sizes.items():
            if most and size > most:
                session.link.break_off(f"it uses {size // MB} MB of memory, more than the {most // MB} it may")

    def age(self, session: Session) -> float:
        """Seconds since an engine was first seen."""
        now = self._clock()
        return now - self._started.get(session, now)

    def _relieve(self, running: Mapping[Session, int], now: float) -> None:
        """While memory is short, unload what is idle, a tenth a second, and have the rest collect garbage."""
        was_short = self.is_short
        self.is_short = self._available() < self._limits.min_free_mb * MB
        if not self.is_short:
            return
        gone = self._pool.relieve()
        if not was_short:
            log.warning("memory is short (less than %d MB left): idle workers are unloaded", self._limits.min_free_mb)
        if gone:
            log.info("%d idle workers were unloaded", gone)
        if now >= self._last_reminder + REMIND_SECONDS:
            self._last_reminder = now
            for session in running:
                session.link.ping(low_memory=True)

    def _is_large(self, session: Session, size: int) -> bool:
        limit = self._limits.restart_memory_mb
        return limit > 0 and size > (limit + ISOLATE_MB * len(session.loads)) * MB

    def _reason(self, session: Session, size: int, now: float) -> str:
        if self._large.get(session, 0) >= LOOKS:
            return f"it has grown to {size // MB} MB with {len(session.loads)} workers"
        hours = self._limits.restart_hours
        if hours and now - self._started[session] > hours * 3600:
            return f"it has run for {hours:g} hours"
        return ""
