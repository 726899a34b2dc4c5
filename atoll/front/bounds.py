"""Limits on what one client may send, and on how long it may take."""

from __future__ import annotations

from dataclasses import dataclass, fields

from atoll.config import Settings


@dataclass(frozen=True)
class Bounds:
    """In bytes and seconds."""

    header_bytes: int = 131_072
    url_bytes: int = 16_384
    body_bytes: int = 100 * 1024 * 1024
    header_timeout: float = 10.0  # from the first byte of a head to its last
    body_timeout: float = 30.0  # between two pieces of a body
    idle_timeout: float = 75.0  # between requests, and while the client reads nothing of a response
    socket_timeout: float = 120.0  # a WebSocket that sends nothing and answers no ping; 0 means no limit


def bounds_of(settings: Settings) -> Bounds:
    """The bounds of a node. Each has the name of a setting."""
    return Bounds(**{field.name: getattr(settings, field.name) for field in fields(Bounds)})
