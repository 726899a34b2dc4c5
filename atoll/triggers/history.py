"""What cron triggers did: the last runs of each worker, and how far each expression has been seen to."""

from __future__ import annotations

import time
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import apsw

from atoll.db.sqlite import Database, rows

KEPT_RUNS = 100  # per worker


class Run(NamedTuple):
    id: int
    cron: str
    slot: int
    started_at: int
    ended_at: int | None
    outcome: str
    message: str
    by_hand: int


class CronHistory:
    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._database = Database(path, migrations=resources.files("atoll.triggers") / "migrations")
        self._clock = clock
        now = self.now()
        self._database.post(
            lambda c: _execute(
                c, "UPDATE cron_runs SET outcome = 'interrupted', ended_at = ? WHERE outcome = 'running'", now
            )
        )

    def now(self) -> int:
        return int(self._clock() * 1000)

    def mark(self, worker_id: str, cron: str) -> int | None:
        """The newest slot that was seen to."""
        sql = "SELECT slot FROM cron_marks WHERE worker_id = ? AND cron = ?"
        found = self._database.read(lambda c: rows(c, int, sql, worker_id, cron))
        return found[0] if found else None

    async def set_mark(self, worker_id: str, cron: str, slot: int) -> None:
        """Count an expression from this slot on, whatever was seen to before."""
        sql = "INSERT OR REPLACE INTO cron_marks VALUES (?, ?, ?)"
        await self._database.write(lambda c: _execute(c, sql, worker_id, cron, slot))

    async def begin(self, worker_id: str, cron: str, slot: int, *, by_hand: bool) -> int:
        """Put down that a run begins, and that its slot is seen to; returns the number of the run."""
        now = self.now()

        def act(connection: apsw.Connection) -> int:
            if not by_hand:
                _mark(connection, worker_id, cron, slot)
            _execute(
                connection,
                "INSERT INTO cron_runs (worker_id, cron, slot, started_at, outcome, by_hand)"
                " VALUES (?, ?, ?, ?, 'running', ?)",
                worker_id, cron, slot, now, int(by_hand),
            )  # fmt: skip
            number = connection.last_insert_rowid()
            _execute(
                connection,
                "DELETE FROM cron_runs WHERE worker_id = ? AND id <= (SELECT id FROM cron_runs WHERE worker_id = ?"
                " ORDER BY id DESC LIMIT 1 OFFSET ?)",
                worker_id, worker_id, KEPT_RUNS,
            )  # fmt: skip
            return number

        return await self._database.write(act)

    async def end(self, number: int, outcome: str, message: str) -> None:
        now = self.now()
        sql = "UPDATE cron_runs SET ended_at = ?, outcome = ?, message = ? WHERE id = ?"
        await self._database.write(lambda c: _execute(c, sql, now, outcome, message[:1000], number))

    def runs(self, worker_id: str, limit: int = KEPT_RUNS) -> list[Run]:
        """The last runs of a worker, newest first."""
        sql = (
            "SELECT id, cron, slot, started_at, ended_at, outcome, message, by_hand FROM cron_runs"
            " WHERE worker_id = ? ORDER BY id DESC LIMIT ?"
        )
        return self._database.read(lambda c: rows(c, Run, sql, worker_id, limit))

    async def forget(self, worker_id: str) -> None:
        """A worker was deleted."""

        def act(connection: apsw.Connection) -> None:
            _execute(connection, "DELETE FROM cron_marks WHERE worker_id = ?", worker_id)
            _execute(connection, "DELETE FROM cron_runs WHERE worker_id = ?", worker_id)

        await self._database.write(act)

    async def close(self) -> None:
        await self._database.close()


def _mark(connection: apsw.Connection, worker_id: str, cron: str, slot: int) -> None:
    _execute(
        connection,
        "INSERT INTO cron_marks VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET slot = max(slot, excluded.slot)",
        worker_id, cron, slot,
    )  # fmt: skip


def _execute(connection: apsw.Connection, sql: str, *values: str | int) -> None:
    connection.execute(sql, values)
