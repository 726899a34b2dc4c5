"""`analytics_engine_datasets` of a project's config."""

from __future__ import annotations

from msgspec import Struct

from atoll.manifests.config_fields import REMOTE, ConfigField, Reading


class ConfigDataset(Struct):
    binding: str
    dataset: str = ""


def read(datasets: list[ConfigDataset], reading: Reading) -> None:
    for each in datasets:
        reading.bind("analytics_engine", each.binding, dataset=each.dataset or each.binding)


FIELDS = (
    ConfigField(
        name="analytics_engine_datasets",
        shape=list[ConfigDataset],
        read=read,
        subfields={"analytics_engine_datasets[].remote": REMOTE},
    ),
)
