"""`secrets_store_secrets` of a project's config."""

from __future__ import annotations

from msgspec import Struct

from atoll.manifests.config_fields import ConfigField, Reading


class ConfigStoreSecret(Struct):
    binding: str
    store_id: str
    secret_name: str


def read(secrets: list[ConfigStoreSecret], reading: Reading) -> None:
    for each in secrets:
        # `local`: `atoll dev` starts without the secret, as its own stores begin empty.
        reading.bind(
            "secrets_store_secret", each.binding, store=each.store_id, secret=each.secret_name, local=True
        )  # fmt: skip


FIELDS = (ConfigField(name="secrets_store_secrets", shape=list[ConfigStoreSecret], read=read),)
