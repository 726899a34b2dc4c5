"""Origins for the rest of Atoll."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atoll.manifests.manifest import Manifest

if TYPE_CHECKING:
    from atoll.bindings.base import Binding, Need
    from atoll.bindings.services import Services


def make(services: Services, need: Need) -> Binding:
    from atoll.bindings.fetch.ops import Fetch
    from atoll.bindings.origin.ops import WorkerOrigin

    fetch = need("fetch")
    assert isinstance(fetch, Fetch)
    return WorkerOrigin(fetch)


MANIFEST = Manifest(kind="origin", make=make, config="atoll.bindings.origin.config", type_name="Fetcher")
