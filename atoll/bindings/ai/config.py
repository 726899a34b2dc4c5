"""`ai` of a project's config."""

from __future__ import annotations

from msgspec import Struct

from atoll.manifests.config_fields import REMOTE, ConfigField, FindingLevel, Reading, Subfield


class ConfigAi(Struct):
    binding: str


def read(ai: ConfigAi, reading: Reading) -> None:
    reading.bind("ai", ai.binding)


STAGING = Subfield("there is one AI server", level=FindingLevel.NOTE, inert=False)
FIELDS = (ConfigField(name="ai", shape=ConfigAi, read=read, subfields={"ai.remote": REMOTE, "ai.staging": STAGING}),)
