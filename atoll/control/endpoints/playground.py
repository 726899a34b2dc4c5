"""POST /api/playground/run: run a draft once, without a worker, a version or a route."""

from __future__ import annotations

import re
from typing import Annotated, Any
from urllib.parse import quote, urlsplit

import msgspec
from msgspec import UNSET, UnsetType
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.bodies import read_json
from atoll.api.callers import Scope
from atoll.api.refusals import bad_body
from atoll.api.routes import Route, caller_of, json_answer
from atoll.control.checks.body import DeployBody, WantedLimits, parse_fields
from atoll.control.deploy.playground import DraftAnswer, Playground

MAX_BODY = 1 << 20  # bytes of the request: the code and what is sent to it
MAX_URL = 8_000
MAX_HEADERS = 50
TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}")
FORBIDDEN = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")  # in values: a line of its own would be another header
OURS = {"host", "content-length", "transfer-encoding", "connection", "upgrade"}


class DraftRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The request that the draft gets."""

    method: str = "GET"
    url: Annotated[str, msgspec.Meta(max_length=MAX_URL)] = "http://playground.localhost/"
    headers: Annotated[list[tuple[str, str]], msgspec.Meta(max_length=MAX_HEADERS)] = []
    body: str = ""


class DraftRun(msgspec.Struct, forbid_unknown_fields=True):
    """A draft, with the fields of a deploy, and a request to it."""

    script: str | UnsetType = UNSET
    modules: dict[str, str] | UnsetType = UNSET
    main: str | UnsetType = UNSET
    env: dict[str, Any] | UnsetType = UNSET
    limits: WantedLimits | UnsetType = UNSET
    compatibility_date: str | UnsetType = UNSET
    compatibility_flags: list[str] | UnsetType = UNSET
    request: DraftRequest = DraftRequest()


class PlaygroundApi:
    def __init__(self, playground: Playground) -> None:
        self._playground = playground

    def routes(self) -> list[Route]:
        return [
            Route(
                "POST",
                "/api/playground/run",
                self.run,
                Scope.DEPLOY,
                "Run a draft once, in an isolate that is thrown away",
                takes=DraftRun,
                gives=DraftAnswer,
            )
        ]

    async def run(self, request: Request) -> Response:
        wanted = parse_fields(await read_json(request, MAX_BODY), DraftRun)
        fields = {name: getattr(wanted, name) for name in DraftRun.__struct_fields__ if name != "request"}
        sent = wanted.request.body.encode("utf-8", "surrogatepass")
        head = head_of(wanted.request, len(sent))
        return json_answer(await self._playground.run(DeployBody(**fields), head, sent, caller_of(request)))


def head_of(wanted: DraftRequest, length: int) -> bytes:
    """The head of a CALL frame: what is wrong is refused, so that no line of it says what its sender did not write."""
    try:
        parts = urlsplit(wanted.url)
        host = parts.netloc.encode("ascii").decode()
    except (ValueError, UnicodeEncodeError):
        parts, host = urlsplit(""), ""
    if parts.scheme not in ("http", "https") or not host or FORBIDDEN.search(host) or set(host) & set(" \t@/\\"):
        raise bad_body(f"`url` is {wanted.url[:80]!r}", "write it like http://playground.localhost/path")
    if not TOKEN.fullmatch(wanted.method):
        raise bad_body(f"`method` is {wanted.method[:80]!r}", "use a method such as GET or POST")
    safe = "/%:@!$&'()*+,;=~-._"
    target = quote(parts.path or "/", safe=safe) + (f"?{quote(parts.query, safe=safe + '?')}" if parts.query else "")
    lines = [("host", host)]
    for name, value in wanted.headers:
        if not TOKEN.fullmatch(name) or FORBIDDEN.search(value) or not value.isascii():
            raise bad_body(f"the header {name[:80]!r} has a character that no header may have", "use plain ASCII")
        if name.lower() in OURS:
            raise bad_body(f"the header `{name[:80]}` is set by the node", "leave it out")
        lines.append((name.lower(), value.strip()))
    if length or wanted.method in ("POST", "PUT", "PATCH"):
        lines.append(("content-length", str(length)))
    block = "".join(f"{name}: {value}\r\n" for name, value in lines)
    return f"{wanted.method} {parts.scheme}://{host}{target}\n{block}".encode("ascii")
