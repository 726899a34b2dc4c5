"""The history of cron triggers, in its own SQLite file."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from importlib import resources
from pathlib import Path

import apsw

from atoll.bindings.cron.history import KEPT_RUNS, Run
from atoll.db.sqlite import Database, rows


class SqliteCronHistory:
    def __init__(self, path: Path, *, clock: Callable[[], float] = time.time) -> None:
        self._database = Database(path, migrations=resources.files("atoll.bindings.cron") / "migrations")
        self._clock = clock
        [self._last] = self._database.read(lambda c: rows(c, int, "SELECT coalesce(max(id), 0) FROM cron_runs"))

    def now(self) -> int:
        return int(self._clock() * 1000)

    async def mark(self, worker_id: str, cron: str) -> int | None:
        sql = "SELECT slot FROM cron_marks WHERE worker_id = ? AND cron = ?"
        found = self._database.read(lambda c: rows(c, int, sql, worker_id, cron))
        return found[0] if found else None

    async def set_mark(self, worker_id: str, cron: str, slot: int) -> None:
        sql = "INSERT OR REPLACE INTO cron_marks VALUES (?, ?, ?)"
        await self._database.write(lambda c: _execute(c, sql, worker_id, cron, slot))

    async def keep_marks(self, worker_id: str, crons: Collection[str]) -> None:
        sql = "SELECT cron FROM cron_marks WHERE worker_id = ?"
        gone = [cron for cron in self._database.read(lambda c: rows(c, str, sql, worker_id)) if cron not in crons]

        def act(connection: apsw.Connection) -> None:
            for cron in gone:
                _execute(connection, "DELETE FROM cron_marks WHERE worker_id = ? AND cron = ?", worker_id, cron)

        if gone:
            await self._database.write(act)

    async def begin(self, worker_id: str, cron: str, slot: int, *, by_hand: bool) -> int:
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

    async def runs(self, worker_id: str, limit: int = KEPT_RUNS) -> list[Run]:
        sql = (
            "SELECT id, cron, slot, started_at, ended_at, outcome, message, by_hand FROM cron_runs"
            " WHERE worker_id = ? ORDER BY id DESC LIMIT ?"
        )
        found = self._database.read(lambda c: rows(c, Run, sql, worker_id, limit))
        return [run._replace(outcome="interrupted") if self._was_cut_off(run) else run for run in found]

    def _was_cut_off(self, run: Run) -> bool:
        """Runs of an earlier process are known by their number, without a write: the disk may be full at the start."""
        return run.outcome == "running" and run.id <= self._last

    async def forget(self, worker_id: str) -> None:
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
