"""`version_metadata` of a project's config."""

from __future__ import annotations

from msgspec import Struct

from atoll.manifests.config_fields import ConfigField, Reading

KIND = "version_metadata"


class ConfigVersionMetadata(Struct):
    binding: str


def read(entry: ConfigVersionMetadata, reading: Reading) -> None:
    reading.bind(KIND, entry.binding)


FIELDS = (ConfigField(name=KIND, shape=ConfigVersionMetadata, read=read),)
