"""The limits of the pool, for the node and for each tenant."""

from __future__ import annotations

from msgspec import Struct

from atoll.config import Settings

EVENT_CPU_MS = 30_000


class PoolLimits(Struct, frozen=True):
    """Limits of the node. "In flight" counts calls from CALL to DONE."""

    max_loaded: int = 1000  # isolates on the node
    idle_seconds: float = 30.0  # a version without calls for so long is unloaded
    worker_queue: int = 100  # calls of one version that may wait: for its load, for an engine, for its isolate
    max_in_flight: int = 1000  # calls of one version in flight
    worker_isolates: int = 256  # isolates of one version, each in another engine
    tenant_calls: int = 2000  # calls of one tenant in flight, unless it has caps of its own
    tenant_loaded: int = 1000  # isolates of one tenant, unless it has caps of its own
    own_engines: int = 16  # engines that serve a single tenant or worker
    quarantine_seconds: float = 3600.0  # how long a worker that ended engines stays in an engine of its own
    blocked_seconds: float = 600.0  # how long a worker that ended that engine too is refused
    ops_per_call: int = 64  # ops of one call that run at the same time; more wait in line
    refuse_long_timers: bool = False  # whether a timer longer than timer_ms is an error
    live_clocks: bool = False  # whether the switch allow_live_clock has an effect
    event_cpu_ms: int = EVENT_CPU_MS  # CPU time of a cron or queue event, unless the limit of its worker is higher


class TenantCaps(Struct, frozen=True):
    """Concurrency and rate limits of one tenant on this node."""

    calls: int = 2000  # in flight, over all its workers
    loaded: int = 1000  # isolates
    own_engine: bool = False  # all its workers run in an engine process of its own
    suspended: bool = False  # every call is refused
    calls_per_second: float | None = None
    cpu_seconds_per_minute: float | None = None


def pool_limits(settings: Settings) -> PoolLimits:
    """The limits that the settings of a node give its pool."""
    return PoolLimits(
        max_loaded=settings.max_loaded,
        idle_seconds=settings.idle_seconds,
        worker_queue=settings.worker_queue,
        max_in_flight=settings.worker_calls,
        worker_isolates=settings.worker_isolates,
        tenant_calls=settings.tenant_calls,
        tenant_loaded=settings.tenant_loaded or settings.max_loaded,
        own_engines=settings.own_engines,
        quarantine_seconds=settings.quarantine_seconds,
        blocked_seconds=settings.blocked_seconds,
        event_cpu_ms=min(EVENT_CPU_MS, settings.max_cpu_ms),
        refuse_long_timers=settings.long_timers == "refused",
        live_clocks=settings.worker_clock == "live",
    )
