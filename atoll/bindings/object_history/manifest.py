"""The history of Durable Objects for the rest of Atoll."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atoll.manifests.manifest import Manifest

if TYPE_CHECKING:
    from atoll.bindings.base import Binding, Need
    from atoll.bindings.services import Services


def make(services: Services, need: Need) -> Binding:
    from atoll.bindings.object_history.ops import ObjectHistory

    return ObjectHistory(services)


MANIFEST = Manifest(kind="object_history", make=make)
