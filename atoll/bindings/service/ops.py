"""service: methods of another worker's entry points. Its fetch() is fetch.start with the name of the binding.

Arguments and results are bytes that only engines understand; Python knows only their target. Streams in them are pipes
(bindings/pipe). A method call lasts until the streams in its result are sent and the stubs in it are disposed:
meanwhile its session (bindings/rpc) carries calls of those stubs.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from atoll.bindings.base import Binding, Later, OpCall, op
from atoll.bindings.passes import is_pass
from atoll.bindings.pipe.ops import PipeBinding
from atoll.bindings.rpc.messages import MAX_NAME, MAX_PATH, MAX_VALUE
from atoll.bindings.rpc.sessions import RpcEnds
from atoll.bindings.service.method import MethodAnswer
from atoll.bindings.service.target import (
    IDENTIFIER,
    MAX_PROPS,
    ServiceTarget,
    ServiceWays,
    callee_of,
    is_export,
    target_of,
)
from atoll.bindings.services import InnerRequest, Services
from atoll.errors import InvalidArgument
from atoll.nesting import MAX_LEVELS, is_too_deep
from atoll.wire.generated import Event
from atoll.workers import WORKER_NAME, Grant, Version

NOT_PLAIN = re.compile(r"[^ -~]")
MAX_ARGUMENTS = MAX_VALUE
MAX_REMEMBERED = 1_024
RPC = int(Event.RPC)


class Service(Binding):
    kind = "service"
    keeps_data = False
    Entry = ServiceTarget

    def __init__(self, services: Services, pipes: PipeBinding) -> None:
        self._workers = services.workers
        self._inner = services.inner
        self.passes = services.passes
        self._pipes = pipes
        self._ways = ServiceWays(services.workers, services.settings.base_domain)
        self._addressed: dict[tuple[str, str, str], tuple[ServiceTarget, bytes]] = {}  # by version, binding and method

    def claim(self, tenant: str, entry: ServiceTarget) -> str:
        if not WORKER_NAME.fullmatch(entry.service):
            raise InvalidArgument(f"`service` is {entry.service[:80]!r}, which is not a valid worker name")
        if entry.entrypoint == "default":
            entry.entrypoint = None
        if entry.entrypoint is not None and not IDENTIFIER.fullmatch(entry.entrypoint):
            raise InvalidArgument(f"`entrypoint` is {entry.entrypoint[:80]!r}, which is not a valid export name")
        if is_too_deep(entry.props):
            raise InvalidArgument(f"`props` is nested more than {MAX_LEVELS} levels deep")
        resource = entry.encode()
        if len(resource) > MAX_PROPS:
            raise InvalidArgument(f"`props` is larger than {MAX_PROPS >> 10} KB")
        return resource

    def facts(self, version: Version, grant: Grant) -> Mapping[str, Any]:
        """The pass with which the binding is sent to other workers."""
        return {"pass": self.passes.of_service(version.tenant, grant.resource)}

    async def exists(self, tenant: str, resource: str) -> bool:
        return self._workers.find_worker(tenant, msgspec.json.decode(resource, type=ServiceTarget).service) is not None

    @op("service.call")
    def call(self, call: OpCall) -> Later:
        return self.begin(call, call.grant.name)

    def begin(self, call: OpCall, name: object) -> Later:
        """Call a method behind a service binding, of an own export, or of a stub that was received (target.py)."""
        if len(call.body) > MAX_ARGUMENTS:
            raise InvalidArgument(f"the arguments are larger than {MAX_ARGUMENTS >> 20} MB")
        scope, meta = call.scope, call.meta
        target, head = self._address(scope.version, name, meta.get("method"), meta.get("path"))
        callee = callee_of(self._workers, scope.version, target)
        way = self._ways.find(scope.version, name, target)
        session = scope.local(RpcEnds).open(meta.get("session"), is_used=meta.get("caps") is True)
        try:
            inner = self._inner.method(
                InnerRequest(callee, head, call.body, True, scope.hops, RPC, scope, None, session, way)
            )
        except BaseException:
            session.end()
            raise
        answer = MethodAnswer(inner, self._pipes, meta.get("pipes"), session)
        answer.begin(scope)
        return answer

    def _address(self, version: Version, name: object, method: object, path: object) -> tuple[ServiceTarget, bytes]:
        """The target of a method call, and its head: the same for all calls of the method."""
        if not isinstance(method, str) or not 0 < len(method) <= MAX_NAME or not isinstance(name, str):
            raise InvalidArgument("the name of a method is malformed")
        key = version.id, name, method
        found = self._addressed.get(key) if path is None else None
        if found is not None:
            return found
        target = target_of(version, name, self.passes)
        address = {**target.address(), "method": method}
        if path is not None:
            address["path"] = checked_path(path)
        label = NOT_PLAIN.sub("?", f"RPC {target.entrypoint or 'default'}.{method}")
        head = f"{label}\n{json.dumps(address)}".encode("ascii")
        if path is None and not is_export(name) and not is_pass(name):
            if len(self._addressed) >= MAX_REMEMBERED:
                self._addressed.clear()
            self._addressed[key] = target, head
        return target, head


def checked_path(path: object) -> list[str]:
    """The names after the first one: `env.API.first.second.third()`."""
    if not isinstance(path, list) or not all(isinstance(name, str) and len(name) <= MAX_NAME for name in path):
        raise InvalidArgument("an RPC path is malformed")
    if 0 < len(path) < MAX_PATH:
        return path
    raise InvalidArgument(f"an RPC path has more than {MAX_PATH} names")
