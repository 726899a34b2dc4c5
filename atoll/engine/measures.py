"""How much the pool takes on, and how much it did."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PoolLimits:
    """How much the pool takes on."""

    max_loaded: int = 1000  # versions loaded on the node
    idle_seconds: float = 30.0  # without a call for so long, a version is unloaded
    worker_queue: int = 100  # calls of one version that may wait for its load, or for an engine
    max_in_flight: int = 1000  # calls of one version under way
    ops_per_call: int = 64  # ops of one call under way


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
    engines_lost: int = 0

    @property
    def hit_rate(self) -> float:
        return self.hits / self.calls if self.calls else 0.0
