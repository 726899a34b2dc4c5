"""Tenants: who workers, namespaces, tokens and secrets belong to, and how much each may have.

There are few of them and everyone asks for them, so all are in memory; the table is for the next start. The tenant
`default` is always there: whatever is deployed without a word about tenants is its.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import apsw
import msgspec

from atoll.control.audit import Mark
from atoll.control.check import NAME
from atoll.control.refusals import ApiCode, Refused
from atoll.db.sqlite import Database, rows
from atoll.workers import LOCAL_TENANT, EgressRules


class Quotas(msgspec.Struct, frozen=True, omit_defaults=True):
    """The most a tenant may have; None is no bound but the node's own."""

    workers: int | None = None
    script_bytes: int | None = None  # of the active versions of all its workers
    requests_per_second: int | None = None
    concurrent_calls: int | None = None
    cpu_seconds_per_minute: float | None = None
    loaded_workers: int | None = None  # isolates
    kv_keys: int | None = None  # in all its namespaces
    kv_bytes: int | None = None  # of keys, values and metadata
    queue_bytes: int | None = None  # of messages in all its queues
    max_cpu_ms: int | None = None  # the most its workers may ask for as limits.cpu_ms, and so on
    max_wall_ms: int | None = None
    max_memory_mb: int | None = None
    max_subrequests: int | None = None
    max_internal_subrequests: int | None = None
    own_engine: bool | None = None  # all its workers run in an engine process of its own


class Tenant(msgspec.Struct, frozen=True):
    name: str
    created_at: int  # ms since 1970
    quotas: Quotas = Quotas()
    hosts: tuple[str, ...] | None = None  # host patterns it may route; None: any that is free
    egress: EgressRules = EgressRules()  # where its workers may connect to


class TenantRow(NamedTuple):
    name: str
    created_at: int
    quotas: str
    hosts: str
    egress: str


OnChange = Callable[[Tenant], None]


class Tenants:
    """All tenants of the node. Whoever enforces a quota listens to changes."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._listeners: list[OnChange] = []
        found = database.read(
            lambda c: rows(c, TenantRow, "SELECT name, created_at, quotas, hosts, egress FROM tenants")
        )
        self._by_name = {row.name: _tenant(row) for row in found}

    def listen(self, listener: OnChange) -> None:
        """Be told of every tenant there is, and of each that changes."""
        self._listeners.append(listener)
        for tenant in self._by_name.values():
            listener(tenant)

    def all(self) -> list[Tenant]:
        return sorted(self._by_name.values(), key=lambda tenant: tenant.name)

    def get(self, name: str) -> Tenant | None:
        return self._by_name.get(name)

    def find(self, name: str) -> Tenant:
        tenant = self._by_name.get(name)
        if tenant is None:
            raise Refused(ApiCode.NO_TENANT, f"there is no tenant `{name[:80]}`", "GET /api/tenants lists them")
        return tenant

    def quotas(self, name: str) -> Quotas:
        tenant = self._by_name.get(name)
        return tenant.quotas if tenant is not None else Quotas()

    async def create(self, tenant: Tenant, mark: Mark) -> Tenant:
        if not NAME.fullmatch(tenant.name):
            raise Refused(
                ApiCode.BAD_NAME,
                f"a tenant cannot be named {tenant.name[:80]!r}",
                "use 1 to 63 lower-case letters, digits and dashes, without a dash at either end",
            )
        if tenant.name in self._by_name:
            raise Refused(ApiCode.NAME_TAKEN, f"a tenant named `{tenant.name}` exists already", "PATCH changes it")
        return await self._put(tenant, mark, "tenant.create")

    async def change(self, tenant: Tenant, mark: Mark) -> Tenant:
        return await self._put(tenant, mark, "tenant.change")

    async def delete(self, name: str, mark: Mark) -> None:
        """Delete a tenant and its tokens. That nothing else of it is left has been seen to."""
        if name == LOCAL_TENANT:
            raise Refused(ApiCode.TENANT_IN_USE, f"the tenant `{name}` is always there")

        def act(connection: apsw.Connection) -> None:
            connection.execute("DELETE FROM tokens WHERE tenant = ?", (name,))
            connection.execute("DELETE FROM tenants WHERE name = ?", (name,))
            mark.write(connection, "tenant.delete", name)

        await self._database.write(act)
        del self._by_name[name]
        self._tell(Tenant(name, 0))  # without bounds, should it ever come back

    async def _put(self, tenant: Tenant, mark: Mark, action: str) -> Tenant:
        def act(connection: apsw.Connection) -> None:
            connection.execute(
                "INSERT OR REPLACE INTO tenants (name, created_at, quotas, hosts, egress) VALUES (?, ?, ?, ?, ?)",
                (tenant.name, tenant.created_at, _json(tenant.quotas), _json(tenant.hosts), _json(tenant.egress)),
            )
            mark.write(connection, action, tenant.name, _json(tenant.quotas))

        await self._database.write(act)
        self._by_name[tenant.name] = tenant
        self._tell(tenant)
        return tenant

    def _tell(self, tenant: Tenant) -> None:
        for listener in self._listeners:
            listener(tenant)


def _tenant(row: TenantRow) -> Tenant:
    quotas = msgspec.json.decode(row.quotas, type=Quotas)
    hosts = msgspec.json.decode(row.hosts, type=tuple[str, ...] | None)
    egress = msgspec.json.decode(row.egress, type=EgressRules)
    return Tenant(row.name, row.created_at, quotas, hosts, egress)


def _json(value: object) -> str:
    return msgspec.json.encode(value).decode()
