"""Counts the recipients of a tenant's email by day in PostgreSQL: one budget for all nodes."""

from __future__ import annotations

from atoll.bindings.email.sent import today, too_many
from atoll.postgres.pool import Postgres

GET = "SELECT recipients FROM email_sent WHERE tenant = $1 AND day = $2"
# The row is locked by its update, so two nodes cannot both take the last place. If the connection is lost and the
# statement runs twice, too many are counted, never too few.
ADD = (
    "WITH old AS (DELETE FROM email_sent WHERE tenant = $1::text AND day < $2::int)"
    " INSERT INTO email_sent AS e (tenant, day, recipients)"
    " SELECT $1::text, $2::int, $3::bigint WHERE $3::bigint <= $4::bigint"
    " ON CONFLICT (tenant, day) DO UPDATE SET recipients = e.recipients + excluded.recipients"
    " WHERE e.recipients + excluded.recipients <= $4::bigint RETURNING true"
)
UNBOUNDED = 1 << 62


class PostgresSentCounts:
    def __init__(self, postgres: Postgres) -> None:
        self._postgres = postgres
        self._most: dict[str, int | None] = {}

    def bound(self, tenant: str, most: int | None) -> None:
        self._most[tenant] = most

    async def today(self, tenant: str) -> int:
        return int(await self._postgres.value(GET, tenant, today()) or 0)

    async def spend(self, tenant: str, recipients: int) -> None:
        most = self._most.get(tenant)
        if not await self._postgres.value(ADD, tenant, today(), recipients, UNBOUNDED if most is None else most):
            raise too_many(most)

    async def forget(self, tenant: str) -> None:
        self._most.pop(tenant, None)
        await self._postgres.run("DELETE FROM email_sent WHERE tenant = $1", tenant)

    async def close(self) -> None: ...
