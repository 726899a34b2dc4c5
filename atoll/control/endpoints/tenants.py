"""Endpoints of tenants: operators create them and set quotas; a tenant can read its own entry."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from typing import Annotated

import msgspec
from msgspec import UNSET, UnsetType
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.audit import Mark
from atoll.api.bodies import read_json
from atoll.api.callers import Scope
from atoll.api.paging import name_page_of, name_query, page_answer
from atoll.api.refusals import ApiCode, Refused, bad_body
from atoll.api.routes import Route, caller_of, json_answer, no_content
from atoll.clock import iso_time
from atoll.control.access.tenants import Quotas, Tenant, Tenants
from atoll.control.access.tokens import Tokens
from atoll.control.checks.body import WantedEgress, checked_egress, parse_fields
from atoll.control.checks.extended import with_fields
from atoll.control.deploy.deployer import Deployer
from atoll.control.index import sorted_after
from atoll.manifests.every import quotas
from atoll.router import BadPattern, parse_pattern
from atoll.workers import EgressRules

MAX_HOSTS = 1_000
MAX_LISTED = 10

Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Rate = Annotated[int, msgspec.Meta(ge=1, le=10_000_000)]
Memory = Annotated[int, msgspec.Meta(ge=8, le=1_000_000)]  # an isolate with less cannot even start
Seconds = Annotated[float, msgspec.Meta(gt=0, le=1_000_000)]
Hosts = Annotated[list[str], msgspec.Meta(max_length=MAX_HOSTS)]


@with_fields((name, Count | None | UnsetType, UNSET) for name in quotas())
class WantedQuotas(msgspec.Struct, forbid_unknown_fields=True):
    """Quotas that are left out stay as they are; null removes a quota."""

    workers: Count | None | UnsetType = UNSET
    script_bytes: Count | None | UnsetType = UNSET
    requests_per_second: Rate | None | UnsetType = UNSET
    concurrent_calls: Rate | None | UnsetType = UNSET
    cpu_seconds_per_minute: Seconds | None | UnsetType = UNSET
    loaded_workers: Rate | None | UnsetType = UNSET
    max_cpu_ms: Rate | None | UnsetType = UNSET
    max_wall_ms: Rate | None | UnsetType = UNSET
    max_memory_mb: Memory | None | UnsetType = UNSET
    max_subrequests: Rate | None | UnsetType = UNSET
    max_internal_subrequests: Rate | None | UnsetType = UNSET
    own_engine: bool | None | UnsetType = UNSET
    suspended: bool | None | UnsetType = UNSET


class NewTenant(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    quotas: WantedQuotas | UnsetType = UNSET
    hosts: Hosts | None = None
    egress: WantedEgress | UnsetType = UNSET


class ChangedTenant(msgspec.Struct, forbid_unknown_fields=True):
    quotas: WantedQuotas | UnsetType = UNSET
    hosts: Hosts | None | UnsetType = UNSET
    egress: WantedEgress | UnsetType = UNSET


@with_fields((name, int | None) for name in quotas())
class QuotasAnswer(msgspec.Struct):
    workers: int | None
    script_bytes: int | None
    requests_per_second: int | None
    concurrent_calls: int | None
    cpu_seconds_per_minute: float | None
    loaded_workers: int | None
    max_cpu_ms: int | None
    max_wall_ms: int | None
    max_memory_mb: int | None
    max_subrequests: int | None
    max_internal_subrequests: int | None
    own_engine: bool | None
    suspended: bool | None


@with_fields((name, int, 0) for name in quotas())
class UsageAnswer(msgspec.Struct):
    workers: int
    script_bytes: int


class TenantAnswer(msgspec.Struct):
    name: str
    created_at: str
    quotas: QuotasAnswer
    hosts: tuple[str, ...] | None  # null: any free host
    egress: EgressRules
    usage: UsageAnswer


class TenantsAnswer(msgspec.Struct, omit_defaults=True):
    tenants: list[TenantAnswer]
    cursor: str = ""


class TenantsApi:
    def __init__(
        self, tenants: Tenants, tokens: Tokens, deployer: Deployer, clock: Callable[[], float] = time.time
    ) -> None:
        self._tenants = tenants
        self._tokens = tokens
        self._deployer = deployer
        self._clock = clock

    def routes(self) -> list[Route]:
        one = "/api/tenants/{tenant}"
        return [
            Route(
                "GET",
                "/api/tenants",
                self.list,
                Scope.READ,
                "All tenants, by name",
                gives=TenantsAnswer,
                query=name_query(),
                is_node=True,
            ),
            Route(
                "POST",
                "/api/tenants",
                self.create,
                Scope.ADMIN,
                "Create a tenant",
                takes=NewTenant,
                gives=TenantAnswer,
                status=201,
                is_node=True,
            ),
            Route("GET", one, self.show, Scope.READ, "A tenant, its quotas and its usage", gives=TenantAnswer),
            Route(
                "PATCH",
                one,
                self.change,
                Scope.ADMIN,
                "Change quotas and hosts",
                takes=ChangedTenant,
                gives=TenantAnswer,
                is_node=True,
            ),
            Route("DELETE", one, self.delete, Scope.ADMIN, "Delete an empty tenant", status=204, is_node=True),
        ]

    async def list(self, request: Request) -> Response:
        after, limit = name_page_of(request)
        return await page_answer("tenants", self._listed(after), limit)

    async def _listed(self, after: str) -> AsyncIterator[tuple[str, TenantAnswer]]:
        for name in sorted_after(self._tenants.names(), after):
            yield name, await self._shown(self._tenants.find(name))

    async def create(self, request: Request) -> Response:
        body = parse_fields(await read_json(request), NewTenant)
        now = self._clock()
        wanted = with_wanted(Quotas(), body.quotas)
        tenant = Tenant(
            body.name, int(now * 1000), wanted, checked_hosts(body.hosts), _egress(body.egress, EgressRules())
        )
        async with self._deployer.turn:  # of two requests at once, only one succeeds
            made = await self._tenants.create(tenant, Mark.of(caller_of(request), now))
        return json_answer(await self._shown(made), status=201)

    async def show(self, request: Request) -> Response:
        name, caller = request.path_params["tenant"], caller_of(request)
        if not caller.is_operator and name != caller.tenant:
            raise Refused(ApiCode.NO_TENANT, f"there is no tenant `{name[:80]}`", "this token is for another tenant")
        return json_answer(await self._shown(self._tenants.find(name)))

    async def change(self, request: Request) -> Response:
        body = parse_fields(await read_json(request), ChangedTenant)
        async with self._deployer.turn:  # keep the fields that another change has just set
            tenant = self._tenants.find(request.path_params["tenant"])
            hosts = tenant.hosts if body.hosts is UNSET else checked_hosts(body.hosts)
            egress = _egress(body.egress, tenant.egress)
            changed = Tenant(tenant.name, tenant.created_at, with_wanted(tenant.quotas, body.quotas), hosts, egress)
            await self._tenants.change(changed, Mark.of(caller_of(request), self._clock()))
        return json_answer(await self._shown(changed))

    async def delete(self, request: Request) -> Response:
        async with self._deployer.turn:  # no deploy runs in between
            name = self._tenants.find(request.path_params["tenant"]).name
            holdings = await self._deployer.holdings(name)
            if holdings:
                listed = ", ".join(holdings[:MAX_LISTED]) + (" …" if len(holdings) > MAX_LISTED else "")
                raise Refused(ApiCode.TENANT_IN_USE, f"the tenant `{name}` still has {listed}", "delete these first")
            await self._tenants.delete(name, Mark.of(caller_of(request), self._clock()))
            self._tokens.forget_tenant(name)
            await self._deployer.forget_tenant(name)
        return no_content()

    async def _shown(self, tenant: Tenant) -> TenantAnswer:
        bounds = QuotasAnswer(*(getattr(tenant.quotas, name) for name in QuotasAnswer.__struct_fields__))
        usage = UsageAnswer(**await self._deployer.usage(tenant.name))
        return TenantAnswer(tenant.name, iso_time(tenant.created_at), bounds, tenant.hosts, tenant.egress, usage)


def with_wanted(quotas: Quotas, wanted: WantedQuotas | UnsetType) -> Quotas:
    if wanted is UNSET:
        return quotas
    values = {name: getattr(wanted, name) for name in wanted.__struct_fields__}
    return msgspec.structs.replace(quotas, **{name: value for name, value in values.items() if value is not UNSET})


def _egress(wanted: WantedEgress | UnsetType, current: EgressRules) -> EgressRules:
    return current if wanted is UNSET else checked_egress(wanted)


def checked_hosts(texts: list[str] | None) -> tuple[str, ...] | None:
    """Host patterns in their canonical spelling: `shop.example`, `*.shop.example`, `*shop.example`, or `*`."""
    if texts is None:
        return None
    hosts = []
    for text in texts:
        try:
            pattern = parse_pattern(f"{text}/*")
            if "/" in text or "://" in text:
                raise BadPattern("it has more than a host")
        except BadPattern as error:
            raise bad_body(
                f"`hosts` has {text[:80]!r}: {error}", "write hosts like shop.example or *.shop.example"
            ) from None
        hosts.append(pattern.wildcard + pattern.host)
    return tuple(dict.fromkeys(hosts))
