"""Routes and custom domains of a worker. A route has a path, a custom domain is a whole host."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.callers import Scope
from atoll.api.cloudflare import envelope, read_v4
from atoll.api.refusals import refuse_many
from atoll.api.routes import Route, caller_of
from atoll.control.checks.body import MAX_ROUTES
from atoll.control.cloudflare.changes import Changes
from atoll.control.cloudflare.ids import hashed
from atoll.control.cloudflare.scripts import SCRIPT
from atoll.control.deploy.deployer import Deployer


class WantedRoute(Struct):
    pattern: str


class WantedOrigin(Struct):
    hostname: str


class WantedOrigins(Struct):
    origins: list[WantedOrigin] = []


class HostsOfScripts:
    def __init__(self, deployer: Deployer, changes: Changes) -> None:
        self._deployer = deployer
        self._changes = changes

    def routes(self) -> list[Route]:
        read, deploy = Scope.READ, Scope.DEPLOY
        return [
            Route("GET", f"{SCRIPT}/routes", self.list, read, "The routes of a worker"),
            Route("PUT", f"{SCRIPT}/routes", self.put, deploy, "Replace the routes of a worker"),
            Route("PUT", f"{SCRIPT}/domains/records", self.put_domains, deploy, "Replace its custom domains"),
            Route("POST", f"{SCRIPT}/domains/changeset", self.changeset, deploy, "What custom domains would change"),
        ]

    async def list(self, request: Request) -> Response:
        found = self._deployer.find(request.path_params["script"], caller_of(request))
        return envelope([route_of(text, found.name) for text in found.routes if "/" in text])

    async def put(self, request: Request) -> Response:
        wanted = await read_v4(request, list[WantedRoute | str])
        refuse_many("routes", wanted, MAX_ROUTES)
        patterns = [with_path(each if isinstance(each, str) else each.pattern) for each in wanted]
        script, caller = request.path_params["script"], caller_of(request)

        def added(present: Sequence[str]) -> Sequence[str]:
            return [*(text for text in present if "/" not in text), *patterns]

        found = await self._changes.make(caller, script, {"routes": added})
        return envelope([route_of(text, found.name) for text in found.routes if "/" in text])

    async def put_domains(self, request: Request) -> Response:
        wanted = (await read_v4(request, WantedOrigins)).origins
        refuse_many("origins", wanted, MAX_ROUTES)
        script, caller = request.path_params["script"], caller_of(request)
        hosts = [each.hostname for each in wanted]

        def added(present: Sequence[str]) -> Sequence[str]:
            return [*(text for text in present if "/" in text), *hosts]

        found = await self._changes.make(caller, script, {"routes": added})
        return envelope([domain_of(text, found.name) for text in found.routes if "/" not in text])

    async def changeset(self, request: Request) -> Response:
        wanted = [each.hostname for each in await read_v4(request, list[WantedOrigin])]
        found = self._deployer.find(request.path_params["script"], caller_of(request))
        present = [text for text in found.routes if "/" not in text]
        added = [domain_of(text, found.name) for text in wanted if text not in present]
        removed = [domain_of(text, found.name) for text in present if text not in wanted]
        updated = [{**domain_of(text, found.name), "modified": False} for text in wanted if text in present]
        return envelope({"added": added, "removed": removed, "updated": updated, "conflicting": []})


def with_path(pattern: str) -> str:
    """A route in Cloudflare's sense: without a path it matches the root alone."""
    bare = pattern.removeprefix("https://").removeprefix("http://")
    return bare if "/" in bare else f"{bare}/"


def route_of(pattern: str, script: str) -> dict[str, Any]:
    return {"id": hashed(f"route {pattern}"), "pattern": pattern, "script": script}


def domain_of(host: str, script: str) -> dict[str, Any]:
    return {"id": hashed(f"domain {host}"), "hostname": host, "service": script, "environment": "production"}
