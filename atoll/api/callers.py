"""The caller of a control API request: its tenant and its scopes. Plain data; the boundary enforces it.

A token belongs to one tenant or to all. A caller whose token is for all tenants is an operator, who chooses the tenant
with the header `X-Atoll-Tenant`. The scopes of a token say what it may be used for: `admin` includes all others,
`deploy` includes `read`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from atoll.workers import LOCAL_TENANT


class Scope(StrEnum):
    """The scope that an endpoint requires of its caller."""

    PUBLIC = "public"  # no token required; no token has this scope
    ANY = "any"  # a token with any scope
    READ = "read"
    DEPLOY = "deploy"
    LOGS = "logs"
    ADMIN = "admin"


# The scopes that a token can be created with, and the scopes that each includes.
HELD: dict[Scope, frozenset[Scope]] = {
    Scope.READ: frozenset({Scope.READ}),
    Scope.DEPLOY: frozenset({Scope.DEPLOY, Scope.READ}),
    Scope.LOGS: frozenset({Scope.LOGS}),
    Scope.ADMIN: frozenset({Scope.READ, Scope.DEPLOY, Scope.LOGS, Scope.ADMIN}),
}


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a request. `tenant` is the tenant that the request is about; an operator chooses it."""

    name: str
    tenant: str
    scopes: frozenset[Scope]
    is_operator: bool = False
    expires_at: int | None = None  # ms since 1970: when the token expires
    token: str = ""  # the id of its token; "" without one
    session: str = field(default="", repr=False)  # the cookie of a browser that is logged in
    # Whether the token is still valid: long requests check again
    may_still: Callable[[], bool] = field(default=lambda: True, compare=False, repr=False)

    def may(self, scope: Scope) -> bool:
        return scope is Scope.PUBLIC or scope in self.scopes or (scope is Scope.ANY and bool(self.scopes))


def held(scopes: Iterable[Scope]) -> frozenset[Scope]:
    """All scopes that the scopes of a token include."""
    return frozenset().union(*(HELD[scope] for scope in scopes))


# A user of this machine with the node's own tools: the command line, or a program that embeds a node.
LOCAL = Caller("local", LOCAL_TENANT, HELD[Scope.ADMIN], is_operator=True)
NOBODY = Caller("nobody", LOCAL_TENANT, frozenset())
