"""What every endpoint of the control API has around it: who may ask, how a body is read, how an error is told.

An endpoint is declared as a Route: one method of one path, what it asks of its caller, the shapes it takes and gives.
The list of them is all there is: the application, its OpenAPI document and the tests of isolation are made from it.

    class Things:
        def routes(self) -> list[Route]:
            return [Route("GET", "/api/things", self.list, Scope.READ, "The things of a tenant", gives=ThingsAnswer)]

        async def list(self, request: Request) -> Response:
            return json_answer(ThingsAnswer(self._store.things(caller_of(request).tenant)))

The API must be safe from a page in the browser of someone who may ask: a body has to be declared as what no form can
send, an Origin has to be this very host, and no answer carries a CORS header.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import unquote_to_bytes

import msgspec
from starlette import routing
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from atoll.control.callers import NOBODY, Caller, Scope
from atoll.control.refusals import API_ERRORS, ApiCode, Refused, binding_refusal
from atoll.errors import BindingRefused, Failure, StorageFailed

log = logging.getLogger("atoll.control")

SMALL_BODY = 1 << 20  # of everything but a deploy
HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
PAGE_HEADERS = HEADERS | {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
}
JSON_TYPE = "application/json"
CALLER = "atoll.caller"  # where the boundary leaves what it found out, in the scope of a request

T = TypeVar("T")
Endpoint = Callable[[Request], Awaitable[Response]]
Identify = Callable[[Request], Caller]  # who sends a request; Refused if that cannot be told


@dataclass(frozen=True, slots=True)
class Query:
    """A parameter after the question mark."""

    name: str
    summary: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Route:
    """One endpoint. `{name}` in a path is one segment of it, `{name:path}` the rest."""

    method: str
    path: str
    endpoint: Endpoint
    scope: Scope
    summary: str
    takes: Any = None  # the type of the body
    gives: Any = None  # the type of the answer; None: no JSON
    status: int = 200
    query: tuple[Query, ...] = ()
    is_node: bool = False  # about the node as a whole: for operators only
    media: str = JSON_TYPE  # of the answer
    raw: str = ""  # of a body that is taken as it is, instead of `takes`


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


class Refusal(msgspec.Struct):
    """Every answer that is an error."""

    error: ErrorAnswer


class Boundary:
    """Stands around every endpoint: refuses strangers, finds out who asks, turns errors into answers."""

    def __init__(self, is_control: Callable[[bytes], bool], identify: Identify) -> None:
        self._is_control = is_control
        self._identify = identify

    def mount(self, routes: Iterable[Route]) -> list[routing.BaseRoute]:
        """Routes as Starlette takes them: one for each path, whatever methods it has."""
        by_path: dict[str, dict[str, Route]] = {}
        for route in routes:
            methods = by_path.setdefault(route.path, {})
            assert route.method not in methods, f"{route.method} {route.path} is declared twice"
            methods[route.method] = route
        return [self._mounted(path, methods) for path, methods in by_path.items()]

    def _mounted(self, path: str, methods: dict[str, Route]) -> routing.Route:
        async def answer(request: Request) -> Response:
            return await self._answer(methods["GET" if request.method == "HEAD" else request.method], request)

        return routing.Route(path, answer, methods=list(methods))

    async def _answer(self, route: Route, request: Request) -> Response:
        """The error boundary: a client learns what it did wrong, or that we did, and never how."""
        try:
            self._refuse_strangers(request, route)
            refuse_garbled(request)
            caller = self._identify(request)
            refuse_powerless(caller, route)
            request.scope[CALLER] = caller
            return await route.endpoint(request)
        except Refused as refused:
            return refusal(refused)
        except (BindingRefused, StorageFailed) as error:
            return refusal(binding_refusal(error))
        except ClientDisconnect:
            return Response(status_code=400)  # nobody reads it
        except Exception:
            log.exception("%s %s failed", request.method, request.url.path)
            return refusal(Refused(ApiCode.INTERNAL, "internal error", "the node's own log has the details"))

    def _refuse_strangers(self, request: Request, route: Route) -> None:
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
        # Browsers tell it even where they send no Origin; `none` is the address bar, everyone else does not say it.
        site = request.headers.get("sec-fetch-site", "none")
        # A link may lead here, since no page can read what it finds; but not to a GET that does something.
        is_looking = request.method == "GET" and route.scope in (Scope.PUBLIC, Scope.READ)
        navigates = is_looking and request.headers.get("sec-fetch-mode") == "navigate"
        if site not in ("none", "same-origin") and not navigates:
            raise Refused(ApiCode.FORBIDDEN_ORIGIN, f"requests from a page that is {site[:20]} are refused", "use curl")


def refuse_garbled(request: Request) -> None:
    """A path whose bytes are no UTF-8 was read with replacements: it might name something else than was meant."""
    if "\ufffd" in request.scope["path"]:
        try:
            unquote_to_bytes(request.scope["raw_path"]).decode()
        except UnicodeDecodeError:
            raise Refused(ApiCode.BAD_BODY, "the path is not UTF-8", "encode it as UTF-8, then with %") from None


def refuse_powerless(caller: Caller, route: Route) -> None:
    if not caller.may(route.scope) and caller is NOBODY:
        raise Refused(
            ApiCode.UNAUTHENTICATED,
            "this needs a token",
            "send Authorization: Bearer <token>; the first start leaves one in the data folder, in admin-token",
        )
    if not caller.may(route.scope):
        raise Refused(
            ApiCode.FORBIDDEN, f"this token may not do that: it has no scope `{route.scope}`", "use one that has"
        )
    if route.is_node and not caller.is_operator:
        raise Refused(ApiCode.FORBIDDEN, "this is about the whole node", "use a token that is not bound to a tenant")


def caller_of(request: Request) -> Caller:
    """Who asks: known in every endpoint."""
    caller = request.scope[CALLER]
    assert isinstance(caller, Caller)
    return caller


# Bodies


def media_type(request: Request) -> str:
    return request.headers.get("content-type", "").split(";")[0].strip().lower()


async def read_body(request: Request, limit: int = SMALL_BODY, hint: str = "") -> bytes:
    """The body as it is, if it has no more than `limit` bytes."""
    chunks, size = [], 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > limit:
            raise Refused(ApiCode.TOO_LARGE, f"the body is larger than {limit:,} bytes", hint)
        chunks.append(chunk)
    return b"".join(chunks)


async def read_json(request: Request, limit: int = SMALL_BODY, hint: str = "") -> bytes:
    """The body, declared as JSON. Not parsed yet: shapes say best what does not fit."""
    found = media_type(request)
    if found != JSON_TYPE:
        raise Refused(
            ApiCode.MEDIA_TYPE,
            f"the body is declared as {found[:80]}" if found else "the body is not declared as anything",
            "send the header Content-Type: application/json",
        )
    return await read_body(request, limit, hint)


async def read_shape(request: Request, shape: type[T], *, empty: bool = False) -> T:
    """A JSON body of a shape. With `empty`, none at all stands for an object without fields."""
    raw = b"{}" if empty and not media_type(request) else await read_json(request)
    try:
        return msgspec.json.decode(raw, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        text = str(error).replace("Object contains", "the body has", 1)
        raise Refused(ApiCode.BAD_BODY, f"the body does not fit: {text}", "see docs/reference/api.md") from None


# Answers


def json_answer(answer: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    content = msgspec.json.encode(answer)
    return Response(content, status, headers={**HEADERS, **(headers or {})}, media_type=JSON_TYPE)


def no_content() -> Response:
    return Response(status_code=204, headers=HEADERS)


def refusal(refused: Refused) -> Response:
    facts = API_ERRORS[refused.reason]
    error = ErrorAnswer(int(refused.reason), facts.type, str(refused), refused.hint)
    headers = {"www-authenticate": "Bearer"} if facts.status == 401 else {}
    if refused.retry_after:
        headers["retry-after"] = str(refused.retry_after)
    return json_answer(Refusal(_placed(error, refused.failure)), status=facts.status, headers=headers)


def _placed(error: ErrorAnswer, failure: Failure | None) -> ErrorAnswer:
    if failure is None:
        return error
    place = {"file": failure.file, "line": failure.line, "column": failure.column, "stack": failure.stack}
    return msgspec.structs.replace(error, **place)


async def no_route(request: Request, error: Exception) -> Response:
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
