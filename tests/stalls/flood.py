"""A client that sends as fast as it is read, on one or many connections, and reads whatever it is answered."""

from __future__ import annotations

import contextlib
import selectors
import socket
import ssl
import time
from collections.abc import Callable, Iterator, Sequence

READ = 1 << 18


@contextlib.contextmanager
def connections(connect: Callable[[], socket.socket], count: int) -> Iterator[list[socket.socket]]:
    opened = [connect() for _ in range(count)]
    try:
        yield opened
    finally:
        for client in opened:
            client.close()


def flood(clients: Sequence[socket.socket], data: bytes, *, first: bytes = b"", seconds: float = 1.5) -> int:
    """Send `first` and then `data` again and again on each connection, until the time is over or all are closed.

    Returns how many bytes were sent. Answers are read and dropped, so that none of them stops the node's reading.
    """
    selector = selectors.DefaultSelector()
    waiting: dict[socket.socket, memoryview] = {}
    whole = memoryview(data)
    for client in clients:
        client.setblocking(False)
        waiting[client] = memoryview(first) if first else whole
        selector.register(client, selectors.EVENT_READ | selectors.EVENT_WRITE)
    sent = 0
    end = time.monotonic() + seconds
    while waiting and time.monotonic() < end:
        for key, events in selector.select(0.05):
            client = key.fileobj
            assert isinstance(client, socket.socket)
            try:
                if events & selectors.EVENT_READ:
                    read(client)
                if events & selectors.EVENT_WRITE:
                    count = client.send(waiting[client][:READ])
                    sent += count
                    waiting[client] = waiting[client][count:] or whole
            except (BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError):
                pass
            except OSError:  # refused: the node may close such a connection
                selector.unregister(client)
                del waiting[client]
    selector.close()
    return sent


def read(client: socket.socket) -> None:
    with contextlib.suppress(BlockingIOError, ssl.SSLWantReadError):
        if not client.recv(READ):
            raise ConnectionError("closed")
