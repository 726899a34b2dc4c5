"""The boundary around every endpoint of the control API: it checks the caller and turns errors into responses.

The API must be safe from web pages in the browser of an authorised user. So the Content-Type of a body must be one that
no form can send, the Origin must be this host, and no response has a CORS header.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Sequence
from urllib.parse import unquote_to_bytes

import msgspec
from starlette import routing
from starlette.convertors import PathConvertor, register_url_convertor
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, HTTPConnection, Request
from starlette.responses import Response
from starlette.websockets import WebSocket

from atoll.api.bodies import let_go
from atoll.api.callers import NOBODY, Caller, Scope
from atoll.api.refusals import API_ERRORS, ApiCode, Refused, binding_refusal
from atoll.api.routes import HEADERS, Route, json_answer
from atoll.api.work import CALLER, WORK, Work, work_refusal
from atoll.errors import BindingRefused, Failure, StorageFailed
from atoll.offload.jobs import JobError
from atoll.offload.spool import SpoolFull

log = logging.getLogger("atoll.control")

PENDING_HEADER = "x-atoll-pending-nodes"  # nodes that do not have a change yet
PAGE_HEADERS = HEADERS | {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'",
    "referrer-policy": "no-referrer",
}


class AnyPath(PathConvertor):
    """Like Starlette's own, which stops at a newline; a key may contain one."""

    regex = "(?s:.*)"


register_url_convertor("path", AnyPath())

Identify = Callable[[Request], Caller]  # the caller of a request; Refused if its token is not valid


class ErrorAnswer(msgspec.Struct, omit_defaults=True):
    """An error. `file` to `stack` are set if a script is at fault and the place is known."""

    code: int
    type: str
    message: str
    hint: str = ""
    file: str = ""
    line: int = 0
    column: int = 0
    stack: str = ""


class Refusal(msgspec.Struct):
    """The body of every error response."""

    error: ErrorAnswer


class Boundary:
    """Wraps every endpoint: finds the caller, refuses those without the scope, turns errors into responses."""

    def __init__(
        self,
        is_control: Callable[[bytes], bool],
        identify: Identify,
        work: Work,
        refuse: Callable[[Refused], Response] | None = None,
        settled: Callable[[], Awaitable[Sequence[str]]] | None = None,
    ) -> None:
        """`settled` waits until the other nodes have a change, and returns the names of those that have not."""
        self._settled = settled
        self._is_control = is_control
        self._identify = identify
        self._work = work
        self._refusal = refuse or refusal

    def mount(self, routes: Iterable[Route]) -> list[routing.BaseRoute]:
        """Routes for Starlette: one for each path, with all its methods."""
        by_path: dict[str, dict[str, Route]] = {}
        for route in routes:
            methods = by_path.setdefault(route.path, {})
            assert route.method not in methods, f"{route.method} {route.path} is declared twice"
            methods[route.method] = route
        return [self._mounted(path, methods) for path, methods in by_path.items()]

    def mount_socket(self, path: str, endpoint: Callable[[WebSocket], Awaitable[None]]) -> routing.BaseRoute:
        """A WebSocket, whose endpoint checks a secret in its path."""
        route = Route("GET", path, self._answer, Scope.PUBLIC, "A WebSocket")  # type: ignore[arg-type]

        async def answer(socket: WebSocket) -> None:
            try:
                self._refuse_strangers(socket, route)
                await endpoint(socket)
            except Refused as refused:
                await socket.send_denial_response(self._refusal(refused))

        return routing.WebSocketRoute(path, answer)

    def _mounted(self, path: str, methods: dict[str, Route]) -> routing.Route:
        async def answer(request: Request) -> Response:
            return await self._answer(methods["GET" if request.method == "HEAD" else request.method], request)

        return routing.Route(path, answer, methods=list(methods))

    async def _answer(self, route: Route, request: Request) -> Response:
        """The error boundary: the client gets the details of its own mistakes, and no details of ours."""
        try:
            self._refuse_strangers(request, route)
            refuse_garbled(request)
            caller = self._caller(route, request)
            refuse_powerless(caller, route)
            request.scope[CALLER] = caller
            request.scope[WORK] = self._work
            answer = await route.endpoint(request)
            if self._settled is not None and request.method not in ("GET", "HEAD") and answer.status_code < 300:
                answer.headers.update(await _pending(self._settled))
            return answer
        except Refused as refused:
            return self._refusal(refused)
        except (BindingRefused, StorageFailed) as error:
            return self._refusal(binding_refusal(error))
        except (JobError, SpoolFull) as error:
            return self._refusal(work_refusal(error))
        except ClientDisconnect:
            return Response(status_code=400)  # the client is gone
        except Exception:
            log.exception("%s %s failed", request.method, request.url.path)
            return self._refusal(Refused(ApiCode.INTERNAL, "internal error", "the node's log has the details"))
        finally:
            let_go(request)

    def _caller(self, route: Route, request: Request) -> Caller:
        return self._identify(request)

    def _refuse_strangers(self, request: HTTPConnection, route: Route) -> None:
        host = request.headers.get("host", "")
        if not self._is_control(host.encode("latin-1")):  # a foreign name that points here: DNS rebinding
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
        # Browsers send this header even without Origin; `none` is the address bar. Other clients do not send it.
        site = request.headers.get("sec-fetch-site", "none")
        # A link to here is harmless, since no page can read the response; but not to a GET with side effects.
        is_looking = request.scope.get("method") == "GET" and route.scope in (Scope.PUBLIC, Scope.READ)
        navigates = is_looking and request.headers.get("sec-fetch-mode") == "navigate"
        if site not in ("none", "same-origin") and not navigates:
            raise Refused(ApiCode.FORBIDDEN_ORIGIN, f"requests from a page that is {site[:20]} are refused", "use curl")


def refuse_garbled(request: Request) -> None:
    """Refuse a path that is not UTF-8: it was decoded with replacements and might name something else."""
    if "\ufffd" in request.scope["path"]:
        try:
            unquote_to_bytes(request.scope["raw_path"]).decode()
        except UnicodeDecodeError:
            raise Refused(ApiCode.BAD_BODY, "the path is not UTF-8", "encode it as UTF-8, then with %") from None


def refuse_powerless(caller: Caller, route: Route) -> None:
    if not caller.may(route.scope) and caller is NOBODY:
        raise Refused(
            ApiCode.UNAUTHENTICATED,
            "this request needs a token",
            "send Authorization: Bearer <token>; the first start leaves one in the data folder, in admin-token",
        )
    if not caller.may(route.scope):
        raise Refused(
            ApiCode.FORBIDDEN, f"this token does not have the scope `{route.scope}`", "use a token that has it"
        )
    if route.is_node and not caller.is_operator:
        raise Refused(
            ApiCode.FORBIDDEN, "only operators may do this: it concerns the whole node", "use a token for all tenants"
        )


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
    """The refusal when Starlette found no endpoint: the path does not exist, or not for this method."""
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "")
        response = refusal(
            Refused(ApiCode.METHOD, f"{request.url.path} does not support {request.method}", f"use {allowed}")
        )
        response.headers["allow"] = allowed
        return response
    return refusal(
        Refused(ApiCode.NOT_FOUND, f"there is nothing at {request.url.path[:200]}", "see docs/reference/api.md")
    )


async def _pending(settled: Callable[[], Awaitable[Sequence[str]]]) -> dict[str, str]:
    """A header with the nodes that do not have a change yet, if there are any."""
    try:
        names = ", ".join(await settled())
    except StorageFailed:  # the change itself is stored
        names = "unknown"
    return {PENDING_HEADER: names} if names else {}
