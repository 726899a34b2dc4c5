"""rpc: the messages of RPC sessions, and calls of what needs no binding.

rpc.send     messages to the other ends of sessions; the reply is the back-pressure
rpc.receive  the next messages of all sessions of the call
rpc.reach    call a method of an own entry point (ctx.exports), of a facet, or of a stub that another worker has sent
rpc.facet    stop a facet, and delete it
rpc.clone    give a facet a copy of what another one has stored
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atoll.bindings.base import Binding, Later, OpCall, Reply, op
from atoll.bindings.durable_object.facets import is_facet
from atoll.bindings.passes import OBJECT, is_pass
from atoll.bindings.rpc.messages import read_batch
from atoll.bindings.rpc.sessions import RpcEnds
from atoll.bindings.service.target import is_export
from atoll.errors import InvalidArgument

if TYPE_CHECKING:
    from atoll.bindings.durable_object.ops import DurableObjects
    from atoll.bindings.service.ops import Service


class RpcBinding(Binding):
    kind = "rpc"
    keeps_data = False
    ambient = True

    def __init__(self, service: Service, objects: DurableObjects) -> None:
        self._service = service
        self._objects = objects

    @op("rpc.send", free=True, continues=True)
    def send(self, call: OpCall) -> Reply | Later:
        return call.scope.local(RpcEnds).send(read_batch(call.meta, call.body))

    @op("rpc.receive", free=True, continues=True)
    def receive(self, call: OpCall) -> Reply | Later:
        return call.scope.local(RpcEnds).receive()

    @op("rpc.reach")
    def reach(self, call: OpCall) -> Later:
        name = call.meta.get("name")
        if isinstance(name, str) and is_facet(name):
            return self._objects.begin(call, *self._objects.facet(call.scope, name))
        if isinstance(name, str) and is_pass(name):
            passed = self._service.passes.read(call.scope.version.tenant, name)
            if passed.kind == OBJECT:
                return self._objects.begin(call, *self._objects.passed(call.scope.version, passed))
        elif not is_export(name):
            raise InvalidArgument("the name of an entry point is malformed")
        return self._service.begin(call, name)

    @op("rpc.facet")
    async def facet(self, call: OpCall) -> Reply:
        meta = call.meta
        await self._objects.facets.end(call.scope, meta.get("name"), meta.get("reason"), meta.get("deletes") is True)
        return Reply()

    @op("rpc.clone")
    async def clone(self, call: OpCall) -> Reply:
        await self._objects.facets.clone(call.scope, call.meta.get("name"), call.meta.get("to"))
        return Reply()
