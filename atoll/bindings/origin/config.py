"""`origin` of a project's config: Atoll's own field."""

from __future__ import annotations

from msgspec import Struct

from atoll.manifests.config_fields import ConfigField, Reading


class ConfigOrigin(Struct):
    url: str
    binding: str = "ORIGIN"


def read(origin: ConfigOrigin, reading: Reading) -> None:
    reading.bind("origin", origin.binding, url=origin.url)


FIELDS = (ConfigField(name="origin", shape=ConfigOrigin, read=read, inherited=True),)
