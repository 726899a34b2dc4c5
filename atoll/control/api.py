"""The control API: routes and JSON shapes. What a request means is decided in deploy.py.

It is open to whoever reaches a control host, so it must be safe from a page in the browser of someone who does: a body
has to be declared as JSON (no form can), an Origin has to be this very host (no other page's is), and no answer
carries a CORS header. One boundary, `_answer`, turns whatever goes wrong into an error of the API.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from atoll import __version__
from atoll.config import Settings
from atoll.control.bindings import shown_bindings
from atoll.control.check import parse_body
from atoll.control.deploy import Deployer
from atoll.control.logs_api import LogsApi
from atoll.control.page import front_page
from atoll.control.refusals import API_ERRORS, ApiCode, Refused
from atoll.control.workers import Deployment
from atoll.engine.pool import PoolStats
from atoll.errors import Failure
from atoll.observe.records import iso_time
from atoll.observe.store import LogStore
from atoll.workers import Json, Limits, Switches

log = logging.getLogger("atoll.control")

HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
PAGE_HEADERS = HEADERS | {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
}

Endpoint = Callable[[Request], Awaitable[Response]]


class VersionAnswer(msgspec.Struct):
    id: str
    number: int
    created_at: str
    startup_time_ms: float


class WorkerAnswer(msgspec.Struct):
    id: str
    name: str
    url: str
    routes: tuple[str, ...]
    env: Mapping[str, Json]
    bindings: list[dict[str, Json]]
    limits: Limits
    isolation: str
    switches: Switches
    compatibility_date: str
    handlers: tuple[str, ...]
    version: VersionAnswer
    created_at: str
    updated_at: str


class ErrorAnswer(msgspec.Struct, omit_defaults=True):
    """`file` to `stack` are there when a script is at fault and the place is known."""

    code: int
    type: str
    message: str
    hint: str = ""
    file: str = ""
    line: int = 0
    column: int = 0
    stack: str = ""


class ControlApi:
    """Call `app` with what is sent to a control host."""

    def __init__(
        self,
        settings: Settings,
        deployer: Deployer,
        logs: LogStore,
        *,
        is_control: Callable[[bytes], bool],
        stats: Callable[[], PoolStats],
        port: Callable[[], int],
    ) -> None:
        self._settings = settings
        self._deployer = deployer
        self._is_control = is_control
        self._stats = stats
        self._port = port
        self._max_body = settings.script_bytes * 2 + (1 << 20)  # base64 and JSON's escapes make a script longer
        logs_api = LogsApi(deployer.find, logs)
        self.app = Starlette(
            routes=[
                self._route("/", self._front_page, "GET"),
                self._route("/health", self._health, "GET"),
                self._route("/admin/pool", self._pool, "GET"),
                self._route("/api/workers", self._workers, "GET", "POST"),
                self._route("/api/workers/{worker}", self._worker, "GET", "PUT", "DELETE"),
                self._route("/api/workers/{worker}/logs", logs_api.page, "GET"),
                self._route("/api/workers/{worker}/logs/live", logs_api.live, "GET"),
            ],
            exception_handlers={HTTPException: _no_route},
        )
        self.app.router.redirect_slashes = False

    def url_of(self, name: str) -> str:
        number = self._port()  # asked for late: it may be one the system chose
        port = "" if number == 80 else f":{number}"
        return f"http://{name}.{self._settings.base_domain}{port}/"

    def _route(self, path: str, endpoint: Endpoint, *methods: str) -> Route:
        async def answer(request: Request) -> Response:
            return await self._answer(endpoint, request)

        return Route(path, answer, methods=methods)

    async def _answer(self, endpoint: Endpoint, request: Request) -> Response:
        """The error boundary: a client learns what it did wrong, or that we did, and never how."""
        try:
            self._refuse_strangers(request)
            return await endpoint(request)
        except Refused as refused:
            return refusal(refused)
        except ClientDisconnect:
            return Response(status_code=400)  # nobody reads it
        except Exception:
            log.exception("%s %s failed", request.method, request.url.path)
            return refusal(Refused(ApiCode.INTERNAL, "internal error", "the node's own log has the details"))

    def _refuse_strangers(self, request: Request) -> None:
        host = request.headers.get("host", "")
        if not self._is_control(host.encode("latin-1")):  # a name that someone made point here: DNS rebinding
            raise Refused(
                ApiCode.FORBIDDEN_ORIGIN,
                "this is not a control host",
                "use localhost or a name from the setting control_hosts",
            )
        origin = request.headers.get("origin")
        if origin is not None and origin.lower() not in (f"http://{host.lower()}", f"https://{host.lower()}"):
            raise Refused(
                ApiCode.FORBIDDEN_ORIGIN, "requests from pages of other sites are refused", "use curl or a server"
            )

    # Endpoints

    async def _front_page(self, request: Request) -> Response:
        workers = [(deployment.name, self.url_of(deployment.name)) for deployment in self._deployer.all()]
        page = front_page(workers, f"http://{request.headers['host']}", __version__)
        return Response(page, media_type="text/html", headers=PAGE_HEADERS)

    async def _health(self, request: Request) -> Response:
        engines = self._stats().engines
        answer = {"status": "ok" if engines else "no engine", "engines": engines, "version": __version__}
        return _json(answer, status=200 if engines else 503)

    async def _pool(self, request: Request) -> Response:
        stats, total = self._stats(), self._settings.max_loaded
        return _json(
            {
                "total": total,
                "cached": stats.loaded,
                "capacity": max(total - stats.loaded, 0),
                "hit_rate": round(stats.hit_rate, 4),
                "engines": stats.engines,
                "in_flight": stats.in_flight,
                "queued": stats.queued,
                "evictions": stats.evictions,
            }
        )

    async def _workers(self, request: Request) -> Response:
        if request.method != "POST":
            return _json({"workers": [self._shown(deployment) for deployment in self._deployer.all()]})
        deployment = await self._deployer.create(parse_body(await self._body(request)))
        location = {"location": f"/api/workers/{deployment.id}"}
        return _json(self._shown(deployment), status=201, headers=location)

    async def _worker(self, request: Request) -> Response:
        worker = request.path_params["worker"]
        if request.method == "PUT":
            body = await self._body(request)
            return _json(self._shown(await self._deployer.update(worker, parse_body(body))))
        if request.method == "DELETE":
            await self._deployer.delete(worker)
            return Response(status_code=204, headers=HEADERS)
        return _json(self._shown(self._deployer.find(worker)))

    async def _body(self, request: Request) -> bytes:
        media_type = request.headers.get("content-type", "").split(";")[0].strip().lower()
        if media_type != "application/json":
            raise Refused(
                ApiCode.MEDIA_TYPE,
                f"the body is declared as {media_type[:80] or 'nothing'}",
                "send the header Content-Type: application/json",
            )
        chunks, size = [], 0
        async for chunk in request.stream():
            size += len(chunk)
            if size > self._max_body:
                raise Refused(
                    ApiCode.TOO_LARGE,
                    f"the body is larger than {self._max_body:,} bytes",
                    "see the setting script_bytes",
                )
            chunks.append(chunk)
        return b"".join(chunks)

    def _shown(self, deployment: Deployment) -> WorkerAnswer:
        version, deployed_at = deployment.version, iso_time(deployment.deployed_at)
        return WorkerAnswer(
            id=deployment.id,
            name=deployment.name,
            url=self.url_of(deployment.name),
            routes=deployment.routes,
            env=version.env,
            bindings=shown_bindings(version.grants),
            limits=version.limits,
            isolation=version.isolation.value,
            switches=version.switches,
            compatibility_date=version.compatibility_date,
            handlers=deployment.handlers,
            version=VersionAnswer(version.id, deployment.number, deployed_at, round(deployment.startup_ms, 3)),
            created_at=iso_time(deployment.created_at),
            updated_at=deployed_at,
        )


def refusal(refused: Refused) -> Response:
    facts = API_ERRORS[refused.reason]
    error = ErrorAnswer(int(refused.reason), facts.type, str(refused), refused.hint)
    return _json({"error": _placed(error, refused.failure)}, status=facts.status)


def _placed(error: ErrorAnswer, failure: Failure | None) -> ErrorAnswer:
    if failure is None:
        return error
    place = {"file": failure.file, "line": failure.line, "column": failure.column, "stack": failure.stack}
    return msgspec.structs.replace(error, **place)


def _json(answer: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    content = msgspec.json.encode(answer)
    return Response(content, status, headers={**HEADERS, **(headers or {})}, media_type="application/json")


async def _no_route(request: Request, error: Exception) -> Response:
    """Starlette found no endpoint: the path does not exist, or not for this method."""
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "")
        response = refusal(
            Refused(ApiCode.METHOD, f"{request.url.path} does not take {request.method}", f"it takes {allowed}")
        )
        response.headers["allow"] = allowed
        return response
    return refusal(
        Refused(ApiCode.NOT_FOUND, f"there is nothing at {request.url.path[:200]}", "see docs/reference/api.md")
    )
