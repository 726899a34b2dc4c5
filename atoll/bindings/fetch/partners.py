"""What other bindings give to fetch(): objects by name, client certificates, and the servers behind workers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar, Protocol, TypeAlias

from atoll.bindings.fetch.messages import WantedFetch, read_wanted
from atoll.bindings.passes import Passed
from atoll.bindings.scope import CallScope
from atoll.bindings.services import ObjectTarget, ServiceWay
from atoll.egress.client import ClientIdentity, Origin
from atoll.errors import InvalidArgument
from atoll.workers import Grant, Version

Present: TypeAlias = Callable[[Version, Grant], Awaitable[ClientIdentity]]


class ObjectNames(Protocol):
    """Finds the Durable Object that a worker names (bindings/durable_object/ops.py)."""

    kind: ClassVar[str]

    def target(self, version: Version, grant: Grant, id: object, name: object) -> tuple[ObjectTarget, Version]: ...

    def way(self, version: Version, binding: str, target: ObjectTarget) -> ServiceWay: ...

    def passed(self, version: Version, passed: Passed) -> tuple[ObjectTarget, Version]: ...

    def facet(self, scope: CallScope, text: str) -> tuple[ObjectTarget, Version]: ...


class Partners:
    """Kinds of bindings whose fetch() goes to a server: with a client certificate, or to the server behind a worker."""

    def __init__(self) -> None:
        self.presents: dict[str, Present] = {}
        self.forwards: dict[str, Callable[[str], Origin]] = {}

    def grant_of(self, version: Version, service: object) -> Grant | None:
        grant = version.grants.get(service) if isinstance(service, str) else None
        return grant if grant is not None and (grant.kind in self.presents or grant.kind in self.forwards) else None

    async def wanted(self, version: Version, grant: Grant, meta: Mapping[str, Any]) -> WantedFetch:
        wanted = read_wanted({name: value for name, value in meta.items() if name not in ("service", "object")})
        if grant.kind in self.forwards:
            self.forward(wanted, grant)
            return wanted
        if not wanted.target.tls:
            raise InvalidArgument(f"env.{grant.name}.fetch() presents a certificate, so its URL begins with https:")
        wanted.target = wanted.target._replace(identity=await self.presents[grant.kind](version, grant))
        return wanted

    def forward(self, wanted: WantedFetch, grant: Grant) -> None:
        """Send a request to the server behind its worker. URL and Host header stay."""
        wanted.asked, wanted.target = wanted.target, self.forwards[grant.kind](grant.resource)

    def origin_of(self, version: Version) -> Grant | None:
        """The server behind a worker, for requests to its own hosts."""
        return next((grant for grant in version.grants.values() if grant.kind in self.forwards), None)
