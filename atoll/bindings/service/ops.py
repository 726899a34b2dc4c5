"""service: methods of another worker's entry points. Its fetch() is fetch.start with the name of the binding.

Arguments and results are bytes that only engines understand; Python knows only their target. Streams in them are pipes
(bindings/pipe). A method call lasts until the streams in its result are sent.
"""

from __future__ import annotations

import json
import re

import msgspec

from atoll.bindings.base import Binding, Later, OpCall, op
from atoll.bindings.pipe.ops import PipeBinding
from atoll.bindings.service.method import MethodAnswer
from atoll.bindings.service.target import ServiceTarget, callee_of, target_of
from atoll.bindings.services import InnerRequest, Services
from atoll.errors import InvalidArgument
from atoll.wire.generated import Event
from atoll.workers import WORKER_NAME, Version

IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]{0,254}")
MAX_PROPS = 16 << 10
MAX_ARGUMENTS = 32 << 20
MAX_REMEMBERED = 1_024
RPC = int(Event.RPC)


class Service(Binding):
    kind = "service"
    Entry = ServiceTarget

    def __init__(self, services: Services, pipes: PipeBinding) -> None:
        self._workers = services.workers
        self._inner = services.inner
        self._pipes = pipes
        self._addressed: dict[tuple[str, str, str], tuple[ServiceTarget, bytes]] = {}  # by version, binding and method

    def claim(self, tenant: str, entry: ServiceTarget) -> str:
        if not WORKER_NAME.fullmatch(entry.service):
            raise InvalidArgument(f"`service` is {entry.service[:80]!r}, which is not a valid worker name")
        if entry.entrypoint == "default":
            entry.entrypoint = None
        if entry.entrypoint is not None and not IDENTIFIER.fullmatch(entry.entrypoint):
            raise InvalidArgument(f"`entrypoint` is {entry.entrypoint[:80]!r}, which is not a valid export name")
        resource = entry.encode()
        if len(resource) > MAX_PROPS:
            raise InvalidArgument(f"`props` is larger than {MAX_PROPS >> 10} KB")
        return resource

    async def exists(self, tenant: str, resource: str) -> bool:
        return self._workers.find_worker(tenant, msgspec.json.decode(resource, type=ServiceTarget).service) is not None

    @op("service.call")
    def call(self, call: OpCall) -> Later:
        if len(call.body) > MAX_ARGUMENTS:
            raise InvalidArgument(f"the arguments are larger than {MAX_ARGUMENTS >> 20} MB")
        scope = call.scope
        target, head = self._address(scope.version, call.grant.name, call.meta.get("method"))
        callee = callee_of(self._workers, scope.version, target)
        inner = self._inner.method(InnerRequest(callee, head, call.body, True, scope.hops, RPC, scope))
        answer = MethodAnswer(inner, self._pipes, call.meta.get("pipes"))
        answer.begin(scope)
        return answer

    def _address(self, version: Version, binding: str, method: object) -> tuple[ServiceTarget, bytes]:
        """The target of a method call, and its head: the same for all calls of the method."""
        if not isinstance(method, str):
            raise InvalidArgument("the name of a method must be an identifier")
        found = self._addressed.get((version.id, binding, method))
        if found is not None:
            return found
        if not IDENTIFIER.fullmatch(method):
            raise InvalidArgument("the name of a method must be an identifier")
        target = target_of(version, binding)
        label = f"RPC {target.entrypoint or 'default'}.{method}"
        head = f"{label}\n{json.dumps({**target.address(), 'method': method})}".encode("ascii")
        if len(self._addressed) >= MAX_REMEMBERED:
            self._addressed.clear()
        self._addressed[version.id, binding, method] = target, head
        return target, head
