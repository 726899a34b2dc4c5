"""The ports of a node: opened before anything else, since a port in use is the most common mistake."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import replace
from typing import NamedTuple

from atoll.config import Settings
from atoll.front.server import Listening, listen
from atoll.front.tls import Certificates


class Ports(NamedTuple):
    plain: Listening
    secure: Listening | None = None
    certificates: Certificates | None = None


def open_ports(settings: Settings, undo: AsyncExitStack) -> tuple[Settings, Ports]:
    """Open the ports. The settings that are returned have the port that the system chose."""
    plain = listen(settings.host, settings.port)
    undo.callback(plain.close)
    settings = replace(settings, port=plain.port)
    if not settings.https_port:
        return settings, Ports(plain)
    certificates = Certificates(settings.certificates)
    secure = listen(settings.host, settings.https_port)
    undo.callback(secure.close)
    return settings, Ports(plain, secure, certificates)
