"""A client's connection as seen by the modules below `connection.py`.

It is a class and not a Protocol: mypyc compiles method calls on a class to direct calls, and on a Protocol to lookups.
"""

from __future__ import annotations

import asyncio

from atoll.front.peer import Peer


class Endpoint:
    __slots__ = ("is_lost", "is_write_paused", "peer", "touched", "transport")

    transport: asyncio.Transport
    peer: Peer

    def __init__(self) -> None:
        self.is_lost = False
        self.is_write_paused = False  # the write buffer is full
        self.touched = 0.0  # time of the last relevant event, for the timeouts

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        raise NotImplementedError

    def connection_lost(self, error: Exception | None) -> None:
        raise NotImplementedError

    def data_received(self, data: bytes) -> None:
        raise NotImplementedError

    def eof_received(self) -> bool:
        raise NotImplementedError

    def pause_writing(self) -> None:
        raise NotImplementedError

    def resume_writing(self) -> None:
        raise NotImplementedError

    def has_room(self) -> bool:
        """Whether a large read is welcome."""
        raise NotImplementedError

    def step(self) -> None:
        """Continue with work that was put off to a later turn of the event loop."""
        raise NotImplementedError

    def gate(self) -> None:
        """Pause or resume reading, by the room there is for more bytes."""
        raise NotImplementedError

    def can_keep(self) -> bool:
        """Whether the connection can serve another request, as far as is known when the response starts."""
        raise NotImplementedError

    def finish(self, keeps: bool) -> None:
        """The response is written: serve the next request, or close."""
        raise NotImplementedError

    def cut(self) -> None:
        """Abort the connection, so that the client sees that the response is incomplete."""
        raise NotImplementedError
