"""Quarantine: workers that end engines get an engine of their own, and are refused if they end that one too.

Some code ends its engine process whatever the limits (V8 aborts when it cannot allocate inside a built-in; some
built-ins can be neither run nor ended). When an engine dies, the ledger shows which workers were executing in it. One
of them is the cause, so a single crash proves nothing. A worker that was executing in SUSPICIONS crashes within
quarantine_seconds gets an engine of its own, where it is served as before and can harm only itself. If that engine dies
too, the worker is the proven cause and is refused for a while.

    free ──2 crashes──► alone ──1 more, alone──► blocked ──time──► alone ──a long time without──► free

Crashes are counted per worker, so that deploying the same code again does not reset the count. A new version of a
blocked worker is admitted at once, alone, because it may be the fix.

A tenant could go on with new workers, so crashes are counted per tenant too. When only workers of one tenant were
executing in TENANT_SUSPICIONS crashes of shared engines, the tenant is set apart for a while: what it loads from then
on shares an engine of its own. Its loaded workers without a crash stay in the shared engines.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterable

from msgspec import Struct, field

from atoll.errors import Failure
from atoll.wire.generated import ErrorCode
from atoll.workers import Version

log = logging.getLogger("atoll.pool")

SUSPICIONS = 2
TENANT_SUSPICIONS = 4
MAX_BOOK = 10_000  # workers with crashes; beyond it those with the oldest are forgotten


class WorkerOffences(Struct):
    """The crashes of one worker and their consequences."""

    name: str
    crashes: list[float] = field(default_factory=list)  # when an engine died while it was executing
    alone_until: float = 0.0
    blocked_until: float = 0.0
    blocked_version: str = ""

    def until(self, now: float) -> float:
        """When its current restriction ends."""
        return self.blocked_until if self.blocked_until > now else self.alone_until


class TenantOffences(Struct):
    """The crashes of one tenant and their consequences."""

    crashes: list[float] = field(default_factory=list)  # when a shared engine died while it alone was executing
    until: float = 0.0
    trusted: frozenset[str] = frozenset()  # workers that stay in shared engines


class Offences:
    def __init__(self, *, quarantine_seconds: float, blocked_seconds: float) -> None:
        self._quarantine_seconds = quarantine_seconds
        self._blocked_seconds = blocked_seconds
        self._book: dict[str, WorkerOffences] = {}  # by worker id, the latest crash last
        self._tenants: dict[str, TenantOffences] = {}  # by name, the latest crash last

    def accuse(self, version: Version, now: float, *, was_alone: bool) -> None:
        """The version was executing when an engine died, or is known to have ended it."""
        entry = self._book.pop(version.worker_id, None) or WorkerOffences(version.worker_name)
        self._book[version.worker_id] = entry
        while len(self._book) > MAX_BOOK:
            del self._book[next(iter(self._book))]
        entry.crashes = [at for at in entry.crashes if at > now - self._quarantine_seconds] + [now]
        if was_alone:
            entry.blocked_until = now + self._blocked_seconds
            entry.blocked_version = version.id
            entry.alone_until = entry.blocked_until + self._quarantine_seconds
            log.error("%s ended an engine of its own and is refused for a while", version.worker_name)
        elif len(entry.crashes) >= SUSPICIONS:
            entry.alone_until = now + self._quarantine_seconds
            log.error(
                "%s was executing when %d engines died: it gets an engine of its own",
                version.worker_name,
                len(entry.crashes),
            )

    def blame(self, tenant: str, now: float, loaded: Iterable[str]) -> None:
        """A shared engine died, and only workers of this tenant were executing. `loaded` are all its loaded workers."""
        entry = self._tenants.pop(tenant, None) or TenantOffences()
        self._tenants[tenant] = entry
        while len(self._tenants) > MAX_BOOK:
            del self._tenants[next(iter(self._tenants))]
        entry.crashes = [at for at in entry.crashes if at > now - self._quarantine_seconds] + [now]
        if len(entry.crashes) < TENANT_SUSPICIONS:
            return
        if entry.until <= now:
            entry.trusted = frozenset(worker for worker in loaded if worker not in self._book)
            log.error("workers of %s ended %d engines: its new ones share one", tenant, len(entry.crashes))
        entry.until = now + self._quarantine_seconds

    def is_apart(self, version: Version, now: float) -> bool:
        """Whether it must not be loaded in a shared engine because of others of its tenant."""
        entry = self._tenants.get(version.tenant) if self._tenants else None
        return entry is not None and entry.until > now and version.worker_id not in entry.trusted

    def is_alone(self, version: Version, now: float) -> bool:
        """Whether it must be loaded in an engine of its own."""
        entry = self._book.get(version.worker_id) if self._book else None
        return entry is not None and entry.alone_until > now

    def refusal(self, version: Version, now: float) -> Failure | None:
        """Why it may not be loaded at all."""
        entry = self._book.get(version.worker_id) if self._book else None
        if entry is None or entry.blocked_until <= now or entry.blocked_version != version.id:
            return None
        left = math.ceil(entry.blocked_until - now)
        message = (
            "this worker ended the engine process it ran in, several times, the last time alone; it is refused for "
            f"{left} s more, or until a new version of it is deployed"
        )
        return Failure(ErrorCode.BLOCKED, message, retry_after=left)

    def tenants(self, now: float) -> list[dict[str, object]]:
        """The tenants that are set apart, for the pool report."""
        return [
            {"tenant": name, "crashes": len(entry.crashes), "seconds_left": math.ceil(entry.until - now)}
            for name, entry in self._tenants.items()
            if entry.until > now
        ]

    def listed(self, now: float) -> list[dict[str, object]]:
        """The workers that are alone or blocked, for the pool report."""
        return [
            {
                "worker_id": worker_id,
                "worker": entry.name,
                "status": "blocked" if entry.blocked_until > now else "alone",
                "crashes": len(entry.crashes),
                "seconds_left": math.ceil(entry.until(now) - now),
            }
            for worker_id, entry in self._book.items()
            if entry.until(now) > now
        ]
