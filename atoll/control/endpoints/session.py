"""Endpoints of the session of a browser: log in, see who is logged in, log out, and one-time codes for the way in."""

from __future__ import annotations

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from atoll import __version__
from atoll.api.bodies import read_json
from atoll.api.callers import Caller, Scope
from atoll.api.refusals import ApiCode, Refused, bad_body
from atoll.api.routes import Route, caller_of, json_answer, no_content
from atoll.clock import iso_time
from atoll.control.access.access import Access
from atoll.control.access.gate import LOGIN_PATH, is_local_host
from atoll.control.access.sessions import CODE_MS, csrf_of, set_cookie
from atoll.control.checks.body import parse_fields

PAGE = "/dashboard/"


class Login(msgspec.Struct, forbid_unknown_fields=True):
    """A token, or a one-time code."""

    token: str = ""
    code: str = ""


class SessionAnswer(msgspec.Struct):
    """Who asks, and what they may do."""

    name: str  # of the token
    tenant: str
    is_operator: bool
    scopes: list[str]
    csrf: str  # for the header X-Atoll-CSRF of changes; "" without a session
    is_session: bool
    ends_at: str | None
    version: str  # of Atoll


class CodeAnswer(msgspec.Struct):
    """The rest of the address that opens the dashboard. Without a code the node lets this machine in."""

    path: str
    expires_in: int  # seconds; 0: it does not expire


class SessionApi:
    def __init__(self, access: Access) -> None:
        self._access = access

    def routes(self) -> list[Route]:
        path = LOGIN_PATH
        return [
            Route("GET", path, self.show, Scope.ANY, "Who asks, and with which scopes", gives=SessionAnswer),
            Route(
                "POST",
                path,
                self.begin,
                Scope.PUBLIC,
                "Log a browser in, with a token or a one-time code",
                takes=Login,
                gives=SessionAnswer,
                status=201,
            ),
            Route("DELETE", path, self.end, Scope.ANY, "Log out", status=204),
            Route(
                "POST",
                f"{path}/codes",
                self.make_code,
                Scope.ANY,
                "Make a one-time code that logs a browser in",
                gives=CodeAnswer,
                status=201,
            ),
        ]

    async def show(self, request: Request) -> Response:
        return json_answer(self.shown(caller_of(request)))

    def shown(self, caller: Caller) -> SessionAnswer:
        ends_at = self._access.sessions.ends_at(caller.session) if caller.session else caller.expires_at
        return SessionAnswer(
            name=caller.name,
            tenant=caller.tenant,
            is_operator=caller.is_operator,
            scopes=sorted(caller.scopes),
            csrf=csrf_of(caller.session) if caller.session else "",
            is_session=bool(caller.session),
            ends_at=None if ends_at is None else iso_time(ends_at),
            version=__version__,
        )

    async def begin(self, request: Request) -> Response:
        body = parse_fields(await read_json(request), Login)
        origin = request.headers.get("origin")
        if origin is None:
            raise Refused(ApiCode.FORBIDDEN_ORIGIN, "sessions are for browsers", "programs send their token instead")
        if origin.startswith("http://") and not is_local_host(request):
            raise Refused(
                ApiCode.FORBIDDEN_ORIGIN,
                "a login over plain HTTP would show the token to everyone on the way",
                "use HTTPS (settings https_port and certificates), or open the dashboard on the machine of the node",
            )
        if bool(body.token) == bool(body.code):
            raise bad_body("the body has no login", "send either `token` or `code`")
        caller = await self._access.gate.log_in(request, body.token.strip(), body.code.strip())
        return json_answer(self.shown(caller), status=201, headers={"set-cookie": set_cookie(caller.session)})

    async def end(self, request: Request) -> Response:
        """Log out. A caller without a session has nothing to end."""
        await self._access.sessions.end(caller_of(request).session)
        response = no_content()
        response.headers["set-cookie"] = set_cookie("")
        return response

    async def make_code(self, request: Request) -> Response:
        caller = caller_of(request)
        if caller.session:
            raise Refused(ApiCode.FORBIDDEN, "a session cannot make another one", "use the token itself")
        if not caller.token:  # an open node lets this machine in without a login
            return json_answer(CodeAnswer(PAGE, 0), status=201)
        code = self._access.sessions.make_code(caller.token)
        return json_answer(CodeAnswer(f"{PAGE}#code={code}", CODE_MS // 1000), status=201)
