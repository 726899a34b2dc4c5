"""The stand-in for bindings that Atoll does not have, for the rest of Atoll."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from atoll.manifests.manifest import Manifest

if TYPE_CHECKING:
    from atoll.bindings.base import Binding, Need
    from atoll.bindings.services import Services


def make(services: Services, need: Need) -> Binding:
    from atoll.bindings.missing.ops import Missing

    return Missing()


def stand_in(name: str, field: str) -> dict[str, Any]:
    return {"type": "missing", "name": name, "field": field}


MANIFEST = Manifest(kind="missing", make=make, stand_in=stand_in, cloudflare="atoll.bindings.missing.cloudflare")
