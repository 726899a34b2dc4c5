"""What the pool has done since the node started, and what it does now."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from atoll.workers import Version


class WorkerLoad(NamedTuple):
    """The calls of one loaded version now."""

    version: Version
    in_flight: int
    waiting: int  # those among them that have not begun: their isolate is being loaded or busy
    saturation: float  # in_flight as a share of how many it may have; 1: further calls are refused


@dataclass(slots=True)
class PoolStats:
    engines: int = 0
    loaded: int = 0  # isolates
    in_flight: int = 0
    queued: int = 0  # calls that wait for an engine or for room
    calls: int = 0
    hits: int = 0  # calls that found their version ready
    loads: int = 0
    load_failures: int = 0
    evictions: int = 0
    condemned: int = 0  # isolates that their engine ended because of a failure
    offences: int = 0  # isolates that got stuck and cost their engine
    moves: int = 0  # calls that were sent to another isolate because they had not started
    spreads: int = 0  # loads of a busy version that was loaded already
    refused: int = 0  # calls refused because of too many others
    crashes: int = 0  # engines that died of the code they ran
    engines_lost: int = 0

    @property
    def hit_rate(self) -> float:
        return self.hits / self.calls if self.calls else 0.0
