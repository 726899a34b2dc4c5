"""What a worker asks for when it opens a socket, checked: it comes from the engine."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from atoll.errors import InvalidArgument

HOST = re.compile(r"[A-Za-z0-9_.:\[\]-]{1,255}")
MAX_CERTIFICATES = 64 << 10  # bytes of PEM


class WantedTls(NamedTuple):
    """Whose certificate the server must show, and which are accepted."""

    name: str = ""  # by default the host
    authorities: str = ""  # PEM; by default those of the node
    is_checked: bool = True

    @property
    def has_own_rules(self) -> bool:
        return bool(self.authorities) or not self.is_checked


class WantedSocket(NamedTuple):
    host: str
    port: int
    tls: WantedTls | None


def read_socket(meta: dict[str, Any]) -> WantedSocket:
    host, port = meta.get("host"), meta.get("port")
    if not isinstance(host, str) or not HOST.fullmatch(host):
        raise InvalidArgument("the host of a socket is malformed")
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65535:
        raise InvalidArgument("the port of a socket is not a number from 0 to 65535")
    return WantedSocket(host.lower(), port, read_tls(meta) if meta.get("tls") is True else None)


def read_tls(meta: dict[str, Any]) -> WantedTls:
    name, authorities = meta.get("name", ""), meta.get("ca", "")
    if not isinstance(name, str) or (name and not HOST.fullmatch(name)):
        raise InvalidArgument("the name of a server is malformed")
    if not isinstance(authorities, str) or len(authorities) > MAX_CERTIFICATES:
        raise InvalidArgument(f"certificates may have {MAX_CERTIFICATES >> 10} KB")
    return WantedTls(name, authorities, meta.get("unchecked") is not True)
