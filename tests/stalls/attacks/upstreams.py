"""HTTP servers that a worker fetches from."""

from __future__ import annotations

import gzip
import socket
import zlib
from collections.abc import Iterator

import brotli

from tests.stalls.attacks.websocket_servers import serving
from tests.stalls.stage import Stage, attack

# Reads and drops what comes: it is Python that is to be kept busy, not the worker.
FETCHER = """export default { async fetch(request) {
  const init = INIT;
  const read = async () => {
    try {
      const response = await fetch("http://127.0.0.1:PORT/" + Math.random(), init);
      for await (const chunk of response.body) {}
    } catch (error) { return error.message; }
  };
  return Response.json(await Promise.all(Array.from({ length: COUNT }, read)));
} };"""
OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"transfer-encoding: chunked\r\n\r\n"


def answer(stage: Stage, data: bytes, *, count: int = 1, init: str = "{}", times: int = 1) -> Iterator[None]:
    """A worker fetches `count` times at once from a server that answers with these bytes, so many times."""

    def serve(client: socket.socket, head: bytes) -> None:
        for _ in range(times):
            client.sendall(data)

    with serving(serve) as port:
        source = FETCHER.replace("COUNT", str(count)).replace("PORT", str(port)).replace("INIT", init)
        name = stage.deploy("fetcher", source, limits={"cpu_ms": 30_000})
        yield
        stage.node.get(name)


@attack("fetch: chunks of one byte")
def small_chunks(stage: Stage) -> Iterator[None]:
    yield from answer(stage, CHUNKED + b"1\r\nx\r\n" * 1_000_000 + b"0\r\n\r\n")


@attack("fetch: chunks of one byte, kept in the cache")
def small_chunks_cached(stage: Stage) -> Iterator[None]:
    data = CHUNKED + b"1\r\nx\r\n" * 500_000 + b"0\r\n\r\n"
    yield from answer(stage, data, init="{ cf: { cacheTtl: 60, cacheEverything: true } }", count=3)


@attack("fetch: chunks of one byte that nobody reads")
def unread_chunks(stage: Stage) -> Iterator[None]:
    def serve(client: socket.socket, head: bytes) -> None:
        client.sendall(CHUNKED + b"1\r\nx\r\n" * 2_000_000)

    with serving(serve) as port:
        source = f"""export default {{ async fetch() {{
          const response = await fetch("http://127.0.0.1:{port}/");
          await new Promise((resolve) => setTimeout(resolve, 1500));
          return new Response("never read " + response.status);
        }} }};"""
        name = stage.deploy("unread", source)
        yield
        stage.node.get(name)


@attack("fetch: informational responses without end")
def informational(stage: Stage) -> Iterator[None]:
    yield from answer(stage, b"HTTP/1.1 100 Continue\r\n\r\n" * 1_000_000)


@attack("fetch: early hints with headers without end")
def early_hints(stage: Stage) -> Iterator[None]:
    yield from answer(stage, b"HTTP/1.1 103 Early Hints\r\n" + b"link: </x>\r\n" * 900 + b"\r\n", times=500)


@attack("fetch: empty lines before a response")
def empty_lines(stage: Stage) -> Iterator[None]:
    yield from answer(stage, b"\r\n" * 8_000_000 + OK + b"\r\n")


@attack("fetch: headers without end")
def headers(stage: Stage) -> Iterator[None]:
    yield from answer(stage, OK + b"a: b\r\n" * 2_000_000 + b"\r\n")


@attack("fetch: heads of 900 headers, six at a time")
def many_headers(stage: Stage) -> Iterator[None]:
    head = OK + b"".join(b"x-%d: %b\r\n" % (number, b"y" * 100) for number in range(900))
    yield from answer(stage, head + b"content-length: 0\r\nconnection: close\r\n\r\n", count=40)


@attack("fetch: trailers without end")
def trailers(stage: Stage) -> Iterator[None]:
    yield from answer(stage, CHUNKED + b"1\r\nx\r\n0\r\n" + b"a: b\r\n" * 2_000_000)


@attack("fetch: chunk extensions without end")
def chunk_extensions(stage: Stage) -> Iterator[None]:
    yield from answer(stage, CHUNKED + (b"1" + b";a" * 3 + b"\r\nx\r\n") * 1_000_000)


@attack("fetch: junk behind a response")
def junk(stage: Stage) -> Iterator[None]:
    yield from answer(stage, OK + b"content-length: 1\r\n\r\nx" + (OK + b"content-length: 0\r\n\r\n") * 200_000)


@attack("fetch: a body that comes byte by byte")
def drip(stage: Stage) -> Iterator[None]:
    def serve(client: socket.socket, head: bytes) -> None:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        client.sendall(OK + b"content-length: 20000\r\n\r\n")
        for _ in range(20_000):
            client.send(b"x")

    with serving(serve) as port:
        source = FETCHER.replace("COUNT", "6").replace("PORT", str(port)).replace("INIT", "{}")
        name = stage.deploy("fetcher", source, limits={"cpu_ms": 30_000})
        yield
        stage.node.get(name)


def coded(coding: str, body: bytes) -> bytes:
    return OK + f"content-encoding: {coding}\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


@attack("fetch: a gzip bomb, six at a time")
def gzip_bomb(stage: Stage) -> Iterator[None]:
    yield from answer(stage, coded("gzip", gzip.compress(bytes(200 << 20))), count=6)


@attack("fetch: a brotli bomb, six at a time")
def brotli_bomb(stage: Stage) -> Iterator[None]:
    body = brotli.compress(bytes(30 << 20), quality=5)
    yield from answer(stage, coded("br", body), count=6)


@attack("fetch: gzip in thousands of empty members")
def gzip_members(stage: Stage) -> Iterator[None]:
    yield from answer(stage, coded("gzip", gzip.compress(b"") * 200_000), count=3)


@attack("fetch: gzip that gives nothing")
def gzip_of_nothing(stage: Stage) -> Iterator[None]:
    packer = zlib.compressobj(wbits=31)
    body = packer.compress(b"x") + packer.flush(zlib.Z_SYNC_FLUSH) + b"\x00\x00\x00\xff\xff" * 4_000_000
    yield from answer(stage, coded("gzip", body + packer.flush()), count=3)
