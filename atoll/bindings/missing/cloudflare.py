"""Types of bindings that Atoll does not have, in uploads of Cloudflare's tools: each becomes a stand-in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from atoll.manifests.cloudflare_parts import OTHER_TYPES, CloudflarePart, CloudflareType

MAX_TYPE = 80


def read(binding: Any, tenant: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    return {"field": entry["type"][:MAX_TYPE]}


def shown(binding: Any, tenant: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": fields.get("field") or OTHER_TYPES}


PART = CloudflarePart(types=(CloudflareType(OTHER_TYPES, read, shown),))
