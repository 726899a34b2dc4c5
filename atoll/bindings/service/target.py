"""What a service binding points to, as its grant holds it."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from atoll.bindings.services import Workers
from atoll.errors import InvalidArgument, NotGranted
from atoll.wire.generated import Event
from atoll.workers import Version


class Target(msgspec.Struct, forbid_unknown_fields=True):
    """An entry of `bindings`: a worker of the same tenant, and which of its entry points."""

    service: str
    entrypoint: str | None = None
    props: dict[str, Any] = {}

    def encode(self) -> str:
        return msgspec.json.encode(self).decode()

    def head(self, head: bytes) -> tuple[bytes, int]:
        """The head and event of a call that is to arrive at this entry point. `head` is that of a fetch."""
        address, event = self.line()
        first, _, rest = head.partition(b"\n")
        return b"".join((first, b"\n", address, rest)), event

    def line(self) -> tuple[bytes, int]:
        """What tells an engine which entry point is meant, as the second line of a head; and the event."""
        if self.entrypoint is None and not self.props:
            return b"", int(Event.FETCH)
        return json.dumps(self.address()).encode("ascii") + b"\n", int(Event.ENTRYPOINT)

    def address(self) -> dict[str, Any]:
        return {"entrypoint": self.entrypoint, "props": self.props}


def target_of(version: Version, name: object) -> Target:
    """The service binding of that name. NotGranted if there is none."""
    grant = version.grants.get(name) if isinstance(name, str) else None
    if grant is None or grant.kind != "service":
        raise NotGranted("this worker has no service binding of that name")
    return msgspec.json.decode(grant.resource, type=Target)


def callee_of(workers: Workers, version: Version, target: Target) -> Version:
    """The active version of what a binding points to."""
    found = workers.find_worker(version.tenant, target.service)
    if found is None:
        raise InvalidArgument(f"the service `{target.service}` is not there: deploy a worker of that name")
    return found
