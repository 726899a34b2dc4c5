"""Tells systemd about the service: ready, reloading, stopping, or which process is the main one now."""

from __future__ import annotations

import os
import socket
from contextlib import suppress


def notify(*states: str) -> None:
    """Send states such as READY=1 to systemd, if it wants to know (`Type=notify`)."""
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        return
    with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.setblocking(False)
        sock.sendto("\n".join(states).encode(), "\0" + address[1:] if address[0] == "@" else address)
