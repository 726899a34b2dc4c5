"""service: methods of another worker's entry points. Its fetch() is fetch.start with the name of the binding.

Arguments and results pass through as bytes that only engines understand: Python knows whom they are for, and no more.
Streams in them are pipes (bindings/pipe), and while the streams of a result are sent the call of its method goes on.
"""

from __future__ import annotations

import re

import msgspec

from atoll.bindings.base import Binding, OpCall, Reply, op
from atoll.bindings.pipe.ops import PipeBinding
from atoll.bindings.service.target import Target, callee_of, target_of
from atoll.bindings.services import Services
from atoll.errors import CalleeFailed, InvalidArgument
from atoll.wire.generated import ErrorCode

NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
IDENTIFIER = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]{0,254}")
MAX_PROPS = 16 << 10
MAX_ARGUMENTS = 32 << 20


class Service(Binding):
    kind = "service"
    Entry = Target

    def __init__(self, services: Services, pipes: PipeBinding) -> None:
        self._workers = services.workers
        self._inner = services.inner
        self._pipes = pipes

    def claim(self, tenant: str, entry: Target) -> str:
        if not NAME.fullmatch(entry.service):
            raise InvalidArgument(f"`service` is {entry.service[:80]!r}, which is no name of a worker")
        if entry.entrypoint == "default":
            entry.entrypoint = None
        if entry.entrypoint is not None and not IDENTIFIER.fullmatch(entry.entrypoint):
            raise InvalidArgument(f"`entrypoint` is {entry.entrypoint[:80]!r}, which is no name of an export")
        resource = entry.encode()
        if len(resource) > MAX_PROPS:
            raise InvalidArgument(f"`props` is larger than {MAX_PROPS >> 10} KB")
        return resource

    async def exists(self, tenant: str, resource: str) -> bool:
        return self._workers.find_worker(tenant, msgspec.json.decode(resource, type=Target).service) is not None

    @op("service.call")
    async def call(self, call: OpCall) -> Reply:
        method = call.meta.get("method")
        if not isinstance(method, str) or not IDENTIFIER.fullmatch(method):
            raise InvalidArgument("a method has the name of an identifier")
        if len(call.body) > MAX_ARGUMENTS:
            raise InvalidArgument(f"the arguments are larger than {MAX_ARGUMENTS >> 20} MB")
        scope = call.scope
        target = target_of(scope.version, call.grant.name)
        callee = callee_of(self._workers, scope.version, target)
        label = f"RPC {target.entrypoint or 'default'}.{method}"
        inner = self._inner.method(callee, label, {**target.address(), "method": method}, call.body, scope)
        number = scope.keep(inner)  # it ends with this call, if not before
        inner.on_end = lambda: scope.forget(number)
        try:
            return Reply({}, await inner.value())
        except CalleeFailed as failed:
            scope.forget(number)  # it is over; if it never began, before on_end was there
            failure = failed.failure
            if failure.code != ErrorCode.EXCEPTION:
                raise
            # What it threw is thrown again; where it was thrown is nobody else's business.
            return Reply({"thrown": {"name": failure.name, "message": failure.message, **inner.thrown}})
        finally:
            self._pipes.drop_unread(call.meta.get("pipes"))
