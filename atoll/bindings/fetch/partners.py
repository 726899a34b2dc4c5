"""What other bindings give to fetch(): objects by name, and client certificates."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, ClassVar, Protocol, TypeAlias

from atoll.bindings.fetch.messages import WantedFetch, read_wanted
from atoll.bindings.passes import Passed
from atoll.bindings.scope import CallScope
from atoll.bindings.services import ObjectTarget
from atoll.egress.client import ClientIdentity
from atoll.errors import InvalidArgument
from atoll.workers import Grant, Version

Present: TypeAlias = Callable[[Version, Grant], Awaitable[ClientIdentity]]


class ObjectNames(Protocol):
    """Finds the Durable Object that a worker names (bindings/durable_object/ops.py)."""

    kind: ClassVar[str]

    def target(self, version: Version, grant: Grant, id: object, name: object) -> tuple[ObjectTarget, Version]: ...

    def passed(self, version: Version, passed: Passed) -> tuple[ObjectTarget, Version]: ...

    def facet(self, scope: CallScope, text: str) -> tuple[ObjectTarget, Version]: ...


class Presenters:
    """Kinds of bindings whose fetch() presents a client certificate."""

    def __init__(self) -> None:
        self._kinds: dict[str, Present] = {}

    def add(self, kind: str, present: Present) -> None:
        self._kinds[kind] = present

    def grant_of(self, version: Version, service: object) -> Grant | None:
        grant = version.grants.get(service) if isinstance(service, str) else None
        return grant if grant is not None and grant.kind in self._kinds else None

    async def wanted(self, version: Version, grant: Grant, meta: Mapping[str, Any]) -> WantedFetch:
        wanted = read_wanted({name: value for name, value in meta.items() if name not in ("service", "object")})
        if not wanted.target.tls:
            raise InvalidArgument(f"env.{grant.name}.fetch() presents a certificate, so its URL begins with https:")
        wanted.target = wanted.target._replace(identity=await self._kinds[grant.kind](version, grant))
        return wanted
