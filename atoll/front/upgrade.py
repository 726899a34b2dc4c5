"""Requests to become a WebSocket are told from others here; the rest is loaded with the first of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from atoll.front.http1 import header

if TYPE_CHECKING:
    from atoll.front.connection import Connection


def became_socket(connection: Connection, head: bytes) -> bool:
    """Whether a request asks to become a WebSocket, of a worker that is there: then it is under way. Raises Refusal."""
    if not head.startswith(b"GET ") or header(head.lower(), b"upgrade") != b"websocket":
        return False
    from atoll.front.sockets import begin_socket

    return begin_socket(connection, head)
