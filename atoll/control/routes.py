"""Whose a host is: a tenant cannot route over another's, and never learns whose it is.

Within a tenant the router's rules decide, the more specific pattern wins. Between tenants that would let one take a
path of another's host away, so there the first to have a host has it alone: patterns of two tenants never meet.
"""

from __future__ import annotations

from collections.abc import Sequence

from atoll.control.callers import Caller
from atoll.control.refusals import ApiCode, Refused
from atoll.control.tenants import Tenants
from atoll.control.version_rows import Deployment
from atoll.router import Pattern, Router, parse_pattern

ELSEWHERE = "choose another: this one is taken"


class RouteRules:
    """What a worker may have as its routes, beside what it says itself."""

    def __init__(self, router: Router, tenants: Tenants) -> None:
        self._router = router
        self._tenants = tenants

    def refuse_taken(self, draft: Deployment) -> None:
        """Refuse a draft that wants what belongs to another worker or tenant."""
        mine = draft.version.tenant
        for pattern, owner in self._router.conflicts(draft.name, draft.routes):
            if self._router.tenant_of(owner) == mine:
                raise Refused(
                    ApiCode.ROUTE_TAKEN,
                    f"the route {pattern} belongs to the worker `{owner}`",
                    "remove it there first, or choose another",
                )
            raise Refused(ApiCode.ROUTE_TAKEN, f"the route {pattern} is taken", ELSEWHERE)
        for text in draft.routes:
            for owner in self._router.meeting(parse_pattern(text)):
                if self._router.tenant_of(owner) != mine:
                    raise Refused(
                        ApiCode.ROUTE_TAKEN, f"the host of the route {text} belongs to another tenant", ELSEWHERE
                    )

    def refuse_foreign(self, routes: Sequence[str], caller: Caller) -> None:
        """Refuse routes on hosts that a tenant may not have, whoever else has them."""
        tenant = self._tenants.get(caller.tenant)
        allowed = None if tenant is None or tenant.hosts is None else [parse_pattern(f"{h}/*") for h in tenant.hosts]
        for text in routes:
            pattern = parse_pattern(text)
            if allowed is not None:
                if not any(covers(each, pattern) for each in allowed):
                    raise Refused(
                        ApiCode.BAD_ROUTE,
                        f"the route {text} is on a host that the tenant `{caller.tenant}` may not have",
                        "an operator can add it to `hosts` of the tenant",
                    )
            elif not caller.is_operator and pattern.wildcard and self._is_wide(pattern):
                raise Refused(
                    ApiCode.BAD_ROUTE, f"the route {text} takes hosts of everybody", "only an operator may deploy it"
                )

    def _is_wide(self, pattern: Pattern) -> bool:
        """A wildcard over a whole top-level domain, or over the names of the node's own workers."""
        return "." not in pattern.host or covers(pattern, Pattern(f"x.{self._router.base}", "", "/"))


def covers(wide: Pattern, narrow: Pattern) -> bool:
    """Whether every host of one pattern is one of another."""
    if narrow.host == wide.host:
        return wide.wildcard == "*" or wide.wildcard == narrow.wildcard
    is_below = not wide.host or narrow.host.endswith("." + wide.host)
    return wide.wildcard != "" and is_below
