"""Service bindings in Cloudflare's API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from atoll.api.callers import Scope
from atoll.api.cloudflare import ACCOUNT, CloudflareTools, envelope
from atoll.api.routes import Route, caller_of
from atoll.manifests.cloudflare_parts import CloudflarePart, CloudflareType, text_of

FIELDS = ("entrypoint", "props")


def read(binding: Any, tenant: str, entry: Mapping[str, Any]) -> dict[str, Any]:
    service, environment = text_of(entry, "service"), entry.get("environment")
    if isinstance(environment, str) and environment not in ("", "production"):
        service = f"{service}-{environment}"
    return {"service": service, **{name: entry[name] for name in FIELDS if entry.get(name)}}


def shown(binding: Any, tenant: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    return {"service": fields["service"], **{name: fields[name] for name in FIELDS if fields.get(name)}}


class ReferencesApi:
    def __init__(self, tools: CloudflareTools) -> None:
        self._tools = tools

    def routes(self) -> list[Route]:
        path = f"{ACCOUNT}/workers/scripts/{{script}}/references"
        return [Route("GET", path, self.show, Scope.READ, "The workers with a service binding to a worker")]

    async def show(self, request: Request) -> Response:
        """wrangler asks before it deletes a worker."""
        caller, name = caller_of(request), request.path_params["script"]
        name = self._tools.find(name, caller).name
        incoming = [
            {"service": each.name, "environment": "production", "name": grant.name}
            for each in self._tools.workers_of(caller.tenant)
            for grant in each.version.grants.values()
            if grant.kind == "service" and grant.fields.get("service") == name and each.name != name
        ]
        services = {"incoming": incoming, "outgoing": [], "pages_function": False}
        return envelope({"services": services, "durable_objects": [], "dispatch_outbounds": []})


def routes(binding: Any, tools: CloudflareTools) -> list[Route]:
    return ReferencesApi(tools).routes()


PART = CloudflarePart(types=(CloudflareType("service", read, shown),), routes=routes)
