"""Which tenant owns which hosts. Pure: no I/O, no clock.

A claim is a set of hosts, written as `(wildcard, host)` like the host of a route: `("", "a.b")` is that host alone,
`("*.", "a.b")` all hosts below it, `("*", "a.b")` both. No two tenants have claims that share a host.

Below the base domain the unit of ownership is the name directly below it. The tenant of `shop.<base>`, or of any host
below it, owns `shop.<base>` with everything below: these hosts share cookies and look like one site. A wildcard over
the base domain itself claims none of these names. Only operators deploy one, and it answers on unowned hosts.

Every lookup uses counts by host, so its cost does not grow with the number of claims.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias, TypeVar

K = TypeVar("K")
Claim: TypeAlias = tuple[str, str]


def ancestors(host: str) -> Iterator[str]:
    """The domains above a host, the nearest first, and "" for all hosts last."""
    while host:
        host = host.partition(".")[2]
        yield host


def unit_of(host: str, base: str) -> str:
    """The name directly below the base domain that a host is or is below; "" for hosts elsewhere."""
    inside = host.removesuffix("." + base)
    return inside.rpartition(".")[2] if inside != host else ""


def claim_of(wildcard: str, host: str, base: str) -> Claim:
    """The claim that a route on this host makes."""
    unit = unit_of(host, base)
    return ("*", f"{unit}.{base}") if unit else (wildcard, host)


def read_claim(text: str, base: str) -> Claim:
    """A claim as people write it: `a.b`, `*.a.b`, `*a.b`."""
    host = text.lower().removesuffix(".")
    wildcard = "*." if host.startswith("*.") else "*" if host.startswith("*") else ""
    return claim_of(wildcard, host[len(wildcard) :], base)


def spelled(claim: Claim) -> str:
    """A claim as people write it."""
    return claim[0] + claim[1]


class Claims:
    """All claims by tenant. A claim that is made several times lasts until it is dropped as often."""

    def __init__(self, base: str) -> None:
        self._base = base
        self._at: dict[Claim, dict[str, int]] = {}  # -> tenant -> count
        self._under: dict[str, dict[str, int]] = {}  # claims on hosts below this one, outside the base domain

    def put(self, claim: Claim, tenant: str) -> None:
        _count(self._at, claim, tenant, 1)
        for domain in self._domains(claim):
            _count(self._under, domain, tenant, 1)

    def drop(self, claim: Claim, tenant: str) -> None:
        _count(self._at, claim, tenant, -1)
        for domain in self._domains(claim):
            _count(self._under, domain, tenant, -1)

    def holders(self, claim: Claim) -> list[str]:
        """The tenants that have made exactly this claim."""
        return list(self._at.get(claim, ()))

    def others(self, claim: Claim, tenant: str) -> bool:
        """Whether a host of this claim belongs to another tenant."""
        return any(_has_other(tenants, tenant) for tenants in self._meeting(claim))

    def _meeting(self, claim: Claim) -> Iterator[dict[str, int]]:
        """The tenants of every claim that shares a host with this one."""
        wildcard, host = claim
        none: dict[str, int] = {}
        yield self._at.get(("*", host), none)
        if unit_of(host, self._base):
            return  # units have no other kind of claim
        if wildcard != "*.":
            yield self._at.get(("", host), none)
        if wildcard:
            yield self._at.get(("*.", host), none)
            yield self._under.get(host, none)
        for domain in ancestors(host):
            yield self._at.get(("*.", domain), none)
            yield self._at.get(("*", domain), none)

    def _domains(self, claim: Claim) -> Iterator[str]:
        return iter(()) if unit_of(claim[1], self._base) else ancestors(claim[1])


def _has_other(tenants: dict[str, int], tenant: str) -> bool:
    return len(tenants) > 1 or (len(tenants) == 1 and tenant not in tenants)


def _count(table: dict[K, dict[str, int]], key: K, tenant: str, by: int) -> None:
    tenants = table.setdefault(key, {})
    tenants[tenant] = tenants.get(tenant, 0) + by
    if not tenants[tenant]:
        del tenants[tenant]
    if not tenants:
        del table[key]
