"""What cron triggers did: the last runs of each worker, and how far each expression has been seen to.

A store of it promises what tests/triggers/test_cron_history.py says as a suite, whatever it is made of. What has
returned is durable. Times are milliseconds since 1970.
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
    outcome: str  # "running" until it ends, "interrupted" when the node went before it did
    message: str
    by_hand: int


class CronHistory(Protocol):
    async def mark(self, worker_id: str, cron: str) -> int | None:
        """The newest slot that was seen to."""

    async def set_mark(self, worker_id: str, cron: str, slot: int) -> None:
        """Count an expression from this slot on, whatever was seen to before."""

    async def keep_marks(self, worker_id: str, crons: Collection[str]) -> None:
        """These are the expressions of a worker now. One that comes back later counts from then."""

    async def begin(self, worker_id: str, cron: str, slot: int, *, by_hand: bool) -> int:
        """Put down that a run begins, and that its slot is seen to; returns the number of the run."""

    async def end(self, number: int, outcome: str, message: str) -> None:
        """Put down how a run ended."""

    async def runs(self, worker_id: str, limit: int = KEPT_RUNS) -> list[Run]:
        """The last runs of a worker, newest first."""

    async def forget(self, worker_id: str) -> None:
        """A worker was deleted."""

    async def close(self) -> None: ...
