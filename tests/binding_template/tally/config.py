"""`tallies` of a project's config."""

from __future__ import annotations

from msgspec import Struct

from atoll.manifests.config_fields import ConfigField, Reading


class ConfigTally(Struct):
    binding: str
    tally: str


def read(tallies: list[ConfigTally], reading: Reading) -> None:
    for each in tallies:
        reading.bind("tally", each.binding, tally=each.tally)


FIELDS = (ConfigField(name="tallies", shape=list[ConfigTally], read=read),)
