"""WebSocket servers that a worker opens a connection to."""

from __future__ import annotations

import base64
import hashlib
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from tests.raw_websocket import frame
from tests.socket_servers import GUID
from tests.stalls.attacks.websockets import BINARY, PACKED, PING, PONG, TEXT, deflated
from tests.stalls.stage import Stage, attack

DEFLATE = b"sec-websocket-extensions: permessage-deflate; server_no_context_takeover; client_no_context_takeover\r\n"
OPENER = """export default { async fetch(request) {
  const sockets = Array.from({ length: COUNT }, () => new WebSocket("ws://127.0.0.1:PORT/"));
  await Promise.all(sockets.map((each) => new Promise((resolve) => {
    each.onmessage = () => {};
    each.onclose = each.onerror = resolve;
    setTimeout(resolve, 4000);
  })));
  return new Response("over");
} };"""

Serve = Callable[[socket.socket, bytes], None]


@contextmanager
def serving(serve: Serve) -> Iterator[int]:
    """A server on its port. `serve` gets each connection and the head of its request."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=200)

    def talk(client: socket.socket) -> None:
        with client, suppress(OSError):
            client.settimeout(6)
            head = b""
            while b"\r\n\r\n" not in head:
                more = client.recv(65536)
                if not more:
                    return
                head += more
            serve(client, head)

    def accept() -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                threading.Thread(target=talk, args=(client,), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield listener.getsockname()[1]
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def switched(head: bytes) -> bytes:
    key = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"sec-websocket-key:"))[18:].strip()
    accept = base64.b64encode(hashlib.sha1(key + GUID).digest())
    return (
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Accept: %b\r\n%b\r\n" % (accept, DEFLATE)
    )


def flood(stage: Stage, count: int, data: bytes) -> Iterator[None]:
    """A worker opens so many sockets to a server that sends this."""

    def serve(client: socket.socket, head: bytes) -> None:
        client.sendall(switched(head) + data)
        while client.recv(65536):
            pass

    with serving(serve) as port:
        source = OPENER.replace("COUNT", str(count)).replace("PORT", str(port))
        name = stage.deploy("opener", source, limits={"cpu_ms": 30_000})
        yield
        stage.node.get(name)


def plain(opcode: int, payload: bytes, *, fin: bool = True) -> bytes:
    return frame(opcode, payload, fin=fin, masked=False)


@attack("WebSocket server: empty pongs")
def empty_pongs(stage: Stage) -> Iterator[None]:
    yield from flood(stage, 1, plain(PONG, b"") * 4_000_000)


@attack("WebSocket server: pings on 5 connections")
def pings(stage: Stage) -> Iterator[None]:
    yield from flood(stage, 5, plain(PING, b"p" * 125) * 50_000)


@attack("WebSocket server: fragments of one byte")
def small_fragments(stage: Stage) -> Iterator[None]:
    yield from flood(stage, 1, plain(TEXT, b"x", fin=False) + plain(0, b"x", fin=False) * 1_000_000)


@attack("WebSocket server: messages of one byte")
def small_messages(stage: Stage) -> Iterator[None]:
    yield from flood(stage, 1, plain(TEXT, b"x") * 300_000)


@attack("WebSocket server: 32 MB in a compressed message of 32 KB", memory_mb=128)
def compressed_message(stage: Stage) -> Iterator[None]:
    yield from flood(stage, 1, plain(PACKED | BINARY, deflated(32 << 20)) * 3)


@attack("WebSocket server: 6 unfinished compressed messages of 31 MB", memory_mb=280)
def unfinished(stage: Stage) -> Iterator[None]:
    yield from flood(stage, 6, plain(PACKED | BINARY, deflated(31 << 20), fin=False))
