"""How much and how long a client may."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Bounds:
    """In bytes and seconds."""

    header_bytes: int = 131_072
    url_bytes: int = 16_384
    body_bytes: int = 100 * 1024 * 1024
    header_timeout: float = 10.0  # from the first byte of a head to its last
    body_timeout: float = 30.0  # without a byte of the body
    idle_timeout: float = 75.0  # between requests, and without the client reading a byte of a response
    socket_timeout: float = 120.0  # of a WebSocket that says nothing and answers no ping; 0: none
