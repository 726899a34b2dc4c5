"""D1 in Cloudflare's API. A database is found by its UUID or its name; a deploy creates one that is missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from atoll.api.cloudflare import CloudflareTools
from atoll.api.routes import Route
from atoll.bindings.d1.cloudflare_routes import CloudflareD1
from atoll.bindings.d1.ops import D1
from atoll.manifests.cloudflare_parts import CloudflarePart, CloudflareType, text_of


def read(binding: D1, tenant: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    wanted = text_of(entry, "database_id" if "database_id" in entry else "id")
    found = binding.databases.find(tenant, wanted)
    return {"database": found.name if found is not None else wanted}


def shown(binding: D1, tenant: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    found = binding.databases.named(tenant, fields["database"])
    uuid = found.id if found is not None else fields["database"]
    return {"id": uuid, "database_id": uuid}


def routes(binding: D1, tools: CloudflareTools) -> list[Route]:
    return CloudflareD1(binding, tools).routes()


PART = CloudflarePart(types=(CloudflareType("d1", read, shown),), routes=routes)
