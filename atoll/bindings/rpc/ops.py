"""rpc: the messages of RPC sessions, and calls of a worker's own entry points.

rpc.send     messages to the other ends of sessions; the reply is the back-pressure
rpc.receive  the next messages of all sessions of the call
rpc.export   call a method of the worker's own entry point (ctx.exports)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atoll.bindings.base import Binding, Later, OpCall, Reply, op
from atoll.bindings.rpc.messages import read_batch
from atoll.bindings.rpc.sessions import RpcEnds

if TYPE_CHECKING:
    from atoll.bindings.service.ops import Service


class RpcBinding(Binding):
    kind = "rpc"
    ambient = True

    def __init__(self, service: Service) -> None:
        self._service = service

    @op("rpc.send", free=True, continues=True)
    def send(self, call: OpCall) -> Reply | Later:
        return call.scope.local(RpcEnds).send(read_batch(call.meta, call.body))

    @op("rpc.receive", free=True, continues=True)
    def receive(self, call: OpCall) -> Reply | Later:
        return call.scope.local(RpcEnds).receive()

    @op("rpc.export")
    def export(self, call: OpCall) -> Later:
        return self._service.begin(call, call.meta.get("export"))
