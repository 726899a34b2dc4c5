"""`services` of a project's config."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from atoll.manifests.config_fields import REMOTE, ConfigField, Reading


class ConfigService(Struct):
    """An entry of `services`."""

    binding: str
    service: str
    entrypoint: str = ""
    props: dict[str, Any] | None = None
    environment: str = ""


def read(services: list[ConfigService], reading: Reading) -> None:
    for each in services:
        target = f"{each.service}-{each.environment}" if each.environment else each.service
        reading.bind("service", each.binding, service=target, entrypoint=each.entrypoint, props=each.props)


FIELDS = (ConfigField(name="services", shape=list[ConfigService], read=read, subfields={"services[].remote": REMOTE}),)
