"""Who a request comes from: its token, or this machine itself.

    a token that is valid        its tenant and scopes; one bound to no tenant chooses one with X-Atoll-Tenant
    a token that is not          refused, and soon refused more briefly: failed logins are counted per address
    none, on an open node        the local operator
    none, elsewhere              nobody, who may see what is public

A node is open when it listens on a loopback address only, is asked for by one of its local names and not through a
proxy, and the setting `control_auth` does not say otherwise. Whoever can do that could as well read its data folder.
Proxies give themselves away by headers they add, by the public name they pass on, or, as nginx does unless it is told
otherwise, by HTTP/1.0. A tunnel that adds nothing (ssh -R, socat) cannot be told from a local tool: for that there is
`control_auth`.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from atoll.config import Settings
from atoll.control.audit import Mark
from atoll.control.callers import LOCAL, NOBODY, Caller, Scope, held
from atoll.control.refusals import ApiCode, Refused
from atoll.control.tenants import Tenants
from atoll.control.tokens import Tokens, new_text
from atoll.router import LOCAL_HOSTS, host_name

if TYPE_CHECKING:
    from starlette.requests import Request

log = logging.getLogger("atoll.control")

TENANT_HEADER = "x-atoll-tenant"
PROXY_HEADERS = (
    "forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-forwarded-port", "x-real-ip",
    "x-client-ip", "true-client-ip", "cf-connecting-ip", "cf-ray", "cdn-loop", "x-envoy-external-address",
)  # fmt: skip
TOKEN_FILE = "admin-token"
MAX_TOKEN = 200

FAILURES = 10  # of one address in a window; later ones are refused without a word why
WINDOW = 60.0  # seconds
MAX_ADDRESSES = 10_000


class FailedLogins:
    """How often each address has shown a token that is none.

    A valid token is let in whatever its address did before: behind a proxy one stranger would lock out everybody, and
    256 random bits are not guessed however often one tries.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._counts: dict[str, tuple[float, int]] = {}  # address -> begin of its window, failures in it

    def refuse(self, address: str) -> Refused:
        """Count one more; how to tell the client."""
        now = self._clock()
        begin, count = self._counts.get(address, (now, 0))
        if now - begin >= WINDOW:
            begin, count = now, 0
        if address not in self._counts and len(self._counts) >= MAX_ADDRESSES:
            self._counts.clear()
        self._counts[address] = (begin, count + 1)
        if count < FAILURES:
            return Refused(
                ApiCode.UNAUTHENTICATED, "this token lets nobody in", "it may be revoked, expired or mistyped"
            )
        if count == FAILURES:
            log.warning("%d failed logins from %s within %d s", count, address, WINDOW)
        wait = max(1, int(begin + WINDOW - now))
        return Refused(ApiCode.TOO_MANY_LOGINS, "too many failed logins", f"wait {wait} s", retry_after=wait)


class Gate:
    def __init__(
        self, settings: Settings, tokens: Tokens, tenants: Tenants, clock: Callable[[], float] = time.time
    ) -> None:
        self._tokens = tokens
        self._tenants = tenants
        self._clock = clock
        self._failed = FailedLogins(clock)
        self.is_open = settings.control_auth == "auto" and is_loopback(settings.host)

    def identify(self, request: Request) -> Caller:
        """Refused if the request shows a token that is none, or wants to act for a tenant it may not act for."""
        shown = request.headers.get("authorization")
        if shown is not None:
            caller = self._bearer(shown, request)
        elif self.is_open and _is_local(request):
            caller = LOCAL
        else:
            return NOBODY
        wanted = request.headers.get(TENANT_HEADER, caller.tenant)
        if wanted == caller.tenant:
            return caller
        if not caller.is_operator:
            raise Refused(
                ApiCode.FORBIDDEN, "this token is for one tenant, and not for that one", "leave the header out"
            )
        return replace(caller, tenant=self._tenants.find(wanted).name)

    def _bearer(self, shown: str, request: Request) -> Caller:
        scheme, _, text = shown.partition(" ")
        text = text.strip()
        token = self._tokens.check(text) if scheme.lower() == "bearer" and len(text) <= MAX_TOKEN else None
        if token is None:
            raise self._failed.refuse(request.client.host if request.client is not None else "")
        is_operator = token.tenant is None
        return Caller(
            token.name,
            token.tenant or LOCAL.tenant,
            held(token.scopes),
            is_operator,
            token.expires_at,
            may_still=partial(self._tokens.is_valid, token),
        )

    async def make_first_token(self, folder: Path) -> Path | None:
        """Where tokens are needed and there is none to make others with: make it, and say in which file it is."""
        if self.is_open or self._tokens.has_operator():
            return None
        path, text = folder / TOKEN_FILE, new_text()
        path.unlink(missing_ok=True)  # whoever had it open, or a link in its place, gets nothing
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        try:
            os.write(file, text.encode() + b"\n")
            os.fsync(file)
        finally:
            os.close(file)
        # The file comes first: a crash in between leaves a text that is no token, and the next start makes another.
        await self._tokens.keep(text, "admin", [Scope.ADMIN], None, None, Mark.of(LOCAL, self._clock()))
        return path


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address that a node listens on."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host.lower() == "localhost"


def _is_local(request: Request) -> bool:
    name = (host_name(request.headers.get("host", "").encode("latin-1")) or b"").decode()
    by_local_name = name in LOCAL_HOSTS or name.endswith(".localhost")  # which is nobody's to point elsewhere
    is_old = request.scope.get("http_version") == "1.0"  # no tool of our days speaks it by itself
    return by_local_name and not is_old and not any(header in request.headers for header in PROXY_HEADERS)
