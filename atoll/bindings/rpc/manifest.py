"""RPC sessions for the rest of Atoll."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atoll.manifests.manifest import Manifest

if TYPE_CHECKING:
    from atoll.bindings.base import Binding, Need
    from atoll.bindings.services import Services


def make(services: Services, need: Need) -> Binding:
    from atoll.bindings.durable_object.ops import DurableObjects
    from atoll.bindings.rpc.ops import RpcBinding
    from atoll.bindings.service.ops import Service

    service, objects = need("service"), need("durable_object")
    assert isinstance(service, Service) and isinstance(objects, DurableObjects)
    return RpcBinding(service, objects)


MANIFEST = Manifest(kind="rpc", make=make)
