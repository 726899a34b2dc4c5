"""The version metadata binding: env.NAME is { id, tag, timestamp } of the version that runs.

It asks nothing of the world, so that it has no op and no JavaScript: its value goes to the engine with the variables.
"""

from __future__ import annotations

import datetime

from atoll.bindings.base import Binding
from atoll.workers import Json, Version


class VersionMetadata(Binding):
    kind = "version_metadata"


def values_of(version: Version) -> dict[str, Json]:
    """What the bindings of a version are that are plain values, by name."""
    names = [grant.name for grant in version.grants.values() if grant.kind == VersionMetadata.kind]
    if not names:
        return {}
    made = datetime.datetime.fromtimestamp(version.created_at / 1000, datetime.UTC)
    timestamp = made.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return {name: {"id": version.id, "tag": version.tag, "timestamp": timestamp} for name in names}
