"""How an endpoint of the control API is declared: a method and a path, the scope it requires, its shapes.

    class Things:
        def routes(self) -> list[Route]:
            return [Route("GET", "/api/things", self.list, Scope.READ, "The things of a tenant", gives=ThingsAnswer)]

        async def list(self, request: Request) -> Response:
            return json_answer(ThingsAnswer(self._store.things(caller_of(request).tenant)))

The application, its OpenAPI document and the isolation tests are all made from the list of routes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.bodies import JSON_TYPE, SMALL_BODY, media_type, read_json, unwatched
from atoll.api.callers import Caller, Scope
from atoll.api.refusals import ApiCode, Refused
from atoll.api.work import CALLER

HEADERS = {"cache-control": "no-store", "x-content-type-options": "nosniff"}

T = TypeVar("T")
Endpoint = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True, slots=True)
class Query:
    """A query parameter."""

    name: str
    summary: str
    schema: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Route:
    """One endpoint. `{name}` in a path is one segment, `{name:path}` is the rest of the path."""

    method: str
    path: str
    endpoint: Endpoint
    scope: Scope
    summary: str
    takes: Any = None  # the type of the body
    gives: Any = None  # the type of the response; None: not JSON
    status: int = 200
    query: tuple[Query, ...] = ()
    is_node: bool = False  # about the node as a whole: for operators only
    media: str = JSON_TYPE  # of the response
    raw: str = ""  # of a raw body, instead of `takes`


def caller_of(request: Request) -> Caller:
    """The caller of a request. The boundary sets it before every endpoint."""
    caller = request.scope[CALLER]
    assert isinstance(caller, Caller)
    return caller


async def read_shape(request: Request, shape: type[T], *, empty: bool = False, limit: int = SMALL_BODY) -> T:
    """A JSON body of a shape. With `empty`, no body means an object without fields."""
    raw = b"{}" if empty and not media_type(request) else await read_json(request, limit)
    try:
        with unwatched(len(raw)):
            return msgspec.json.decode(raw, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        text = str(error).replace("Object contains", "the body has", 1)
        raise Refused(ApiCode.BAD_BODY, f"the body does not fit: {text}", "see docs/reference/api.md") from None


def json_answer(answer: object, *, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    content = msgspec.json.encode(answer) + b"\n"  # for readers in a terminal
    return Response(content, status, headers={**HEADERS, **(headers or {})}, media_type=JSON_TYPE)


def no_content() -> Response:
    return Response(status_code=204, headers=HEADERS)
