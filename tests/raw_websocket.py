"""A raw WebSocket client for tests: it sends exactly the bytes it is given."""

from __future__ import annotations

import base64
import os
import socket
import struct

from tests.running import Atoll


def request_for(atoll: Atoll, name: str, **changes: str | None) -> bytes:
    key = base64.b64encode(os.urandom(16)).decode()
    fields = {"Host": atoll.host(name), "Connection": "Upgrade", "Upgrade": "websocket"}
    fields |= {"Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": key}
    fields |= {name.replace("_", "-"): value for name, value in changes.items()}  # type: ignore[misc]
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items() if value is not None)
    return f"GET / HTTP/1.1\r\n{lines}\r\n".encode()


def handshake(atoll: Atoll, name: str, **changes: str) -> socket.socket:
    raw = atoll.connect(10)
    raw.sendall(request_for(atoll, name, **changes))
    data = b""
    while b"\r\n\r\n" not in data:
        data += raw.recv(4096)
    assert data.startswith(b"HTTP/1.1 101 ")
    return raw


def read(raw: socket.socket, size: int) -> bytes:
    """The next bytes; empty once the connection is closed."""
    try:
        return raw.recv(size)
    except ConnectionResetError:
        return b""


def frame(opcode: int, payload: bytes, *, fin: bool = True, masked: bool = True, length: int | None = None) -> bytes:
    size = len(payload) if length is None else length
    head = bytes([(0x80 if fin else 0) | opcode])
    bit = 0x80 if masked else 0
    if size < 126:
        head += bytes([bit | size])
    elif size < 65536:
        head += struct.pack(">BH", bit | 126, size)
    else:
        head += struct.pack(">BQ", bit | 127, size)
    return head + (b"\0\0\0\0" if masked else b"") + payload
