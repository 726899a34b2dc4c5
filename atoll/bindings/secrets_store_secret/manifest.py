"""Secrets stores for the rest of Atoll."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atoll.manifests.manifest import CommandGroup, Manifest

if TYPE_CHECKING:
    from atoll.api.admin import AdminTools
    from atoll.api.routes import Route
    from atoll.bindings.base import Binding, Need
    from atoll.bindings.services import Services


def make(services: Services, need: Need) -> Binding:
    from atoll.bindings.secrets_store_secret.ops import SecretsStoreSecret

    return SecretsStoreSecret(services)


def admin(binding: Binding, tools: AdminTools) -> list[Route]:
    from atoll.bindings.secrets_store_secret.admin import SecretsStoresApi
    from atoll.bindings.secrets_store_secret.ops import SecretsStoreSecret

    assert isinstance(binding, SecretsStoreSecret)
    return SecretsStoresApi(binding.stores, tools.audit).routes()


MANIFEST = Manifest(
    kind="secrets_store_secret",
    shared_file="secrets_stores",
    make=make,
    config="atoll.bindings.secrets_store_secret.config",
    type_name="SecretsStoreSecret",
    admin=admin,
    commands={
        "secrets-store": CommandGroup(
            "atoll.bindings.secrets_store_secret.cli",
            "Keep secrets that several workers share.",
            phrases={
                r"\bGET /api/secrets-stores lists\b": "`atoll secrets-store store list` lists",
                r"\bGET /api/secrets-stores/(\S+)/secrets lists\b": r"`atoll secrets-store secret list \1` lists",
            },
        ),
    },
)
