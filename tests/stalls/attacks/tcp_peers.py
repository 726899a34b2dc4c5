"""Peers of TCP sockets, and workers that open many of them."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from tests.stalls.stage import Stage, attack

SECONDS = 4
# COUNT requests at once, each with the six sockets that it may have.
READER = """import { connect } from "cloudflare:sockets";
export default { async fetch() {
  const sockets = Array.from({ length: 6 }, () => connect("127.0.0.1:PORT", OPTIONS));
  await Promise.race([scheduler.wait(4000), Promise.all(sockets.map(async (socket) => {
    const reader = socket.readable.getReader();
    while (!(await reader.read()).done);
  })).catch(() => {})]);
  return new Response("over");
} };"""
CONNECTOR = """import { connect } from "cloudflare:sockets";
export default { async fetch() {
  const until = Date.now() + 3000;
  let count = 0;
  while (Date.now() < until && count < 10_000) {
    const sockets = Array.from({ length: 100 }, () => connect("127.0.0.1:PORT"));
    count += sockets.length;
    await Promise.race([scheduler.wait(50), Promise.allSettled(sockets.map((socket) => socket.opened))]);
    for (const socket of sockets) socket.close().catch(() => {});
  }
  return new Response("over");
} };"""

Serve = Callable[[socket.socket], None]


@contextmanager
def serving(serve: Serve) -> Iterator[int]:
    listener = socket.create_server(("127.0.0.1", 0), backlog=500)

    def talk(client: socket.socket) -> None:
        with client, suppress(OSError):
            client.settimeout(SECONDS + 2)
            serve(client)

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


def read_from(stage: Stage, serve: Serve, requests: int, options: str = "{}", source: str = READER) -> Iterator[None]:
    with serving(serve) as port:
        text = source.replace("PORT", str(port)).replace("OPTIONS", options)
        name = stage.deploy("sockets", text, limits={"cpu_ms": 30_000, "subrequests": 10_000})
        yield
        threads = [threading.Thread(target=stage.node.get, args=(name,)) for _ in range(requests)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()


@attack("60 TCP peers that flood", memory_mb=96)
def floods(stage: Stage) -> Iterator[None]:
    def serve(client: socket.socket) -> None:
        while True:
            client.sendall(bytes(65536))

    yield from read_from(stage, serve, 10)


@attack("60 TCP peers that send single bytes", memory_mb=96)
def single_bytes(stage: Stage) -> Iterator[None]:
    def serve(client: socket.socket) -> None:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while True:
            client.send(b"x")

    yield from read_from(stage, serve, 10)


@attack("60 TLS handshakes that never end", memory_mb=96)
def endless_handshakes(stage: Stage) -> Iterator[None]:
    def serve(client: socket.socket) -> None:
        while client.recv(65536):
            pass

    yield from read_from(stage, serve, 10, '{ secureTransport: "on" }')


@attack("ten thousand TCP connects", memory_mb=96)
def many_connects(stage: Stage) -> Iterator[None]:
    def serve(client: socket.socket) -> None:
        while client.recv(65536):
            pass

    yield from read_from(stage, serve, 2, source=CONNECTOR)
