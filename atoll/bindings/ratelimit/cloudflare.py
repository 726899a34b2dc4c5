"""Rate limits in Cloudflare's API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from atoll.manifests.cloudflare_parts import CloudflarePart, CloudflareType


def read(binding: Any, tenant: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    simple = entry.get("simple")
    if not isinstance(simple, dict) or "namespace_id" not in entry:
        raise ValueError("`namespace_id` or `simple` is missing")
    return {"namespace": str(entry["namespace_id"]), "limit": simple.get("limit"), "period": simple.get("period")}


def shown(binding: Any, tenant: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"namespace_id": fields["namespace"], "simple": {"limit": fields["limit"], "period": fields["period"]}}


PART = CloudflarePart(types=(CloudflareType("ratelimit", read, shown),))
