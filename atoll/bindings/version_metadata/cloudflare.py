"""`version_metadata` in Cloudflare's API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from atoll.bindings.version_metadata.config import KIND
from atoll.manifests.cloudflare_parts import CloudflarePart, CloudflareType


def no_fields(binding: Any, tenant: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    return {}


PART = CloudflarePart(types=(CloudflareType(KIND, no_fields, no_fields),))
