"""Makes one binding of each kind, for the life of a node."""

from __future__ import annotations

from collections.abc import Sequence

from atoll.bindings.base import Binding
from atoll.bindings.services import Services
from atoll.manifests.every import manifests


def make_bindings(services: Services, host: Sequence[Binding] = ()) -> dict[str, Binding]:
    """All bindings by kind. `host` has those of the program that embeds the node."""
    made: dict[str, Binding] = {}

    def need(kind: str) -> Binding:
        if kind not in made:
            made[kind] = manifests()[kind].make(services, need)
        return made[kind]

    for kind in manifests():
        need(kind)
    return made | {binding.kind: binding for binding in host}
