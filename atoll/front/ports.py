"""The ports of a node: opened before anything else, since a port in use is the most common mistake."""

from __future__ import annotations

from contextlib import AsyncExitStack
from dataclasses import replace
from typing import NamedTuple

from atoll.config import Settings
from atoll.front.passed import PLAIN, SECURE, PassedSockets, open_port
from atoll.front.server import Listening
from atoll.front.tls import Certificates


class Ports(NamedTuple):
    plain: Listening
    secure: Listening | None = None
    certificates: Certificates | None = None


def open_ports(settings: Settings, passed: PassedSockets, undo: AsyncExitStack) -> tuple[Settings, Ports]:
    """Open the ports, unless another process has passed them. The settings that are returned have the port in use."""
    plain = open_port(passed, PLAIN, settings.host, settings.port)
    undo.callback(plain.close)
    settings = replace(settings, port=plain.port)
    if not settings.https_port:
        return settings, Ports(plain)
    certificates = Certificates(settings.certificates)
    secure = open_port(passed, SECURE, settings.host, settings.https_port)
    undo.callback(secure.close)
    return settings, Ports(plain, secure, certificates)
