"""Reserved hosts: a host that a tenant frees stays reserved for that tenant for a while.

Links, cookies and DNS records outlive a worker. A tenant that got the host the next day would receive traffic meant for
the previous one: sessions of its users, its webhooks, its reputation. So no other tenant gets a freed host for
`reserved_host_days`. An operator, or the tenant itself, can release it sooner.

A reservation is stored before the host is freed. After a crash in between, the tenant has a reservation for a host that
it still uses, which does no harm. The stored time is when the host was freed, so a changed setting applies to all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import apsw

from atoll.api.audit import Mark
from atoll.claims import Claim, Claims, read_claim, spelled, unit_of
from atoll.db.sqlite import Database, rows

DAY_MS = 86_400_000
MAX_RESERVED = 1_000  # of one tenant; beyond that the oldest lapses, so no tenant can hoard names


class Reservation(NamedTuple):
    host: str
    tenant: str  # "" once the tenant is deleted
    freed_at: int  # ms since 1970


class Reservations:
    def __init__(self, database: Database, base: str, days: float, clock: Callable[[], float]) -> None:
        self._database = database
        self._base = base
        self.days = days
        self._clock = clock
        self.load()

    def load(self) -> None:
        """Read all reservations: at the start, and when another node has changed some."""
        self._claims = Claims(self._base)
        self._freed: dict[tuple[str, Claim], int] = {}  # (tenant, claim) -> when it was freed, oldest first
        self._of: dict[str, dict[Claim, None]] = {}  # the claims of each tenant, oldest first
        sql = "SELECT host, tenant, freed_at FROM reserved_hosts ORDER BY freed_at"
        for row in self._database.read(lambda connection: rows(connection, Reservation, sql)):
            self._add(row.tenant, self._read(row.host), row.freed_at)

    def others(self, claim: Claim, tenant: str) -> bool:
        """Whether a host of this claim is reserved for another tenant."""
        self._lapse()
        return self._claims.others(claim, tenant)

    def all(self, tenant: str | None) -> list[Reservation]:
        """The reservations of one tenant or of all, by host."""
        self._lapse()
        keys = list(self._freed) if tenant is None else [(tenant, claim) for claim in self._of.get(tenant, ())]
        return sorted(Reservation(spelled(claim), whose, self._freed[whose, claim]) for whose, claim in keys)

    def ends_at(self, reservation: Reservation) -> int:
        return reservation.freed_at + self._milliseconds

    async def keep(self, claims: Sequence[Claim], tenant: str) -> None:
        """Reserve hosts that a tenant is about to free."""
        if not claims or not self.days:
            return
        now = int(self._clock() * 1000)
        values = [(self._stored(claim), tenant, now) for claim in claims]

        def act(connection: apsw.Connection) -> None:
            connection.execute("DELETE FROM reserved_hosts WHERE freed_at <= ?", (now - self._milliseconds,))
            connection.executemany(
                "INSERT OR REPLACE INTO reserved_hosts (host, tenant, freed_at) VALUES (?, ?, ?)", values
            )
            connection.execute(
                "DELETE FROM reserved_hosts WHERE tenant = ?1 AND host IN (SELECT host FROM reserved_hosts"
                " WHERE tenant = ?1 ORDER BY freed_at DESC LIMIT -1 OFFSET ?2)",
                (tenant, MAX_RESERVED),
            )

        await self._database.write(act)
        for claim in claims:
            self._add(tenant, claim, now)
        while len(self._of[tenant]) > MAX_RESERVED:
            self._remove(tenant, next(iter(self._of[tenant])))

    async def release(self, host: str, tenant: str | None, mark: Mark) -> bool:
        """Release a host that is reserved for one tenant, or for any. False if it is not reserved."""
        self._lapse()
        claim = read_claim(host, self._base)
        holders = [each for each in self._claims.holders(claim) if tenant in (None, each)]
        if not holders:
            return False

        def act(connection: apsw.Connection) -> None:
            for whose in holders:
                values = (self._stored(claim), whose)
                connection.execute("DELETE FROM reserved_hosts WHERE host = ? AND tenant = ?", values)
            mark.write(connection, "host.release", spelled(claim))

        await self._database.write(act)
        for whose in holders:
            self._remove(whose, claim)
        return True

    async def disown(self, tenant: str) -> None:
        """Detach the reservations of a deleted tenant: a new tenant of the same name does not get its hosts."""

        def act(connection: apsw.Connection) -> None:
            connection.execute("UPDATE OR REPLACE reserved_hosts SET tenant = '' WHERE tenant = ?", (tenant,))

        await self._database.write(act)
        for claim in list(self._of.get(tenant, ())):
            freed_at = self._freed[tenant, claim]
            self._remove(tenant, claim)
            self._add("", claim, freed_at)
        self._freed = dict(sorted(self._freed.items(), key=lambda item: item[1]))

    @property
    def _milliseconds(self) -> int:
        return int(self.days * DAY_MS)

    def _add(self, tenant: str, claim: Claim, freed_at: int) -> None:
        self._remove(tenant, claim)  # it is the newest now
        self._freed[tenant, claim] = freed_at
        self._of.setdefault(tenant, {})[claim] = None
        self._claims.put(claim, tenant)

    def _remove(self, tenant: str, claim: Claim) -> None:
        if self._freed.pop((tenant, claim), None) is None:
            return
        self._claims.drop(claim, tenant)
        del self._of[tenant][claim]
        if not self._of[tenant]:
            del self._of[tenant]

    def _lapse(self) -> None:
        """Drop the reservations that have ended."""
        end = int(self._clock() * 1000) - self._milliseconds
        while self._freed:
            key = next(iter(self._freed))
            if self._freed[key] > end:
                return
            self._remove(*key)

    def _stored(self, claim: Claim) -> str:
        """A host below the base domain is stored without it: the base domain may change."""
        unit = unit_of(claim[1], self._base)
        return f"{unit}." if unit else spelled(claim)

    def _read(self, stored: str) -> Claim:
        return read_claim(stored + self._base if stored.endswith(".") else stored, self._base)
