"""Static assets for the rest of Atoll."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atoll.manifests.manifest import MB, BindingQuota, BindingSetting, Facts, Manifest

if TYPE_CHECKING:
    from atoll.api.admin import AdminTools
    from atoll.api.routes import Route
    from atoll.bindings.base import Binding, Need
    from atoll.bindings.services import Services


def make(services: Services, need: Need) -> Binding:
    from atoll.bindings.assets.ops import Assets

    return Assets(services)


def admin(binding: Binding, tools: AdminTools) -> list[Route]:
    from atoll.bindings.assets.admin import AssetsApi
    from atoll.bindings.assets.ops import Assets

    assert isinstance(binding, Assets)
    return AssetsApi(binding.store, binding.settings).routes()


MANIFEST = Manifest(
    kind="assets",
    moved="atoll.bindings.assets.moving",
    make=make,
    cloudflare="atoll.bindings.assets.cloudflare",
    config="atoll.bindings.assets.config",
    type_name="Fetcher",
    files="atoll.bindings.assets.cli",
    admin=admin,
    cached_files=(".incoming",),  # of uploads in progress
    settings={
        "asset_bytes": BindingSetting(
            5_000 * MB,
            Facts("Maximum size of the assets of a tenant's active versions, unless its quota sets another.", low=MB),
        ),
        "asset_count": BindingSetting(
            100_000,
            Facts("Maximum number of assets in a tenant's active versions, unless its quota sets another.", low=1),
        ),
        "asset_file_bytes": BindingSetting(25 * MB, Facts("Maximum size of one asset.", low=1, high=1_000 * MB)),
    },
    quotas={
        "asset_bytes": BindingQuota("Bytes of the assets of its active versions.", setting="asset_bytes"),
        "asset_count": BindingQuota("Assets in its active versions.", setting="asset_count"),
    },
)
