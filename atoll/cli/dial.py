"""Connections of the command line. Names under `localhost` always lead to this machine, without the resolver.

https://www.rfc-editor.org/rfc/rfc6761#section-6.3 asks for this; many resolvers do not answer for these names.
"""

from __future__ import annotations

import http.client
import socket
import ssl

LOOPBACK = ("127.0.0.1", "::1")


def is_local_name(host: str) -> bool:
    name = host.lower().removesuffix(".")
    return name == "localhost" or name.endswith(".localhost")


def open_connection(host: str, port: int | None, *, secure: bool, seconds: float) -> http.client.HTTPConnection:
    """A connection to the control API, opened at its first request."""
    if not secure:
        return (LocalConnection if is_local_name(host) else http.client.HTTPConnection)(host, port, timeout=seconds)
    kind = SecureLocalConnection if is_local_name(host) else http.client.HTTPSConnection
    return kind(host, port, timeout=seconds, context=ssl.create_default_context())


class LocalConnection(http.client.HTTPConnection):
    def connect(self) -> None:
        self.sock = _connected(self.port, self.timeout)


class SecureLocalConnection(http.client.HTTPSConnection):
    """The certificate is checked against the name, not the address."""

    def __init__(self, host: str, port: int | None, *, timeout: float | None, context: ssl.SSLContext) -> None:
        super().__init__(host, port, timeout=timeout, context=context)
        self._trust = context

    def connect(self) -> None:
        self.sock = self._trust.wrap_socket(_connected(self.port, self.timeout), server_hostname=self.host)


def _connected(port: int, seconds: float | None) -> socket.socket:
    """Connect to the first loopback address that accepts."""
    error: OSError | None = None
    for address in LOOPBACK:
        try:
            found = socket.create_connection((address, port), seconds)
        except OSError as failed:
            error = error or failed
        else:
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return found
    assert error is not None
    raise error
