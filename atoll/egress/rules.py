"""Rules on the servers that workers may connect to, by host, address range and port.

    example.com         that host            *.example.com      every host below it
    example.com:8443    on one port only     *:25               that port of every host
    10.1.0.0/16         a range              [fd00::1]:443      an address and a port

A deny list refuses what it names. An allow list, if there is one, refuses what it does not name. Neither allows
internal addresses: only the operator's `egress_allow` does.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable
from functools import lru_cache

from msgspec import Struct

from atoll.egress.addresses import Address, hidden

HOST = re.compile(r"(\*|(\*\.)?[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*)")
MAX_RULES = 200


class EgressRule(Struct, frozen=True):
    """One entry of a list. Either `host` or `network` is set."""

    text: str
    host: str = ""
    network: ipaddress.IPv4Network | ipaddress.IPv6Network | None = None
    port: int | None = None

    def names_host(self, host: str, port: int) -> bool:
        if not self.host or self.port not in (None, port):
            return False
        host = host.removesuffix(".")  # resolvers ignore the trailing dot, so rules do too
        if self.host == "*":
            return True
        return host.endswith(self.host[1:]) if self.host.startswith("*.") else host == self.host

    def names_address(self, address: Address, port: int) -> bool:
        if self.network is None or self.port not in (None, port):
            return False
        if isinstance(address, ipaddress.IPv6Address) and self.network.version == 4:
            inner = hidden(address)
            return inner is not None and inner in self.network
        return address in self.network


def parse_rule(text: str) -> EgressRule:
    """Parse a rule. Raises ValueError with what is wrong."""
    host, port = _split_port(text.strip().lower())
    if port is not None and not 0 < port < 65536:
        raise ValueError(f"{text!r} names no port from 1 to 65535")
    try:
        return EgressRule(text, network=ipaddress.ip_network(host, strict=False), port=port)
    except ValueError:
        pass
    host = host.removesuffix(".")
    if len(host) > 255 or HOST.fullmatch(host) is None or re.fullmatch(r"[\d.]*", host):
        raise ValueError(f"{text!r} is neither a host (example.com, *.example.com) nor an address range (10.0.0.0/8)")
    return EgressRule(text, host=host, port=port)


def _split_port(text: str) -> tuple[str, int | None]:
    if text.startswith("["):
        host, mark, rest = text[1:].partition("]")
        found = re.fullmatch(r"(/\d+)?(:\d{1,5})?", rest)
        if found is None or not mark or ":" not in host:
            return text, None
        return host + (found[1] or ""), int(found[2][1:]) if found[2] else None
    host, mark, port = text.rpartition(":")
    if mark and ":" not in host and port.isdecimal() and len(port) <= 5:
        return host, int(port)
    return text, None


@lru_cache(1024)
def parse_rules(texts: tuple[str, ...]) -> tuple[EgressRule, ...]:
    """Parse a list of rules. Raises ValueError for the first invalid one."""
    if len(texts) > MAX_RULES:
        raise ValueError(f"more than {MAX_RULES} rules")
    return tuple(map(parse_rule, texts))


class Policy(Struct, frozen=True):
    """The allow and deny lists of the node, a tenant or a worker."""

    whose: str
    allow: tuple[EgressRule, ...] = ()
    deny: tuple[EgressRule, ...] = ()

    def refuse_host(self, host: str, port: int, has_address: bool = True) -> str:
        """Why a host is refused before its address is known; "" if it is not."""
        for rule in self.deny:
            if rule.names_host(host, port):
                return f"the rule {rule.text!r} of the deny list of {self.whose}"
        if not self.allow or any(rule.names_host(host, port) for rule in self.allow):
            return ""
        if has_address and any(rule.network is not None for rule in self.allow):
            return ""  # decided by the address later
        return f"it is not in the allow list of {self.whose}"

    def hides(self, host: str) -> bool:
        """Whether a host is refused on every port, whatever its address is."""
        if any(rule.port is None and rule.names_host(host, 0) for rule in self.deny):
            return True
        opened = (rule.network is not None or rule.names_host(host, rule.port or 0) for rule in self.allow)
        return bool(self.allow) and not any(opened)

    def refuse_address(self, host: str, address: Address, port: int) -> str:
        for rule in self.deny:
            if rule.names_address(address, port):
                return f"the rule {rule.text!r} of the deny list of {self.whose}"
        if not self.allow or names(self.allow, host, address, port):
            return ""
        return f"it is not in the allow list of {self.whose}"


def names(rules: Iterable[EgressRule], host: str, address: Address, port: int) -> bool:
    """Whether a list of rules names a destination by its host or its address."""
    return any(rule.names_host(host, port) or rule.names_address(address, port) for rule in rules)
