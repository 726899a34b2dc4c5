"""hyperdrive: a binding to a database that the operator, or the tenant, has named.

There is no op: `tcp.open` to the host that the binding shows leads here (bindings/tcp). The worker's driver logs in, so
the worker sees the password.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from atoll.api.refusals import ApiCode, Refused
from atoll.bindings.base import Binding
from atoll.bindings.hyperdrive.connection_string import NO_LOCAL_HOST, DatabaseAddress, read_address
from atoll.bindings.hyperdrive.databases import NamedDatabases
from atoll.bindings.hyperdrive.opening import DatabaseConnections
from atoll.bindings.services import Services
from atoll.bindings.tcp.ops import MakeConnection, Tcp
from atoll.bindings.tcp.wanted import WantedSocket
from atoll.egress.tcp import TcpConnection
from atoll.errors import HostRefused, InvalidArgument
from atoll.workers import Grant, Version

DOMAIN = "hyperdrive.local"
NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
NAME_HINT = "use up to 64 letters, digits, dots, dashes and _"
LOCAL = "="  # begins the resource of a grant that is a connection string itself, in `atoll dev`


class HyperdriveEntry(msgspec.Struct, forbid_unknown_fields=True):
    database: str
    local: str = ""  # the connection string for `atoll dev`, which alone sends it


class Hyperdrive(Binding):
    kind = "hyperdrive"
    Entry = HyperdriveEntry

    def __init__(self, services: Services, tcp: Tcp) -> None:
        self.databases = NamedDatabases(services.place_of("hyperdrive"), services.seals)
        self._connections = DatabaseConnections(services.gate, services.holdings)
        tcp.divert(DOMAIN, self.open)

    # --- deploys and tenants ---

    def claim(self, tenant: str, entry: HyperdriveEntry) -> str:
        if entry.local:
            read_address(entry.local)
            return LOCAL + entry.local
        if not NAME.fullmatch(entry.database):
            raise InvalidArgument(f"the database is named {entry.database!r:.80}: {NAME_HINT}")
        return entry.database

    async def prepare(self, tenant: str, resource: str) -> None:
        if not await self.exists(tenant, resource):
            raise Refused(
                ApiCode.NOT_FOUND,
                f"there is no Hyperdrive database `{resource}`",
                f"name it: `atoll hyperdrive create {resource} --connection-string URL`",
            )

    async def exists(self, tenant: str, resource: str) -> bool:
        return resource.startswith(LOCAL) or self.databases.find(tenant, resource) is not None

    async def holdings(self, tenant: str) -> list[str]:
        return [each.name for each in self.databases.of_tenant(tenant)]

    async def forget(self, tenant: str) -> None:
        await self.databases.forget(tenant)

    async def seal_anew(self) -> None:
        await self.databases.seal_anew()

    async def close(self) -> None:
        self._connections.close()
        await self.databases.close()

    # --- connections ---

    def facts(self, version: Version, grant: Grant) -> Mapping[str, Any] | None:
        found = self._find(version.tenant, grant.resource)
        if found is None:
            return None  # deleted since the deploy
        address, _ = found
        return {
            "host": _host(version.tenant, grant.resource), "port": address.port, "user": address.user,
            "password": address.password, "database": address.database, "scheme": address.scheme,
        }  # fmt: skip

    def _find(self, tenant: str, resource: str) -> tuple[DatabaseAddress, bool] | None:
        """(where it is, whether the operator named it)"""
        if resource.startswith(LOCAL):
            return read_address(resource.removeprefix(LOCAL)), False
        named = self.databases.find(tenant, resource)
        return None if named is None else (self.databases.address(named), bool(named.by_operator))

    async def open(self, version: Version, wanted: WantedSocket, make: MakeConnection) -> TcpConnection:
        """A connection for a worker to the host that its binding shows."""
        for grant in version.grants.values():
            if grant.kind != self.kind or _host(version.tenant, grant.resource) != wanted.host:
                continue
            found = self._find(version.tenant, grant.resource)
            if found is not None:
                address, is_named = found
                if address.host == NO_LOCAL_HOST:
                    raise HostRefused("`atoll dev` needs `localConnectionString` of `hyperdrive` in the config")
                return await self._connections.open(version, address, make, is_named=is_named)
        raise HostRefused(f"{wanted.host} is no database of this worker")


def _host(tenant: str, resource: str) -> str:
    digest = hashlib.sha256("\0".join((tenant, resource)).encode()).hexdigest()
    return f"{digest[:32]}.{DOMAIN}"
