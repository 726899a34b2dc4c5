"""Hyperdrive in Cloudflare's API. The id of a database is its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from atoll.api.cloudflare import CloudflareTools
from atoll.api.routes import Route
from atoll.bindings.hyperdrive.cloudflare_routes import CloudflareHyperdrive
from atoll.bindings.hyperdrive.ops import Hyperdrive
from atoll.manifests.cloudflare_parts import CloudflarePart, CloudflareType, text_of


def read(binding: Any, tenant: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    return {"database": text_of(entry, "id")}


def shown(binding: Any, tenant: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"id": fields["database"]}


def routes(binding: Hyperdrive, tools: CloudflareTools) -> list[Route]:
    return CloudflareHyperdrive(binding.databases, tools).routes()


PART = CloudflarePart(types=(CloudflareType("hyperdrive", read, shown),), routes=routes)
