"""Workflows in Cloudflare's API. A deploy declares those that its bindings name without another script."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from atoll.api.cloudflare import CloudflareTools
from atoll.api.refusals import bad_body
from atoll.api.routes import Route
from atoll.bindings.workflow.cloudflare_routes import CloudflareWorkflows
from atoll.bindings.workflow.ops import Workflows
from atoll.manifests.cloudflare_parts import CloudflarePart, CloudflareType, Uploading, text_of


def read(binding: Any, tenant: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    script = entry.get("script_name") or ""
    return {"workflow": text_of(entry, "workflow_name"), **({"script_name": script} if script else {})}


def shown(binding: Workflows, tenant: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    found = binding.index.named(tenant, fields["workflow"])
    script = fields.get("script_name")
    shown = {"workflow_name": fields["workflow"], "class_name": found.class_name if found is not None else ""}
    return shown | ({"script_name": script} if script else {})


def metadata(binding: Any, upload: Uploading) -> dict[str, Any]:
    """The workflows that the worker has: what is known of each stays, such as its bounds."""
    bindings = upload.metadata.get("bindings")
    if not isinstance(bindings, list):
        return {}
    known = {each.name: each for each in upload.current.triggers.get("workflows", ())} if upload.current else {}
    found: dict[str, Any] = {}
    for entry in bindings:
        if not isinstance(entry, dict) or entry.get("type") != "workflow":
            continue
        name, class_name = entry.get("workflow_name"), entry.get("class_name")
        if entry.get("script_name") not in (None, "", upload.script):
            continue
        if not isinstance(name, str) or not isinstance(class_name, str):
            raise bad_body("a binding to a workflow has no `workflow_name` or no `class_name`")
        before = known.get(name)
        bounds = ("steps", "success_retention", "error_retention") if before is not None else ()
        kept = {field: getattr(before, field) for field in bounds if getattr(before, field) is not None}
        found[name] = {"name": name, "class_name": class_name, **kept}
    return {"workflows": list(found.values())} if found else {}


def routes(binding: Workflows, tools: CloudflareTools) -> list[Route]:
    return CloudflareWorkflows(binding, tools).routes()


PART = CloudflarePart(types=(CloudflareType("workflow", read, shown),), metadata=metadata, routes=routes)
