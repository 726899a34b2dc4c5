"""`tail_consumers` in Cloudflare's API."""

from __future__ import annotations

from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.callers import Scope
from atoll.api.cloudflare import ACCOUNT, CloudflareTools, envelope
from atoll.api.refusals import bad_body
from atoll.api.routes import Route, caller_of
from atoll.bindings.tail.config import ConfigTail
from atoll.manifests.cloudflare_parts import CloudflarePart, Uploading
from atoll.workers import Version

FIELD = "tail_consumers"


def metadata(binding: Any, upload: Uploading) -> dict[str, Any]:
    sent = upload.metadata
    if FIELD not in sent:
        return {}
    try:
        wanted = msgspec.convert(sent[FIELD] or [], list[ConfigTail])
    except msgspec.ValidationError as error:
        raise bad_body(f"`{FIELD}` does not fit: {error}") from None
    names = [f"{each.service}-{each.environment}" if each.environment else each.service for each in wanted]
    return {FIELD: [{"service": name} for name in names]}


def facts(version: Version) -> dict[str, Any]:
    return {FIELD: [{"service": each.service} for each in version.triggers.get(FIELD, ())]}


class TailsApi:
    def __init__(self, tools: CloudflareTools) -> None:
        self._tools = tools

    def routes(self) -> list[Route]:
        path = f"{ACCOUNT}/workers/tails/by-consumer/{{script}}"
        return [Route("GET", path, self.list, Scope.READ, "The workers whose calls a worker receives records of")]

    async def list(self, request: Request) -> Response:
        consumer = request.path_params["script"]
        found = [
            {"producer": {"service": each.name, "environment": "production"}, "consumer": {"service": consumer}}
            for each in self._tools.workers_of(caller_of(request).tenant)
            if any(entry.service == consumer for entry in each.version.triggers.get(FIELD, ()))
        ]
        return envelope(found)


def routes(binding: Any, tools: CloudflareTools) -> list[Route]:
    return TailsApi(tools).routes()


PART = CloudflarePart(metadata=metadata, facts=facts, routes=routes, of_worker=FIELD)
