"""The history of cron triggers: the last runs of each worker, and the last slot of each expression.

Every implementation passes the suite tests/bindings/cron/test_cron_history.py. A write that has returned is durable.
Times are milliseconds since 1970.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple, Protocol

KEPT_RUNS = 100  # per worker


class Run(NamedTuple):
    id: int
    cron: str
    slot: int
    started_at: int
    ended_at: int | None
    outcome: str  # "running" until it ends; "interrupted" if the node stopped before that
    message: str
    by_hand: int


class CronHistory(Protocol):
    async def mark(self, worker_id: str, cron: str) -> int | None:
        """The last recorded slot of an expression."""

    async def set_mark(self, worker_id: str, cron: str, slot: int) -> None:
        """Set the last slot of an expression, also to an earlier one."""

    async def keep_marks(self, worker_id: str, crons: Collection[str]) -> None:
        """Keep only these expressions of a worker. A removed one that comes back later starts from then."""

    async def begin(self, worker_id: str, cron: str, slot: int, *, by_hand: bool) -> int | None:
        """Record the start of a run and its slot; returns the number of the run. None: another node runs this slot."""

    async def end(self, number: int, outcome: str, message: str) -> None:
        """Record how a run ended."""

    async def runs(self, worker_id: str, limit: int = KEPT_RUNS) -> list[Run]:
        """The last runs of a worker, newest first."""

    async def forget(self, worker_id: str) -> None:
        """A worker was deleted."""

    async def close(self) -> None: ...
