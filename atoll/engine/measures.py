"""How much the pool takes on, and how much it did."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import Struct

EVENT_CPU_MS = 30_000


class PoolLimits(Struct, frozen=True):
    """How much the pool takes on."""

    max_loaded: int = 1000  # isolates on the node
    idle_seconds: float = 30.0  # without a call for so long, a version is unloaded
    worker_queue: int = 100  # calls of one version that may wait: for its load, for an engine, for its isolate
    max_in_flight: int = 1000  # calls of one version under way
    worker_isolates: int = 256  # isolates of one version, each in another engine
    tenant_calls: int = 2000  # calls of one tenant under way, unless it has caps of its own
    tenant_loaded: int = 1000  # isolates of one tenant, unless it has caps of its own
    own_engines: int = 16  # engines that serve a single tenant or worker
    quarantine_seconds: float = 3600.0  # how long a worker that ended engines stays in one of its own
    blocked_seconds: float = 600.0  # how long one that went on there is refused
    ops_per_call: int = 64  # ops of one call under way; more wait in line
    live_clocks: bool = False  # whether the switch allow_live_clock does something
    event_cpu_ms: int = EVENT_CPU_MS  # CPU time of a cron or queue event, if its worker may not use more anyway


class TenantCaps(Struct, frozen=True):
    """What one tenant may have at the same time, and use in time, on this node."""

    calls: int = 2000  # calls under way, over all its workers
    loaded: int = 1000  # isolates
    own_engine: bool = False  # all its workers run in an engine process of its own
    calls_per_second: float | None = None
    cpu_seconds_per_minute: float | None = None


@dataclass(slots=True)
class PoolStats:
    engines: int = 0
    loaded: int = 0
    in_flight: int = 0
    queued: int = 0  # calls that wait for an engine or for room
    calls: int = 0
    hits: int = 0  # calls that found their version ready
    loads: int = 0
    load_failures: int = 0
    evictions: int = 0
    condemned: int = 0
    offences: int = 0  # isolates that got stuck for ever and cost their engine
    moves: int = 0
    spreads: int = 0  # loads of a version that was loaded already, because it was busy
    refused: int = 0  # calls that found too many others
    crashes: int = 0  # engines that died of what ran in them
    engines_lost: int = 0

    @property
    def hit_rate(self) -> float:
        return self.hits / self.calls if self.calls else 0.0
