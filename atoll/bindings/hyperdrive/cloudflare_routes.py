"""Hyperdrive below /client/v4: `wrangler hyperdrive` and the SDKs. The id of a database is its name."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from msgspec import UNSET, Struct, UnsetType
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.callers import Scope
from atoll.api.cloudflare import ACCOUNT, CloudflareRefusal, CloudflareTools, envelope, paged, read_v4
from atoll.api.refusals import ApiCode, Refused, bad_body
from atoll.api.routes import Route, caller_of
from atoll.bindings.hyperdrive.connection_string import PORTS, DatabaseAddress, read_address
from atoll.bindings.hyperdrive.databases import NamedDatabase, NamedDatabases
from atoll.bindings.hyperdrive.ops import NAME, NAME_HINT
from atoll.clock import iso_time
from atoll.errors import InvalidArgument, QuotaExceeded

MALFORMED, TAKEN = 2001, 2012
SSL_MODES = {"REQUIRED": "require", "VERIFY_CA": "verify-ca", "VERIFY_IDENTITY": "verify-full"}  # MySQL's words
# What Cloudflare's Hyperdrive has and this one has not: refused, since a setting without an effect would mislead.
CACHED = "queries are not cached here: leave `max_age` and `stale_while_revalidate` out"
POOLED = "logins are not pooled here: leave `origin_connection_limit` out"
TUNNELLED = "databases are reached directly: give `host` and `port` instead of a service or Access"
CERTIFIED = "TLS has no client certificates and no authorities of its own here: leave `mtls` but for `sslmode` out"


class HyperdriveOrigin(Struct):
    scheme: str = ""
    host: str = ""
    port: int = 0
    database: str = ""
    user: str = ""
    password: str = ""
    service_id: str = ""
    access_client_id: str = ""


class HyperdriveCaching(Struct):
    disabled: bool = False
    max_age: int | None = None
    stale_while_revalidate: int | None = None


class HyperdriveTls(Struct):
    sslmode: str = ""
    ca_certificate_id: str = ""
    mtls_certificate_id: str = ""


class WantedHyperdrive(Struct):
    """What a request leaves out stays as it is."""

    name: str = ""
    origin: HyperdriveOrigin | None = None
    caching: HyperdriveCaching | None = None
    mtls: HyperdriveTls | UnsetType | None = UNSET
    origin_connection_limit: int | None = None


class CloudflareHyperdrive:
    def __init__(self, databases: NamedDatabases, tools: CloudflareTools) -> None:
        self._databases = databases
        self._audit = tools.audit

    def routes(self) -> list[Route]:
        read, change = Scope.READ, Scope.DEPLOY
        many = f"{ACCOUNT}/hyperdrive/configs"
        one = f"{many}/{{database}}"
        return [
            Route("GET", many, self.list, read, "The databases of an account"),
            Route("POST", many, self.create, change, "Name a database"),
            Route("GET", one, self.show, read, "A database, without its password"),
            Route("PATCH", one, self.change, change, "Change parts of a database"),
            Route("PUT", one, self.replace, change, "Change a whole database"),
            Route("DELETE", one, self.delete, change, "Forget a database"),
        ]

    async def list(self, request: Request) -> Response:
        return await paged(request, self._databases.of_tenant(caller_of(request).tenant), self._shown, usual=20)

    async def create(self, request: Request) -> Response:
        wanted = await read_v4(request, WantedHyperdrive)
        if not NAME.fullmatch(wanted.name):
            raise CloudflareRefusal(400, MALFORMED, f"`name` is {wanted.name!r:.80}", NAME_HINT)
        if self._databases.find(caller_of(request).tenant, wanted.name) is not None:
            raise CloudflareRefusal(400, TAKEN, f"a database named `{wanted.name}` already exists")
        return await self._put(request, "hyperdrive.create", wanted.name, wanted, None)

    async def show(self, request: Request) -> Response:
        return envelope(self._shown(self._find(request)))

    async def change(self, request: Request) -> Response:
        return await self._change(request, is_whole=False)

    async def replace(self, request: Request) -> Response:
        return await self._change(request, is_whole=True)

    async def delete(self, request: Request) -> Response:
        name = self._find(request).name
        await self._audit.note(caller_of(request), "hyperdrive.delete", name)
        await self._databases.delete(caller_of(request).tenant, name)
        return envelope(None)

    async def _change(self, request: Request, *, is_whole: bool) -> Response:
        found, wanted = self._find(request), await read_v4(request, WantedHyperdrive)
        if wanted.name not in ("", found.name):
            text = "a database cannot be renamed here: its name is its id, and workers are bound to it"
            raise CloudflareRefusal(400, MALFORMED, text, "create another one")
        before = None if is_whole else self._databases.address(found)
        return await self._put(request, "hyperdrive.change", found.name, wanted, before)

    def _find(self, request: Request) -> NamedDatabase:
        name = request.path_params["database"]
        found = self._databases.find(caller_of(request).tenant, name)
        if found is None:
            raise Refused(ApiCode.NOT_FOUND, f"there is no database `{name[:80]}`")
        return found

    async def _put(
        self, request: Request, action: str, name: str, wanted: WantedHyperdrive, before: DatabaseAddress | None
    ) -> Response:
        caller = caller_of(request)
        try:
            text = connection_string(wanted, before)
            read_address(text)
            await self._audit.note(caller, action, name)
            made = await self._databases.put(caller.tenant, name, text, by_operator=caller.is_operator)
        except InvalidArgument as error:
            raise CloudflareRefusal(400, MALFORMED, f"the database cannot be used: {error}") from None
        except QuotaExceeded as error:
            raise Refused(ApiCode.QUOTA, str(error), "delete a database") from None
        return envelope(self._shown(made))

    def _shown(self, each: NamedDatabase) -> dict[str, Any]:
        at = self._databases.address(each)
        origin = {"scheme": at.scheme, "host": at.host, "port": at.port, "database": at.database, "user": at.user}
        mode = ("verify-full" if at.is_checked else "require") if at.tls else ""
        created = iso_time(each.created_at)
        return {
            "id": each.name,
            "name": each.name,
            "origin": origin,
            "caching": {"disabled": True},
            "mtls": {"sslmode": mode} if mode else {},
            "created_on": created,
            "modified_on": created,
        }


def connection_string(wanted: WantedHyperdrive, before: DatabaseAddress | None) -> str:
    """The connection string of what is wanted; what is left out is taken from `before`. Raises Refused."""
    origin = wanted.origin or HyperdriveOrigin()
    if origin.service_id or origin.access_client_id:
        raise bad_body(TUNNELLED)
    if wanted.caching is not None and (wanted.caching.max_age or wanted.caching.stale_while_revalidate):
        raise bad_body(CACHED)
    if wanted.origin_connection_limit is not None:
        raise bad_body(POOLED)
    tls = wanted.mtls if isinstance(wanted.mtls, HyperdriveTls) else HyperdriveTls()
    if tls.ca_certificate_id or tls.mtls_certificate_id:
        raise bad_body(CERTIFIED)
    scheme = origin.scheme or (before.scheme if before is not None else "")
    host = origin.host or (before.host if before is not None else "")
    port = origin.port or (before.port if before is not None else PORTS.get(scheme, 0))
    if not (0 < port < 65_536):
        raise bad_body(f"`port` is {port}, which is not a port")
    if any(letter in host for letter in "/?#@ ") or not host.isascii():
        raise bad_body(f"`host` is {host!r:.80}, which is not a host")
    user = origin.user or (before.user if before is not None else "")
    password = origin.password or (before.password if before is not None else "")
    database = origin.database or (before.database if before is not None else "")
    mode = SSL_MODES.get(tls.sslmode, tls.sslmode)
    if before is not None and wanted.mtls is UNSET and before.scheme != "mysql":
        mode = ("" if before.is_checked else "require") if before.tls else "disable"
    shown_host = f"[{host}]" if ":" in host else host
    login = f"{quote(user, safe='')}:{quote(password, safe='')}"
    ending = f"?sslmode={quote(mode, safe='')}" if mode else ""
    return f"{scheme}://{login}@{shown_host}:{port}/{quote(database, safe='')}{ending}"
