"""`triggers.crons` of a project's config."""

from __future__ import annotations

from msgspec import Struct

from atoll.manifests.config_fields import ConfigField, FieldVerdict, Reading, Subfield


class ConfigTriggers(Struct):
    crons: list[str] | None = None


def read(triggers: ConfigTriggers, reading: Reading) -> None:
    for cron in triggers.crons or ():
        reading.trigger("crons", cron)


FIELDS = (
    ConfigField(
        name="triggers",
        shape=ConfigTriggers,
        read=read,
        inherited=True,
        subfields={"triggers.events": Subfield("there are no events of Artifacts", FieldVerdict.MISSING)},
    ),
)
