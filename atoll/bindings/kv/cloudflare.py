"""KV in Cloudflare's API. The id of a namespace is its name, so a config means the same to wrangler and to Atoll."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from atoll.api.cloudflare import CloudflareTools
from atoll.api.routes import Route
from atoll.bindings.kv.cloudflare_routes import CloudflareKv
from atoll.bindings.kv.ops import KV
from atoll.manifests.cloudflare_parts import CloudflarePart, CloudflareType, text_of


def read(binding: Any, tenant: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    return {"namespace": text_of(entry, "namespace_id")}


def shown(binding: Any, tenant: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"namespace_id": fields["namespace"]}


def routes(binding: KV, tools: CloudflareTools) -> list[Route]:
    return CloudflareKv(binding.store, tools).routes()


PART = CloudflarePart(types=(CloudflareType("kv_namespace", read, shown),), routes=routes)
