"""KV for the rest of Atoll."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atoll.manifests.manifest import MB, BindingQuota, BindingSetting, CommandGroup, Facts, Manifest

if TYPE_CHECKING:
    from atoll.api.admin import AdminTools
    from atoll.api.routes import Route
    from atoll.bindings.base import Binding, Need
    from atoll.bindings.services import Services


def make(services: Services, need: Need) -> Binding:
    from atoll.bindings.kv.ops import KV

    if services.cluster is not None:
        from atoll.bindings.kv.postgres import PostgresKV

        return KV(PostgresKV(services.cluster.postgres))
    from atoll.bindings.kv.sqlite import SqliteKV

    return KV(SqliteKV(services.settings.data / "kv.db"))


def admin(binding: Binding, tools: AdminTools) -> list[Route]:
    from atoll.bindings.kv.admin import KvApi
    from atoll.bindings.kv.ops import KV

    assert isinstance(binding, KV)
    return KvApi(binding.store, tools.audit).routes()


MANIFEST = Manifest(
    kind="kv",
    moved="atoll.bindings.kv.moving",
    make=make,
    cloudflare="atoll.bindings.kv.cloudflare",
    config="atoll.bindings.kv.config",
    type_name="KVNamespace",
    templates={"kv": "a counter of visits in KV"},
    settings={
        "kv_bytes": BindingSetting(
            10_000 * MB, Facts("Maximum size of a tenant's KV data, unless its quota sets another.", low=MB)
        ),
    },
    quotas={
        "kv_keys": BindingQuota("Keys in all its namespaces."),
        "kv_bytes": BindingQuota("Bytes of keys, values and metadata.", setting="kv_bytes"),
    },
    admin=admin,
    commands={
        "kv": CommandGroup(
            "atoll.bindings.kv.cli",
            "Look into KV namespaces, change, fill and empty them.",
            phrases={
                r"\bGET /api/kv lists\b": "`atoll kv namespaces` lists",
                r"\bPOST /api/kv creates\b": "`atoll kv create` creates",
                r"\bGET /api/kv/([^/\s]+)/keys\b": r"`atoll kv keys \1`",
            },
        ),
    },
)
