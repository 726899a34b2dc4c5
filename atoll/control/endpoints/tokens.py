"""Endpoints of tokens and of the audit log."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atoll.api.audit import AuditEntry, AuditLog, Mark
from atoll.api.bodies import read_json
from atoll.api.callers import HELD, LOCAL, Caller, Scope, held
from atoll.api.paging import limit_query, name_page_of, name_query, page_answer
from atoll.api.refusals import ApiCode, Refused, bad_body
from atoll.api.routes import Query, Route, caller_of, json_answer, no_content
from atoll.clock import iso_time
from atoll.control.access.tenants import Tenants
from atoll.control.access.tokens import Token, Tokens, place_of
from atoll.control.checks.body import parse_fields
from atoll.control.checks.words import checked_words

MAX_NAME = 100
MAX_SECONDS = 10 * 366 * 24 * 3600
MAX_LINES = 1_000
DEFAULT_LINES = 100
FIRST = 2**62


class NewToken(msgspec.Struct, forbid_unknown_fields=True):
    """`expires_in` is seconds from now. Without it the token lasts until it is revoked, or as long as its maker."""

    name: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_NAME)]
    scopes: Annotated[list[str], msgspec.Meta(min_length=1, max_length=10)]
    all_tenants: bool = False
    expires_in: Annotated[float, msgspec.Meta(gt=0, le=MAX_SECONDS)] | None = None


class TokenAnswer(msgspec.Struct):
    id: str
    name: str
    tenant: str | None  # null: all tenants
    scopes: tuple[str, ...]
    created_at: str
    expires_at: str | None
    used_at: str | None


class MadeToken(TokenAnswer):
    token: str  # shown only this once


class WhoAmI(msgspec.Struct):
    """The caller of a request, as the node sees it."""

    name: str  # of the token; `local` for a caller without a token on an open node
    tenant: str  # the tenant that requests are about
    all_tenants: bool  # whether it may choose another tenant
    scopes: tuple[str, ...]  # all scopes it has
    expires_at: str | None


class TokensAnswer(msgspec.Struct, omit_defaults=True):
    tokens: list[TokenAnswer]
    cursor: str = ""


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
        limit = limit_query(MAX_LINES, DEFAULT_LINES)
        cursor = Query("cursor", "The `cursor` of the previous page", {"type": "string", "pattern": "^[0-9]{1,18}$"})
        return [
            Route(
                "GET",
                "/api/tokens",
                self.list,
                Scope.ADMIN,
                "Tokens, without their text, oldest first",
                gives=TokensAnswer,
                query=name_query(),
            ),
            Route("GET", "/api/whoami", self.who_am_i, Scope.ANY, "The caller of this request", gives=WhoAmI),
            Route(
                "POST",
                "/api/tokens",
                self.make,
                Scope.ADMIN,
                "Create a token",
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
                "The audit log, newest first",
                gives=AuditAnswer,
                query=(limit, cursor),
            ),
        ]

    async def who_am_i(self, request: Request) -> Response:
        caller = caller_of(request)
        end = None if caller.expires_at is None else iso_time(caller.expires_at)
        scopes = tuple(scope.value for scope in HELD if scope in caller.scopes)
        return json_answer(WhoAmI(caller.name, caller.tenant, caller.is_operator, scopes, end))

    async def list(self, request: Request) -> Response:
        after, limit = name_page_of(request)
        return await page_answer("tokens", self._listed(reach(caller_of(request)), after), limit)

    async def _listed(self, tenant: str | None, after: str) -> AsyncIterator[tuple[str, TokenAnswer]]:
        for token in self._tokens.after(tenant, after):
            yield place_of(token), TokenAnswer(**self._shown(token))

    async def make(self, request: Request) -> Response:
        caller, body = caller_of(request), parse_fields(await read_json(request), NewToken)
        scopes = _checked_scopes(body.scopes)
        if body.all_tenants and not caller.is_operator:
            raise Refused(
                ApiCode.FORBIDDEN,
                "this token is for one tenant and can only create tokens for that tenant",
                "leave out all_tenants",
            )
        if not held(scopes) <= caller.scopes:
            raise Refused(ApiCode.FORBIDDEN, "a token cannot create a token with more scopes than its own")
        name = checked_words("name", body.name, MAX_NAME)
        if name == LOCAL.name:
            raise bad_body(f"`name` is {name!r}", "choose another name: in the audit log this is the local operator")
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
        # Lines of a deleted tenant of the same name do not belong to this one.
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
    """The tenant whose entries a caller sees; None for an operator, who sees all."""
    return None if caller.is_operator else caller.tenant


def _checked_scopes(names: list[str]) -> tuple[Scope, ...]:
    known = [scope.value for scope in HELD]
    for name in names:
        if name not in known:
            raise bad_body(f"there is no scope {name[:80]!r}", f"the scopes are {', '.join(known)}")
    return tuple(dict.fromkeys(map(Scope, names)))


def _end(seconds: float | None, now: int, caller: Caller) -> int | None:
    """When a new token expires: never after the token that creates it, or access could be renewed without end."""
    if seconds is None:
        return caller.expires_at
    end = now + int(seconds * 1000)
    if caller.expires_at is not None and end > caller.expires_at:
        left = (caller.expires_at - now) // 1000
        raise Refused(
            ApiCode.FORBIDDEN,
            "a token cannot create a token that expires after itself",
            f"leave out expires_in, or use at most {left} seconds",
        )
    return end


def _number(name: str, request: Request, default: int, highest: int) -> int:
    raw = request.query_params.get(name, str(default))
    if not (raw.isascii() and raw.isdigit() and len(raw) <= 19 and 1 <= int(raw) <= highest):
        raise bad_body(f"`{name}` is {raw[:80]!r}", f"use a number from 1 to {highest}")
    return int(raw)


def _line(line: AuditEntry) -> AuditLine:
    return AuditLine(iso_time(line.at), line.tenant, line.actor, line.action, line.target, line.detail)
