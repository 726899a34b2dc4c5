"""WebSockets: memory of 10,000 idle sockets.

This process holds the client ends. Memory is resident bytes, of Python and of the engine separately. workerd has one
process and opens two files per socket, so it holds fewer sockets.
"""

from __future__ import annotations

import base64
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from bench.harness import WORKERD, Atoll, BenchError, Server, Workerd, fetch, rss_of
from bench.report import Options, Row

SOCKETS = 10_000
PEER_SOCKETS = 5_000
BATCH = 200
KEEPER = """export default { fetch(request) {
  if (request.headers.get("Upgrade") !== "websocket") return new Response("ready");
  const { 0: client, 1: server } = new WebSocketPair();
  server.accept();
  server.addEventListener("message", ({ data }) => server.send(data));
  return new Response(null, { status: 101, webSocket: client });
} };"""
ROOM = """import { DurableObject } from "cloudflare:workers";
export class Room extends DurableObject {
  fetch(request) {
    if (request.headers.get("Upgrade") !== "websocket") return new Response("ready");
    const { 0: client, 1: server } = new WebSocketPair();
    this.ctx.acceptWebSocket(server, ["guest"]);
    server.serializeAttachment({ name: "a guest", joined: 1 });
    return new Response(null, { status: 101, webSocket: client });
  }
  webSocketMessage(ws, message) { ws.send(message); }
}
export default { fetch: (request, env) => env.ROOM.getByName("room").fetch(request) };"""
EVICTION_SECONDS = 14.0  # until an object without calls is out of memory, and a little more


@contextmanager
def held(port: int, host: str, count: int) -> Iterator[list[socket.socket]]:
    """Opens this many WebSockets and holds them."""
    key = base64.b64encode(os.urandom(16)).decode()
    head = (
        f"GET / HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
    )
    request = f"{head}Sec-WebSocket-Key: {key}\r\n\r\n".encode()
    sockets: list[socket.socket] = []
    try:
        for at in range(0, count, BATCH):
            batch = [socket.create_connection(("127.0.0.1", port), 30) for _ in range(min(BATCH, count - at))]
            sockets += batch
            for each in batch:
                each.sendall(request)
            for each in batch:
                answer = each.recv(4096)
                if not answer.startswith(b"HTTP/1.1 101"):
                    raise BenchError(f"no WebSocket, but {answer[:100]!r}")
        yield sockets
    finally:
        for each in sockets:
            with suppress(OSError):
                each.close()


def echoes(sockets: list[socket.socket]) -> None:
    """Checks every hundredth socket with an echo."""
    for each in sockets[::100]:
        each.sendall(b"\x82\x84\0\0\0\0ping")
        answer = each.recv(100)
        if answer != b"\x82\x04ping":
            raise BenchError(f"a socket answered {answer!r}")


def idle_memory(server: Server, worker: str, count: int, apart: list[int], rest: float = 2.0) -> tuple[float, ...]:
    """KB per idle socket in each of these processes."""
    port, host = server.address(worker)
    fetch(port, host)
    with held(port, host, 300):  # excludes one-time allocations
        pass
    before = [rss_of(pid) for pid in apart]
    with held(port, host, count) as sockets:
        echoes(sockets)
        time.sleep(rest)
        return tuple((rss_of(pid) - start) / count / 1024 for pid, start in zip(apart, before, strict=True))


def rows(options: Options) -> list[Row]:
    """The rows of bench/network.py about sockets."""
    settings: dict[str, Any] = {"engines": 1, "socket_timeout": 0}
    with Atoll({"keeper": KEEPER}, **settings) as atoll:
        python, engine = idle_memory(atoll, "keeper", SOCKETS, [atoll.pids()[0], atoll.engines()[0]])
    with Atoll({}, **settings) as atoll:
        bound = [{"type": "durable_object", "name": "ROOM", "class_name": "Room"}]
        atoll.deploy({"room": ROOM}, bindings=bound, migrations=[{"tag": "v1", "new_sqlite_classes": ["Room"]}])
        pids = [atoll.pids()[0], atoll.engines()[0]]
        hibernated = sum(idle_memory(atoll, "room", SOCKETS, pids, EVICTION_SECONDS))
    memory = {"atoll": python + engine}
    if WORKERD.exists():
        with Workerd({"keeper": KEEPER}) as peer:
            (memory["workerd"],) = idle_memory(peer, "keeper", PEER_SOCKETS, peer.pids()[:1])
    return [
        Row(f"an idle WebSocket, of {SOCKETS:,}", "KB RSS", memory),
        Row("an idle WebSocket, in Python", "KB RSS", {"atoll": python}),
        Row("an idle WebSocket, in the engine", "KB RSS", {"atoll": engine}),
        Row(f"a hibernated WebSocket, of {SOCKETS:,} of one object", "KB RSS", {"atoll": hibernated}),
    ]
