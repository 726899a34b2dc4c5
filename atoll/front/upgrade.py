"""Recognizes requests for a WebSocket. The first one imports `sockets.py`: many nodes never need it."""

from __future__ import annotations

from atoll.front.http1 import Rejection, header
from atoll.front.line import ClientLine


def became_socket(connection: ClientLine, head: bytes) -> bool:
    """Start the WebSocket that a request asks for. False if it asks for none, or no worker matches."""
    if not head.startswith(b"GET ") or header(head.lower(), b"upgrade") != b"websocket":
        return False
    if connection.framing.kept is None:
        raise Rejection(400, "a request for a WebSocket must have no body")
    from atoll.front.sockets import begin_socket

    return begin_socket(connection, head)
