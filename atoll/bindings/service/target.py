"""The target of a service binding, as its grant holds it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import Any

import msgspec

from atoll.bindings.passes import OBJECT, SERVICE, Passes, is_pass
from atoll.bindings.services import ServiceWay, Workers
from atoll.errors import InvalidArgument, NotGranted
from atoll.wire.generated import Event
from atoll.workers import Version, host_label

IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]{0,254}")
MAX_PROPS = 16 << 10
MAX_WAYS = 1_024
EXPORT = "exports "  # begins the name of an own entry point, where otherwise the name of a binding stands


class ServiceTarget(msgspec.Struct, forbid_unknown_fields=True):
    """An entry of `bindings`: a worker of the same tenant, and one of its entry points."""

    service: str
    entrypoint: str | None = None
    props: dict[str, Any] = {}

    def encode(self) -> str:
        return msgspec.json.encode(self).decode()

    def head(self, head: bytes) -> tuple[bytes, int]:
        """The head and event of a call to this entry point. `head` is that of a fetch."""
        address, event = self.line()
        first, _, rest = head.partition(b"\n")
        return b"".join((first, b"\n", address, rest)), event

    def line(self) -> tuple[bytes, int]:
        """The entry point for the engine, as the second line of a head, and the event."""
        if self.entrypoint is None and not self.props:
            return b"", int(Event.FETCH)
        return json.dumps(self.address()).encode("ascii") + b"\n", int(Event.ENTRYPOINT)

    def address(self) -> dict[str, Any]:
        return {"entrypoint": self.entrypoint, "props": self.props}


class OwnExport(msgspec.Struct, forbid_unknown_fields=True):
    """An own entry point as `ctx.exports` names it."""

    entrypoint: str | None = None
    props: dict[str, Any] = {}


# The target of a binding for static assets: the files of the calling version itself.
OWN_ASSETS = ServiceTarget("")


def is_export(name: object) -> bool:
    return isinstance(name, str) and name.startswith(EXPORT)


def export_of(name: str) -> ServiceTarget:
    """An own entry point, `exports {"entrypoint": "Admin", "props": {}}`: what `ctx.exports.Admin` calls."""
    if len(name) > MAX_PROPS:
        raise InvalidArgument(f"`props` is larger than {MAX_PROPS >> 10} KB")
    try:
        target = msgspec.json.decode(name[len(EXPORT) :], type=OwnExport)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        raise InvalidArgument("the name of an export is malformed") from None
    checked_export(target)
    return ServiceTarget("", target.entrypoint, target.props)


def checked_export(target: OwnExport) -> None:
    if target.entrypoint is not None and not IDENTIFIER.fullmatch(target.entrypoint):
        raise InvalidArgument("the name of an export is malformed")


def passed_target(passes: Passes, tenant: str, name: str) -> ServiceTarget:
    """The entry point of a stub that another worker has sent."""
    kind, content = passes.read(tenant, name)
    if kind == OBJECT:
        raise InvalidArgument("the stub is that of a Durable Object")
    try:
        if kind == SERVICE:
            return msgspec.convert(content, ServiceTarget)
        worker, entrypoint, props = content
        target = msgspec.convert({"entrypoint": entrypoint, "props": props}, OwnExport)
    except msgspec.ValidationError:
        raise InvalidArgument("the stub is malformed") from None
    checked_export(target)
    return ServiceTarget(worker, target.entrypoint, target.props)


def target_of(version: Version, name: object, passes: Passes) -> ServiceTarget:
    """The binding of that name that has a fetch(), an own entry point, or the target of a stub. NotGranted if there is
    none."""
    if isinstance(name, str) and is_export(name):
        return export_of(name)
    if isinstance(name, str) and is_pass(name):
        return passed_target(passes, version.tenant, name)
    grant = version.grants.get(name) if isinstance(name, str) else None
    if grant is not None and grant.kind == "assets":
        return OWN_ASSETS
    if grant is None or grant.kind != "service":
        raise NotGranted("this worker has no service binding of that name")
    return msgspec.json.decode(grant.resource, type=ServiceTarget)


def zone_of(version: Version, base: str) -> bytes:
    """The value of the header cf-worker."""
    return f"{host_label(version.worker_name)}.{base}".encode()


class ServiceWays:
    """The ways through service bindings, made once for each binding of a version."""

    def __init__(self, workers: Workers, base: str) -> None:
        self._workers = workers
        self._base = base
        self._known: dict[tuple[str, str], ServiceWay] = {}

    def find(self, version: Version, name: object, target: ServiceTarget) -> ServiceWay | None:
        """None if each call has to be looked at: it is for no other worker, or for one of several versions."""
        grant = version.grants.get(name) if isinstance(name, str) else None
        if grant is None or grant.kind != "service" or self._workers.is_split(version.tenant, target.service):
            return None
        known = self._known.get((version.id, grant.name))
        if known is None:
            if len(self._known) >= MAX_WAYS:
                self._known.clear()
            _, event = target.line()
            entry, address = (target.entrypoint or "default").encode(), json.dumps(target.address()).encode("ascii")
            known = ServiceWay(grant.name.encode(), entry, address, event != Event.FETCH, zone_of(version, self._base))
            self._known[version.id, grant.name] = known
        return known


def callee_of(workers: Workers, version: Version, target: ServiceTarget) -> Version:
    """The active version of the target of a binding. For assets: the caller, with its files and without its code."""
    if target is OWN_ASSETS:
        if version.assets is None:
            raise InvalidArgument("this version has no assets: deploy it with the folder of its files")
        return replace(version, assets=version.assets.alone())
    if not target.service:
        return version
    found = workers.find_worker(version.tenant, target.service)
    if found is None:
        how = workers.how_to_get(target.service)
        raise InvalidArgument(f"the service `{target.service}` is not there: {how}")
    return found
