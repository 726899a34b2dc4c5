"""Routes and custom domains one by one, as Terraform and the SDKs manage them. Each belongs to a worker's version."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.callers import Scope
from atoll.api.cloudflare import ACCOUNT, V4, CloudflareRefusal, envelope, paged, read_v4
from atoll.api.routes import Route, caller_of
from atoll.control.cloudflare.changes import Changes
from atoll.control.cloudflare.hosts import domain_of, route_of, with_path
from atoll.control.cloudflare.ids import hashed
from atoll.control.cloudflare.labels import Labels
from atoll.control.deploy.deployer import Deployer
from atoll.control.store.workers import Deployment

NO_ROUTE, ROUTE_TAKEN, NO_DOMAIN = 10022, 10020, 100117
SEARCHED_AT_ONCE = 200  # routes or domains whose ids are computed, before other tasks get a turn
ZONES = "zones"  # the label of a worker with the zones of its domains, as they were sent


class SentRoute(Struct):
    pattern: str
    script: str = ""


class SentDomain(Struct):
    hostname: str
    service: str
    zone_id: str = ""
    zone_name: str = ""
    environment: str = "production"


class HostsOfAccount:
    def __init__(self, deployer: Deployer, changes: Changes, labels: Labels) -> None:
        self._deployer = deployer
        self._changes = changes
        self._labels = labels

    def routes(self) -> list[Route]:
        read, deploy = Scope.READ, Scope.DEPLOY
        many, one = f"{V4}/zones/{{zone}}/workers/routes", f"{V4}/zones/{{zone}}/workers/routes/{{route}}"
        domains, domain = f"{ACCOUNT}/workers/domains", f"{ACCOUNT}/workers/domains/{{domain}}"
        return [
            Route("GET", many, self.list, read, "The routes of an account"),
            Route("POST", many, self.add, deploy, "Route a pattern to a worker"),
            Route("GET", one, self.show, read, "One route"),
            Route("PUT", one, self.change, deploy, "Change a route"),
            Route("DELETE", one, self.remove, deploy, "Remove a route"),
            Route("GET", domains, self.domains, read, "The custom domains of an account"),
            Route("PUT", domains, self.add_domain, deploy, "Give a worker a custom domain"),
            Route("GET", domain, self.domain, read, "One custom domain"),
            Route("DELETE", domain, self.remove_domain, deploy, "Remove a custom domain"),
        ]

    def _all(self, request: Request, *, domains: bool) -> list[tuple[str, Deployment]]:
        workers = self._deployer.all(caller_of(request).tenant)
        return [(text, each) for each in workers for text in each.routes if ("/" not in text) is domains]

    async def _found(self, request: Request) -> tuple[str, Deployment]:
        wanted = request.path_params["route"]
        for number, (pattern, worker) in enumerate(self._all(request, domains=False)):
            if route_of(pattern, worker.name)["id"] == wanted:
                return pattern, worker
            if number % SEARCHED_AT_ONCE == SEARCHED_AT_ONCE - 1:  # a tenant may have thousands
                await asyncio.sleep(0)
        raise CloudflareRefusal(404, NO_ROUTE, f"there is no route {wanted[:80]!r} in this account")

    # Routes

    async def list(self, request: Request) -> Response:
        return await paged(request, self._all(request, domains=False), lambda found: route_of(found[0], found[1].name))

    async def show(self, request: Request) -> Response:
        pattern, worker = await self._found(request)
        return envelope(route_of(pattern, worker.name))

    async def add(self, request: Request) -> Response:
        wanted = await read_v4(request, SentRoute)
        pattern = with_path(wanted.pattern)
        if any(text == pattern for text, _ in self._all(request, domains=False)):
            raise CloudflareRefusal(409, ROUTE_TAKEN, f"the route {pattern[:200]!r} exists already")
        return await self._put(request, pattern, wanted.script, "")

    async def change(self, request: Request) -> Response:
        (before, worker), wanted = await self._found(request), await read_v4(request, SentRoute)
        script = wanted.script or worker.name
        if script != worker.name:
            await self._without(request, worker, before)
            before = ""
        return await self._put(request, with_path(wanted.pattern), script, before)

    async def remove(self, request: Request) -> Response:
        pattern, worker = await self._found(request)
        await self._without(request, worker, pattern)
        return envelope({"id": request.path_params["route"]})

    async def _put(self, request: Request, pattern: str, script: str, before: str) -> Response:
        if not script:
            raise CloudflareRefusal(400, 10026, "`script` is missing: a route without a worker does nothing here")

        def added(present: Sequence[str]) -> Sequence[str]:
            return [*(text for text in present if text not in (pattern, before)), pattern]

        found = await self._changes.make(caller_of(request), script, {"routes": added})
        return envelope(route_of(pattern, found.name))

    async def _without(self, request: Request, worker: Deployment, pattern: str) -> None:
        def without(present: Sequence[str]) -> Sequence[str]:
            return [text for text in present if text != pattern]

        await self._changes.make(caller_of(request), worker.name, {"routes": without})

    # Custom domains

    def _shown(self, host: str, worker: Deployment) -> dict[str, Any]:
        zones: dict[str, dict[str, Any]] = self._labels.of(worker).get(ZONES) or {}
        usual = {"zone_id": hashed(f"zone {host}"), "zone_name": host}
        cert = {"cert_id": hashed(f"certificate {host}"), "enabled": True, "previews_enabled": False}
        return domain_of(host, worker.name) | cert | usual | zones.get(host, {})

    async def _found_domain(self, request: Request) -> tuple[str, Deployment]:
        wanted = request.path_params["domain"]
        for number, (host, worker) in enumerate(self._all(request, domains=True)):
            if domain_of(host, worker.name)["id"] == wanted:
                return host, worker
            if number % SEARCHED_AT_ONCE == SEARCHED_AT_ONCE - 1:
                await asyncio.sleep(0)
        raise CloudflareRefusal(404, NO_DOMAIN, f"there is no custom domain {wanted[:80]!r} in this account")

    async def domains(self, request: Request) -> Response:
        asked = request.query_params
        found = [
            (host, worker)
            for host, worker in self._all(request, domains=True)
            if asked.get("hostname", host) == host and asked.get("service", worker.name) == worker.name
        ]
        return await paged(request, found, lambda each: self._shown(*each))

    async def domain(self, request: Request) -> Response:
        return envelope(self._shown(*await self._found_domain(request)))

    async def add_domain(self, request: Request) -> Response:
        wanted, caller = await read_v4(request, SentDomain), caller_of(request)
        host = wanted.hostname.lower()
        for text, worker in self._all(request, domains=True):
            if text == host and worker.name != wanted.service:
                await self._without(request, worker, host)

        def added(present: Sequence[str]) -> Sequence[str]:
            return present if host in present else [*present, host]

        found = await self._changes.make(caller, wanted.service, {"routes": added})
        sent = {"zone_id": wanted.zone_id, "zone_name": wanted.zone_name}
        labels = self._labels.of(found)
        zones = {**(labels.get(ZONES) or {}), host: {name: value for name, value in sent.items() if value}}
        kept = {name: zone for name, zone in zones.items() if name in found.routes}
        await self._labels.put(found, {**labels, ZONES: kept})
        return envelope(self._shown(host, found))

    async def remove_domain(self, request: Request) -> Response:
        host, worker = await self._found_domain(request)
        await self._without(request, worker, host)
        return envelope(None)
