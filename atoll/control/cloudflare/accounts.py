"""Who am I: the user, the token, its accounts. And zones, which are hosts that a tenant may route."""

from __future__ import annotations

import re

from starlette.requests import Request
from starlette.responses import Response

from atoll.api.callers import Scope
from atoll.api.cloudflare import ACCOUNT, V4, CloudflareRefusal, account_id, envelope, paged
from atoll.api.routes import Route, caller_of
from atoll.clock import iso_time
from atoll.control.cloudflare.callers import Accounts
from atoll.control.cloudflare.ids import hashed

HOST = re.compile(r"[a-z0-9_-]+(\.[a-z0-9_-]+)*")


class AccountsApi:
    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts

    def routes(self) -> list[Route]:
        known = Scope.ANY
        return [
            Route("GET", f"{V4}/user", self.user, known, "The name of the token"),
            Route("GET", f"{V4}/user/tokens/verify", self.verify, known, "Whether the token is valid"),
            Route("GET", f"{V4}/accounts", self.accounts, known, "The accounts of the token"),
            Route("GET", ACCOUNT, self.account, known, "One account"),
            Route("GET", f"{V4}/memberships", self.memberships, known, "The accounts of the token, as memberships"),
            Route("GET", f"{V4}/zones", self.zones, Scope.READ, "A zone for a host"),
            Route("GET", f"{ACCOUNT}/workers/subdomain", self.subdomain, Scope.READ, "The name of an account in hosts"),
        ]  # fmt: skip

    async def user(self, request: Request) -> Response:
        caller = caller_of(request)
        return envelope({"id": hashed(f"token {caller.name}"), "email": f"{caller.name}@{caller.tenant}"})

    async def verify(self, request: Request) -> Response:
        caller = caller_of(request)
        found = {"id": hashed(f"token {caller.name}"), "status": "active"}
        return envelope(found | ({"expires_on": iso_time(caller.expires_at)} if caller.expires_at else {}))

    async def accounts(self, request: Request) -> Response:
        return await paged(request, self._accounts.of(caller_of(request)), usual=20)

    async def account(self, request: Request) -> Response:
        caller = caller_of(request)
        return envelope({"id": account_id(caller.tenant), "name": caller.tenant, "type": "standard"})

    async def memberships(self, request: Request) -> Response:
        found = [
            {"id": hashed(f"membership {each['id']}"), "status": "accepted", "account": each}
            for each in self._accounts.of(caller_of(request))
        ]
        return await paged(request, found, usual=20)

    async def zones(self, request: Request) -> Response:
        """wrangler asks for the zone of a route before it sets the route. Every host has one here: whether a tenant may
        route the host is decided when the route is set."""
        caller, name = caller_of(request), request.query_params.get("name", "").lower()
        if not name:
            return await paged(request, [])
        if len(name) > 255 or not HOST.fullmatch(name):
            raise CloudflareRefusal(400, 10026, f"`name` is {name[:80]!r}, which is not a host")
        zone = {
            "id": hashed(f"zone {name}"),
            "name": name,
            "status": "active",
            "account": {"id": account_id(caller.tenant), "name": caller.tenant},
        }
        return await paged(request, [zone])

    async def subdomain(self, request: Request) -> Response:
        return envelope({"subdomain": caller_of(request).tenant})
