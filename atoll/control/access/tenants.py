"""Tenants, the owners of workers, namespaces, tokens and secrets, and their quotas.

Tenants are few and looked up often, so all are in memory; the table is for the next start. The tenant `default` always
exists: it owns everything that is deployed without naming a tenant.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import apsw
import msgspec

from atoll.api.audit import Mark
from atoll.api.refusals import ApiCode, Refused
from atoll.control.checks.body import NAME
from atoll.control.checks.extended import with_fields
from atoll.db.sqlite import Database, rows
from atoll.manifests.every import quotas
from atoll.workers import LOCAL_TENANT, EgressRules


@with_fields((name, int | None, None) for name in quotas())
class Quotas(msgspec.Struct, frozen=True, omit_defaults=True):
    """The quotas of a tenant; None: only the node's own caps apply. Bindings add their quotas."""

    workers: int | None = None
    script_bytes: int | None = None  # of the active versions of all its workers
    requests_per_second: int | None = None
    concurrent_calls: int | None = None
    cpu_seconds_per_minute: float | None = None
    loaded_workers: int | None = None  # isolates
    max_cpu_ms: int | None = None  # caps on its workers' limits.cpu_ms, and so on
    max_wall_ms: int | None = None
    max_memory_mb: int | None = None
    max_subrequests: int | None = None
    max_internal_subrequests: int | None = None
    own_engine: bool | None = None  # all its workers run in an engine process of its own
    suspended: bool | None = None  # every call of its workers is refused


class Tenant(msgspec.Struct, frozen=True):
    name: str
    created_at: int  # ms since 1970
    quotas: Quotas = Quotas()
    hosts: tuple[str, ...] | None = None  # host patterns it may route; None: any free host
    egress: EgressRules = EgressRules()  # destinations that its workers may connect to


class TenantRow(NamedTuple):
    name: str
    created_at: int
    quotas: str
    hosts: str
    egress: str


OnChange = Callable[[Tenant], None]


class Tenants:
    """All tenants of the node. Code that enforces a quota listens to changes."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._listeners: list[OnChange] = []
        found = database.read(
            lambda c: rows(c, TenantRow, "SELECT name, created_at, quotas, hosts, egress FROM tenants")
        )
        self._by_name = {row.name: _tenant(row) for row in found}
        self._names = sorted(self._by_name)

    def listen(self, listener: OnChange) -> None:
        """Call a listener with every tenant now, and with each that changes later."""
        self._listeners.append(listener)
        for tenant in self._by_name.values():
            listener(tenant)

    def names(self) -> Sequence[str]:
        """The names of all tenants, sorted."""
        return self._names

    def get(self, name: str) -> Tenant | None:
        return self._by_name.get(name)

    def find(self, name: str) -> Tenant:
        tenant = self._by_name.get(name)
        if tenant is None:
            raise Refused(ApiCode.NO_TENANT, f"there is no tenant `{name[:80]}`", "GET /api/tenants lists the tenants")
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
            raise Refused(ApiCode.NAME_TAKEN, f"a tenant named `{tenant.name}` already exists", "PATCH changes it")
        return await self._put(tenant, mark, "tenant.create")

    async def change(self, tenant: Tenant, mark: Mark) -> Tenant:
        return await self._put(tenant, mark, "tenant.change")

    async def delete(self, name: str, mark: Mark) -> None:
        """Delete a tenant and its tokens. The caller has checked that the tenant is empty."""
        if name == LOCAL_TENANT:
            raise Refused(ApiCode.TENANT_IN_USE, f"the tenant `{name}` cannot be deleted")

        def act(connection: apsw.Connection) -> None:
            connection.execute("DELETE FROM tokens WHERE tenant = ?", (name,))
            connection.execute("DELETE FROM tenants WHERE name = ?", (name,))
            mark.write(connection, "tenant.delete", name)

        await self._database.write(act)
        del self._by_name[name]
        self._names.remove(name)
        self._tell(Tenant(name, 0))  # without quotas, in case a tenant of this name is created again

    def follow(self, names: Iterable[str]) -> None:
        """Read tenants again that another node has changed."""
        sql = "SELECT name, created_at, quotas, hosts, egress FROM tenants WHERE name = ?"
        for name in names:
            found = self._database.read(lambda c, name=name: rows(c, TenantRow, sql, name))  # type: ignore[misc]
            if found:
                self._keep(_tenant(found[0]))
            elif self._by_name.pop(name, None) is not None:
                self._names.remove(name)
                self._tell(Tenant(name, 0))

    def _keep(self, tenant: Tenant) -> None:
        if tenant.name not in self._by_name:
            insort(self._names, tenant.name)
        self._by_name[tenant.name] = tenant
        self._tell(tenant)

    async def _put(self, tenant: Tenant, mark: Mark, action: str) -> Tenant:
        def act(connection: apsw.Connection) -> None:
            connection.execute(
                "INSERT OR REPLACE INTO tenants (name, created_at, quotas, hosts, egress) VALUES (?, ?, ?, ?, ?)",
                (tenant.name, tenant.created_at, _json(tenant.quotas), _json(tenant.hosts), _json(tenant.egress)),
            )
            mark.write(connection, action, tenant.name, _json(tenant.quotas))

        await self._database.write(act)
        self._keep(tenant)
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
