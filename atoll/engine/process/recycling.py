"""Replaces engines that have grown too large or too old, and evicts idle workers when memory is short.

`look` is called about once a second. Engines are replaced one at a time, without losing a call: the new engine runs
before the old one is drained, and the old one stays until its last call is over (supervisor.py). An engine may use
restart_memory_mb plus ISOLATE_MB per isolate, because an engine with many workers is large for a good reason. No engine
may use more than three quarters of the machine's memory, so that one worker cannot bring down the node.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping

from msgspec import Struct, field

from atoll.engine.loaded.engine_session import EngineSession
from atoll.engine.pool import Pool
from atoll.engine.process.memory import available_bytes, engine_bytes, resident_bytes

log = logging.getLogger("atoll.supervisor")

MB = 1 << 20
ISOLATE_MB = 10
LOOKS = 5  # in a row must find an engine too large: a peak is no reason to replace it
REMIND_SECONDS = 10.0  # between two requests to collect garbage
PAUSE_SECONDS = 60.0  # between two replacements


class RecycleLimits(Struct, frozen=True):
    restart_memory_mb: int = 256  # in addition to ISOLATE_MB per isolate; 0: no limit
    restart_hours: float = 24.0  # 0: no limit
    min_free_mb: int = 256  # with less free memory the node evicts idle workers; 0: never
    engine_bytes: int = field(default_factory=engine_bytes)  # an engine that uses more is ended; 0: no limit


class Recycler:
    def __init__(
        self,
        pool: Pool,
        limits: RecycleLimits,
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
        self._started: dict[EngineSession, float] = {}
        self._large: dict[EngineSession, int] = {}  # looks in a row that found it too large
        self._last_reminder = self._last_restart = float("-inf")
        self.is_short = False  # of memory

    def look(self, running: Mapping[EngineSession, int], may_restart: bool) -> None:
        """`running` has the pid of each engine. `may_restart` is false while an engine is being replaced."""
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

    def _end_largest(self, sizes: Mapping[EngineSession, int]) -> None:
        """End engines above the memory limit. The kernel's limit (confine.py) also counts what V8 only reserves."""
        most = self._limits.engine_bytes
        for session, size in sizes.items():
            if most and size > most:
                session.link.break_off(f"it uses {size // MB} MB of memory, more than the {most // MB} it may")

    def age(self, session: EngineSession) -> float:
        """Seconds since an engine was first seen."""
        now = self._clock()
        return now - self._started.get(session, now)

    def _relieve(self, running: Mapping[EngineSession, int], now: float) -> None:
        """While memory is short, evict a tenth of the idle workers each second and have engines collect garbage."""
        was_short = self.is_short
        self.is_short = self._available() < self._limits.min_free_mb * MB
        if not self.is_short:
            return
        gone = self._pool.loader.evict_idle()
        if not was_short:
            log.warning("memory is short (less than %d MB left): idle workers are unloaded", self._limits.min_free_mb)
        if gone:
            log.info("%d idle workers were unloaded", gone)
        if now >= self._last_reminder + REMIND_SECONDS:
            self._last_reminder = now
            for session in running:
                session.link.ping(low_memory=True)

    def _is_large(self, session: EngineSession, size: int) -> bool:
        limit = self._limits.restart_memory_mb
        return limit > 0 and size > (limit + ISOLATE_MB * len(session.isolates)) * MB

    def _reason(self, session: EngineSession, size: int, now: float) -> str:
        if self._large.get(session, 0) >= LOOKS:
            return f"it has grown to {size // MB} MB with {len(session.isolates)} workers"
        hours = self._limits.restart_hours
        if hours and now - self._started[session] > hours * 3600:
            return f"it has run for {hours:g} hours"
        return ""
