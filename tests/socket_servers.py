"""WebSocket servers for tests: one of the `websockets` package that follows its paths, and one that breaks rules."""

from __future__ import annotations

import base64
import hashlib
import socket
import ssl
import struct
import threading
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from websockets.exceptions import ConnectionClosed
from websockets.sync.server import Server, ServerConnection, serve
from websockets.typing import Subprotocol

GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


@dataclass
class Peer:
    """A well-behaved server that records what it receives."""

    server: Server = field(init=False)
    closes: list[tuple[int | None, str | None]] = field(default_factory=list)
    closed: threading.Condition = field(default_factory=threading.Condition)
    tls: ssl.SSLContext | None = None

    def __post_init__(self) -> None:
        self.server = serve(self.handle, "127.0.0.1", 0, select_subprotocol=choose, ssl=self.tls, max_size=64 << 20)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        scheme = "ws" if self.tls is None else "wss"
        return f"{scheme}://127.0.0.1:{self.server.socket.getsockname()[1]}"

    def handle(self, ws: ServerConnection) -> None:
        assert ws.request is not None
        path = ws.request.path
        try:
            if path == "/close":
                ws.close(4001, "by the server")
            elif path == "/headers":
                ws.send("\n".join(f"{name.lower()}: {value}" for name, value in ws.request.headers.raw_items()))
            elif path == "/fragments":
                ws.send(["one ", "two ", "three"])
                ws.send([b"\x01", b"\x02"])
            elif path == "/abort":
                ws.send("before")
                ws.recv()
                ws.socket.shutdown(socket.SHUT_RDWR)
                return
            elif path == "/flood":
                for _ in range(2_000):
                    ws.send(bytes(100_000))
            for message in ws:
                ws.send(message)
        except ConnectionClosed:
            pass
        finally:
            with self.closed:
                self.closes.append((ws.close_code, ws.close_reason))
                self.closed.notify_all()

    def wait_close(self, count: int) -> tuple[int | None, str | None]:
        """The close of the `count`th connection that closed."""
        with self.closed:
            assert self.closed.wait_for(lambda: len(self.closes) >= count, 15), "no connection was closed"
            return self.closes[count - 1]

    def close(self) -> None:
        self.server.shutdown()


def choose(_: ServerConnection, offered: Sequence[Subprotocol]) -> Subprotocol | None:
    return Subprotocol("chat") if "chat" in offered else None


class Rogue:
    """A server that sends any answer to the handshake and then what its path names."""

    def __init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"ws://127.0.0.1:{self.listener.getsockname()[1]}"
        self.latest: socket.socket | None = None  # earlier connections may stay open for a while
        self.heard = b""  # bytes of the latest connection after its head
        self.over = threading.Event()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            self.latest = sock
            threading.Thread(target=self.serve, args=(sock,), daemon=True).start()

    def serve(self, sock: socket.socket) -> None:
        with sock:
            try:
                self.talk(sock)
            except OSError:
                pass  # the client disconnected, as it should
            finally:
                if sock is self.latest:
                    self.over.set()

    def talk(self, sock: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            head += sock.recv(65536)
        name = head.split(b" ")[1].decode()[1:]
        key = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"sec-websocket-key:"))[18:].strip()
        accept = base64.b64encode(hashlib.sha1(key + GUID).digest())
        good = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        if name in HANDSHAKES:
            sock.sendall(HANDSHAKES[name](accept))
        elif name == "endless":
            sock.sendall(b"HTTP/1.1 101 Switching Protocols\r\n")
            for count in range(600):
                sock.sendall(b"X-%d: y\r\n" % count)
                if self.over.wait(0.05):
                    return
        else:
            extension = DEFLATE if name in COMPRESSED else b""
            sock.sendall(good + b"Sec-WebSocket-Accept: " + accept + b"\r\n" + extension + b"\r\n" + FRAMES[name]())
        sock.settimeout(10)
        self.heard = b""
        while more := sock.recv(65536):
            self.heard += more

    def close(self) -> None:
        self.listener.close()


def frame(opcode: int, payload: bytes, *, fin: bool = True, masked: bool = False, rsv: int = 0) -> bytes:
    first = (0x80 if fin else 0) | rsv << 4 | opcode
    if len(payload) < 126:
        length = struct.pack("!B", len(payload) | (0x80 if masked else 0))
    elif len(payload) < 65536:
        length = struct.pack("!BH", 126 | (0x80 if masked else 0), len(payload))
    else:
        length = struct.pack("!BQ", 127 | (0x80 if masked else 0), len(payload))
    return bytes([first]) + length + (bytes(4) if masked else b"") + payload


def deflated_zeros(megabytes: int) -> bytes:
    packer = zlib.compressobj(wbits=-15)
    block = packer.compress(bytes(10 << 20)) + packer.flush(
        zlib.Z_FULL_FLUSH
    )  # independent of what precedes it, so it may be repeated
    return (block * (megabytes // 10))[:-4]


DEFLATE = b"Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover; client_no_context_takeover\r\n"
SWITCH = b"HTTP/1.1 101 Switching Protocols\r\n"
BOTH = b"Upgrade: websocket\r\nConnection: Upgrade\r\n"

HANDSHAKES: dict[str, Callable[[bytes], bytes]] = {
    "wrong-accept": lambda _: SWITCH + BOTH + b"Sec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\r\n",
    "no-accept": lambda _: SWITCH + BOTH + b"\r\n",
    "two-accepts": lambda key: SWITCH + BOTH + (b"Sec-WebSocket-Accept: " + key + b"\r\n") * 2 + b"\r\n",
    "no-upgrade": lambda key: SWITCH + b"Connection: Upgrade\r\nSec-WebSocket-Accept: " + key + b"\r\n\r\n",
    "no-connection": lambda key: SWITCH + b"Upgrade: websocket\r\nSec-WebSocket-Accept: " + key + b"\r\n\r\n",
    "other-upgrade": lambda key: (
        SWITCH + BOTH.replace(b"websocket", b"h2c") + b"Sec-WebSocket-Accept: " + key + b"\r\n\r\n"
    ),
    "unasked-protocol": lambda key: (
        SWITCH + BOTH + b"Sec-WebSocket-Accept: " + key + b"\r\nSec-WebSocket-Protocol: mine\r\n\r\n"
    ),
    "unasked-extension": lambda key: (
        SWITCH + BOTH + b"Sec-WebSocket-Accept: " + key + b"\r\nSec-WebSocket-Extensions: x-deflate-frame\r\n\r\n"
    ),
    "bad-window": lambda key: (
        SWITCH + BOTH + b"Sec-WebSocket-Accept: " + key
        + b"\r\nSec-WebSocket-Extensions: permessage-deflate; server_max_window_bits=99\r\n\r\n"
    ),
    "status-200": lambda _: b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    "status-426": lambda _: b"HTTP/1.1 426 Upgrade Required\r\nContent-Length: 2\r\n\r\nno",
    "redirect": lambda _: b"HTTP/1.1 302 Found\r\nLocation: ws://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
    "garbage": lambda _: b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "hang-up": lambda _: b"",
}  # fmt: skip

# Each ends the socket with an error for the worker, and with this close code if a close can still be sent.
FRAMES: dict[str, Callable[[], bytes]] = {
    "masked": lambda: frame(1, b"hello", masked=True),
    "bad-opcode": lambda: frame(3, b"hello"),
    "reserved-bit": lambda: frame(1, b"hello", rsv=2),
    "long-ping": lambda: frame(9, bytes(126)),
    "ping-in-pieces": lambda: frame(9, b"x", fin=False),
    "stray-continuation": lambda: frame(0, b"hello"),
    "two-beginnings": lambda: frame(1, b"a", fin=False) + frame(1, b"b"),
    "not-utf8": lambda: frame(1, b"\xff\xfe"),
    "huge": lambda: b"\x82\x7f" + struct.pack("!Q", 1 << 40),
    "huge-in-pieces": lambda: frame(2, bytes(20 << 20), fin=False) + frame(0, bytes(20 << 20)),
    "bomb": lambda: frame(2, deflated_zeros(400), rsv=4),
    "bomb-in-pieces": lambda: frame(2, deflated_zeros(30), fin=False, rsv=4) + frame(0, deflated_zeros(30)),
    "bad-deflate": lambda: frame(2, b"\xff\xff\xff\xff", rsv=4),
    "bad-close-code": lambda: frame(8, struct.pack("!H", 1005)),
    "short-close": lambda: frame(8, b"\x03"),
    "cut-in-a-frame": lambda: b"\x81\x05he",
}
COMPRESSED = ("bomb", "bomb-in-pieces", "bad-deflate")

# The start of every worker in these tests.
PRELUDE = """
const opened = (ws) => new Promise((resolve, reject) => {
  ws.addEventListener("open", () => resolve(ws));
  ws.addEventListener("error", (event) => reject(new Error(event.message)));
});
const next = (ws) => new Promise((resolve) => {
  ws.addEventListener("message", ({ data }) => resolve(data), { once: true });
});
const ended = (ws) => new Promise((resolve) =>
  ws.addEventListener("close", ({ code, reason, wasClean }) => resolve([code, reason, wasClean])));
const events = (ws) => new Promise((resolve) => {
  const seen = [];
  for (const type of ["open", "message", "error", "close"]) {
    ws.addEventListener(type, (event) => {
      const { data, code, wasClean } = event;
      seen.push(type === "message" ? `message ${data}` : type === "close" ? `close ${code} ${wasClean}` : type);
      if (type === "close") resolve(seen);
    });
  }
});
const upgrade = async (url, init = {}) => (await fetch(url, { headers: { Upgrade: "websocket" }, ...init })).webSocket;
"""
