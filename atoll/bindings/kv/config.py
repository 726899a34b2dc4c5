"""`kv_namespaces` of a project's config."""

from __future__ import annotations

from msgspec import Struct

from atoll.manifests.config_fields import REMOTE, ConfigField, Reading, Subfield
from atoll.workers import worker_name


class KvNamespace(Struct):
    """An entry of `kv_namespaces`."""

    binding: str
    id: str = ""


def read(namespaces: list[KvNamespace], reading: Reading) -> None:
    for each in namespaces:
        reading.bind("kv", each.binding, namespace=each.id or namespace_of(reading.project, each.binding))


def namespace_of(project: str, binding: str) -> str:
    """What wrangler calls a namespace without an id. `a_b` and `a-b` are two projects: each has its own."""
    return f"{project}-{worker_name(binding)}" if "_" in project else worker_name(f"{project}-{binding}")


FIELDS = (
    ConfigField(
        name="kv_namespaces",
        shape=list[KvNamespace],
        read=read,
        subfields={
            "kv_namespaces[].preview_id": Subfield("`atoll dev` has data of its own"),
            "kv_namespaces[].remote": REMOTE,
        },
    ),
)
