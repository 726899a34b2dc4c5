"""Endpoints of hosts: those that are reserved, and those that may have a certificate."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.audit import Mark
from atoll.api.callers import Scope
from atoll.api.paging import page_of, page_query
from atoll.api.refusals import ApiCode, Refused
from atoll.api.routes import Query, Route, caller_of, json_answer, no_content
from atoll.clock import iso_time
from atoll.control.access.access import Access
from atoll.control.deploy.deployer import Deployer
from atoll.control.endpoints.tokens import reach

MAX_HOSTS = 1_000
DOMAIN = Query("domain", "A host", {"type": "string"})


class ReservedHost(msgspec.Struct):
    host: str  # `*shop.localhost`: that host and all below it
    tenant: str | None  # null: the tenant was deleted
    freed_at: str
    reserved_until: str


class ReservedHosts(msgspec.Struct, omit_defaults=True):
    hosts: list[ReservedHost]
    cursor: str = ""


class CertifiedHost(msgspec.Struct):
    domain: str


class HostsApi:
    def __init__(self, deployer: Deployer, access: Access) -> None:
        self._rules = deployer.rules
        self._reserved = access.reserved
        self._clock = access.clock

    def routes(self) -> list[Route]:
        path = "/api/reserved-hosts"
        return [
            Route(
                "GET",
                path,
                self.list,
                Scope.READ,
                "Hosts reserved for the tenant that had them",
                gives=ReservedHosts,
                query=page_query(MAX_HOSTS),
            ),
            Route("DELETE", f"{path}/{{host}}", self.release, Scope.ADMIN, "Release a reserved host", status=204),
            Route(
                "GET",
                "/certificates/allowed",
                self.allowed,
                Scope.PUBLIC,
                "Whether an edge may get a certificate for a host: 200, or 404",
                gives=CertifiedHost,
                query=(DOMAIN,),
            ),
        ]

    async def list(self, request: Request) -> Response:
        after, limit = page_of(request, MAX_HOSTS)
        found = self._rules.reserved(reach(caller_of(request)))
        shown = [
            ReservedHost(
                each.host, each.tenant or None, iso_time(each.freed_at), iso_time(self._reserved.ends_at(each))
            )
            for each in found[after : after + limit]
        ]
        return json_answer(ReservedHosts(shown, str(after + limit) if after + limit < len(found) else ""))

    async def release(self, request: Request) -> Response:
        caller, host = caller_of(request), request.path_params["host"]
        if not await self._reserved.release(host, reach(caller), Mark.of(caller, self._clock())):
            raise Refused(
                ApiCode.NOT_FOUND,
                f"the host `{host[:80]}` is not reserved",
                "GET /api/reserved-hosts lists the reserved hosts",
            )
        return no_content()

    async def allowed(self, request: Request) -> Response:
        """Asked by an edge that gets certificates by itself, without a token: a request to the host tells the same.

        Hosts that only a preview or a wildcard matches have no end, and each certificate costs.
        """
        domain = request.query_params.get("domain", "")
        if not self._rules.names(domain):
            raise Refused(
                ApiCode.NOT_FOUND,
                f"no worker has the host `{domain[:80]}` as its own or in a route",
                "deploy a worker with this host; previews and wildcards need a wildcard certificate",
            )
        return json_answer(CertifiedHost(domain))
