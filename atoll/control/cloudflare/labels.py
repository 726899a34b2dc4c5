"""Fields that Cloudflare's tools send and Atoll has no meaning for. They come back as they were sent: Terraform plans
again after each change, and a field that differs would be a change without end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from atoll.api.refusals import bad_body
from atoll.control.store.workers import Deployment, WorkerStore
from atoll.nesting import MAX_LEVELS, is_too_deep

MAX_LABELS = 64 << 10
OF_WORKER = ("logpush", "tags", "observability", "subdomain", "previews_base_config")
LOGS: dict[str, Any] = {
    "enabled": True, "head_sampling_rate": 1, "persist": True, "destinations": [],
}  # fmt: skip
OBSERVABILITY: dict[str, Any] = {
    "enabled": True,
    "head_sampling_rate": 1,
    "redact_query_string": False,
    "issues": {"enabled": False},
    "logs": {**LOGS, "invocation_logs": True},
    "traces": {**LOGS, "enabled": False, "propagation_policy": "authenticated"},
}


class Labels:
    def __init__(self, store: WorkerStore) -> None:
        self._store = store

    def of(self, worker: Deployment, version_id: str = "") -> dict[str, Any]:
        text = self._store.labels(worker.id, version_id)
        found: dict[str, Any] = msgspec.json.decode(text) if text else {}
        return found

    @staticmethod
    def refuse_deep(labels: Mapping[str, Any]) -> None:
        """Before anything is changed."""
        if is_too_deep(labels):
            raise bad_body(f"the body is nested more than {MAX_LEVELS} levels deep")

    async def put(self, worker: Deployment, labels: Mapping[str, Any], version_id: str = "") -> None:
        await self._store.set_labels(worker.id, version_id, msgspec.json.encode(labels).decode())


def merged(usual: Mapping[str, Any], given: Any) -> dict[str, Any]:
    """Given fields on top of the usual ones, in nested objects too."""
    found = dict(usual)
    for name, value in (given if isinstance(given, dict) else {}).items():
        before = found.get(name)
        found[name] = merged(before, value) if isinstance(before, dict) and isinstance(value, dict) else value
    return found
