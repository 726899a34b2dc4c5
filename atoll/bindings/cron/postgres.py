"""The history of cron triggers in PostgreSQL. Of several nodes, the one that inserts the row of a slot runs it."""

from __future__ import annotations

from collections.abc import Callable, Collection

from atoll.bindings.cron.history import KEPT_RUNS, Run
from atoll.postgres.pool import Postgres
from atoll.postgres.sessions import NodeSession

MARK = (
    "INSERT INTO cron_marks AS m VALUES ($1, $2, $3)"
    " ON CONFLICT (worker_id, cron) DO UPDATE SET slot = greatest(m.slot, excluded.slot)"
)
BEGIN = (
    "INSERT INTO cron_runs (worker_id, cron, slot, started_at, outcome, by_hand, session)"
    " VALUES ($1, $2, $3, $4, 'running', $5, $6) ON CONFLICT (worker_id, cron, slot) WHERE by_hand = 0 DO NOTHING"
    " RETURNING id"
)
TRIM = (
    "DELETE FROM cron_runs WHERE worker_id = $1"
    " AND id <= (SELECT id FROM cron_runs WHERE worker_id = $1 ORDER BY id DESC LIMIT 1 OFFSET $2)"
)
RUNS = (
    "SELECT id, cron, slot, started_at, ended_at, CASE WHEN outcome = 'running' AND NOT EXISTS"
    " (SELECT FROM nodes n WHERE n.session = r.session AND n.expires > clock_timestamp()) AND session <> $3"
    " THEN 'interrupted' ELSE outcome END, message, by_hand"
    " FROM cron_runs r WHERE worker_id = $1 ORDER BY id DESC LIMIT $2"
)


class PostgresCronHistory:
    def __init__(self, postgres: Postgres, members: NodeSession, clock: Callable[[], float]) -> None:
        self._postgres = postgres
        self._members = members
        self._clock = clock

    def _now(self) -> int:
        return int(self._clock() * 1000) + self._members.ahead_ms

    async def mark(self, worker_id: str, cron: str) -> int | None:
        sql = "SELECT slot FROM cron_marks WHERE worker_id = $1 AND cron = $2"
        found: int | None = await self._postgres.value(sql, worker_id, cron)
        return found

    async def set_mark(self, worker_id: str, cron: str, slot: int) -> None:
        sql = "INSERT INTO cron_marks VALUES ($1, $2, $3) ON CONFLICT (worker_id, cron) DO UPDATE SET slot = $3"
        await self._postgres.run(sql, worker_id, cron, slot)

    async def keep_marks(self, worker_id: str, crons: Collection[str]) -> None:
        sql = "DELETE FROM cron_marks WHERE worker_id = $1 AND cron <> ALL ($2)"
        await self._postgres.run(sql, worker_id, list(crons))

    async def begin(self, worker_id: str, cron: str, slot: int, *, by_hand: bool) -> int | None:
        """In one transaction that is never repeated: a slot whose start is in doubt is not started again."""
        async with self._postgres.transaction() as connection:
            values = worker_id, cron, slot, self._now(), int(by_hand), self._members.session
            number: int | None = await connection.fetchval(BEGIN, *values)
            if not by_hand:
                await connection.execute(MARK, worker_id, cron, slot)
            if number is not None:
                await connection.execute(TRIM, worker_id, KEPT_RUNS)
        return number

    async def end(self, number: int, outcome: str, message: str) -> None:
        sql = "UPDATE cron_runs SET ended_at = $2, outcome = $3, message = $4 WHERE id = $1"
        text = message[:1000].replace("\0", "\N{REPLACEMENT CHARACTER}")  # PostgreSQL stores no NUL in texts
        await self._postgres.run(sql, number, self._now(), outcome, text.encode("utf-8", "replace").decode())

    async def runs(self, worker_id: str, limit: int = KEPT_RUNS) -> list[Run]:
        rows = await self._postgres.fetch(RUNS, worker_id, limit, self._members.session)
        return [Run(*row.values()) for row in rows]

    async def forget(self, worker_id: str) -> None:
        async with self._postgres.transaction() as connection:
            await connection.execute("DELETE FROM cron_marks WHERE worker_id = $1", worker_id)
            await connection.execute("DELETE FROM cron_runs WHERE worker_id = $1", worker_id)

    async def close(self) -> None:
        """The pool is the node's."""
