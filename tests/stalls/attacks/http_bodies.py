"""Bodies of requests that cost more to take apart than to send."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator

from tests.stalls.attacks.http_heads import HELLO, MANY, get, pipeline
from tests.stalls.flood import connections
from tests.stalls.stage import Stage, attack

SINK = """export default { async fetch(request) {
  let size = 0;
  for await (const chunk of request.body) size += chunk.length;
  return new Response(String(size));
} };"""


def chunked(stage: Stage, unit: bytes, script: str = SINK, count: int = 1) -> Iterator[None]:
    """A chunked body that repeats `unit` and never ends."""
    host = stage.node.host(stage.deploy("sink" if script is SINK else "hello", script))
    first = get(host, "Transfer-Encoding: chunked", method="POST")
    yield from pipeline(stage, unit * ((1 << 20) // len(unit)), count, first=first)


@attack("chunks of one byte")
def small_chunks(stage: Stage) -> Iterator[None]:
    yield from chunked(stage, b"1\r\nx\r\n")


@attack("chunks of one byte, on many connections")
def small_chunks_many(stage: Stage) -> Iterator[None]:
    yield from chunked(stage, b"1\r\nx\r\n", count=MANY)


@attack("chunks of one byte that nobody reads")
def small_chunks_unread(stage: Stage) -> Iterator[None]:
    yield from chunked(stage, b"1\r\nx\r\n", HELLO)


@attack("chunks full of empty lines")
def chunks_of_empty_lines(stage: Stage) -> Iterator[None]:
    yield from chunked(stage, b"2000\r\n" + b"\r\n" * 4096 + b"\r\n")


@attack("chunks full of empty lines, on many connections")
def chunks_of_empty_lines_many(stage: Stage) -> Iterator[None]:
    yield from chunked(stage, b"2000\r\n" + b"\r\n" * 4096 + b"\r\n", count=MANY)


@attack("chunks with long extensions")
def chunk_extensions(stage: Stage) -> Iterator[None]:
    yield from chunked(stage, b"1;" + b"e" * 7 + b"\r\nx\r\n")


@attack("chunk sizes with many zeros")
def chunk_zeros(stage: Stage) -> Iterator[None]:
    yield from chunked(stage, b"0000001\r\nx\r\n")


@attack("a trailer without end")
def endless_trailer(stage: Stage) -> Iterator[None]:
    host = stage.node.host(stage.deploy("sink", SINK))
    first = get(host, "Transfer-Encoding: chunked", method="POST") + b"4000\r\n" + bytes(0x4000) + b"\r\n0\r\n"
    yield from pipeline(stage, b"a:\r\n" * 100_000, MANY, first=first)


@attack("large bodies on many connections")
def large_bodies(stage: Stage) -> Iterator[None]:
    host = stage.node.host(stage.deploy("sink", SINK))
    first = get(host, "Content-Length: 100000000", method="POST")
    yield from pipeline(stage, bytes(1 << 20), MANY, first=first)


@attack("large bodies that nobody reads")
def unread_bodies(stage: Stage) -> Iterator[None]:
    host = stage.node.host(stage.deploy("hello", HELLO))
    first = get(host, "Content-Length: 100000000", method="POST")
    yield from pipeline(stage, bytes(1 << 20), MANY, first=first)


@attack("large bodies for nobody")
def bodies_for_nobody(stage: Stage) -> Iterator[None]:
    first = get(stage.nobody, "Content-Length: 100000000", method="POST")
    yield from pipeline(stage, bytes(1 << 20), MANY, first=first)


@attack("a body of one byte per packet")
def drips(stage: Stage) -> Iterator[None]:
    host = stage.node.host(stage.deploy("sink", SINK))
    with connections(stage.node.connect, MANY) as clients:
        for client in clients:
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            client.sendall(get(host, "Content-Length: 100000000", method="POST"))
        yield
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            for client in clients:
                client.sendall(b"x")


@attack("uploads on 1,300 connections at once", memory_mb=160)  # 64 MB, and 48 KB for each connection
def crowd_of_uploads(stage: Stage) -> Iterator[None]:
    host = stage.node.host(stage.deploy("sink", SINK, limits={"cpu_ms": 30_000}))
    with connections(stage.node.connect, 1_300) as clients:
        for client in clients:
            client.setblocking(False)
        yield
        for data in (get(host, "Content-Length: 2000000", method="POST"), *[bytes(65536)] * 12):
            for client in clients:
                try:
                    client.send(data)
                except OSError:
                    pass  # its buffers are full, or it was refused
        time.sleep(1)
