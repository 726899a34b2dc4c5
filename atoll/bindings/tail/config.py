"""`tail_consumers` of a project's config."""

from __future__ import annotations

from msgspec import Struct

from atoll.manifests.config_fields import ConfigField, Reading


class ConfigTail(Struct):
    service: str
    environment: str = ""


def read(tails: list[ConfigTail], reading: Reading) -> None:
    for tail in tails:
        service = f"{tail.service}-{tail.environment}" if tail.environment else tail.service
        reading.trigger("tail_consumers", {"service": service})


FIELDS = (ConfigField(name="tail_consumers", shape=list[ConfigTail], read=read),)
