"""Who asks the control API, on whose behalf, and what they may do. Plain facts: the boundary makes sure of them.

A token belongs to one tenant or to all. Whoever may act for all is an operator, and says for which tenant with the
header `X-Atoll-Tenant`. The scopes of a token are what it may be used for; `admin` holds all others, `deploy` holds
`read`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from atoll.workers import LOCAL_TENANT


class Scope(StrEnum):
    """What an endpoint asks of its caller."""

    PUBLIC = "public"  # nothing: no token has or needs it
    READ = "read"
    DEPLOY = "deploy"
    LOGS = "logs"
    ADMIN = "admin"


# What a token may be made with, and what each of them holds.
HELD: dict[Scope, frozenset[Scope]] = {
    Scope.READ: frozenset({Scope.READ}),
    Scope.DEPLOY: frozenset({Scope.DEPLOY, Scope.READ}),
    Scope.LOGS: frozenset({Scope.LOGS}),
    Scope.ADMIN: frozenset({Scope.READ, Scope.DEPLOY, Scope.LOGS, Scope.ADMIN}),
}


@dataclass(frozen=True, slots=True)
class Caller:
    """One who asks. `tenant` is whose things the request is about; an operator has chosen it."""

    name: str
    tenant: str
    scopes: frozenset[Scope]
    is_operator: bool = False
    expires_at: int | None = None  # ms since 1970: when its token does
    # Whether its token still lets it in: what takes long has to ask again
    may_still: Callable[[], bool] = field(default=lambda: True, compare=False, repr=False)

    def may(self, scope: Scope) -> bool:
        return scope is Scope.PUBLIC or scope in self.scopes


def held(scopes: Iterable[Scope]) -> frozenset[Scope]:
    """Everything that some scopes of a token allow."""
    return frozenset().union(*(HELD[scope] for scope in scopes))


# Whoever works on this very machine with the node's own tools: the command line, a program that embeds a node.
LOCAL = Caller("local", LOCAL_TENANT, HELD[Scope.ADMIN], is_operator=True)
NOBODY = Caller("nobody", LOCAL_TENANT, frozenset())
