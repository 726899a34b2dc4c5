"""Which addresses are on the public internet. All others are refused unless the operator allows them.

An IPv6 address may contain an IPv4 address (mapped, NAT64, 6to4). Then the IPv4 address is checked, because packets go
there.
"""

from __future__ import annotations

import ipaddress
import socket
from typing import TypeAlias

Address: TypeAlias = "ipaddress.IPv4Address | ipaddress.IPv6Address"

# Addresses of cloud providers' internal services that look public.
METADATA = frozenset({ipaddress.ip_address("168.63.129.16")})  # Azure's host agent

NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
# Reserved by IANA. Which of them Python's `is_global` knows depends on its version.
RESERVED = tuple(
    map(
        ipaddress.ip_network,
        (
            "192.0.0.0/24",
            "192.88.99.0/24",
            "::/96",
            "64:ff9b:1::/48",
            "100::/64",
            "2001::/23",
            "3fff::/20",
            "5f00::/16",
        ),
    )
)


def refusal(address: Address) -> str:
    """Why an address is not public, such as `a loopback address`; "" if it is public."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = hidden(address)
        if inner is not None:
            return refusal(inner)
        if address.is_site_local:
            return "a private address"
    if address.is_unspecified:
        return "the unspecified address"
    if address.is_loopback:
        return "a loopback address"
    if address.is_multicast:
        return "a multicast address"
    if address.is_link_local:
        return "a link-local address, where clouds keep metadata and credentials"
    if address in METADATA:
        return "an address of a cloud's own services"
    if address.is_reserved or any(address in network for network in RESERVED):
        return "a reserved address"
    if not address.is_global:
        return "a private address"
    return ""


def hidden(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that a packet to this one would reach."""
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address in NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return None


def is_own(address: Address) -> bool:
    """Whether an address belongs to this machine. If so, the kernel picks it as the source address as well."""
    if isinstance(address, ipaddress.IPv6Address) and (inner := hidden(address)) is not None:
        return is_own(inner)
    if address.is_loopback or address.is_unspecified:  # 127.0.0.2 and 0.0.0.0 have the source 127.0.0.1
        return True
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((str(address), 9))  # sends nothing
            own: str = probe.getsockname()[0]
    except OSError:
        return False  # not reachable at all
    return ipaddress.ip_address(own.partition("%")[0]) == address
