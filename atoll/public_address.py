"""The address at which clients reach the workers of a node: scheme, domain and port, for every URL that Atoll shows.

Behind a proxy only the operator knows it: the setting `public_url`. Without one it is the node's own port, the HTTPS
port if there is one.
"""

from __future__ import annotations

from urllib.parse import urlsplit

from msgspec import Struct

from atoll.config import Settings
from atoll.workers import host_label

USUAL_PORTS = {"http": 80, "https": 443}


class PublicAddress(Struct, frozen=True):
    scheme: str
    domain: str
    port: int  # 0: not shown

    def url(self, worker_name: str) -> str:
        """The URL of a worker."""
        return self.at(f"{host_label(worker_name)}.{self.domain}") + "/"

    @property
    def base(self) -> str:
        """The address without a worker, to show where a node serves."""
        return self.at(self.domain)

    def at(self, host: str) -> str:
        """A host with the scheme and port of this address, without a path."""
        return f"{self.scheme}://{host}" + (f":{self.port}" if self.port else "")


def public_address(settings: Settings, port: int) -> PublicAddress:
    """`port` is the plain port that the node listens on; 0 if it does not listen."""
    if settings.public_url:
        parts = urlsplit(settings.public_url)
        return PublicAddress(parts.scheme, settings.base_domain, parts.port or 0)
    scheme, own = ("https", settings.https_port) if settings.https_port and port else ("http", port)
    return PublicAddress(scheme, settings.base_domain, 0 if own == USUAL_PORTS[scheme] else own)


def is_secure(settings: Settings, host: str) -> bool:
    """Whether a request with this Host header came to the HTTPS port of the node itself."""
    name, colon, port = host.rpartition(":")
    has_port = bool(colon) and port.isascii() and port.isdigit() and not name.endswith(":")
    return bool(settings.https_port) and (int(port) if has_port else 80) == settings.https_port
