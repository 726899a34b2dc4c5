"""WebSocket clients: control frames, fragments and compressed messages without end."""

from __future__ import annotations

import socket
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress

from tests.raw_websocket import frame, handshake
from tests.stalls.stage import Stage, attack

LISTENER = """export default { fetch(request) {
  if (request.headers.get("upgrade") !== "websocket") return new Response("sockets only");
  const { 0: client, 1: server } = new WebSocketPair();
  server.accept();
  server.addEventListener("message", () => {});
  return new Response(null, { status: 101, webSocket: client });
} };"""
DEFLATE = {"Sec_WebSocket_Extensions": "permessage-deflate"}
TEXT, BINARY, PING, PONG, PACKED = 1, 2, 9, 10, 0x40


def deflated(size: int) -> bytes:
    """So many zeros, as the content of a compressed message."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    return (packer.compress(bytes(size)) + packer.flush(zlib.Z_SYNC_FLUSH))[:-4]


def send(client: socket.socket, data: bytes) -> None:
    """Send all of it and wait until the node has dealt with it, which is when it ends the connection."""
    client.settimeout(8)
    with suppress(OSError):
        client.sendall(data)
        client.shutdown(socket.SHUT_WR)
    with suppress(OSError):
        while client.recv(1 << 20):
            pass


def open_sockets(stage: Stage, stack: ExitStack, count: int, **headers: str) -> list[socket.socket]:
    name = stage.deploy("listener", LISTENER, limits={"cpu_ms": 30_000})
    return [stack.enter_context(handshake(stage.node, name, **headers)) for _ in range(count)]


def send_all(clients: list[socket.socket], data: bytes) -> None:
    with ThreadPoolExecutor(len(clients)) as threads:
        list(threads.map(lambda client: send(client, data), clients))


def flood(stage: Stage, count: int, data: bytes, **headers: str) -> Iterator[None]:
    with ExitStack() as stack:
        clients = open_sockets(stage, stack, count, **headers)
        yield
        send_all(clients, data)


@attack("WebSocket: empty pongs")
def empty_pongs(stage: Stage) -> Iterator[None]:
    yield from flood(stage, 1, frame(PONG, b"") * 2_000_000)


@attack("WebSocket: pings")
def pings(stage: Stage) -> Iterator[None]:
    yield from flood(stage, 1, frame(PING, b"p" * 125) * 100_000)


@attack("WebSocket: a few pongs on each of 200 connections at once")
def pongs_of_many(stage: Stage) -> Iterator[None]:
    yield from flood(stage, 200, frame(PONG, b"") * 900)


@attack("WebSocket: fragments of one byte")
def small_fragments(stage: Stage) -> Iterator[None]:
    yield from flood(stage, 1, frame(TEXT, b"x", fin=False) + frame(0, b"x", fin=False) * 1_000_000)


@attack("WebSocket: fragments of 16 bytes on 20 connections")
def fragments_of_many(stage: Stage) -> Iterator[None]:
    whole = frame(BINARY, b"", fin=False) + frame(0, bytes(16), fin=False) * 60_000 + frame(0, b"")
    yield from flood(stage, 20, whole)


@attack("WebSocket: empty fragments")
def empty_fragments(stage: Stage) -> Iterator[None]:
    yield from flood(stage, 1, frame(TEXT, b"", fin=False) + frame(0, b"", fin=False) * 2_000_000)


@attack("WebSocket: messages of one byte")
def small_messages(stage: Stage) -> Iterator[None]:
    yield from flood(stage, 4, frame(TEXT, b"x") * 200_000)


@attack("WebSocket: 32 MB in a compressed message of 32 KB", memory_mb=128)
def compressed_message(stage: Stage) -> Iterator[None]:
    yield from flood(stage, 1, frame(PACKED | BINARY, deflated(32 << 20)) * 4, **DEFLATE)


@attack("WebSocket: messages that inflate beyond what is allowed, on 10 connections", memory_mb=400)
def bombs(stage: Stage) -> Iterator[None]:
    yield from flood(stage, 10, frame(PACKED | BINARY, deflated(300 << 20)), **DEFLATE)


@attack("WebSocket: small messages that inflate, on 190 connections", memory_mb=400)
def inflating(stage: Stage) -> Iterator[None]:
    yield from flood(stage, 190, frame(PACKED | BINARY, deflated(900 << 10)) * 4, **DEFLATE)


@attack("WebSocket: compressed messages in small fragments with pings and pongs between them", memory_mb=400)
def interleaved(stage: Stage) -> Iterator[None]:
    packed = deflated(30 << 20)
    pieces = [packed[at : at + 97] for at in range(0, len(packed), 97)]
    frames = [
        frame(PACKED | BINARY if at == 0 else 0, piece, fin=at == len(pieces) - 1)
        + frame(PING, bytes(50))
        + frame(PONG, b"")
        for at, piece in enumerate(pieces)
    ]
    yield from flood(stage, 6, b"".join(frames) * 8, **DEFLATE)


@attack("WebSocket: 60 unfinished compressed messages of 31 MB", memory_mb=400)
def unfinished(stage: Stage) -> Iterator[None]:
    yield from flood(stage, 60, frame(PACKED | BINARY, deflated(31 << 20), fin=False), **DEFLATE)


@attack("WebSocket: 1,300 connections with messages that inflate", memory_mb=500)
def crowd(stage: Stage) -> Iterator[None]:
    """Their windows together are more than an engine may leave unread: it was ended, with everybody's calls."""
    with ExitStack() as stack:
        clients = open_sockets(stage, stack, 1300, **DEFLATE)
        data = frame(PACKED | BINARY, deflated(255 << 10)) * 4
        yield
        for client in clients:
            client.sendall(data)
        for client in clients:
            with suppress(OSError):
                client.shutdown(socket.SHUT_WR)
        for client in clients:
            with suppress(OSError):
                while client.recv(65536):
                    pass
    assert "MB unread" not in stage.node.log()


@attack("WebSocket: 12 unfinished messages of 30 MB", memory_mb=400)
def unfinished_plain(stage: Stage) -> Iterator[None]:
    yield from flood(stage, 12, frame(TEXT, "ü".encode() * (15 << 20), fin=False))


@attack("WebSocket: a text message of 32 MB", memory_mb=128)
def long_text(stage: Stage) -> Iterator[None]:
    yield from flood(stage, 1, frame(TEXT, "ü".encode() * (16 << 20)))


@attack("WebSocket: an offer of 5,000 extensions")
def many_offers(stage: Stage) -> Iterator[None]:
    offers = "permessage-deflate; x, " * 700 + "a; b=c, " * 4300
    name = stage.deploy("listener", LISTENER)
    yield
    for _ in range(5):
        with suppress(AssertionError, OSError):
            handshake(stage.node, name, Sec_WebSocket_Extensions=offers[:30_000]).close()
