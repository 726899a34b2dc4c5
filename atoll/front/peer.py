"""The client at the other end of a connection, and the header lines that describe it to a worker.

Headers about the client (`X-Forwarded-For`, `CF-Connecting-IP` …) are believed only from proxies that the operator
named. From anyone else they are removed. Headers that name the sending worker (`CF-Worker`) are always removed: workers
of this node do not reach each other through a socket. Our own lines are made once per connection. Behind a proxy they
are made once per client and remembered.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
from typing import TypeAlias

from atoll.client_headers import OF_CLIENT, OF_CLOUDFLARE, OF_WORKER
from atoll.errors import StartError
from atoll.front.client_places import ClientPlaces

Network: TypeAlias = "ipaddress.IPv4Network | ipaddress.IPv6Network"

HTTP, HTTPS = b" http://", b" https://"
MAX_REMEMBERED = 4096
LONGEST_CHAIN = 1024  # bytes of X-Forwarded-For that are parsed

# From a proxy we remove the headers that we set anew, and those that name the sending worker: a proxy does not know the
# worker, it passes on what its client sent. The same goes for headers that only Cloudflare can know, unless the proxy
# is Cloudflare, which adds CF-Ray to each request. All other headers of a proxy stay.
MADE_ANEW = rf"cf-(?:connecting-ip(?:v6)?|atoll-[a-z0-9-]+)|x-(?:real-ip|forwarded-for|forwarded-proto)|{OF_WORKER}"
CLAIMS = re.compile(rf"^(?:{OF_CLIENT}|{OF_WORKER}):[^\r]*\r\n".encode(), re.IGNORECASE | re.MULTILINE)
REMADE = re.compile(rf"^(?:{MADE_ANEW}|{OF_CLOUDFLARE}):[^\r]*\r\n".encode(), re.IGNORECASE | re.MULTILINE)
REMADE_OF_CLOUDFLARE = re.compile(rf"^(?:{MADE_ANEW}):[^\r]*\r\n".encode(), re.IGNORECASE | re.MULTILINE)
RAY = re.compile(rb"^cf-ray:", re.IGNORECASE | re.MULTILINE)
WITH_PORT = re.compile(r"\[([^\]]*)\](?::\d+)?|([\d.]+):\d+")  # an address in the chain; some proxies add the port
CHAIN = re.compile(rb"^x-forwarded-for:([^\r]*)\r\n", re.IGNORECASE | re.MULTILINE)
PROTO = re.compile(rb"^x-forwarded-proto:[ \t]*([a-z]+)[ \t]*\r\n", re.IGNORECASE | re.MULTILINE)


class Proxies:
    """The proxies whose headers about clients are believed."""

    def __init__(self, trusted: tuple[str, ...] = (), geo_files: tuple[str, ...] = ()) -> None:
        self.places = ClientPlaces(geo_files) if geo_files else None
        self.networks: list[Network] = []
        for text in trusted:
            try:
                self.networks.append(ipaddress.ip_network(text, strict=False))
            except ValueError:
                raise StartError(
                    f"trusted_proxies names {text!r}, which is not an address", "write addresses or ranges: 10.0.0.0/8"
                ) from None
        self.remembered: dict[tuple[bytes, bytes], tuple[bytes, bytes]] = {}

    def peer(self, transport: asyncio.BaseTransport) -> Peer:
        """The other end of a new connection."""
        name = transport.get_extra_info("peername")
        address = str(name[0]).partition("%")[0] if name else ""
        cipher = transport.get_extra_info("cipher")
        tls = f"cf-atoll-tls: {cipher[1]} {cipher[0]}\r\n".encode() if cipher else b""
        return Peer(self, address, tls, self.trusts(address))

    def trusts(self, address: str) -> bool:
        if not self.networks:
            return False
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(parsed in network for network in self.networks)

    def client(self, chain: bytes, peer: str) -> str:
        """The client of a chain of proxies: the last address in the chain that is not a trusted proxy."""
        found = peer
        for part in reversed(chain[-LONGEST_CHAIN:].decode("latin-1").split(",")):
            text = part.strip()
            with_port = WITH_PORT.fullmatch(text)
            try:
                found = str(ipaddress.ip_address(with_port[1] or with_port[2] if with_port else text))
            except ValueError:
                return found
            if not self.trusts(found):
                return found
        return found


class Peer:
    __slots__ = ("address", "is_proxy", "known", "lines", "proxies", "rest", "scheme", "tls")

    def __init__(self, proxies: Proxies, address: str, tls: bytes = b"", is_proxy: bool = False) -> None:
        self.proxies = proxies
        self.address = address
        self.tls = tls
        self.is_proxy = is_proxy
        self.scheme = HTTPS if tls else HTTP
        # The header lines of the last request, and the result of `header_block`: most clients repeat their lines.
        self.rest = b""
        self.known = (b"", b"", b"")
        self.lines = self.told(address, b"", b"https" if tls else b"http")  # follow the headers of each request

    def told(self, client: str, chain: bytes, scheme: bytes) -> bytes:
        if not client:
            return b""
        address = client.encode()
        places = self.proxies.places
        place = places.line(client) if places is not None else b""
        return b"cf-connecting-ip: %b\r\nx-real-ip: %b\r\nx-forwarded-for: %b\r\nx-forwarded-proto: %b\r\n%b%b" % (
            address, address, chain or address, scheme, self.tls, place,
        )  # fmt: skip

    def rewrite(self, block: bytes) -> tuple[bytes, bytes, bytes]:
        """Remove claims from header lines. Returns the remaining lines, the scheme, and our lines."""
        if not self.is_proxy:
            return CLAIMS.sub(b"", block), self.scheme, self.lines
        chain, proto = self.forwarded(block)
        remembered = self.proxies.remembered
        made = remembered.get((chain, proto)) if not self.tls else None
        if made is None:
            secure = proto == b"https" or (not proto and bool(self.tls))
            client = self.proxies.client(chain, self.address) if chain else self.address
            made = HTTPS if secure else HTTP, self.told(client, chain, b"https" if secure else b"http")
            if len(remembered) >= MAX_REMEMBERED:
                remembered.clear()
            if chain and not self.tls:
                remembered[chain, proto] = made
        claims = REMADE if RAY.search(block) is None else REMADE_OF_CLOUDFLARE
        return claims.sub(b"", block), *made

    def forwarded(self, block: bytes) -> tuple[bytes, bytes]:
        """The chain of addresses and the scheme that a proxy sent."""
        proto = PROTO.search(block)
        chain = b", ".join(part.strip(b" \t") for part in CHAIN.findall(block))
        return chain, proto[1].lower() if proto is not None else b""

    def client(self, block: bytes) -> str:
        """The client's address of a request with the header lines `block`."""
        chain = self.forwarded(block)[0] if self.is_proxy else b""
        return self.proxies.client(chain, self.address) if chain else self.address


NOBODY = Peer(Proxies(), "")  # adds no lines
