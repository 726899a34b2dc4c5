"""R2 in Cloudflare's API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from atoll.api.cloudflare import CloudflareTools
from atoll.api.routes import Route
from atoll.bindings.r2.cloudflare_routes import CloudflareR2
from atoll.bindings.r2.ops import R2
from atoll.manifests.cloudflare_parts import CloudflarePart, CloudflareType, text_of


def read(binding: Any, tenant: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    return {"bucket": text_of(entry, "bucket_name")}


def shown(binding: Any, tenant: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"bucket_name": fields["bucket"]}


def routes(binding: R2, tools: CloudflareTools) -> list[Route]:
    return CloudflareR2(binding.store, tools).routes()


PART = CloudflarePart(types=(CloudflareType("r2_bucket", read, shown),), routes=routes)
