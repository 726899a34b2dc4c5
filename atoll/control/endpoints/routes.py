"""The routes of all workers, and which of them answers a URL."""

from __future__ import annotations

from collections.abc import AsyncIterator
from urllib.parse import quote, urlsplit

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.callers import Scope
from atoll.api.paging import bad_cursor, name_page_of, name_query, page_answer
from atoll.api.refusals import bad_body
from atoll.api.routes import Query, Route, caller_of, json_answer
from atoll.control.deploy.deployer import Deployer
from atoll.control.store.version_rows import Deployment
from atoll.workers import host_label

MAX_URL = 4_000


class RouteAnswer(msgspec.Struct):
    pattern: str
    worker: str
    kind: str  # "name": the worker's own host; "custom_domain": a whole host; "route": host and path


class RoutesAnswer(msgspec.Struct, omit_defaults=True):
    routes: list[RouteAnswer]
    cursor: str = ""


class MatchAnswer(msgspec.Struct):
    """Who answers a URL. The same answer whether another tenant's worker does, or none."""

    worker: str | None
    version: int | None
    pattern: str  # the longest pattern of the worker that fits; "" for its own host
    reason: str


class RoutesApi:
    def __init__(self, deployer: Deployer, base_domain: str) -> None:
        self._deployer = deployer
        self._base = base_domain

    def routes(self) -> list[Route]:
        summary = "Routes, by worker"
        url = Query("url", "An address with its scheme", {"type": "string", "maxLength": MAX_URL})
        return [
            Route("GET", "/api/routes", self.list, Scope.READ, summary, gives=RoutesAnswer, query=name_query()),
            Route(
                "GET",
                "/api/routes/match",
                self.match,
                Scope.READ,
                "Which worker answers a URL",
                gives=MatchAnswer,
                query=(url,),
            ),
        ]

    async def list(self, request: Request) -> Response:
        cursor, limit = name_page_of(request)
        name, _, count = cursor.partition("/")  # a worker, and how many of its routes were listed
        if cursor and not (count.isascii() and count.isdigit() and len(count) < 10):
            raise bad_cursor(cursor)
        tenant = caller_of(request).tenant
        return await page_answer("routes", self._listed(tenant, name, int(count or 0)), limit)

    async def match(self, request: Request) -> Response:
        host, target = _checked_url(request.query_params.get("url", ""))
        version = self._deployer.answering(host, target)
        if version is None or version.tenant != caller_of(request).tenant:
            if self._deployer.is_control(host):
                return json_answer(MatchAnswer(None, None, "", "The control API answers on this host."))
            return json_answer(MatchAnswer(None, None, "", "No route of this tenant fits the host and path."))
        deployment = self._deployer.live.get(version.worker_id)
        patterns = deployment.routes if deployment is not None else ()
        pattern = max((each for each in patterns if _fits(each, host, target)), key=len, default="")
        number = deployment.number if deployment is not None and deployment.version.id == version.id else None
        reason = "The most exact host wins, then the longest path." if pattern else "It is the address of the worker."
        if number is None:
            reason += " Its traffic is split, or the address is a preview's."
        return json_answer(MatchAnswer(version.worker_name, number, pattern, reason))

    async def _listed(self, tenant: str, begun: str, told: int) -> AsyncIterator[tuple[str, RouteAnswer]]:
        first = self._deployer.named(begun)
        if first is not None and first.version.tenant == tenant:
            for number in range(told, len(first.routes) + 1):
                yield self._shown(first, number)
        for deployment in self._deployer.after(tenant, begun):
            for number in range(len(deployment.routes) + 1):
                yield self._shown(deployment, number)

    def _shown(self, deployment: Deployment, number: int) -> tuple[str, RouteAnswer]:
        """The worker's own host is its route number 0."""
        name = deployment.name
        text = deployment.routes[number - 1] if number else f"{host_label(name)}.{self._base}/*"
        kind = "name" if not number else "route" if "/" in text else "custom_domain"
        return f"{name}/{number + 1}", RouteAnswer(text, name, kind)


def _checked_url(url: str) -> tuple[bytes, bytes]:
    """Host and target of a URL, as a client would send them."""
    try:
        parts = urlsplit(url)
        host = parts.netloc.rpartition("@")[2].encode("idna" if not parts.netloc.isascii() else "ascii")
        is_web = parts.scheme in ("http", "https") and bool(host) and len(url) <= MAX_URL
        _ = parts.port
    except (ValueError, UnicodeError):
        is_web = False
    if not is_web:
        raise bad_body(f"`url` is {url[:80]!r}", "use an address such as https://shop.example/cart")
    target = quote(parts.path or "/", safe="/%:@!$&'()*+,;=~-._") + (f"?{parts.query}" if parts.query else "")
    return host, target.encode("utf-8", "replace")


def _fits(pattern: str, host: bytes, target: bytes) -> bool:
    """Whether a pattern fits. It only names the one that the router has followed."""
    name = host.decode("latin-1").lower().partition(":")[0]
    shape, slash, path = pattern.partition("/")
    whole = slash + path
    by_host = name.endswith(shape[1:]) if shape.startswith("*") else name == shape.lower()
    by_path = not slash or (target.startswith(whole[:-1].encode()) if whole.endswith("*") else target == whole.encode())
    return by_host and by_path
