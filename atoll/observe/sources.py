"""The numbers of other packages for metrics, in addition to those of meter.py."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from atoll.engine.process.memory import available_bytes, total_bytes
from atoll.engine.stats import PoolStats, WorkerLoad
from atoll.observe.lag import LoopLag
from atoll.observe.processes import ProcessUse
from atoll.observe.storage import StorageState
from atoll.offload.pool import JobCounts
from atoll.tallies import OpTally
from atoll.workers import Version


@dataclass(frozen=True)
class Sources:
    """Functions that give the numbers of other packages."""

    pool: Callable[[], PoolStats]
    ops: Callable[[], Iterable[tuple[str, str, OpTally]]]
    restarts: Callable[[], int]
    processes: Callable[[], Mapping[str, ProcessUse]]  # by name
    workers: Callable[[], Collection[str]]  # ids
    deploys: Callable[[], Mapping[str, int]]  # by result
    logs: Callable[[], tuple[int, int]]  # dropped records, listeners
    connections: Callable[[], int]
    storage: Callable[[], StorageState] = lambda: StorageState(None, {})
    memory: Callable[[], Iterable[tuple[Version, int]]] = tuple  # of isolates
    load: Callable[[], Iterable[WorkerLoad]] = tuple  # of loaded versions
    unsent: Callable[[], Mapping[str, int]] = dict  # entries that were dropped, by where they were to go
    room: Callable[[], tuple[int, int]] = lambda: (total_bytes(), available_bytes())  # total and free memory
    lag: Callable[[], LoopLag | None] = lambda: None  # of the event loop
    jobs: Callable[[], JobCounts] = JobCounts  # of job processes
