"""The history of Durable Objects for the rest of Atoll."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atoll.manifests.manifest import MB, BindingSetting, Facts, Manifest

if TYPE_CHECKING:
    from atoll.bindings.base import Binding, Need
    from atoll.bindings.services import Services


def make(services: Services, need: Need) -> Binding:
    from atoll.bindings.object_history.ops import ObjectHistory

    return ObjectHistory(services)


MANIFEST = Manifest(
    kind="object_history",
    make=make,
    settings={
        "object_history_days": BindingSetting(
            30.0,
            Facts(
                "Days for which Durable Objects and D1 databases can go back in time; 0 keeps no history.", high=3650
            ),
        ),
        "object_history_bytes": BindingSetting(
            256 * MB, Facts("Maximum size of the history of one object; the oldest part goes first.", low=MB)
        ),
        "object_history_node_bytes": BindingSetting(
            10_000 * MB, Facts("Maximum size of the history of all objects of this node.", low=MB)
        ),
    },
)
