"""Finds the caller of a request, by its token or because it comes from this machine.

    valid token                  its tenant and scopes; a token for all tenants chooses one with X-Atoll-Tenant
    cookie of a login            the same as its token; changes need the header X-Atoll-CSRF too (sessions.py)
    invalid token                refused; failed logins are counted per address, and too many get a shorter refusal
    no token, open node          the local operator
    no token, otherwise          an anonymous caller, who sees only what is public

A node is open if it listens on a loopback address only, trusts no proxy, and the setting `control_auth` allows it. Then
a request needs no token if its host is a local name and it shows no sign of a proxy: the sender could as well read the
data folder. Signs of a proxy are the headers it adds, the public name it passes on, or HTTP/1.0, which nginx speaks by
default. A tunnel that adds nothing (ssh -R, socat) looks like a local tool: use `control_auth` for that.
"""

from __future__ import annotations

import hmac
import ipaddress
import logging
import os
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from atoll.api.audit import Mark
from atoll.api.callers import LOCAL, NOBODY, Caller, Scope, held
from atoll.api.refusals import ApiCode, Refused
from atoll.config import Settings
from atoll.control.access.sessions import CSRF_HEADER, MAX_TEXT, Sessions, cookie_of, csrf_of
from atoll.control.access.tenants import Tenants
from atoll.control.access.tokens import Token, Tokens, new_text
from atoll.router import LOCAL_HOSTS, host_name

if TYPE_CHECKING:
    from starlette.requests import Request

log = logging.getLogger("atoll.control")

TENANT_HEADER = "x-atoll-tenant"
# Headers that proxies, tunnels and CDNs add and that no local tool sends by itself: names, then prefixes.
PROXY_HEADERS = frozenset(
    (
        "forwarded", "forwarded-for", "via", "x-real-ip", "x-client-ip", "x-cluster-client-ip", "x-remote-ip",
        "x-remote-addr", "true-client-ip", "client-ip", "proxy-client-ip", "wl-proxy-client-ip", "cdn-loop",
        "cdn-real-ip", "ali-cdn-real-ip", "x-proxyuser-ip", "x-host", "x-scheme", "x-url-scheme", "front-end-https",
        "proxy-connection", "x-varnish", "x-request-start", "x-cloud-trace-context", "surrogate-capability",
        "max-forwards",
    )
)  # fmt: skip
PROXY_PREFIXES = (
    "x-forwarded", "cf-", "x-envoy-", "x-original-", "fastly-", "fly-", "tailscale-", "x-amz-cf-", "x-amzn-",
    "x-azure-", "x-appengine-", "x-vercel-", "x-nf-", "x-arr-", "x-akamai-", "akamai-", "x-sucuri-", "incap-",
    "x-nginx-",
)  # fmt: skip
TOKEN_FILE = "admin-token"
MAX_TOKEN = 200
LOGIN_PATH = "/api/session"

FAILURES = 10  # of one address in a window; later ones are refused without the reason
WINDOW = 60.0  # seconds
MAX_ADDRESSES = 10_000


class FailedLogins:
    """Failed logins per address.

    A valid token is accepted however many logins of its address failed: behind a proxy, one attacker would lock out
    all other clients. 256 random bits cannot be guessed.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._counts: dict[str, tuple[float, int]] = {}  # address -> start of its window, failures in it

    def refuse(self, address: str, what: str = "token") -> Refused:
        """Count a failure and return the refusal for the client."""
        now = self._clock()
        begin, count = self._counts.get(address, (now, 0))
        if now - begin >= WINDOW:
            begin, count = now, 0
        if address not in self._counts and len(self._counts) >= MAX_ADDRESSES:
            self._counts.clear()
        self._counts[address] = (begin, count + 1)
        if count < FAILURES:
            why = (
                "it was used, or is older than a minute" if what == "code" else "it may be revoked, expired or mistyped"
            )
            return Refused(ApiCode.UNAUTHENTICATED, f"this {what} is not valid", why)
        if count == FAILURES:
            log.warning("%d failed logins from %s within %d s", count, address, WINDOW)
        wait = max(1, int(begin + WINDOW - now))
        return Refused(ApiCode.TOO_MANY_LOGINS, "too many failed logins", f"wait {wait} s", retry_after=wait)


class Gate:
    def __init__(
        self,
        settings: Settings,
        tokens: Tokens,
        tenants: Tenants,
        sessions: Sessions,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._tokens = tokens
        self._tenants = tenants
        self._sessions = sessions
        self._clock = clock
        self._failed = FailedLogins(clock)
        self.is_open = settings.control_auth == "auto" and is_loopback(settings.host) and not settings.trusted_proxies

    def identify(self, request: Request, key: str | None = None) -> Caller:
        """The caller of a request. Refused if its token is not valid, or not allowed to act for the tenant it names.

        `key` is a token that came in another header than Authorization, which wins.
        """
        shown = request.headers.get("authorization")
        if shown is None and key is not None:
            shown = f"Bearer {key}"
        cookie = cookie_of(request.headers.get("cookie", "")) if shown is None else ""
        is_login = request.method == "POST" and request.url.path == LOGIN_PATH  # brings its own proof
        token = self._sessions.find(cookie) if cookie and not is_login else None
        if shown is not None:
            caller = self._bearer(shown, request)
        elif token is not None:
            caller = self._logged_in(token, cookie, request)
        elif self.is_open and _is_local(request):
            caller = LOCAL
        else:
            return NOBODY
        wanted = request.headers.get(TENANT_HEADER, caller.tenant)
        if wanted == caller.tenant:
            return caller
        if not caller.is_operator:
            raise Refused(ApiCode.FORBIDDEN, "this token is for another tenant", "leave the header out")
        return replace(caller, tenant=self._tenants.find(wanted).name)

    def _bearer(self, shown: str, request: Request) -> Caller:
        scheme, _, text = shown.partition(" ")
        text = text.strip()
        token = self._tokens.check(text) if scheme.lower() == "bearer" and len(text) <= MAX_TOKEN else None
        if token is None:
            raise self._failed.refuse(request.client.host if request.client is not None else "")
        return _caller(token, partial(self._tokens.is_valid, token))

    def _logged_in(self, token: Token, cookie: str, request: Request) -> Caller:
        """The caller with a session. A page of another site cannot know the header that a change needs."""
        if request.method not in ("GET", "HEAD"):
            sent = request.headers.get(CSRF_HEADER, "").encode()
            if "origin" not in request.headers or not hmac.compare_digest(sent, csrf_of(cookie).encode()):
                raise Refused(
                    ApiCode.FORBIDDEN_ORIGIN,
                    "a change with a session needs Origin and X-Atoll-CSRF",
                    "GET /api/session has the value; programs send a token instead",
                )
        return self._of_session(token, cookie)

    def _of_session(self, token: Token, cookie: str) -> Caller:
        return replace(_caller(token, partial(self._sessions.is_valid, cookie)), session=cookie)

    async def log_in(self, request: Request, token: str, code: str) -> Caller:
        """The caller with a new session, for a token or a one-time code. Ends the session that the browser had."""
        found = self._sessions.take_code(code) if 0 < len(code) <= MAX_TEXT else None
        if not code and len(token) <= MAX_TOKEN:
            found = self._tokens.check(token)
        if found is None:
            address = request.client.host if request.client is not None else ""
            raise self._failed.refuse(address, "code" if code else "token")
        await self._sessions.end(cookie_of(request.headers.get("cookie", "")))
        return self._of_session(found, await self._sessions.begin(found))

    async def make_first_token(self, folder: Path) -> Path | None:
        """Make the first token if tokens are needed and none can make others; log the file that holds it."""
        if self.is_open or self._tokens.has_operator():
            return None
        path, text = folder / TOKEN_FILE, new_text()
        path.unlink(missing_ok=True)  # an old file may be open elsewhere, or be a link
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(file, text.encode() + b"\n")
            os.fsync(file)
        finally:
            os.close(file)
        # The file comes first: after a crash in between it holds no valid token, and the next start makes another.
        await self._tokens.keep(text, "admin", [Scope.ADMIN], None, None, Mark.of(LOCAL, self._clock()))
        return path


def _caller(token: Token, may_still: Callable[[], bool]) -> Caller:
    return Caller(
        token.name,
        token.tenant or LOCAL.tenant,
        held(token.scopes),
        token.tenant is None,
        token.expires_at,
        token.id,
        may_still=may_still,
    )


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address that a node listens on."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def is_local_host(request: Request) -> bool:
    """Whether the Host header is a name that means this machine, whatever DNS says."""
    name = (host_name(request.headers.get("host", "").encode("latin-1")) or b"").decode()
    return name in LOCAL_HOSTS or name.endswith(".localhost")


def _is_local(request: Request) -> bool:
    by_local_name = is_local_host(request)
    is_old = request.scope.get("http_version") == "1.0"  # no current tool speaks it by default
    return by_local_name and not is_old and not any(map(_is_of_a_proxy, request.headers.keys()))


def _is_of_a_proxy(header: str) -> bool:
    return header in PROXY_HEADERS or header.startswith(PROXY_PREFIXES)
