"""fetch() for the rest of Atoll."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atoll.manifests.manifest import Manifest

if TYPE_CHECKING:
    from atoll.bindings.base import Binding, Need
    from atoll.bindings.services import Services


def make(services: Services, need: Need) -> Binding:
    from atoll.bindings.cache.ops import Cache
    from atoll.bindings.durable_object.ops import DurableObjects
    from atoll.bindings.fetch.ops import Fetch

    cache, objects = need("cache"), need("durable_object")
    assert isinstance(cache, Cache) and isinstance(objects, DurableObjects)
    return Fetch(services, cache.cache, objects)


MANIFEST = Manifest(kind="fetch", make=make, preloads=("atoll.bindings.fetch.upgrade",))
