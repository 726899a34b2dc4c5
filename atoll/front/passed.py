"""Ports that another process has opened for this one: systemd (`LISTEN_FDS`), or the node that it replaces."""

from __future__ import annotations

import os
import socket
from collections.abc import MutableMapping
from typing import TypeAlias

from atoll.errors import StartError
from atoll.front.server import Listening, listen

PassedSockets: TypeAlias = dict[str, list[socket.socket]]

FIRST_FD = 3
PLAIN, SECURE = "http", "https"  # FileDescriptorName= of the socket units


def passed_sockets(env: MutableMapping[str, str]) -> PassedSockets:
    """The listening sockets that systemd, or any parent that speaks its protocol, has passed to this process, by name.

    The variables are taken out of `env`: engines and later processes must not find them. Raises StartError.
    """
    pid, count, names = (env.pop(name, "") for name in ("LISTEN_PID", "LISTEN_FDS", "LISTEN_FDNAMES"))
    if not count or pid != str(os.getpid()):
        return {}
    if not count.isdecimal() or not 0 < int(count) <= 64:
        raise StartError(f"LISTEN_FDS is {count!r}, not a number of sockets", "start atoll by systemd, or unset it")
    found: PassedSockets = {}
    called = names.split(":") if names else []
    for at in range(int(count)):
        name = called[at] if at < len(called) else ""
        kind = SECURE if name == SECURE else PLAIN
        found.setdefault(kind, []).append(_listening(FIRST_FD + at, name or str(at)))
    return found


def _listening(fd: int, name: str) -> socket.socket:
    try:
        os.set_inheritable(fd, False)
        sock = socket.socket(fileno=fd)
        is_stream = sock.family in (socket.AF_INET, socket.AF_INET6) and sock.type == socket.SOCK_STREAM
        if not is_stream or not sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
            raise OSError("it is not a TCP socket that listens")
    except OSError as error:
        raise StartError(
            f"the socket {name} that was passed to this process cannot be used: {error.strerror or error}",
            "use ListenStream= with a port in the socket unit, and no Accept=yes",
        ) from None
    sock.setblocking(False)
    return sock


def open_port(passed: PassedSockets, kind: str, host: str, port: int) -> Listening:
    """The port of a node: a socket that another process has opened for it, or a new one."""
    listening = Listening()
    listening.sockets += passed.pop(kind, [])
    return listening if listening.sockets else listen(host, port)


def fits(sockets: list[socket.socket], host: str, port: int) -> bool:
    """Whether sockets of another process listen where this node should."""
    found = {each.getsockname()[:2] for each in sockets}
    if port and any(name[1] != port for name in found):
        return False
    wanted = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    return {name[0] for name in found} <= {address[0] for *_, address in wanted}
