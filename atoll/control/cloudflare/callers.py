"""Who calls Cloudflare's API: the tokens are Atoll's, and the account in a path is the tenant."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.callers import NOBODY, Caller, Scope
from atoll.api.cloudflare import NO_ROUTE, V4, CloudflareRefusal, account_id, failed, refusal_envelope
from atoll.api.routes import Route
from atoll.api.work import Work
from atoll.control.access.access import Access
from atoll.control.access.tenants import Tenant
from atoll.control.edge.boundary import Boundary

GUIDE = "docs/guides/wrangler.md"


class Accounts:
    """The accounts of a node: one for each tenant."""

    def __init__(self, access: Access) -> None:
        self._tenants = access.tenants
        self._names: dict[str, str] = {}  # account id -> tenant
        access.tenants.listen(self._add)

    def _add(self, tenant: Tenant) -> None:
        self._names[account_id(tenant.name)] = tenant.name

    def of(self, caller: Caller) -> list[dict[str, str]]:
        """The accounts that a caller may act for."""
        names = self._tenants.names() if caller.is_operator else [caller.tenant]
        return [{"id": account_id(name), "name": name, "type": "standard"} for name in names]

    def acting(self, caller: Caller, account: str) -> Caller:
        """The caller for an account in a path. Accounts of other tenants do not exist."""
        if account == account_id(caller.tenant):
            return caller
        name = self._names.get(account, "")
        if not caller.is_operator or self._tenants.get(name) is None:
            raise no_account(account)
        return replace(caller, tenant=name)


def no_account(account: str) -> CloudflareRefusal:
    hint = "GET /client/v4/accounts lists the accounts of a token"
    return CloudflareRefusal(404, NO_ROUTE, f"there is no account {account[:80]!r} for this token", hint)


class CloudflareBoundary(Boundary):
    """Around the endpoints of /client/v4. A route with the scope `public` checks a signature of its own."""

    def __init__(self, is_control: Callable[[bytes], bool], access: Access, accounts: Accounts, work: Work) -> None:
        super().__init__(is_control, access.gate.identify, work, refusal_envelope)
        self._gate = access.gate
        self._accounts = accounts

    def _caller(self, route: Route, request: Request) -> Caller:
        key = request.headers.get("x-auth-key")
        if route.scope is Scope.PUBLIC or (key is None and "authorization" not in request.headers):
            return NOBODY  # also on an open node: a page in a browser can send a form, but no header of these
        caller = self._gate.identify(request, key)
        account = request.path_params.get("account")
        return caller if account is None or caller is NOBODY else self._accounts.acting(caller, account)


def is_v4(request: Request) -> bool:
    return request.url.path == V4 or request.url.path.startswith(f"{V4}/")


def no_v4_route(request: Request, error: HTTPException) -> Response:
    if error.status_code == 405:
        response = failed(405, 10405, f"{request.url.path[:200]} does not support {request.method}")
        response.headers["allow"] = (error.headers or {}).get("Allow", "")
        return response
    if "/edge-preview" in request.url.path:
        return failed(501, NO_ROUTE, f"`wrangler dev --remote` is not part of Atoll: use `wrangler dev`; see {GUIDE}")
    text = f"{request.method} {request.url.path[:200]} is not part of Atoll; {GUIDE} lists what is"
    return failed(404, NO_ROUTE, text)
