"""Version metadata: env.NAME is { id, tag, timestamp } of the running version.

It has no op and no JavaScript: its value goes to the engine with the variables.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from atoll.manifests.manifest import Manifest

if TYPE_CHECKING:
    from atoll.bindings.base import Binding, Need
    from atoll.bindings.services import Services
    from atoll.workers import Json, Version

KIND = "version_metadata"


def make(services: Services, need: Need) -> Binding:
    from atoll.bindings.base import Binding

    class VersionMetadata(Binding):
        kind = KIND

    return VersionMetadata()


def value(version: Version) -> Json:
    import datetime

    made = datetime.datetime.fromtimestamp(version.created_at / 1000, datetime.UTC)
    timestamp = made.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {"id": version.id, "tag": version.tag, "timestamp": timestamp}


MANIFEST = Manifest(
    kind=KIND,
    make=make,
    cloudflare="atoll.bindings.version_metadata.cloudflare",
    value=value,
    config="atoll.bindings.version_metadata.config",
    type_name="WorkerVersionMetadata",
)
