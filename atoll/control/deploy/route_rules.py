"""Which tenant owns a host. A tenant cannot route over the host of another, and never learns who owns it.

Within a tenant the more specific pattern wins. Between tenants that rule would let one take a path of another's host,
so the first tenant to use a host owns all of it: the claims of two tenants never overlap (atoll/claims.py). Recently
freed hosts count too (reserved.py).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from atoll.api.callers import Caller
from atoll.api.refusals import ApiCode, Refused
from atoll.claims import Claim, claim_of, read_claim, spelled, unit_of
from atoll.control.access.reserved import Reservation, Reservations
from atoll.control.access.tenants import Tenants
from atoll.control.store.version_rows import Deployment
from atoll.router import Pattern, Router, parse_pattern
from atoll.workers import host_label

# Labels of previews by version: the first digits of its id, and the worker. previews.py serves them.
PREVIEW = re.compile(r"[0-9a-f]{8}-.+")
ELSEWHERE = "choose another host: this one is taken"


class RouteRules:
    """The rules for a worker's routes that depend on other workers and tenants."""

    def __init__(self, router: Router, tenants: Tenants, reserved: Reservations) -> None:
        self._router = router
        self._tenants = tenants
        self._reserved = reserved

    def refuse_taken(self, draft: Deployment) -> None:
        """Refuse a draft that wants a name or route of another worker or tenant."""
        mine, host = draft.version.tenant, self._router.own_host(draft.name)
        if draft.name not in self._router.entries and self._router.has_lost_host(draft.name):
            raise Refused(
                ApiCode.BAD_NAME,
                f"the name `{draft.name}` cannot be used: this node answers on {host} itself",
                "choose another name, or have an operator give the node another host: see `atoll config`",
            )
        own, *_ = self._router.claims_of(draft.name, ())
        if self._router.claims.others(own, mine):
            raise Refused(
                ApiCode.NAME_TAKEN,
                f"the name `{draft.name}` is taken: another tenant has {host} or a host below it",
                "choose another name",
            )
        self._refuse_reserved(own, host, mine)
        if draft.name not in self._router.entries:  # workers that exist keep their hosts
            self._refuse_preview(host_label(draft.name), mine, ApiCode.NAME_TAKEN)
        for text in draft.routes:
            pattern = parse_pattern(text)
            claim = claim_of(pattern.wildcard, pattern.host, self._router.base)
            if mine not in self._router.claims.holders(claim):
                self._refuse_preview(unit_of(pattern.host, self._router.base), mine, ApiCode.ROUTE_TAKEN)
            if self._router.claims.others(claim, mine):
                message = f"the host of the route {text} belongs to another tenant"
                raise Refused(ApiCode.ROUTE_TAKEN, message, ELSEWHERE)
            self._refuse_reserved(claim, f"the host of the route {text}", mine)
        # From here on: conflicts between workers of one tenant
        holder = self._router.labels.get(host_label(draft.name), draft.name)
        if holder != draft.name:
            raise Refused(
                ApiCode.NAME_TAKEN,
                f"the name `{draft.name}` is taken: its host would be {host}, which the worker `{holder}` has",
                "choose a name that differs in more than `_` and `-`",
            )
        for taken, owner in self._router.conflicts(draft.name, draft.routes):
            raise Refused(
                ApiCode.ROUTE_TAKEN,
                f"the route {taken} belongs to the worker `{owner}`",
                "remove it there first, or choose another",
            )

    def refuse_taken_host(self, label: str, tenant: str) -> None:
        """Refuse a host directly below the base domain that anyone else has, for the preview of a worker."""
        host = f"{label}.{self._router.base}"
        claim = ("*", host)
        others = self._router.claims.others(claim, tenant)
        if others or label in self._router.labels or ("", host) in self._router.by_host:
            raise Refused(ApiCode.ROUTE_TAKEN, f"{host} is the host of another worker", "choose another alias")
        if self._router.is_control(host.encode()):
            raise Refused(ApiCode.ROUTE_TAKEN, f"{host} is a control host of this node", "choose another alias")
        self._refuse_reserved(claim, host, tenant)

    def _refuse_preview(self, label: str, tenant: str, code: ApiCode) -> None:
        """Refuse a host that is for previews of a worker of another tenant."""
        owner = self._router.with_label(label[9:]) if PREVIEW.match(label) else None
        if owner is not None and owner.version is not None and owner.version.tenant != tenant:
            host = f"{label}.{self._router.base}"
            raise Refused(code, f"{host} is for previews of a worker of another tenant", ELSEWHERE)

    def _refuse_reserved(self, claim: Claim, called: str, tenant: str) -> None:
        if self._reserved.others(claim, tenant):
            days = f"{self._reserved.days:g} days"
            raise Refused(
                ApiCode.HOST_RESERVED,
                f"{called} is reserved: another tenant had it within the last {days}",
                f"choose another, or have an operator release it: atoll hosts release {spelled(claim)!r}",
            )

    def is_contested(self, deployment: Deployment) -> bool:
        """Whether a live worker has a host that another tenant owns."""
        claims = self._router.claims_by(deployment.name)
        return any(self._router.claims.others(claim, deployment.version.tenant) for claim in claims)

    def let_go(self, old: Deployment, new: Deployment | None = None) -> list[Claim]:
        """The hosts of a live worker that it loses when `new` takes its place."""
        kept = self._router.claims_of(new.name, new.routes) if new is not None else ()
        return [claim for claim in self._router.claims_by(old.name) if claim not in kept]

    def names(self, host: str) -> bool:
        """Does a worker have exactly this host?"""
        return host.isascii() and self._router.names(host.encode())

    def reserved(self, tenant: str | None) -> list[Reservation]:
        """The reservations of a tenant, or of all tenants, that are not in use."""
        return [each for each in self._reserved.all(tenant) if not self._is_in_use(each)]

    def _is_in_use(self, reservation: Reservation) -> bool:
        return reservation.tenant in self._router.claims.holders(read_claim(reservation.host, self._router.base))

    def refuse_foreign(self, routes: Sequence[str], caller: Caller) -> None:
        """Refuse routes on hosts that the tenant is not allowed to have, even if they are free."""
        tenant = self._tenants.get(caller.tenant)
        allowed = None if tenant is None or tenant.hosts is None else [parse_pattern(f"{h}/*") for h in tenant.hosts]
        for text in routes:
            pattern = parse_pattern(text)
            if allowed is not None:
                if not any(covers(each, pattern) for each in allowed):
                    raise Refused(
                        ApiCode.BAD_ROUTE,
                        f"the route {text} is on a host that is not allowed for the tenant `{caller.tenant}`",
                        "an operator can add it to `hosts` of the tenant",
                    )
            elif not caller.is_operator and pattern.wildcard and self._is_wide(pattern):
                raise Refused(
                    ApiCode.BAD_ROUTE,
                    f"the route {text} covers hosts of other tenants",
                    "only an operator may deploy it",
                )
            if not caller.is_operator and self._meets_control(pattern):
                raise Refused(
                    ApiCode.BAD_ROUTE,
                    f"the route {text} is on a control host or below one",
                    "only an operator may deploy it",
                )

    def _is_wide(self, pattern: Pattern) -> bool:
        """Whether a wildcard covers a whole top-level domain, or the node's base domain."""
        return "." not in pattern.host or covers(pattern, Pattern(f"x.{self._router.base}", "", "/"))

    def _meets_control(self, pattern: Pattern) -> bool:
        """Whether a host of this pattern is a control host or below one, the base domain of workers aside."""
        base = self._router.base
        for host in self._router.control_names:
            if base != host and not base.endswith(f".{host}"):
                below = Pattern(host, "*", "/")
                if covers(below, pattern) or covers(pattern, below):
                    return True
        return False


def covers(wide: Pattern, narrow: Pattern) -> bool:
    """Whether every host of one pattern is a host of another."""
    if narrow.host == wide.host:
        return wide.wildcard == "*" or wide.wildcard == narrow.wildcard
    is_below = not wide.host or narrow.host.endswith("." + wide.host)
    return wide.wildcard != "" and is_below
