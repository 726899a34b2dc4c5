"""Tail workers for the rest of Atoll. They have no entry in `env`: a deploy names them in `tail_consumers`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atoll.manifests.manifest import Manifest

if TYPE_CHECKING:
    from atoll.bindings.base import Binding, Need
    from atoll.bindings.services import Services


def make(services: Services, need: Need) -> Binding:
    from atoll.bindings.tail.delivery import TailTriggers
    from atoll.bindings.tail.ops import TailBinding

    return TailBinding(TailTriggers(services.events, services.workers.find_worker))


MANIFEST = Manifest(
    kind="tail",
    make=make,
    cloudflare="atoll.bindings.tail.cloudflare",
    config="atoll.bindings.tail.config",
    trigger="atoll.bindings.tail.entries",
)
