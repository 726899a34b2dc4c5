"""How much of a client's socket is read at once.

The event loop reads up to 256 KB for a protocol with `data_received`. That is the fastest for requests, but a thousand
clients that send bodies would bring 256 MB in one turn of the loop. So a connection gets its bytes through a SmallReads
once it sends a body that is streamed, and from the start if there are many connections.
"""

from __future__ import annotations

import asyncio
from typing import Final

from atoll.front.endpoint import Endpoint

# One read of a body while its tenant has room: as much as one BODY frame carries.
READ: Final = 65536

# One read of anything else.
SMALL_READ: Final = 16384

# All reads of the process go here first. A read is copied out before the next one begins.
_BUFFER: Final = memoryview(bytearray(READ))
_SMALL: Final = _BUFFER[:SMALL_READ]


class SmallReads:
    """The protocol of a transport whose bytes come in small pieces. Everything is passed on to the connection.

    It serves as an asyncio.BufferedProtocol, without inheriting from it: see ClientConnection.
    """

    __slots__ = ("connection",)

    def __init__(self, connection: Endpoint) -> None:
        self.connection = connection

    def get_buffer(self, hint: int) -> memoryview:
        return _BUFFER if self.connection.has_room() else _SMALL

    def buffer_updated(self, count: int) -> None:
        self.connection.data_received(bytes(_BUFFER[:count]))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.connection.connection_made(transport)

    def connection_lost(self, error: Exception | None) -> None:
        self.connection.connection_lost(error)

    def eof_received(self) -> bool:
        return self.connection.eof_received()

    def pause_writing(self) -> None:
        self.connection.pause_writing()

    def resume_writing(self) -> None:
        self.connection.resume_writing()
