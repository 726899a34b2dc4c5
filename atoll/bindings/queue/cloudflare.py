"""Queues in Cloudflare's API. The id of a queue is its name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from atoll.api.cloudflare import CloudflareTools
from atoll.api.routes import Route
from atoll.bindings.queue.cloudflare_routes import CloudflareQueues
from atoll.bindings.queue.ops import QueueBinding
from atoll.manifests.cloudflare_parts import CloudflarePart, CloudflareType, text_of


def read(binding: Any, tenant: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    delay = entry.get("delivery_delay")
    return {"queue": text_of(entry, "queue_name"), **({"delivery_delay": delay} if delay is not None else {})}


def shown(binding: Any, tenant: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    delay = fields.get("delivery_delay")
    return {"queue_name": fields["queue"], **({"delivery_delay": delay} if delay is not None else {})}


def routes(binding: QueueBinding, tools: CloudflareTools) -> list[Route]:
    return CloudflareQueues(binding, tools).routes()


PART = CloudflarePart(types=(CloudflareType("queue", read, shown),), routes=routes, reference="queues")
