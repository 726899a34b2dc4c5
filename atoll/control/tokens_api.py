"""Endpoints of tokens and of the audit log: who may come in, and what they did."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated, Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atoll.control.audit import AuditLog, Line, Mark
from atoll.control.boundary import Query, Route, caller_of, json_answer, no_content, read_json
from atoll.control.callers import LOCAL, Caller, Scope, held
from atoll.control.check import bad_body, parse_fields
from atoll.control.check_events import checked_words
from atoll.control.refusals import ApiCode, Refused
from atoll.control.tenants import Tenants
from atoll.control.tokens import Token, Tokens
from atoll.observe.records import iso_time

MAX_NAME = 100
MAX_SECONDS = 10 * 366 * 24 * 3600
MAX_LINES = 1_000
DEFAULT_LINES = 100
FIRST = 2**62


class NewToken(msgspec.Struct, forbid_unknown_fields=True):
    """`expires_in` is seconds from now; without it the token is good until it is revoked, or as long as its maker."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_NAME)]
    scopes: Annotated[list[str], msgspec.Meta(min_length=1, max_length=10)]
    all_tenants: bool = False
    expires_in: Annotated[float, msgspec.Meta(gt=0, le=MAX_SECONDS)] | None = None


class TokenAnswer(msgspec.Struct):
    id: str
    name: str
    tenant: str | None  # null: all of them
    scopes: tuple[str, ...]
    created_at: str
    expires_at: str | None
    used_at: str | None


class MadeToken(TokenAnswer):
    token: str  # shown this once


class TokensAnswer(msgspec.Struct):
    tokens: list[TokenAnswer]


class AuditLine(msgspec.Struct):
    timestamp: str
    tenant: str
    actor: str
    action: str
    target: str
    detail: str


class AuditAnswer(msgspec.Struct, omit_defaults=True):
    audit: list[AuditLine]
    cursor: str = ""


class TokensApi:
    def __init__(
        self, tokens: Tokens, tenants: Tenants, audit: AuditLog, clock: Callable[[], float] = time.time
    ) -> None:
        self._tokens = tokens
        self._tenants = tenants
        self._audit = audit
        self._clock = clock

    def routes(self) -> list[Route]:
        limit = Query("limit", "How many", {"type": "integer", "minimum": 1, "maximum": MAX_LINES})
        cursor = Query("cursor", "Where the answer before ended", {"type": "string", "pattern": "^[0-9]{1,18}$"})
        return [
            Route("GET", "/api/tokens", self.list, Scope.ADMIN, "Tokens, without their text", gives=TokensAnswer),
            Route(
                "POST",
                "/api/tokens",
                self.make,
                Scope.ADMIN,
                "Make a token",
                takes=NewToken,
                gives=MadeToken,
                status=201,
            ),
            Route("DELETE", "/api/tokens/{token}", self.revoke, Scope.ADMIN, "Revoke a token", status=204),
            Route(
                "GET",
                "/api/audit",
                self.audit,
                Scope.ADMIN,
                "Every change, newest first",
                gives=AuditAnswer,
                query=(limit, cursor),
            ),
        ]

    async def list(self, request: Request) -> Response:
        tokens = self._tokens.all(reach(caller_of(request)))
        return json_answer(TokensAnswer([TokenAnswer(**self._shown(token)) for token in tokens]))

    async def make(self, request: Request) -> Response:
        caller, body = caller_of(request), parse_fields(await read_json(request), NewToken)
        scopes = _checked_scopes(body.scopes)
        if body.all_tenants and not caller.is_operator:
            raise Refused(
                ApiCode.FORBIDDEN,
                "this token is for one tenant and makes others for that one only",
                "leave out all_tenants",
            )
        if not held(scopes) <= caller.scopes:
            raise Refused(ApiCode.FORBIDDEN, "a token cannot make one that may do more than itself")
        name = checked_words("name", body.name, MAX_NAME)
        if name == LOCAL.name:
            raise bad_body(f"`name` is {name!r}", "in the audit log that is whoever works on the node's own machine")
        tenant = None if body.all_tenants else caller.tenant
        mark = Mark.of(caller, self._clock())
        token, text = await self._tokens.make(name, scopes, tenant, _end(body.expires_in, mark.at, caller), mark)
        return json_answer(MadeToken(**self._shown(token), token=text), status=201)

    async def revoke(self, request: Request) -> Response:
        caller = caller_of(request)
        token = self._tokens.find(request.path_params["token"], reach(caller))
        await self._tokens.revoke(token, Mark.of(caller, self._clock()))
        return no_content()

    async def audit(self, request: Request) -> Response:
        limit = _number("limit", request, DEFAULT_LINES, MAX_LINES)
        before = _number("cursor", request, FIRST, FIRST)
        of = reach(caller_of(request))
        # What another tenant of the same name did, before it was deleted, is not this one's.
        since = 0 if of is None else self._tenants.find(of).created_at
        lines = self._audit.page(of, before, limit + 1, since)
        rest = str(lines[limit - 1].id) if len(lines) > limit else ""
        return json_answer(AuditAnswer([_line(line) for line in lines[:limit]], rest))

    def _shown(self, token: Token) -> dict[str, Any]:
        used = self._tokens.used_at(token)
        return {
            "id": token.id,
            "name": token.name,
            "tenant": token.tenant,
            "scopes": tuple(scope.value for scope in token.scopes),
            "created_at": iso_time(token.created_at),
            "expires_at": None if token.expires_at is None else iso_time(token.expires_at),
            "used_at": None if used is None else iso_time(used),
        }


def reach(caller: Caller) -> str | None:
    """Whose things a caller sees where an operator sees everybody's."""
    return None if caller.is_operator else caller.tenant


def _checked_scopes(names: list[str]) -> tuple[Scope, ...]:
    known = [scope.value for scope in Scope if scope is not Scope.PUBLIC]
    for name in names:
        if name not in known:
            raise bad_body(f"there is no scope {name[:80]!r}", f"the scopes are {', '.join(known)}")
    return tuple(dict.fromkeys(map(Scope, names)))


def _end(seconds: float | None, now: int, caller: Caller) -> int | None:
    """When a new token expires. Never after the one that makes it: whoever has that could stay for ever."""
    if seconds is None:
        return caller.expires_at
    end = now + int(seconds * 1000)
    if caller.expires_at is not None and end > caller.expires_at:
        left = (caller.expires_at - now) // 1000
        raise Refused(
            ApiCode.FORBIDDEN,
            "a token cannot make one that outlives it",
            f"leave out expires_in, or say {left} seconds at most",
        )
    return end


def _number(name: str, request: Request, default: int, highest: int) -> int:
    raw = request.query_params.get(name, str(default))
    if not (raw.isascii() and raw.isdigit() and len(raw) <= 19 and 1 <= int(raw) <= highest):
        raise bad_body(f"`{name}` is {raw[:80]!r}", f"use a number from 1 to {highest}")
    return int(raw)


def _line(line: Line) -> AuditLine:
    return AuditLine(iso_time(line.at), line.tenant, line.actor, line.action, line.target, line.detail)
