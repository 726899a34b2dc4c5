"""Durable Objects in Cloudflare's API. An upload has only the steps that are new, and the tags around them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.callers import Scope
from atoll.api.cloudflare import ACCOUNT, CloudflareRefusal, CloudflareTools, paged
from atoll.api.refusals import bad_body
from atoll.api.routes import Route, caller_of
from atoll.bindings.durable_object.config import EXPORT_FIELDS
from atoll.bindings.durable_object.entries import Migration
from atoll.bindings.durable_object.namespaces import ObjectNamespace
from atoll.bindings.durable_object.ops import DurableObjects
from atoll.manifests.cloudflare_parts import CloudflarePart, CloudflareType, Uploading, text_of
from atoll.workers import Version

STEP_FIELDS = ("new_classes", "new_sqlite_classes", "renamed_classes", "deleted_classes", "transferred_classes")


class SentMigrations(msgspec.Struct):
    """`migrations` of an upload: several steps, or the fields of one."""

    old_tag: str | None = None
    new_tag: str | None = None
    steps: list[dict[str, Any]] | None = None


def read(binding: Any, tenant: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    script, environment = entry.get("script_name") or "", entry.get("environment")
    if script and isinstance(environment, str) and environment not in ("", "production"):
        script = f"{script}-{environment}"
    return {"class_name": text_of(entry, "class_name"), **({"script_name": script} if script else {})}


def shown(binding: Any, tenant: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    script = fields.get("script_name")
    return {"class_name": fields["class_name"], **({"script_name": script} if script else {})}


def facts(version: Version) -> dict[str, Any]:
    tag = last_tag(version.triggers.get("migrations", ()))
    return {"migration_tag": tag} if tag else {}


def last_tag(entries: Sequence[Migration]) -> str:
    return entries[-1].tag if entries else ""


def metadata(binding: Any, upload: Uploading) -> dict[str, Any]:
    sent, current = upload.metadata, upload.current
    exports = sent.get("exports")
    if isinstance(exports, dict) and exports:
        return _exports(exports)
    if not sent.get("migrations"):
        return {}
    before: Sequence[Migration] = current.triggers.get("migrations", ()) if current is not None else ()
    try:
        wanted = msgspec.convert(sent["migrations"], SentMigrations)
        steps = wanted.steps if wanted.steps is not None else [sent["migrations"]]
        if (wanted.old_tag or "") != last_tag(before) and wanted.old_tag is not None:
            text = f"the migrations begin after {wanted.old_tag[:80]!r}, but {last_tag(before)!r} was applied last"
            raise CloudflareRefusal(412, 10079, text)
        added = []
        for number, step in enumerate(steps, 1):
            fields = {name: step[name] for name in STEP_FIELDS if step.get(name)}
            tag = (wanted.new_tag or "") if number == len(steps) else f"{wanted.new_tag} step {number}"
            added.append(msgspec.convert({"tag": tag, **fields}, Migration))
    except msgspec.ValidationError as error:
        raise bad_body(f"`migrations` does not fit: {error}") from None
    return {"migrations": [*before, *added]}


def _exports(exports: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, each in exports.items():
        if not isinstance(each, dict):
            raise bad_body(f"`exports.{name[:80]}` is not an object")
        if each.get("type") == "durable-object":
            found[name] = {field: each[field] for field in EXPORT_FIELDS if each.get(field) is not None}
    return {"migrations": [{"exports": found}]} if found else {}


class ObjectNamespacesApi:
    def __init__(self, binding: DurableObjects) -> None:
        self._binding = binding

    def routes(self) -> list[Route]:
        path = f"{ACCOUNT}/workers/durable_objects/namespaces"
        return [Route("GET", path, self.list, Scope.READ, "The classes of Durable Objects of an account")]

    async def list(self, request: Request) -> Response:
        found = self._binding.namespaces.of_tenant(caller_of(request).tenant)
        return await paged(request, found, _shown)


def _shown(each: ObjectNamespace) -> dict[str, Any]:
    return {
        "id": each.id,
        "name": f"{each.worker}_{each.class_name}",
        "script": each.worker,
        "class": each.class_name,
        "use_sqlite": each.is_sql,
    }


def routes(binding: DurableObjects, tools: CloudflareTools) -> list[Route]:
    return ObjectNamespacesApi(binding).routes()


TYPES = (CloudflareType("durable_object_namespace", read, shown),)
PART = CloudflarePart(types=TYPES, metadata=metadata, facts=facts, routes=routes, reference="durable_objects")
