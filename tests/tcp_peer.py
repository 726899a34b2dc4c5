"""A TCP server for tests. The first line of a connection says how it behaves."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Callable


class TcpPeer:
    """Listens on 127.0.0.1; with `tls` every connection begins with a handshake."""

    def __init__(self, tls: ssl.SSLContext | None = None, later: ssl.SSLContext | None = None) -> None:
        self._tls = tls
        self._later = later  # for `starttls`
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.port: int = self._listener.getsockname()[1]
        self.address = f"127.0.0.1:{self.port}"
        self.accepted = 0
        self.open = 0
        self.sent = 0  # bytes of `flood` that were taken
        self.heard: list[bytes] = []  # what `hear` connections received until their end
        self.news = threading.Condition()
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def wait(self, check: Callable[[], bool], seconds: float = 20) -> None:
        with self.news:
            assert self.news.wait_for(check, seconds), f"open {self.open}, accepted {self.accepted}, sent {self.sent}"

    def _note(self, accepted: int = 0, opened: int = 0, sent: int = 0, heard: bytes | None = None) -> None:
        with self.news:
            self.accepted += accepted
            self.open += opened
            self.sent += sent
            if heard is not None:
                self.heard.append(heard)
            self.news.notify_all()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self._note(accepted=1, opened=1)
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        try:
            with contextlib.suppress(OSError):
                if self._tls is not None:
                    client = self._tls.wrap_socket(client, server_side=True)
                self._behave(client)
                if isinstance(client, ssl.SSLSocket):  # bytes that are not read before the close would reset it
                    client.settimeout(5)
                    client.unwrap()
        finally:
            client.close()
            self._note(opened=-1)

    def _behave(self, client: socket.socket) -> None:
        line = _line(client)
        if line == b"echo":
            _echo(client)
        elif line == b"hear":
            heard = _rest(client)
            self._note(heard=heard)
            client.sendall(b"%d bytes" % len(heard))
        elif line == b"flood":
            while True:
                self._note(sent=client.send(bytes(65536)))
        elif line == b"deaf":
            client.recv(1, socket.MSG_PEEK)
            self._until_gone(client)
        elif line == b"bye":
            client.sendall(b"bye")
        elif line == b"reset":
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        elif line == b"starttls":
            assert self._later is not None
            client.sendall(b"go")
            with self._later.wrap_socket(client, server_side=True) as secure:
                _echo(secure)
        elif line == b"injected":
            client.sendall(b"go")
            client.recv(1)  # the worker has read it
            client.sendall(b"not encrypted")
            self._until_gone(client)
        elif line == b"slow tls":
            client.sendall(b"go")
            self._until_gone(client)

    def _until_gone(self, client: socket.socket) -> None:
        """Reads nothing until the other side has closed the connection."""
        client.settimeout(0.1)
        while True:
            try:
                # A reset is an error; an orderly end is seen behind what was sent by its state alone.
                state = client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0]
                if state != 1:  # ESTABLISHED
                    return
                client.recv(0)
            except TimeoutError:
                continue
            threading.Event().wait(0.05)


def _line(client: socket.socket) -> bytes:
    line = b""
    while not line.endswith(b"\n"):
        got = client.recv(1)
        if not got:
            return b""
        line += got
    return line[:-1]


def _echo(client: socket.socket) -> None:
    while data := client.recv(65536):
        client.sendall(data)


def _rest(client: socket.socket) -> bytes:
    pieces = []
    while data := client.recv(65536):
        pieces.append(data)
    return b"".join(pieces)
