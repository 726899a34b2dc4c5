"""The Cache API for the rest of Atoll."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atoll.manifests.manifest import MB, BindingSetting, Facts, Manifest

if TYPE_CHECKING:
    from atoll.api.admin import AdminTools
    from atoll.api.routes import Route
    from atoll.bindings.base import Binding, Need
    from atoll.bindings.services import Services

FOLDER = "cache"  # in the data folder


def make(services: Services, need: Need) -> Binding:
    from atoll.bindings.cache.disk import CacheDisk
    from atoll.bindings.cache.http_cache import HttpCache
    from atoll.bindings.cache.ops import Cache

    settings = services.settings
    disk = CacheDisk(settings.data / FOLDER, settings.value("cache_bytes"))
    return Cache(HttpCache(disk, settings.value("cache_object_bytes")))


def admin(binding: Binding, tools: AdminTools) -> list[Route]:
    from atoll.bindings.cache.admin import CachesApi
    from atoll.bindings.cache.ops import Cache

    assert isinstance(binding, Cache)
    return CachesApi(binding.cache, tools.audit).routes()


MANIFEST = Manifest(
    kind="cache",
    make=make,
    settings={
        "cache_bytes": BindingSetting(
            256 * MB,
            Facts("Maximum size of a tenant's caches; above it the least recently used responses are deleted.", low=MB),
        ),
        "cache_object_bytes": BindingSetting(16 * MB, Facts("Largest response that the Cache API stores.", low=1)),
    },
    admin=admin,
    cached_files=(FOLDER,),
)
