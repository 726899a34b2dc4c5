"""Messages between the process that serves and the one that takes its place, with open sockets attached.

The door is a Unix socket in the data folder, which only the folder's owner may open; the peer's user is checked too.
A message is one packet: JSON, or a client's connection with the bytes that were read from it.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import struct
from collections import deque
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

DOOR = "replace.sock"
MOST_FDS = 64
PACKET = 65_536
CREDENTIALS = struct.Struct("3i")  # pid, uid, gid of the peer
CLIENT = b"C"  # begins a packet with a client's connection; JSON begins with a brace


class Packet(NamedTuple):
    """One message: `fields` of JSON, or what was read from a client."""

    fields: dict[str, Any]
    client: bytes | None
    sockets: list[socket.socket]

    def close(self) -> None:
        for each in self.sockets:
            each.close()


class ChannelClosed(Exception):
    """The other process ended, or sent what makes no sense."""


class Channel:
    """One end of a conversation. Packets are sent in order; those that find no room in the socket wait here."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._sock = sock
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[tuple[bytes, list[int]]] = deque()  # with descriptors of our own, closed when sent
        self._is_closed = False
        self._emptied = asyncio.Event()
        self._emptied.set()

    def say(self, fds: Sequence[int] = (), **fields: object) -> None:
        self._send(json.dumps(fields).encode(), fds)

    def pass_client(self, fd: int, data: bytes) -> None:
        self._send(CLIENT + data, [fd])

    def _send(self, packet: bytes, fds: Iterable[int]) -> None:
        if self._is_closed:
            return
        self._waiting.append((packet, [os.dup(fd) for fd in fds]))
        if len(self._waiting) == 1:
            self._emptied.clear()
            self._flush()

    def _flush(self) -> None:
        while self._waiting:
            packet, fds = self._waiting[0]
            try:
                socket.send_fds(self._sock, [packet], fds)
            except BlockingIOError:
                self._loop.add_writer(self._sock, self._flush)
                return
            except OSError as error:
                if error.errno == 109:  # ETOOMANYREFS: too many descriptors are on their way
                    self._loop.call_later(0.005, self._flush)
                    return
                self._drop_waiting()
                break
            self._waiting.popleft()
            for fd in fds:
                os.close(fd)
        self._loop.remove_writer(self._sock)
        self._emptied.set()

    def _drop_waiting(self) -> None:
        for _, fds in self._waiting:
            for fd in fds:
                os.close(fd)
        self._waiting.clear()
        self._emptied.set()

    async def sent(self) -> None:
        """Wait until everything said is in the socket."""
        await self._emptied.wait()

    async def hear(self) -> Packet:
        """The next packet. ChannelClosed if the other side is gone."""
        while not self._is_closed:
            try:
                data, fds, _, _ = socket.recv_fds(self._sock, PACKET, MOST_FDS)
            except BlockingIOError:
                await self._readable()
                continue
            except OSError as error:
                raise ChannelClosed(str(error)) from None
            sockets = [socket.socket(fileno=fd) for fd in fds]
            if not data:
                break
            if data[:1] == CLIENT:
                return Packet({}, data[1:], sockets)
            try:
                fields = json.loads(data)
                assert isinstance(fields, dict)
            except (ValueError, AssertionError):
                raise ChannelClosed("it sent a message that is not JSON") from None
            return Packet(fields, None, sockets)
        raise ChannelClosed("the other process ended")

    async def _readable(self) -> None:
        ready: asyncio.Future[None] = self._loop.create_future()
        self._loop.add_reader(self._sock, lambda: None if ready.done() else ready.set_result(None))
        try:
            await ready
        finally:
            self._loop.remove_reader(self._sock)

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._loop.remove_reader(self._sock)
            self._loop.remove_writer(self._sock)
            self._drop_waiting()
            self._sock.close()


class Door:
    """Where the process that serves a data folder waits for the next one.

    The socket keeps the folder's disk in use: while the folder is away (db/folder.py) there is none.
    """

    def __init__(self, data: Path) -> None:
        self._path = data / DOOR
        self._sock = self._listen()
        self._is_closed = False
        self._is_open = asyncio.Event()
        self._is_open.set()
        self._accepting: asyncio.Task[tuple[socket.socket, object]] | None = None

    def _listen(self) -> socket.socket:
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            sock.setblocking(False)
            with suppress(FileNotFoundError):
                self._path.unlink()  # of a process that was killed: we hold the lock of the folder
            with _Folder(self._path.parent) as folder:
                sock.bind(folder.name)
            self._path.chmod(0o600)
            sock.listen(1)
        except BaseException:
            sock.close()
            raise
        return sock

    async def next(self) -> Channel:
        """A process of the same user that wants to take our place."""
        loop = asyncio.get_running_loop()
        while True:
            await self._is_open.wait()
            accepting = self._accepting = asyncio.ensure_future(loop.sock_accept(self._sock))
            try:
                await asyncio.wait((accepting,))
            finally:
                accepting.cancel()
            if accepting.cancelled():  # by `let_go`
                continue
            sock, _ = accepting.result()
            if _user_of(sock) in (os.getuid(), 0):
                return Channel(sock)
            sock.close()

    async def let_go(self) -> None:
        """Close the socket until `take_up`."""
        self._is_open.clear()
        if self._accepting is not None:
            self._accepting.cancel()
        self._sock.close()

    async def take_up(self) -> None:
        if not self._is_closed and not self._is_open.is_set():
            self._sock = self._listen()
            self._is_open.set()

    def close(self) -> None:
        self.leave()
        with suppress(OSError):
            self._path.unlink()

    def leave(self) -> None:
        """Close it, without removing the file: it may be another process's by now."""
        self._is_closed = True
        self._sock.close()


def knock(data: Path) -> Channel | None:
    """A conversation with the process that serves a data folder; None if there is none."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try:
        with _Folder(data) as folder:
            sock.connect(folder.name)
    except (FileNotFoundError, ConnectionRefusedError, NotADirectoryError):
        sock.close()
        return None
    except OSError:
        sock.close()
        raise
    return Channel(sock)


class _Folder:
    """The path of the door in a folder, however long the folder's own path is: an address has 108 bytes."""

    def __init__(self, data: Path) -> None:
        self._fd = os.open(data, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self.name = f"/proc/self/fd/{self._fd}/{DOOR}"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)


def _user_of(sock: socket.socket) -> int:
    raw = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
    return int(CREDENTIALS.unpack(raw)[1])
