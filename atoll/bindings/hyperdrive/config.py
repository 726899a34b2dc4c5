"""`hyperdrive` of a project's config."""

from __future__ import annotations

from msgspec import Struct

from atoll.bindings.hyperdrive.connection_string import NO_LOCAL
from atoll.manifests.config_fields import REMOTE, ConfigField, Reading


class ConfigHyperdrive(Struct):
    binding: str
    id: str = ""
    localConnectionString: str = ""


def read(databases: list[ConfigHyperdrive], reading: Reading) -> None:
    for each in databases:
        # The id is the name of the database on the node: the ids of Cloudflare mean nothing here, but may be names.
        local = each.localConnectionString or NO_LOCAL
        reading.bind("hyperdrive", each.binding, database=each.id or each.binding, local=local)


FIELDS = (
    ConfigField(name="hyperdrive", shape=list[ConfigHyperdrive], read=read, subfields={"hyperdrive[].remote": REMOTE}),
)
