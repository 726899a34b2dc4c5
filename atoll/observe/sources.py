"""The numbers that others keep, of which metrics are made beside those of meter.py."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from atoll.egress.client import ClientStats
from atoll.engine.measures import PoolStats
from atoll.observe.processes import ProcessUse
from atoll.observe.storage import StorageState
from atoll.tallies import OpTally
from atoll.workers import Version


@dataclass(frozen=True)
class Sources:
    """Where the other numbers are."""

    pool: Callable[[], PoolStats]
    ops: Callable[[], Iterable[tuple[str, str, OpTally]]]
    restarts: Callable[[], int]
    processes: Callable[[], Mapping[str, ProcessUse]]  # by name
    workers: Callable[[], Iterable[str]]  # ids
    deploys: Callable[[], Mapping[str, int]]  # by result
    logs: Callable[[], tuple[int, int]]  # records that were not kept, listeners
    connections: Callable[[], int]
    version: str
    egress: Callable[[], ClientStats] = ClientStats  # what workers ask of other servers
    storage: Callable[[], StorageState] = lambda: StorageState(None, {})
    memory: Callable[[], Iterable[tuple[Version, int]]] = tuple  # of isolates
    tails: Callable[[], Mapping[tuple[str, str], int]] = dict  # records that tail workers lost, by tenant and name


class QueueState(NamedTuple):
    """What waits in a queue."""

    tenant: str
    name: str
    waiting: int
    delayed: int
    leased: int
    oldest_seconds: float
    bytes: int
    dropped: int
