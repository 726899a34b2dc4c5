"""A server for tests of fetch(): each path does one thing, right or wrong, with raw bytes. It records requests."""

from __future__ import annotations

import contextlib
import gzip
import json
import socket
import socketserver
import ssl
import struct
import threading
import time
import zlib
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote

import brotli
from backports import zstd


@dataclass(frozen=True)
class Seen:
    """A request as it arrived."""

    line: str
    head: bytes
    headers: list[tuple[str, str]]
    body: bytes
    connection: int

    def get(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name), None)


class Upstream:
    """Listens on 127.0.0.1, or another loopback address and a port, until closed."""

    def __init__(self, tls: ssl.SSLContext | None = None, address: tuple[str, int] = ("127.0.0.1", 0)) -> None:
        self.seen: list[Seen] = []
        self.connections = 0
        self.sent = 0  # bytes sent by `/endless`
        self.release = threading.Event()  # `/wait` waits for this
        self.held = self.most_held = 0  # current requests of `/held`, and the maximum
        self.counting = threading.Lock()
        outer = self

        class Handler(socketserver.BaseRequestHandler):
            def handle(self) -> None:
                outer.connections += 1
                sock = self.request
                try:
                    if tls is not None:
                        sock = tls.wrap_socket(sock, server_side=True)
                    Conversation(outer, sock, outer.connections).run()
                except OSError:
                    pass
                finally:
                    with contextlib.suppress(OSError):
                        sock.close()

        class Server(socketserver.ThreadingTCPServer):
            allow_reuse_address = True
            daemon_threads = True
            request_queue_size = 256
            block_on_close = False

        self.server = Server(address, Handler)
        self.port: int = self.server.server_address[1]
        self.url = f"{'https' if tls else 'http'}://{address[0]}:{self.port}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def close(self) -> None:
        self.release.set()
        self.server.shutdown()
        self.server.server_close()

    def last(self) -> Seen:
        return self.seen[-1]


class Conversation:
    def __init__(self, upstream: Upstream, sock: socket.socket, number: int) -> None:
        self.upstream = upstream
        self.sock = sock
        self.number = number
        self.buffer = b""
        self.has_closed = False

    def run(self) -> None:
        while not self.has_closed:
            while b"\r\n\r\n" not in self.buffer:
                data = self.sock.recv(65536)
                if not data:
                    return
                self.buffer += data
            head, _, self.buffer = self.buffer.partition(b"\r\n\r\n")
            line, *rest = head.decode("latin-1").split("\r\n")
            headers = [(name, value.strip()) for name, _, value in (text.partition(":") for text in rest)]
            method, path, _ = line.split(" ")
            names = {name.lower(): value for name, value in headers}
            handler = getattr(self, "do_" + path.split("?")[0].strip("/").replace("-", "_").split("/")[0], None)
            early = path.startswith("/early")
            body = b"" if early else self.body(names)
            self.upstream.seen.append(Seen(line, head, headers, body, self.number))
            if handler is None:
                self.respond(f"{method} {path}".encode())
            else:
                handler(path, body)

    def body(self, names: dict[str, str]) -> bytes:
        if names.get("transfer-encoding") == "chunked":
            body = b""
            while size := int(self.line(), 16):
                body += self.take(size + 2)[:-2]
            self.line()
            return body
        return self.take(int(names.get("content-length", "0")))

    def line(self) -> bytes:
        while b"\r\n" not in self.buffer:
            self.fill()
        line, _, self.buffer = self.buffer.partition(b"\r\n")
        return line

    def take(self, size: int) -> bytes:
        while len(self.buffer) < size:
            self.fill()
        taken, self.buffer = self.buffer[:size], self.buffer[size:]
        return taken

    def fill(self) -> None:
        data = self.sock.recv(1 << 18)
        if not data:
            raise ConnectionError
        self.buffer += data

    def respond(self, body: bytes, status: str = "200 OK", **headers: Any) -> None:
        lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
        self.sock.sendall(f"HTTP/1.1 {status}\r\ncontent-length: {len(body)}\r\n{lines}\r\n".encode("latin-1") + body)

    # --- the paths ---

    def do_echo(self, path: str, body: bytes) -> None:
        self.respond(body, x_length=str(len(body)))

    def do_events(self, path: str, body: bytes) -> None:
        """Two answers of one event each, then a 204, which ends the stream."""
        number = sum(seen.line.startswith("GET /events") for seen in self.upstream.seen)
        if number > 2:
            self.respond(b"", "204 No Content")
            return
        event = b"retry: 1\nid: 1\nevent: tick\ndata: one\n\n" if number == 1 else b"event: tick\ndata: two\n\n"
        self.respond(event, content_type="text/event-stream")

    def do_headers(self, path: str, body: bytes) -> None:
        self.respond(json.dumps(self.upstream.last().headers).encode(), content_type="application/json")

    def do_status(self, path: str, body: bytes) -> None:
        code = path.split("/")[2]
        if code in ("204", "304"):
            self.sock.sendall(f"HTTP/1.1 {code} None\r\n\r\n".encode())
        else:
            self.respond(b"status", f"{code} Very Special")

    def do_reason(self, path: str, body: bytes) -> None:
        """A reason phrase from the path, in percent encoding, and a body of the given length."""
        _, _, size, reason = path.split("/", 3)
        self.respond(b"x" * int(size), f"200 {unquote(reason, 'latin-1')}")

    def do_cookies(self, path: str, body: bytes) -> None:
        self.sock.sendall(b"HTTP/1.1 200 OK\r\nSet-Cookie: a=1\r\nset-cookie: b=2, c\r\ncontent-length: 0\r\n\r\n")

    def do_chunked(self, path: str, body: bytes) -> None:
        self.sock.sendall(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n1;ext=1\r\n \r\n")
        self.sock.sendall(b"5\r\nworld\r\n0\r\ntrailer: x\r\n\r\n")

    def do_until_close(self, path: str, body: bytes) -> None:
        self.sock.sendall(b"HTTP/1.1 200 OK\r\n\r\nuntil the end")
        self.has_closed = True

    def do_early_hints(self, path: str, body: bytes) -> None:
        self.sock.sendall(b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n")
        self.respond(b"final")

    def do_early(self, path: str, body: bytes) -> None:
        """Answers before the request body has arrived, and closes."""
        self.respond(b"no need", "413 Too Large", connection="close")
        self.sock.shutdown(socket.SHUT_WR)
        with contextlib.suppress(OSError):
            while self.sock.recv(65536):
                pass
        self.has_closed = True

    def do_redirect(self, path: str, body: bytes) -> None:
        """/redirect/<status>?<location>"""
        self.respond(b"moved", f"{path.split('/')[2].split('?')[0]} Moved", location=path.partition("?")[2])

    def do_redirects(self, path: str, body: bytes) -> None:
        """/redirects/<n>: n redirects, then an answer"""
        left = int(path.split("/")[2])
        if left:
            self.respond(b"", "302 Found", location=f"/redirects/{left - 1}")
        else:
            self.respond(b"there")

    def do_coded(self, path: str, body: bytes) -> None:
        """/coded/<coding>: a text in that coding"""
        coding = path.split("/")[2]
        text = b"content " * 1000
        raw = zlib.compressobj(wbits=-15)
        coded = {
            "gzip": gzip.compress(text),
            "deflate": zlib.compress(text),
            "raw-deflate": raw.compress(text) + raw.flush(),
            "br": brotli.compress(text),
            "zstd": zstd.compress(text),
            "odd": text,
        }[coding]
        self.respond(coded, content_encoding=coding.removeprefix("raw-"), content_type="text/plain")

    def do_coded_bytes(self, path: str, body: bytes) -> None:
        """/coded-bytes/<coding>/<size>: this many bytes of a pattern, all in one piece"""
        _, _, coding, size = path.split("/")
        data = (bytes(range(251)) * (int(size) // 251 + 1))[: int(size)]
        deflate = zlib.compressobj(9, zlib.DEFLATED, -15)
        coded = {
            "br": brotli.compress,
            "gzip": gzip.compress,
            "deflate": zlib.compress,
            "raw-deflate": lambda data: deflate.compress(data) + deflate.flush(),
            "zstd": zstd.compress,
        }[coding](data)
        self.respond(coded, content_encoding=coding.removeprefix("raw-"))

    def do_bomb(self, path: str, body: bytes) -> None:
        """/bomb/<coding>: 2 GB of zeros"""
        coding = path.split("/")[2]
        block = bytes(16 << 20)
        data = (gzip.compress(block, 1) if coding == "gzip" else zstd.compress(block)) * 128
        self.respond(data, content_encoding=coding)

    def do_broken_gzip(self, path: str, body: bytes) -> None:
        self.respond(gzip.compress(b"content " * 1000)[:-20], content_encoding="gzip")

    def do_bytes(self, path: str, body: bytes) -> None:
        """/bytes/<n>: n bytes, fast"""
        left = int(path.split("/")[2])
        self.sock.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % left)
        if self.upstream.last().line.startswith("HEAD"):
            return
        block = bytes(range(256)) * 4096
        while left:
            left -= self.sock.send(block[: min(left, len(block))])

    def do_endless(self, path: str, body: bytes) -> None:
        self.sock.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            self.upstream.sent += self.sock.send(bytes(65536))

    def do_endless_head(self, path: str, body: bytes) -> None:
        self.sock.sendall(b"HTTP/1.1 200 OK\r\n")
        while True:
            self.sock.sendall(b"x-more: " + b"y" * 1000 + b"\r\n")

    def do_wait(self, path: str, body: bytes) -> None:
        """Sends its head at once, the rest when released."""
        self.sock.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nfirst")
        self.upstream.release.wait(30)
        self.sock.sendall(b" last")

    def do_pieces(self, path: str, body: bytes) -> None:
        """Sends its head and its body in two packets, as nginx does with files."""
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 13\r\n\r\n")
        self.sock.sendall(b"in two pieces")

    def do_held(self, path: str, body: bytes) -> None:
        """Takes a moment, and counts concurrent requests."""
        upstream = self.upstream
        with upstream.counting:
            upstream.held += 1
            upstream.most_held = max(upstream.most_held, upstream.held)
        time.sleep(0.05)
        with upstream.counting:
            upstream.held -= 1
        self.respond(b"held")

    def do_silent(self, path: str, body: bytes) -> None:
        self.upstream.release.wait(30)
        self.has_closed = True

    def do_trickle(self, path: str, body: bytes) -> None:
        self.sock.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        for _ in range(600):
            self.sock.sendall(b".")
            time.sleep(0.05)

    def do_bye(self, path: str, body: bytes) -> None:
        """Answers as if the connection were kept alive, and closes it."""
        self.respond(b"bye")
        self.has_closed = True

    def do_hang_up(self, path: str, body: bytes) -> None:
        self.has_closed = True

    def do_reset(self, path: str, body: bytes) -> None:
        """Resets the connection in the middle of the body."""
        self.sock.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\nsome of it")
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.has_closed = True

    def do_short(self, path: str, body: bytes) -> None:
        self.sock.sendall(b"HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nsome of it")
        self.has_closed = True

    def do_raw(self, path: str, body: bytes) -> None:
        """/raw: answers with the body of the request, byte for byte, and closes."""
        self.sock.sendall(body)
        self.has_closed = True

    def do_raw_keep(self, path: str, body: bytes) -> None:
        self.sock.sendall(body)

    def do_raw_head(self, path: str, body: bytes) -> None:
        """Answers with the text of a header; the client expects a head alone."""
        self.sock.sendall(unquote(self.upstream.last().get("x-raw") or "").encode())

    def do_endless_trailer(self, path: str, body: bytes) -> None:
        self.sock.sendall(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\n")
        while True:
            self.sock.sendall(b"x-more: " + b"y" * 1000 + b"\r\n")

    def do_endless_extension(self, path: str, body: bytes) -> None:
        self.sock.sendall(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1;a=")
        while True:
            self.sock.sendall(b"y" * 1000)

    def do_once(self, path: str, body: bytes) -> None:
        """Answers as if the connection could be reused, and closes it."""
        self.respond(b"once")
        self.has_closed = True
