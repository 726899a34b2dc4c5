"""Versions in the newer API: uploaded as one JSON object with the modules in base64, and shown as they were sent."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.callers import Scope
from atoll.api.cloudflare import envelope
from atoll.api.routes import Route, caller_of
from atoll.clock import iso_time
from atoll.control.cloudflare import views
from atoll.control.cloudflare.beta import NO_VERSION, find_worker, of_workers
from atoll.control.cloudflare.drafts import BindingTypes, deploy_body
from atoll.control.cloudflare.forms import read_json_upload
from atoll.control.cloudflare.ids import hashed, version_id, version_uuid
from atoll.control.cloudflare.labels import Labels
from atoll.control.cloudflare.scripts import WORKER
from atoll.control.cloudflare.versions import VersionsOfScripts
from atoll.control.deploy.deployer import Deployer
from atoll.control.store.workers import Deployment, WorkerStore
from atoll.offload.threads import in_thread
from atoll.workers import ModuleKind

# Contents of an entry of `bindings` that are stored with the version, or must not be stored in the open
CONTENTS = ("text", "json", "key_base64", "key_jwk")
# Fields that are shown if they were sent
GIVEN = (
    "compatibility_date",
    "main_module",
    "migrations",
    "placement",
    "containers",
    "exports",
    "package_dependencies",
)
MEDIA = {
    ModuleKind.ESM: "application/javascript+module",
    ModuleKind.JSON: "application/json",
    ModuleKind.TEXT: "text/plain",
    ModuleKind.DATA: "application/octet-stream",
    ModuleKind.WASM: "application/wasm",
}


class VersionLabels(Struct, omit_defaults=True):
    given: dict[str, Any] = {}  # fields of GIVEN, annotations, limits and others, as sent
    bindings: list[dict[str, Any]] = []  # as sent, without their contents
    modules: list[tuple[str, str]] = []  # name and type, in the order in which they were sent


class BetaVersions:
    def __init__(
        self,
        deployer: Deployer,
        store: WorkerStore,
        types: BindingTypes,
        labels: Labels,
        older: VersionsOfScripts,
        max_body: int,
    ) -> None:
        self._deployer = deployer
        self._store = store
        self._types = types
        self._labels = labels
        self._older = older
        self._max_body = max_body

    def routes(self) -> list[Route]:
        many = f"{WORKER}/versions"
        return [
            Route("GET", many, self.list, Scope.READ, "Versions, newest first"),
            Route("POST", many, self.create, Scope.DEPLOY, "Upload a version; with ?deploy=true it gets all traffic"),
            Route("GET", f"{many}/{{version}}", self.show, Scope.READ, "One version"),
        ]

    async def list(self, request: Request) -> Response:
        worker = find_worker(self._deployer, request)
        shown, info = self._older.page_of(request, worker)
        return envelope([views.listed_version(row) for row in shown if row.tag != NO_VERSION], info=info)

    async def create(self, request: Request) -> Response:
        worker, caller = find_worker(self._deployer, request), caller_of(request)
        form, modules = await read_json_upload(request, 2 * self._max_body)
        metadata = form.metadata
        self._labels.refuse_deep(metadata)
        for field in of_workers():
            present = [{"service": each.service} for each in worker.version.triggers.get(field, ())]
            metadata.setdefault(field, present)
        body = deploy_body(form, caller.tenant, worker.name, worker, self._types)
        if request.query_params.get("deploy") == "true":
            stored = await self._deployer.update(worker.name, body, caller)
        else:
            stored = await self._deployer.upload(worker.name, body, caller)
        given = {name: value for name, value in metadata.items() if name not in ("bindings", *of_workers())}
        labels = VersionLabels(given, [_bare(each) for each in metadata.get("bindings") or []], modules)
        await self._labels.put(worker, msgspec.to_builtins(labels), stored.version.id)
        return envelope(self._shown(worker, stored))

    async def show(self, request: Request) -> Response:
        worker, wanted = find_worker(self._deployer, request), request.path_params["version"]
        wanted = self._store.versions(worker.id, limit=1)[0].id if wanted == "latest" else version_id(wanted)
        has_code = request.query_params.get("include") == "modules"
        found = await self._deployer.version(worker, wanted, has_code=has_code)
        shown = self._shown(worker, found)
        if not has_code:
            return envelope(shown)
        return await in_thread(_with_modules, shown, found, self._labels.of(worker, wanted).get("modules", []))

    def _shown(self, worker: Deployment, found: Deployment) -> dict[str, Any]:
        version, text = found.version, self._labels.of(worker, found.version.id)
        labels = msgspec.convert(text, VersionLabels)
        host = self._deployer.previews.host(worker, version.id, version.preview_urls)
        facts = {"compatibility_date": version.compatibility_date}
        fields = labels.given if text else facts
        given = {name: fields[name] for name in GIVEN if name in fields}
        limits = {"cpu_ms": version.limits.cpu_ms} | (labels.given.get("limits") or {})
        notes = {name: note for name, note in (labels.given.get("annotations") or {}).items() if note is not None}
        return views.facts(version) | given | {
            "id": version_uuid(version.id),
            "number": found.number,
            "created_on": iso_time(version.created_at),
            "author_id": hashed(found.author),
            "author_email": found.author,
            "source": views.SOURCE,
            "annotations": views.notes(found.message, version.tag) | notes | {"workers/triggered_by": "upload"},
            "urls": [f"https://{host}"] if host else [],
            "startup_time_ms": round(found.startup_ms),
            "compatibility_flags": labels.given.get("compatibility_flags") or list(version.compatibility_flags),
            "usage_model": labels.given.get("usage_model") or "standard",
            "cache_options": labels.given.get("cache_options") or {"enabled": False},
            "limits": limits,
            "bindings": self._bindings(found, labels, bool(text)),
        }  # fmt: skip

    def _bindings(self, found: Deployment, labels: VersionLabels, is_known: bool) -> Sequence[dict[str, Any]]:
        """In the order in which they were sent, each with what was sent of it."""
        shown = {each["name"]: each for each in self._types.shown(found.version)}
        return [{**shown.get(each["name"], {}), **each} for each in labels.bindings] if is_known else [*shown.values()]


def _bare(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in entry.items() if name not in CONTENTS}


def _with_modules(shown: dict[str, Any], found: Deployment, order: list[tuple[str, str]]) -> Response:
    """In a thread: the modules may be megabytes."""
    stored = {module.path: module for module in found.version.modules}
    known = [(name, kind) for name, kind in order if name.removeprefix("./") in stored]
    names = known or [(path, MEDIA[module.kind]) for path, module in stored.items()]
    shown["modules"] = [
        {
            "name": name,
            "content_type": kind,
            "content_base64": base64.b64encode(stored[name.removeprefix("./")].source).decode(),
        }
        for name, kind in names
    ]
    return envelope(shown)
