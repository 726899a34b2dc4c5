"""Echo for the rest of Atoll. atoll/manifests/manifest.py lists all fields of a manifest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atoll.manifests.manifest import Manifest

if TYPE_CHECKING:
    from atoll.bindings.base import Binding, Need
    from atoll.bindings.services import Services


def make(services: Services, need: Need) -> Binding:
    from atoll.bindings.echo.ops import Echo

    return Echo()


MANIFEST = Manifest(kind="echo", make=make)
